"""What stands before a line: each kind has its words, and the first of several ways is no alternative."""

from __future__ import annotations

from typing import get_args

from inspector.report.words.formats import BEFORE, RemedyKind, before


def test_each_kind_has_its_words() -> None:
    assert list(BEFORE) == list(get_args(RemedyKind))


def test_the_first_is_no_alternative() -> None:
    assert before("copy", is_first=True) == "Write a copy with:"
    assert before("copy", is_first=False) == "Or write a copy with:"
