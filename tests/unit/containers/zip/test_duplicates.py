from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.source import FileSource
from inspector.containers.zip import rivals
from inspector.containers.zip.directory import ZipEntry
from inspector.containers.zip.rivals import namesakes, pickles_elsewhere, read_rivals
from inspector.errors import CancelledError, PickleError
from inspector.pickles.oddities import Oddity
from tests.builders.zips import Record, build_zip
from tests.sweep import table


def entry(title: str, place: int = 0) -> ZipEntry:
    return ZipEntry(title, place, 0, 0, 0, 0, 0, 0)


def notes_and_read(*names: str, error: Exception | None = None) -> tuple[tuple[Oddity, ...], list[ZipEntry]]:
    read: list[ZipEntry] = []

    def remember(rival: ZipEntry) -> None:
        read.append(rival)
        if error is not None:
            raise error

    pickle = entry("a/data.pkl")
    rivals = [entry(title, place) for place, title in enumerate(names, 1)]
    return read_rivals(pickle, namesakes(pickle, [*rivals, pickle]), remember), read


def test_without_a_rival_nothing_is_odd() -> None:
    assert notes_and_read("a/data.pkl2", "a/version", "b/data.pkl") == ((), [])


@table("title", ["a/data.pkl", "a/DATA.PKL", "A/data.pkl", "a/data.pkl\0.txt"])
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


# --- other directories --------------------------------------------------------------------------------------


@pytest.fixture
def elsewhere(write: Callable[..., str]) -> Callable[[bytes], list[tuple[str, int]]]:
    """Find the pickles that other readers find: their names, and where their headers are."""

    def elsewhere(data: bytes) -> list[tuple[str, int]]:
        with FileSource(write(data)) as source:
            return [(entry.name, entry.header_offset) for entry in pickles_elsewhere(source)]

    return elsewhere


PICKLE = Record(name="a/data.pkl", data=b"N.")


@pytest.mark.parametrize("zip64", [False, True])
def test_place_in_front_of_the_end_counts_beside_the_one_it_tells(elsewhere, zip64: bool) -> None:
    data = build_zip(Record(name="a/x"), PICKLE, zip64=zip64)
    assert elsewhere(data) == [("a/data.pkl", 33)]
    assert elsewhere(bytes(100) + data) == [("a/data.pkl", 133)]


def test_every_end_leads_to_a_directory(elsewhere) -> None:
    other = build_zip(Record(name="b/DATA.PKL\0x"), Record(name="data.pkl"))
    found = elsewhere(build_zip(PICKLE, comment=other) + b"PK\5\6")
    assert {name for name, _ in found} == {"a/data.pkl", "b/DATA.PKL\0x", "data.pkl"}


def test_what_is_no_directory_holds_no_pickle(elsewhere) -> None:
    assert elsewhere(b"PK\5\6" * 100) == []
    data = bytearray(build_zip(PICKLE, zip64=True))
    data[data.index(b"PK\6\6")] = 0
    assert elsewhere(bytes(data)) == []


def test_crowds_of_records_are_read_in_part(elsewhere, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rivals, "_MOST_LISTED", 2)
    records = [Record(name=f"{number}/data.pkl") for number in range(5)]
    assert len(elsewhere(build_zip(*records))) == 2
