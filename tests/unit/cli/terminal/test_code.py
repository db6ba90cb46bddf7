from __future__ import annotations

import re

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
    '\t"""Two',
    '    lines."""',
    "\treturn x and 1",
)


def test_code_is_colored_and_stays_as_it_is() -> None:
    lines = list(lay_code(Code(LINES), paint()))
    assert tuple(seen(lines)) == LINES
    assert lines[0].startswith("\x1b[35mimport\x1b[0m torch")
    assert '\x1b[32m    lines."""\x1b[0m' in lines[7]


def test_each_part_has_its_color() -> None:
    lines = lay_code(Code(LINES), paint())
    parts = re.findall(r"\x1b\[([\d;]+)m([^\x1b]+)\x1b\[0m", "\n".join(lines))
    assert parts == [
        *[("35", "import"), ("2", "# weights alone"), ("32", '"a×b.pth"'), ("35", "True")],
        *[
            ("35", "def"),
            ("34", "move"),
            ("34", "int"),
            ("33", "0"),
            ("32", '"""Two'),
            ("32", '    lines."""'),
        ],
        *[("35", "return"), ("35", "and"), ("33", "1")],
    ]


def test_what_is_cut_off_or_no_python_stays_as_it_is() -> None:
    for lines in (
        ("x = (1,", ""),
        ("$ x ?", "'"),
        ('"""open',),
        ("  a", " b"),
        ('f"{{a}} {b!r:>{c}}" \t',),
        ("",),
    ):
        assert tuple(seen(lay_code(Code(lines), paint()))) == lines


def test_without_colors_it_is_plain() -> None:
    assert tuple(lay_code(Code(LINES), PLAIN)) == LINES


def test_nothing_in_it_is_obeyed() -> None:
    lines = "".join(lay_code(Code(("x = '\x1b]0;owned\x07'",)), paint()))
    assert "\x1b]" not in lines
    assert "\x07" not in lines
    assert "\\xd7" in "".join(lay_code(Code(LINES), paint(is_unicode=False)))
