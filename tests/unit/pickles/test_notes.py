from __future__ import annotations

from inspector.pickles.notes import Note


def test_note_reads_as_a_sentence_with_its_place() -> None:
    assert str(Note("text-int", 12345, "it is odd")) == "it is odd (byte 12,345)"
