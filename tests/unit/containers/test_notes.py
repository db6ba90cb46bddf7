from __future__ import annotations

from inspector.containers.notes import AMBIGUOUS, Note, NoteKind, sentences

SILENT = {NoteKind.PART_OF, NoteKind.NO_KEYS, NoteKind.ODD_KEYS}


def test_every_kind_has_a_sentence_but_those_that_findings_tell() -> None:
    for kind in NoteKind:
        sentence = Note(kind, ("1", "2", "3", "4")).sentence
        assert (sentence == "") == (kind in SILENT), kind
        assert not sentence or sentence.endswith((".", "!")), kind
    assert sentences([Note(NoteKind.NO_KEYS), Note(NoteKind.TOO_DEEP, ("3",))]) == [
        "3 values are nested too deeply to be shown."
    ]


def test_what_programs_read_differently_is_ambiguous() -> None:
    assert NoteKind.TWO_FORMATS in AMBIGUOUS
    assert NoteKind.NO_DIRECTORY in AMBIGUOUS
    assert not AMBIGUOUS & {NoteKind.REFUSED, NoteKind.GZIP, NoteKind.UNLISTED}
