from __future__ import annotations

from inspector.session.values.page import SliceChoice, first_choice


def test_the_longest_dimensions_are_looked_at_first() -> None:
    assert first_choice((64, 3, 7, 7)) == SliceChoice(row=0, column=2, index=(0, 0, 0, 0))
    assert first_choice((3, 5)) == SliceChoice(row=0, column=1, index=(0, 0))
    assert first_choice((3,)) == SliceChoice(row=0, column=None, index=(0,))
    assert first_choice(()) == SliceChoice(row=None, column=None, index=())
