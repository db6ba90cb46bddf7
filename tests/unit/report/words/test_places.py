from __future__ import annotations

from inspector.report.words.formats import shown_place
from tests.unit.report.rows import tensor, value


def test_an_empty_key_is_a_place_and_not_the_root() -> None:
    assert shown_place(tensor()) == shown_place(value()) == "(root)"
    assert shown_place(tensor("")) == '""'
    assert shown_place(value("a", "")) == 'a/""'
    assert shown_place(tensor("a", "b c")) == "a/b c"
