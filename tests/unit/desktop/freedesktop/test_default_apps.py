"""The user's list of default programs is edited and given back as it was."""

from __future__ import annotations

from inspector.desktop.freedesktop.default_apps import add_default, add_last, remove_everywhere
from tests.sweep import table

US = "checkpoint-inspector.desktop"
TYPES = ["application/x-one", "application/x-two"]
OURS = f"application/x-one={US};\napplication/x-two={US};\n"


def test_a_list_is_begun():
    assert add_default("", US, TYPES) == f"[Default Applications]\n{OURS}"


@table(
    "before",
    [
        "",
        "[Added Associations]\ntext/plain=vim.desktop;\n",
        "[Default Applications]\ntext/plain=vim.desktop\n",
        "# me\n[Default Applications]\n# t\nt/p = vim.desktop\n\n\n[Added Associations]\na/b=c.desktop;\n",
        "[Default Applications]\n\n[Added Associations]\nimage/png=gimp.desktop;\n",
        "[Default Applications]\nbroken line\n=\ntext/caf\udce9=x.desktop\n",
    ],
)
def test_what_was_there_stays_and_comes_back(before):
    after = add_default(before, US, TYPES)
    assert OURS in after
    assert after.replace(OURS, "").replace("[Default Applications]\n", "") == before.replace(
        "[Default Applications]\n", ""
    )
    assert add_default(after, US, TYPES) == after
    assert remove_everywhere(after, US, {}) == before


def test_our_lines_stand_in_the_right_section():
    before = "[Default Applications]\na/b=c.desktop\n\n[Added Associations]\nd/e=f.desktop\n"
    assert add_default(before, US, ["x/y"]) == (
        f"[Default Applications]\na/b=c.desktop\nx/y={US};\n\n[Added Associations]\nd/e=f.desktop\n"
    )


def test_a_missing_line_end_does_not_glue_lines():
    assert add_default("[Default Applications]\na/b=c.desktop", US, ["x/y"]) == (
        f"[Default Applications]\na/b=c.desktop\nx/y={US};\n"
    )
    assert add_default("[Added Associations]\na/b=c.desktop", US, ["x/y"]) == (
        f"[Added Associations]\na/b=c.desktop\n[Default Applications]\nx/y={US};\n"
    )


def test_another_program_becomes_the_second_choice_and_the_first_again():
    before = "[Default Applications]\napplication/x-one=other.desktop;\napplication/x-two=other.desktop;\n"
    after = add_default(before, US, TYPES)
    assert after == before.replace("other.desktop;", f"{US};other.desktop;")
    assert remove_everywhere(after, US, {}) == before


def test_we_come_first_again_where_we_were_second():
    assert add_default(f"[Default Applications]\nx/y=a.desktop;{US};\n", US, ["x/y"]) == (
        f"[Default Applications]\nx/y={US};a.desktop;\n"
    )


def test_nothing_to_add_changes_nothing():
    assert add_default("", US, []) == ""
    assert add_default("[Other]\n", US, []) == "[Other]\n"


def test_what_a_file_manager_added_goes_too():
    text = (
        f"# {US}=kept\n"
        f"[Added Associations]\ntext/plain={US};vim.desktop;\na/b={US};\n[Default Applications]\n"
    )
    assert remove_everywhere(text, US, {}) == (
        f"# {US}=kept\n[Added Associations]\ntext/plain=vim.desktop;\n[Default Applications]\n"
    )


def test_a_section_of_ours_alone_goes():
    assert remove_everywhere(f"[Added Associations]\na/b={US};\n[Other]\nc=d\n", US, {}) == "[Other]\nc=d\n"


# ------------------------------------------------------------------ offers

OFFERS = {"application/zip": ("archives.desktop", US), "application/x-npy": (US,)}
ADDED = f"[Added Associations]\napplication/zip=archives.desktop;{US};\napplication/x-npy={US};\n"
CHOICE = "[Default Applications]\napplication/zip=mine.desktop;\n"


@table(
    ("before", "offered", "kept"),
    [
        (
            "",
            ADDED,
            {"application/zip": "archives.desktop"},
        ),
        (
            "[Added Associations]\napplication/zip=mine.desktop;\n",
            f"[Added Associations]\napplication/zip=mine.desktop;{US};\napplication/x-npy={US};\n",
            {},
        ),
        (
            CHOICE,
            f"{CHOICE}{ADDED}",
            {"application/zip": "archives.desktop"},
        ),
    ],
)
def test_an_offer_stands_behind_what_opens_a_file_today(before, offered, kept):
    assert add_last(before, OFFERS) == (offered, kept)
    assert add_last(offered, OFFERS) == (offered, {})
    assert remove_everywhere(offered, US, kept) == before


def test_what_the_user_added_to_an_offer_stays():
    kept = {"application/zip": "archives.desktop"}
    text = f"[Added Associations]\napplication/zip=mine.desktop;archives.desktop;{US};\n"
    assert remove_everywhere(text, US, kept) == text.replace(f"{US};", "")
    assert remove_everywhere("[Added Associations]\napplication/zip=archives.desktop;\n", US, kept) == ""
    elsewhere = "[Default Applications]\napplication/zip=archives.desktop\n"
    assert remove_everywhere(elsewhere, US, kept) == elsewhere
