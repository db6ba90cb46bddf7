"""What stands on the pages is true: their blocks run, their links lead somewhere, what is made is current."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.docs import reference, troubles
from tests.docs.links import anchors, dead_links
from tests.docs.pages import DOCS, LANGUAGES, README, blocks, pages
from tests.docs.running import (
    Command,
    WrongBlockError,
    commands,
    is_run,
    matches,
    run_page,
    shortened,
)
from tests.docs.site import complaints
from tests.drawings import FOLDER, LINES, draw_all
from tests.sweep import IS_SWEEP

IN_A_SWEEP = {"cli.md", "json.md", "compare.md", "loading.md", "many-files.md", "values.md"}
"""Pages whose blocks start many children, and run in a sweep alone; those of all others run always."""


def test_every_link_and_picture_leads_somewhere() -> None:
    assert [wrong for page in pages() for wrong in dead_links(page)] == []


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.docs import links

    monkeypatch.setattr(links, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    (tmp_path / "other.md").write_text("# One thing\n\n## One thing\n", encoding="utf-8")
    page.write_text(
        "[a](other.md#one-thing-1) [b](other.md#two) [c](gone.md) ![](other.md) [d](../x.md) [e](https://x.test)\n"
        "```\n[f](gone.md)\n```\n`[g](gone.md)`\n",
        encoding="utf-8",
    )
    assert [wrong.split(": ", 1)[1] for wrong in dead_links(page)] == [
        "other.md#two: there is no such heading",
        "gone.md: there is no such file",
        "other.md: the picture has no description",
        "../x.md: leads out of the repository",
    ]
    assert anchors(tmp_path / "other.md") == {"one-thing", "one-thing-1"}


def test_every_page_has_its_place_in_the_navigation() -> None:
    source = (DOCS / "conf.py").read_text(encoding="utf-8")
    listed = re.findall(r'"([\w/-]+)"', source[source.index("NAVIGATION") : source.index('"""Every page')])
    there = {page.relative_to(DOCS).with_suffix("").as_posix() for page in pages() if page != README}
    assert there - set(listed) == {"index"}
    assert set(filter(lambda name: (DOCS / f"{name}.md").exists(), listed)) == there - {"index"}


def test_every_block_says_what_it_is() -> None:
    wrong = []
    for page in pages():
        for block in blocks(page):
            if block.language not in LANGUAGES:
                wrong.append(f"{block.name}: its language is {block.language!r}")
            elif block.language == "console":
                commands(block)
            elif block.language == "text" and any(
                re.match(r"\$ |checkpoint-inspector \w+ \w+\.\w+", line) for line in block.lines
            ):
                wrong.append(f"{block.name}: a command that is not run")
            if block.marks.get("not run") == "":
                wrong.append(f"{block.name}: no reason why it is not run")
    assert wrong == []


@pytest.mark.parametrize("made", [reference, troubles], ids=["reference", "troubleshooting"])
def test_pages_that_are_made_are_current(made: ModuleType) -> None:
    assert made.PAGE.read_text(encoding="utf-8") == made.page(), "python -m tests.docs writes it"


def test_the_drawings_show_what_the_program_prints() -> None:
    """`python -m tests.drawings` makes them."""
    drawn = draw_all() if IS_SWEEP else draw_all(["show"])
    assert [path.name for path, text in drawn.items() if path.read_text(encoding="utf-8") != text] == []
    kept = set(FOLDER.glob("*/terminal/*"))
    assert kept == {
        FOLDER / theme / "terminal" / f"{name}.svg" for theme in ("light", "dark") for name in LINES
    }


def test_each_error_of_the_table_is_recognized_as_what_it_is() -> None:
    rows = [row for group in troubles.read_troubles().values() for row in group]
    assert [row for row in rows if troubles.answer_to(row).id != row.id] == []


def _chosen() -> list[Path]:
    """Return the pages whose blocks run this time."""
    return [
        page
        for page in pages()
        if (IS_SWEEP or page.name not in IN_A_SWEEP) and any(is_run(block) for block in blocks(page))
    ]


def test_the_blocks_of_the_pages_run_and_print_what_they_say(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    wrong = []
    for number, page in enumerate(_chosen()):
        folder = tmp_path / str(number)
        folder.mkdir()
        wrong += run_page(page, folder, update=request.config.getoption("--update-golden"))
    assert not wrong, "\n\n".join(wrong)


def test_a_block_runs_where_the_packages_that_it_needs_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tests.docs import pages as reading

    monkeypatch.setattr(reading, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    lines = "```python\nraise ValueError\n```\n"
    page.write_text(
        f"<!-- needs: json no_such -->\n{lines}<!-- needs: json ast -->\n{lines}", encoding="utf-8"
    )
    assert list(map(is_run, blocks(page))) == [False, True]


def test_a_block_that_does_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.docs import pages as module

    monkeypatch.setattr(module, "ROOT", tmp_path)
    page = tmp_path / "page.md"
    page.write_text(
        "```console\n$ checkpoint-inspector show best.pth\nbest.pth\n...\n$ echo one\ntwo\n```\n"
        "<!-- exit: 1 -->\n```console\n$ echo\n```\n"
        "```python\n1 / 0\n```\n"
        "<!-- not run: why -->\n```python\n1 / 0\n```\n",
        encoding="utf-8",
    )
    folder = tmp_path / "here"
    folder.mkdir()
    wrong = run_page(page, folder)
    assert [text.split("\n")[0] for text in wrong] == [
        "page.md:2: echo one prints something else (python -m tests.docs writes it):",
        "page.md:10: echo: exit code 0, not 1",
        "page.md:13: ZeroDivisionError: division by zero",
    ]
    (tmp_path / "again").mkdir()
    assert len(run_page(page, tmp_path / "again", update=True)) == 2
    assert "$ echo one\none\n```" in page.read_text(encoding="utf-8")


def test_outputs_are_compared_and_shortened_around_their_dots() -> None:
    assert matches(("a", "...", "c"), ("a", "b", "b", "c"))
    assert matches(("...",), ())
    assert not matches(("a", "..."), ("b",))
    assert not matches(("a",), ("a", "b"))
    assert shortened(("a", "...", "c"), ("1", "2", "3", "4")) == ("1", "...", "4")
    assert shortened(("a",), ("1", "2")) == ("1", "2")
    assert shortened(("...", "b", "c", "..."), ("1", "b", "2", "3")) == ("...", "b", "2", "...")
    with pytest.raises(WrongBlockError, match="by hand"):
        shortened(("...", "b", "..."), ("1",))
    with pytest.raises(WrongBlockError, match="begins with"):
        commands(next(iter(blocks_of("```console\nls\n```\n"))))
    block = next(iter(blocks_of("```console\n$ ls\na\n$ pwd\n```\n")))
    assert commands(block) == [Command("ls", ("a",)), Command("pwd", ())]


def blocks_of(text: str) -> list[object]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.md"
        page.write_text(text, encoding="utf-8")
        return list(blocks(page))


def test_a_site_that_asks_other_hosts_or_misses_a_file_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text(
        '<a href="https://x.test">a</a> <a href="gone.html">b</a> <a href="page.html#c">c</a> '
        '<img alt="" src="//x.test/i.png">'
        '<script async src="https://x.test/s.js"></script> <img src="data:image/png;base64,AA==">',
        encoding="utf-8",
    )
    (tmp_path / "style.css").write_text(
        "@import 'https://x.test/f.css'; a { b: url(gone.woff) }", encoding="utf-8"
    )
    assert complaints(tmp_path) == [
        "page.html: gone.html is not there",
        "page.html: asks another host for //x.test/i.png",
        "page.html: asks another host for https://x.test/s.js",
        "style.css: asks another host for https://x.test/f.css",
        "style.css: gone.woff is not there",
    ]
