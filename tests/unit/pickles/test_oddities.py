from __future__ import annotations

from inspector.pickles.oddities import Oddity, OddityKind


def test_oddity_reads_as_a_sentence_with_its_place() -> None:
    oddity = Oddity(OddityKind.APPEND_ON_OTHER, 12345, ("a set",))
    assert str(oddity) == "something is appended to a set (byte 12,345)"


def test_every_kind_has_a_sentence() -> None:
    assert all(str(Oddity(kind, 0, ("x", "y"))) for kind in OddityKind)
