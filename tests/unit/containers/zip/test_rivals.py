from __future__ import annotations

import gzip
from collections.abc import Callable

import pytest

from inspector.containers.packed import open_source
from inspector.containers.programs import count_globals
from inspector.containers.source import FileSource
from inspector.containers.zip import rivals
from inspector.containers.zip import rivals as unread_zip
from inspector.containers.zip.directory import ZipEntry
from inspector.containers.zip.rivals import namesakes, pickles_elsewhere, read_pickled_records, read_rivals
from inspector.errors import CancelledError, PickleError
from inspector.limits import Limits
from inspector.pickles.oddities import Oddity
from inspector.progress import Progress
from tests.builders.pickles import call, op, proto, stream, text
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


Write = Callable[..., str]
EVIL = stream(proto(), call("posix.system", text("id")))


def imported(write: Write, data: bytes) -> list[str]:
    with FileSource(write(data)) as source:
        read_pickled_records(source, Limits(), Progress())
        return list(count_globals(source.programs.all()))


@table(
    "title",
    [
        "a/data.pkl",
        "a/DATA.PKL",
        "constants.pkl",
        "model.pt",
        "b/x.bin",
        "a/data.pkl\0.txt",
        "a/.data/7.storage",
    ],
)
@table("method", [0, 8])
def test_records_named_like_pickles_are_read(write: Write, title: str, method: int) -> None:
    assert imported(write, build_zip(Record(name=title, data=EVIL, method=method))) == ["posix.system"]


def test_other_records_are_not(write: Write) -> None:
    assert (
        imported(write, build_zip(Record(name="a/data/0", data=EVIL), Record(name="x.pkl.txt", data=EVIL)))
        == []
    )
    assert imported(write, build_zip(Record(name="a/data.pkl", data=EVIL, method=99))) == []


@table("lies", [{"flags": 1}, {"nbytes": 3}, {"crc": 7}, {"local_name": "a/harmless.txt"}])
def test_what_headers_claim_hides_nothing(write: Write, lies: dict[str, object]) -> None:
    assert imported(write, build_zip(Record(name="a/data.pkl", data=EVIL, **lies))) == ["posix.system"]


def test_method_of_the_local_header_hides_nothing(write: Write) -> None:
    """torch goes by the directory; a header that tells another method would hide the pickle."""
    data = bytearray(build_zip(Record(name="a/data.pkl", data=EVIL)))
    data[8] = 99
    assert imported(write, bytes(data)) == ["posix.system"]


def test_directory_is_not_needed(write: Write) -> None:
    whole = build_zip(Record(name="a/data.pkl", data=EVIL))
    assert imported(write, whole[: whole.index(b"PK\x01\x02")]) == ["posix.system"]
    assert imported(write, b"PK\x03\x04" + bytes(10) + whole) == ["posix.system"]


def test_directory_may_point_anywhere(write: Write) -> None:
    data = build_zip(
        Record(name="a/data.pkl", data=EVIL, offset=1), Record(name="b.pkl", data=EVIL, offset=10**6)
    )
    assert imported(write, data) == ["posix.system"]


def test_directory_that_points_at_no_header_hides_nothing(write: Write) -> None:
    lost = Record(name="a.pkl", data=b"N.", local_signature=b"XXXX")
    assert imported(write, build_zip(Record(name="b.pkl", data=EVIL), lost)) == ["posix.system"]


def test_header_that_the_end_cuts_off_hides_nothing(write: Write) -> None:
    whole = build_zip(Record(name="a.pkl", data=EVIL))
    assert imported(write, whole[: whole.index(b"PK\x01\x02")] + b"PK\x03\x04") == ["posix.system"]


def test_damage_of_one_leaves_the_others(write: Write) -> None:
    broken = Record(name="a.pkl", data=b"\xff\xff", method=8)
    cut = Record(name="b.pkl", data=proto() + call("a.B"))
    assert imported(write, build_zip(broken, cut, Record(name="c.pkl", data=EVIL))) == ["a.B", "posix.system"]


def test_what_cannot_be_inflated_leaves_the_others(write: Write) -> None:
    data = build_zip(
        Record(name="a.pkl", data=EVIL, method=8), Record(name="c.pkl", data=stream(call("a.B")))
    )
    at = data.index(b"a.pkl") + 5
    assert imported(write, data[:at] + b"\xff\xff\xff" + data[at + 3 :]) == ["a.B"]


def test_long_pickle_is_read_piece_by_piece(write: Write) -> None:
    long = stream(proto(), op("EMPTY_LIST") + op("POP"), *[text("x" * 200)] * 1000, call("posix.system"))
    assert imported(write, build_zip(Record(name="a.pkl", data=long, method=8))) == ["posix.system"]


def test_number_of_records_is_bounded(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_zip, "_MOST_RECORDS", 3)
    many = [Record(name=f"{number}.pkl", data=stream(call(f"a.B{number}"))) for number in range(9)]
    assert imported(write, build_zip(*many)) == ["a.B0", "a.B1", "a.B2"]


def test_search_is_bounded(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unread_zip, "_WINDOW_NBYTES", 64)
    monkeypatch.setattr(unread_zip, "_MOST_WINDOWS", 4)
    whole = build_zip(Record(name="a/data.pkl", data=EVIL))
    records = whole[: whole.index(b"PK\x01\x02")]
    assert imported(write, bytes(62) + records) == ["posix.system"]
    assert imported(write, bytes(256) + records) == []


def test_compressed_file_is_searched_once_and_its_directory_left_alone(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its directory stands at the end, and each step back inflates all of it again."""
    whole = build_zip(Record(name="a/data.pkl", data=EVIL))
    monkeypatch.setattr(unread_zip, "read_directory", None)
    monkeypatch.setattr(unread_zip, "_WINDOW_NBYTES", 64)
    for data, names in ((whole, ["posix.system"]), (bytes(128) + whole, [])):
        with open_source(write(gzip.compress(data))) as source:
            read_pickled_records(source, Limits(), Progress())
            assert list(count_globals(source.programs.all())) == names
