from __future__ import annotations

from inspector.report.page import (
    Change,
    Code,
    Columns,
    DeviceRow,
    Fact,
    Pointed,
    Result,
    code_page,
    plain_text,
)
from tests.sweep import table

TABLE = Columns("Norm", ("1", "2"), (("head", ("1.5", "-")),))


@table(
    ("block", "lines"),
    [
        (DeviceRow("cuda:0", "cuda:0", "3 tensors", "1 B"), ["  cuda:0            3 tensors        1 B"]),
        (Fact("Mean", "0", 6), ["  Mean    0"]),
        (Fact("Mean", "0", 6, " "), ["  Mean   0"]),
        (Change("+", "a/b", "new"), ["  + a/b   new"]),
        (Change("=", "a/b", ""), ["  = a/b"]),
        (Pointed("a/b", "float32", "", "   "), ["a/b   float32"]),
        (Code(("a", "", " b")), ["a", "", " b"]),
        (Result("o\nut", ("one", "two")), ["o\\u000aut: one; two"]),
        (TABLE, ["Norm", f"{'':60}1          2", f"  {'head':<56}1.5          -"]),
    ],
)
def test_plain_text_is_what_other_programs_read(block, lines) -> None:
    assert list(block.plain()) == lines


def test_code_ends_with_one_line_end() -> None:
    assert plain_text(code_page("a\n\nb\n")) == plain_text(code_page("a\n\nb")) == "a\n\nb\n"
