from __future__ import annotations

import sys

from inspector.cli.terminal.writer import lay_code
from inspector.report.page import Code
from tests.unit.cli.terminal.looks import PLAIN, paint, seen

LINES = (
    "import torch",
    "",
    "# weights alone",
    'state = torch.load("a×b.pth", weights_only=True)',
    "",
    "def move(x: int = 0):",
    '    """Two',
    '    lines."""',
    "\treturn x and 1",
)


def test_code_is_colored_and_stays_as_it_is() -> None:
    lines = list(lay_code(Code(LINES), paint()))
    assert tuple(seen(lines)) == LINES
    assert lines[0].startswith("\x1b[35mimport\x1b[0m torch")
    assert '\x1b[32m    lines."""\x1b[0m' in lines[7]


def test_without_colors_or_a_lexer_it_is_plain(monkeypatch) -> None:
    assert tuple(lay_code(Code(LINES), PLAIN)) == LINES
    monkeypatch.setitem(sys.modules, "pygments.lexers.python", None)
    assert tuple(lay_code(Code(LINES), paint())) == LINES


def test_nothing_in_it_is_obeyed() -> None:
    lines = "".join(lay_code(Code(("x = '\x1b]0;owned\x07'",)), paint()))
    assert "\x1b]" not in lines
    assert "\x07" not in lines
    assert "\\xd7" in "".join(lay_code(Code(LINES), paint(is_unicode=False)))
