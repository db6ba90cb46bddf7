"""The user's list of default programs is edited and given back as it was."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from inspector.desktop.freedesktop import default_apps as offers
from inspector.desktop.freedesktop.default_apps import add_default, add_last, remove_everywhere
from inspector.desktop.freedesktop.registration import FreedesktopRegistration
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


OFFERED = {
    "application/x-npy": (US,),
    "application/x-python-pickle": (US,),
    "application/x-npz": ("archives.desktop", US),
    "application/zip": ("archives.desktop", US),
}
ALONE = {name: row for name, row in OFFERED.items() if len(row) == 1}


@pytest.fixture
def gio(tmp_path, monkeypatch) -> Path:
    """A tool that says what a test writes for it; nothing for JSON."""
    tool = tmp_path / "gio"
    tool.write_text('#!/bin/sh\ncase $2 in */zip) cat "${0%/*}/said";; esac\n', encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tool


@table(
    ("said", "planned"),
    [
        ("Default application for \u201capplication/zip\u201d: archives.desktop\nRegistered:\n", OFFERED),
        ("No default applications for \u201capplication/zip\u201d\n", ALONE),
        (f"Default application for ?application/zip?: {US}\n", ALONE),
        ("Default application for x: a.desktop;b.desktop\n", ALONE),
        ("", ALONE),
    ],
)
def test_nothing_is_offered_where_nobody_is_known_to_open_it(gio, said, planned):
    gio.with_name("said").write_text(said, encoding="utf-8")
    assert offers.plan_offers(US) == planned


def test_a_tool_that_is_not_there_or_does_not_end_is_no_answer(gio, monkeypatch):
    monkeypatch.setattr(offers, "_TIMEOUT_S", 0.01)
    gio.write_text("#!/bin/sh\nexec sleep 5\n", encoding="utf-8")
    assert offers.plan_offers(US) == ALONE
    gio.write_text("#!/nowhere\n", encoding="utf-8")
    assert offers.plan_offers(US) == ALONE
    monkeypatch.setattr(offers, "find_program", lambda _: None)
    assert offers.plan_offers(US) == ALONE


def test_what_is_kept_is_read_again():
    kept = {"application/zip": "archives.desktop", "a/b": "c.desktop"}
    assert offers.parse_kept(offers.format_kept(kept)) == kept
    assert offers.parse_kept(";x;a/b:;") == {}


@pytest.mark.skipif(shutil.which("gio") is None, reason="needs gio of libglib2.0-bin")
def test_who_opens_archives_today_does_so_tomorrow(tmp_path, monkeypatch):
    """GLib finds us for archives and arrays, but first who was the default before, chosen by nobody."""
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_CONFIG_DIRS"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    shared = tmp_path / "XDG_DATA_DIRS" / "applications"
    shared.mkdir(parents=True)
    text = "[Desktop Entry]\nType=Application\nName=A\nExec=true %f\nMimeType=application/zip;\n"
    (shared / "archives.desktop").write_text(text, encoding="utf-8")
    (shared / "mimeinfo.cache").write_text(
        "[MIME Cache]\napplication/zip=archives.desktop;\n", encoding="utf-8"
    )
    ours = FreedesktopRegistration(
        data_home=tmp_path / "XDG_DATA_HOME", config_home=tmp_path / "XDG_CONFIG_HOME"
    )
    for _ in range(2):  # the second time must not forget what the first one wrote
        ours.install(["/opt/ci"])
        for kind in ("application/zip", "application/x-npz"):
            said = subprocess.run(["gio", "mime", kind], capture_output=True, text=True, check=True).stdout
            assert said.splitlines()[0].endswith(": archives.desktop"), said
            assert US in said
    ours.remove()
    assert [name for _, _, names in os.walk(tmp_path / "XDG_CONFIG_HOME") for name in names] == []
