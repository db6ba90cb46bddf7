from __future__ import annotations

import pytest

from inspector.containers.rivals import read_rivals
from inspector.containers.zip_directory import Entry
from inspector.errors import CancelledError, PickleError
from inspector.pickles.notes import Note


def entry(title: str, place: int = 0) -> Entry:
    return Entry(title, place, 0, 0, 0, 0, 0, 0)


def notes_and_read(*names: str, error: Exception | None = None) -> tuple[tuple[Note, ...], list[Entry]]:
    read: list[Entry] = []

    def remember(rival: Entry) -> None:
        read.append(rival)
        if error is not None:
            raise error

    pickle = entry("a/data.pkl")
    rivals = [entry(title, place) for place, title in enumerate(names, 1)]
    return read_rivals(pickle, [*rivals, pickle], remember), read


def test_without_a_rival_nothing_is_odd() -> None:
    assert notes_and_read("a/data.pkl2", "a/version", "b/data.pkl") == ((), [])


@pytest.mark.parametrize("title", ["a/data.pkl", "a/DATA.PKL", "A/data.pkl", "a/data.pkl\0.txt"])
def test_rival_is_read_and_noted(title: str) -> None:
    notes, read = notes_and_read(title)
    assert read == [entry(title, 1)]
    assert [note.kind for note in notes] == ["rival-record"]


def test_rival_that_cannot_be_read_is_noted() -> None:
    notes, _ = notes_and_read("a/DATA.PKL", error=PickleError("it breaks off"))
    assert [note.kind for note in notes] == ["rival-record", "unread-rival"]
    assert "it breaks off" in str(notes[1])


def test_of_a_crowd_of_rivals_the_first_are_read() -> None:
    notes, read = notes_and_read(*["a/data.pkl"] * 20)
    assert len(read) == 8
    assert str(notes[-1]).startswith("only 8 of 20 others were read")


def test_work_can_be_cancelled() -> None:
    with pytest.raises(CancelledError):
        notes_and_read("a/DATA.PKL", error=CancelledError())
