from __future__ import annotations

from inspector.cli.terminal.writer import lay_out
from inspector.records import replace
from inspector.report.page import (
    Bars,
    Change,
    Code,
    Columns,
    DeviceRow,
    Fact,
    Line,
    Pointed,
    Result,
    page_of,
    tree_rows,
)
from inspector.report.tree import build_tree
from tests.unit.cli.terminal.looks import PLAIN, paint, seen
from tests.unit.report.rows import BLANK, is_harmless, tensor

EVIL = "\x1b]0;owned\x07\x9b31m\u202e\r\n\ud800"


def page(rows: int) -> object:
    tensors = tuple(tensor(f"t{number}") for number in range(rows))
    tree = build_tree(replace(BLANK, tensors=tensors), {})
    return page_of([Line("verdict")], [tree_rows(tree)], [Line("findings")])


def test_a_tree_longer_than_the_screen_comes_last() -> None:
    assert seen(lay_out(page(2), PLAIN))[-1] == "findings"
    long = seen(lay_out(page(30), PLAIN))
    assert long[:4] == ["verdict", "", "findings", ""]
    assert long[-1].startswith("t29")
    assert seen(lay_out(page(30), paint(height=31, depth="none")))[-1] == "findings"


def test_every_block_has_a_layout_that_obeys_no_name() -> None:
    blocks = [
        *(Line(EVIL, role) for role in ("text", "file", "heading", "good", "error", "bullet", "code")),
        Line(EVIL, "bullet", wraps=True),
        DeviceRow(EVIL, EVIL, EVIL, EVIL),
        Fact(EVIL, EVIL, 40),
        Bars(EVIL, (1,), (0.0, 1.0), 40),
        Change("+", EVIL, EVIL),
        Pointed(EVIL, EVIL, EVIL, EVIL, is_title=True),
        Result(EVIL, (EVIL,)),
        Code((EVIL,)),
        Columns(EVIL, (EVIL,), ((EVIL, (EVIL,)),)),
        Strange(),
    ]
    for width in (20, 60, 140):
        lines = seen(lay_out(page_of(blocks), paint(width)))
        assert len(lines) >= len(blocks)
        assert [line for line in lines if not is_harmless(line)] == []


class Strange:
    """A block that nobody has laid out yet."""

    def plain(self) -> list[str]:
        return [EVIL]
