from __future__ import annotations

from collections.abc import Callable

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.notes import Note, NoteKind
from inspector.containers.programs import Program, count_globals
from inspector.containers.source import FileSource
from inspector.containers.zip.archive import read_torchzip
from inspector.containers.zip.directory import (
    DEFLATED,
    NO_VERSION,
    UNDECODABLE,
    MinizError,
    ZipDirectory,
    ZipEntry,
    miniz_words,
    no_folder_words,
)
from inspector.containers.zip.records import Records, listed_name, records_of
from inspector.containers.zip.storages import Metadata, find_pickle, read_metadata
from inspector.errors import (
    CancelledError,
    ContainerError,
    NotACheckpointError,
    PickleError,
)
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders import zips
from tests.builders.pickles import NONE, call, name, state_dict, storage, stream, tensor, text
from tests.builders.zips import Record, build_zip, checkpoint
from tests.sweep import table

TakeApart = Callable[..., Container]
TWO = state_dict(a=tensor(storage("0", numel=2), 2), b=tensor(storage("1", location="cuda:0", numel=3), 3))
FOUR, EIGHT, TWELVE = b"4444", b"88888888", b"121212121212"
VERSION = Record(name="archive/version", data=b"3\n")


def test_everything_is_found(take_apart: TakeApart) -> None:
    data = checkpoint(TWO, {"0": EIGHT, "1": TWELVE}, Record(name="archive/byteorder", data=b"little"))
    found = take_apart(data)
    assert found.format == "zip"
    assert found.file_nbytes == len(data)
    assert found.pickle().data[: found.pickle().end] == TWO
    assert [(key, one.location, one.numel) for key, one in found.storage_ids.items()] == [
        ("0", "cpu", 2),
        ("1", "cuda:0", 3),
    ]
    assert found.stored == {"0": (0, data.index(EIGHT), 8), "1": (0, data.index(TWELVE), 12)}
    assert all(type(place) is StoredBytes for place in found.stored.values())
    assert found.versions == (("version", "3"), ("byteorder", "little"))
    assert found.notes == ()


@table(
    "folder",
    ["my model (1)/", "\u043a\u043b\u044e\u0447/", "\u540d\u524d 2/", "/", "a.b.c/", "A/", "\u041a/"],
)
def test_folder_of_any_name(take_apart: TakeApart, folder: str) -> None:
    found = take_apart(checkpoint(TWO, {"0": EIGHT, "1": TWELVE}, folder=folder))
    assert len(found.stored) == 2
    assert found.versions == (("version", "3"),)
    assert found.notes == ()


def test_storages_of_torch_1_4(take_apart: TakeApart) -> None:
    records = [
        Record(name="a/version", data=b"1\n"),
        Record(name="a/data.pkl", data=state_dict(a=tensor(storage("94005", numel=2), 2))),
        Record(name="a/tensors/94005", data=EIGHT),
    ]
    found = take_apart(build_zip(*records))
    assert found.stored["94005"].nbytes == 8
    assert found.notes == (Note(NoteKind.TORCH_1_4),)


def test_deflated_records_have_no_place_in_the_file(take_apart: TakeApart) -> None:
    records = [
        Record(name="archive/data.pkl", data=TWO, method=DEFLATED),
        Record(name="archive/data/0", data=EIGHT, method=DEFLATED),
        Record(name="archive/data/1", data=TWELVE),
        VERSION,
    ]
    data = build_zip(*records)
    found = take_apart(data)
    assert found.stored == {"0": (0, None, 8), "1": (0, data.index(TWELVE), 12)}


def test_places_come_in_the_order_of_the_file(take_apart: TakeApart) -> None:
    found = take_apart(checkpoint(TWO, {"1": TWELVE, "0": EIGHT}))
    assert list(found.stored) == ["1", "0"]
    assert list(found.storage_ids) == ["0", "1"]


# ------------------------------------------------------------------------------------------- damage


@table(
    "record",
    [
        Record(name="elsewhere/data/0", data=EIGHT),
        Record(name="archive/data/00", data=EIGHT),
        Record(name="archive/data/0", data=EIGHT, local_signature=b"PK\3\5"),
        Record(name="archive/data/0", data=EIGHT, offset=1),
        Record(name="archive/data/0", data=EIGHT, nbytes=7, time=1),  # stored, but of two sizes
        Record(name="archive/data/0", data=EIGHT, method=99),
        Record(name="archive/data/0", data=EIGHT, flags=1),
        Record(name="archive/data/0", data=EIGHT, flags=0x20, method=DEFLATED),
    ],
)
def test_storage_whose_record_is_missing_or_damaged_has_no_place(
    take_apart: TakeApart, record: Record
) -> None:
    found = take_apart(checkpoint(TWO, {"1": TWELVE}, record))
    assert list(found.stored) == ["1"]
    assert list(found.storage_ids) == ["0", "1"]


def test_storage_that_torch_takes_for_a_folder(take_apart: TakeApart) -> None:
    found = take_apart(
        checkpoint(TWO, {"1": TWELVE}, Record(name="archive/data/0", data=EIGHT, attributes=16))
    )
    assert found.stored["0"].nbytes == 8
    assert [note.kind for note in found.notes] == [NoteKind.UNWRITTEN_RECORD]
    empty = Record(name="archive/data/0", attributes=16)
    assert take_apart(checkpoint(TWO, {"1": TWELVE}, empty)).notes == ()


def test_storage_that_torch_refuses(take_apart: TakeApart) -> None:
    for lie, words in (
        ({"flags": 1}, "encryption"),
        ({"method": 99}, "method"),
        ({"offset": 1}, "corrupted"),
    ):
        record = Record(name="archive/data/0", data=EIGHT, **lie)
        ((key, said),) = take_apart(checkpoint(TWO, {"1": TWELVE}, record)).refused
        assert key == "0"
        assert words in said


def test_names_are_found_in_any_case(take_apart: TakeApart) -> None:
    names = {
        "archive/DATA.PKL": TWO,
        "archive/Data/0": EIGHT,
        "archive/data/1": TWELVE,
        "archive/VERSION": b"3",
    }
    found = take_apart(build_zip(*(Record(name=name, data=data) for name, data in names.items())))
    assert list(found.stored) == ["0", "1"]
    assert found.versions == (("version", "3"),)
    assert found.notes == ()


def test_local_header_with_other_sizes_and_name_is_no_matter(take_apart: TakeApart) -> None:
    record = Record(name="archive/data/0", data=EIGHT, local_name="x" * 40, extra=b"FB\2\0ZZ", crc=1)
    data = checkpoint(TWO, {"1": TWELVE}, record)
    assert take_apart(data).stored["0"] == (0, data.index(EIGHT), 8)


def test_fake_sizes_allocate_nothing(take_apart: TakeApart) -> None:
    record = Record(name="archive/data/0", nbytes=2**60, stored_nbytes=2**60, zip64=True)
    found = take_apart(checkpoint(TWO, {"1": TWELVE}, record).replace(b"", b""))
    assert list(found.stored) == ["1"]


def test_records_that_share_bytes_are_noted(take_apart: TakeApart) -> None:
    data = checkpoint(TWO, {"0": EIGHT}, Record(name="archive/data/1", data=TWELVE))
    place = data.index(b"PK\3\4", 4)
    shared = checkpoint(TWO, {"0": EIGHT}, Record(name="archive/data/1", data=EIGHT, offset=place))
    assert take_apart(data).notes == ()
    found = take_apart(shared)
    assert found.stored["0"] == found.stored["1"]
    assert found.notes == (Note(NoteKind.OVERLAP),)


def test_record_within_another_is_noted(take_apart: TakeApart) -> None:
    inner = zips.LOCAL.pack(b"PK\3\4", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0) + TWELVE
    outer = state_dict(a=tensor(storage("0", numel=50), 50), b=tensor(storage("1", numel=3), 3))
    plain = checkpoint(outer, {"0": inner.ljust(200, b"x")})
    place = plain.index(inner)
    data = checkpoint(
        outer,
        {"0": inner.ljust(200, b"x")},
        Record(name="archive/data/1", nbytes=12, stored_nbytes=12, offset=place),
    )
    found = take_apart(data)
    assert found.stored["1"] == (0, place + 30, 12)
    assert found.notes == (Note(NoteKind.OVERLAP),)


def test_wrong_checksum_of_the_pickle_is_noted(take_apart: TakeApart) -> None:
    def read(crc: int | None) -> tuple[Note, ...]:
        return take_apart(
            build_zip(Record(name="archive/data.pkl", data=stream(NONE), crc=crc), VERSION)
        ).notes

    assert read(None) == ()
    assert read(0) == ()  # how torch writes it when told to compute none
    assert read(7) == (Note(NoteKind.WRONG_CHECKSUM),)


def test_pickle_that_cannot_be_read(take_apart: TakeApart) -> None:
    with pytest.raises(PickleError, match=r"breaks off before its end: record archive/data\.pkl, byte 1$"):
        take_apart(checkpoint(NONE))
    with pytest.raises(ContainerError, match="a zip record is larger than 100 bytes"):
        take_apart(checkpoint(TWO), pickle_nbytes=100)


@pytest.mark.wide
def test_inflation_is_bounded_by_what_is_declared(take_apart: TakeApart) -> None:
    bomb = Record(name="archive/data.pkl", data=NONE * 50_000_000, method=DEFLATED, nbytes=1000)
    with pytest.raises(PickleError, match="breaks off before its end"):
        take_apart(build_zip(bomb, VERSION))


@pytest.mark.wide
def test_bomb_of_instructions_ends_at_the_budget(take_apart: TakeApart) -> None:
    bomb = Record(name="archive/data.pkl", data=NONE * 2_000_000, method=DEFLATED)
    with pytest.raises(PickleError, match="more than 1,000,000 instructions"):
        take_apart(build_zip(bomb, VERSION), opcodes=1_000_000)


# ------------------------------------------------------------------------------------------- refused by torch


def test_missing_version_is_noted(take_apart: TakeApart) -> None:
    found = take_apart(checkpoint(stream(NONE), version=None))
    assert found.refusal == NO_VERSION
    assert found.notes[0].sentence.startswith("torch refuses this file: RuntimeError: Expected hasRecord")
    elsewhere = Record(name="archive/.data/version", data=b"6\n")
    assert take_apart(checkpoint(stream(NONE), None, elsewhere, version=None)).refusal == ""


@table("other", ["other/data.pkl", "aaa", "zzz/x", "archive", ""])
def test_records_outside_the_folder_are_noted(take_apart: TakeApart, other: str) -> None:
    found = take_apart(checkpoint(stream(NONE), None, Record(name=other)))
    assert found.refusal == no_folder_words(other, "archive/")
    assert found.notes[0].sentence.startswith(
        "torch refuses this file: RuntimeError: file in archive is not in"
    )


@table("other", ["archive/data.pkl", "archive/DATA.PKL", "Archive/data.pkl", "archive/data.pkl\0x"])
def test_records_that_share_a_name_are_noted(take_apart: TakeApart, other: str) -> None:
    evil = Record(name=other, data=stream(call("os.system", text("id"))))
    found = take_apart(checkpoint(stream(NONE), None, evil))
    assert Note(NoteKind.SHARED_NAME) in found.notes
    assert [str(note) for note in found.stream.oddities] == [
        "several records could be data.pkl, and programs differ in which one they read (byte 0)"
    ]


@table("other", ["archive/data/0", "archive/DATA/0", "archive/data/1\0", "archive/data.pkl.bak"])
def test_storages_that_share_a_name_leave_the_pickle_alone(take_apart: TakeApart, other: str) -> None:
    found = take_apart(checkpoint(TWO, {"0": EIGHT, "1": TWELVE}, Record(name=other, data=EIGHT)))
    twice = ("1",) if "1" in other else ("0",)
    assert found.notes == (() if other.endswith("bak") else (Note(NoteKind.SHARED_NAME, twice),))
    assert found.stream.oddities == ()


def test_first_of_two_records_of_a_name_counts(take_apart: TakeApart) -> None:
    evil = Record(name="archive/data.pkl", data=stream(name("os.system")))
    benign = Record(name="archive/data.pkl", data=stream(NONE))
    assert take_apart(build_zip(evil, benign, VERSION)).stream.root is not None
    assert take_apart(build_zip(benign, evil, VERSION)).stream.root is None


def test_what_any_of_them_would_import_counts(take_apart: TakeApart) -> None:
    evil = Record(name="archive/data.pkl", data=stream(call("os.system")))
    benign = Record(name="archive/data.pkl", data=stream(NONE))
    for records in ((evil, benign), (benign, evil), (benign, evil, evil)):
        found = take_apart(build_zip(*records, VERSION))
        assert list(count_globals(found.programs)) == ["os.system"]
        assert [program.kind for program in found.programs] == ["object", "rival"]
        assert found.stream.oddities[-1].kind == "rival-record"


@pytest.mark.parametrize(
    "first",
    [Record(name="archive/data.pkl", data=b"x", method=99), Record(name="archive/data.pkl", data=b"x")],
)
def test_rivals_are_read_where_the_first_cannot_be(take_apart: TakeApart, first: Record) -> None:
    evil = Record(name="archive/DATA.PKL", data=stream(call("os.system")))
    with pytest.raises((ContainerError, PickleError)) as caught:
        take_apart(build_zip(first, evil, VERSION))
    programs = [program for program in caught.value.programs if isinstance(program, Program)]
    assert "os.system" in count_globals(programs)


# ------------------------------------------------------------------------------------------- versions


def test_versions_that_are_long_or_damaged(take_apart: TakeApart) -> None:
    records = [
        Record(name="archive/.format_version", data=b"1" * 257),
        Record(name="archive/.storage_alignment", data=b" 64\n"),
        Record(name="archive/byteorder", data=b"\xff", method=DEFLATED),
        Record(name="archive/.data/serialization_id", data=b"ab", method=99),
    ]
    assert take_apart(checkpoint(stream(NONE), None, *records)).versions == (
        ("version", "3"),
        (".format_version", "1" * 256),
        (".storage_alignment", "64"),
        ("byteorder", "\\xff"),
        (".data/serialization_id", "unreadable: compression method 99 is not supported"),
    )


# ------------------------------------------------------------------------------------------- other zips


@pytest.mark.parametrize("records", [[Record(name="notes/today.md")], [Record(name="a/data.pkl/x")]])
def test_zip_of_something_else(take_apart: TakeApart, records: list[Record]) -> None:
    with pytest.raises(NotACheckpointError, match=r"this zip holds no data\.pkl"):
        take_apart(build_zip(*records))


def test_empty_zip(write: Callable[..., str]) -> None:
    with FileSource(write(build_zip())) as source:
        records = records_of(source, Limits())
        assert records.prefix == ""
        with pytest.raises(NotACheckpointError):
            find_pickle(records, "empty.zip")


# ------------------------------------------------------------------------------------------- limits


@table("asked", range(1, 8))
def test_cancellation_at_any_moment(write: Callable[..., str], asked: int) -> None:
    class Impatient(Progress):
        left = asked

        def advance(self, units: int = 0) -> None:
            self.left -= 1
            if self.left == 0:
                self.cancel()
            super().advance(units)

    progress = Impatient()
    with FileSource(write(checkpoint(TWO, {"0": EIGHT, "1": TWELVE}))) as source:
        try:
            read_torchzip(source, Limits(), progress)
        except CancelledError:
            assert progress.left == 0
        else:
            assert progress.left > 0
    if asked == 1:
        assert progress.cancelled


def test_progress_counts_storages(write: Callable[..., str]) -> None:
    progress = Progress()
    with FileSource(write(checkpoint(TWO, {"0": EIGHT, "1": TWELVE}))) as source:
        read_torchzip(source, Limits(), progress)
    assert (progress.label, progress.done, progress.total) == ("finding storages", 2, 2)


Read = Callable[..., Metadata]
VERSION_METADATA = Record(name="a/version", data=b"3\n")
PICKLE = Record(name="a/data.pkl", data=b"N.")


@pytest.fixture
def read(write: Callable[..., str]) -> Read:
    """Read the facts of an archive."""

    def read(*records: Record) -> Metadata:
        with FileSource(write(build_zip(*records))) as source:
            return read_metadata(source, records_of(source, Limits()))

    return read


def test_facts_in_any_case(read: Read) -> None:
    found = read(PICKLE, VERSION_METADATA, Record(name="a/BYTEORDER", data=b"middle\n"))
    assert found == Metadata((("version", "3"), ("byteorder", "middle\n")), "", ())


@table(
    ("records", "refusal"),
    [
        ([PICKLE, VERSION_METADATA], ""),
        ([PICKLE], NO_VERSION),
        ([PICKLE, Record(name="a/.data/version", data=b"3")], ""),
        ([Record(name="data.pkl"), VERSION_METADATA], no_folder_words("data.pkl")),
        ([PICKLE, VERSION_METADATA, Record(name="A/x")], no_folder_words("A/x", "a/")),
        ([PICKLE, VERSION_METADATA, Record(name=b"\xff/x")], no_folder_words("\udcff/x", "a/")),
        ([PICKLE, VERSION_METADATA, Record(name=b"a/\xff")], UNDECODABLE),
        ([PICKLE, VERSION_METADATA, Record(name=b"a/" + b"x" * 508 + "\u00e9".encode())], UNDECODABLE),
        ([PICKLE, VERSION_METADATA, Record(name=b"a/" + b"x" * 507 + "\u00e9".encode())], ""),
        ([PICKLE, VERSION_METADATA, Record(name=b"a/x\0\xff")], ""),
        ([Record(name=b"\xff/data.pkl"), Record(name=b"\xff/version", data=b"3")], ""),
        ([PICKLE, VERSION_METADATA, Record(name="a/.storage_alignment", data=b" 6_4")], ""),
        ([PICKLE, VERSION_METADATA, Record(name="a/.data/serialization_id", data=b"\xff")], UNDECODABLE),
        (
            [PICKLE, Record(name="a/version", data=b"3", flags=1)],
            miniz_words("retrieving file meta-data for version", MinizError.ENCRYPTED),
        ),
        (
            [PICKLE, VERSION_METADATA, Record(name="a/byteorder", data=b"3", local_signature=b"PKxx")],
            miniz_words("reading file byteorder", MinizError.CORRUPTED),
        ),
        (
            [PICKLE, VERSION_METADATA, Record(name="a/.data/serialization_id", data=b"3", method=99)],
            miniz_words("retrieving file meta-data for .data/serialization_id", MinizError.METHOD),
        ),
    ],
)
def test_what_torch_refuses(read: Read, records: list[Record], refusal: str) -> None:
    assert read(*records).refusal == refusal


def test_alignment_that_is_no_number(read: Read) -> None:
    refusal = read(PICKLE, VERSION_METADATA, Record(name="a/.storage_alignment", data=b"x")).refusal
    assert refusal == "ValueError: invalid literal for int() with base 10: b'x'"


def test_folder_longer_than_torch_keeps_of_a_name(read: Read) -> None:
    folder = "f" * 511 + "/"
    found = read(Record(name=f"{folder}data.pkl"), Record(name=f"{folder}version", data=b"3"))
    assert found.refusal == no_folder_words(f"{folder}data.pkl", folder)
    short = folder[1:]
    assert read(Record(name=f"{short}data.pkl"), Record(name=f"{short}version", data=b"3")).refusal == ""


def test_facts_that_nobody_can_be_sure_of(read: Read) -> None:
    large = Record(name="a/.data/version", data=b"3" + bytes(70_000))
    assert read(PICKLE, VERSION_METADATA, large).doubts == (NoteKind.LARGE_RECORD,)
    assert read(PICKLE, large).refusal == ""
    folder = Record(name="a/byteorder", data=b"little", attributes=0x10)
    assert read(PICKLE, VERSION_METADATA, folder).doubts == (NoteKind.UNWRITTEN_RECORD,)


def test_names_as_torch_lists_them() -> None:
    assert listed_name("a/x\0y") == b"a/x"
    assert listed_name("x" * 600) == b"x" * 511
    long = "f" * 497 + "/"
    for folder, names, is_listed in (
        (long, [f"{long}constants.pkl.bak"], True),
        ("f/", ["f/constants.pkl.bak", "f/CONSTANTS.PKL"], False),
        ("f/", ["f/x", "f/constants.pkl\0x"], True),
    ):
        entries = [ZipEntry(name, 0, 0, 0, 0, 0, 0, 0) for name in names]
        records = Records(ZipDirectory(entries=entries, start=0, end=0))
        assert records.prefix == folder
        assert records.lists("constants.pkl") is is_listed
