"""Names as parts of a sentence."""

from __future__ import annotations

from inspector.diagnose.listing import listed, plain


def test_names_are_few_short_and_harmless() -> None:
    assert listed([]) == ""
    assert listed(["a", "b"]) == "a, b"
    assert listed([str(number) for number in range(9)]) == "0, 1, 2, 3, 4, 5 and 3 more"
    assert listed([str(number) for number in range(9)], "name").endswith("and 3 names")
    assert plain("\u202e") == r"\u202e"
    assert len(plain("x" * 999)) == 120
