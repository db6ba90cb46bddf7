from __future__ import annotations

import sys
import zlib
from collections.abc import Callable
from typing import Any

import pytest

from inspector.containers import formats, torch_zip
from inspector.containers.base import Entry
from inspector.containers.formats import FORMATS
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource, FileSource, Source
from inspector.containers.torch_zip import ARCHIVES, TorchZip
from inspector.containers.zip import records as kinds
from inspector.containers.zip.directory import DEFLATED, LOCAL, read_directory
from inspector.containers.zip.records import (
    InflatedRecord,
    RecordContents,
    Records,
    ZipFormat,
    open_record,
    read_contents,
    read_zip_record,
    records_of,
    refused,
)
from inspector.errors import CancelledError, ContainerError, DamagedError, UnsupportedFormatError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.progress import Progress
from tests.builders.zips import Record, build_zip
from tests.sweep import table

Read = Callable[..., Any]


@pytest.fixture
def read(write: Callable[..., str]) -> Read:
    """Read the first record of an archive."""

    def read(archive: bytes | Record, most_nbytes: int = 3000, how: Read = read_contents) -> Any:
        data = build_zip(archive) if isinstance(archive, Record) else archive
        with FileSource(write(data)) as source:
            return how(source, read_directory(source, Limits()).entries[0], most_nbytes)

    return read


def packed(data: bytes, raw: bytes) -> bytes:
    """An archive of a record of some bytes that is said to be deflated to others."""
    archive = build_zip(Record(name="a/x", data=raw, nbytes=len(data), method=0, time=1))
    at = archive.index(b"PK\1\2") + 10
    return archive[:at] + b"\x08\0" + archive[at + 2 :]


def deflated(data: bytes) -> bytes:
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(data) + packer.flush()


@pytest.mark.parametrize("method", [0, DEFLATED])
def test_honest_record(read: Read, method: int) -> None:
    assert read(Record(name="a/x", data=b"abc" * 1000, method=method)) == RecordContents(b"abc" * 1000)
    assert read(Record(name="a/x", method=method), 0 if method == 0 else 9) == RecordContents(b"")


@table(
    ("record", "what"),
    [
        (Record(name="a/x", data=b"a" * 1001), "a zip record is larger than 1,000 bytes"),
        (Record(name="a/x", data=b"a", nbytes=1001, time=1), "a zip record is larger than 1,000 bytes"),
        (Record(name="a/x", data=b"a" * 2000, nbytes=5, time=1), "a zip record is larger than 1,000 bytes"),
        (Record(name="a/x", data=b"a", method=99), "compression method 99 is not supported"),
        (Record(name="a/x", data=b"a", method=12), "compression method 12 is not supported"),
        (Record(name="a/x", data=b"a", flags=0x1), "a zip record is encrypted"),
        (Record(name="a/x", data=b"a", flags=0x40), "a zip record is encrypted"),
        (Record(name="a/x", data=b"a", flags=0x20), "a zip record cannot be read"),
        (
            Record(name="a/x", data=b"ab" * 400, nbytes=900, method=DEFLATED),
            "a zip record is not as long as the directory says",
        ),
    ],
)
def test_record_that_torch_refuses(read: Read, record: Record, what: str) -> None:
    with pytest.raises(ContainerError) as caught:
        read(record, 1000)
    assert caught.value.what == what
    assert (caught.value.where or "").startswith("record a/x")


def test_zip64_field_that_is_too_short(read: Read) -> None:
    record = Record(name="a/x", data=b"a", nbytes=0xFFFFFFFF, stored_nbytes=1, central_extra=b"\1\0\0\0")
    with pytest.raises(ContainerError, match="larger than"):
        read(record)
    extra = b"\1\0\0\0" + (1).to_bytes(8, "little")
    record = Record(
        name="a/x", data=b"a", nbytes=0xFFFFFFFF, stored_nbytes=1, central_extra=extra + b"F\0\0\0"
    )
    with pytest.raises(ContainerError, match="cannot be read: record a/x: invalid header"):
        read(record)


def test_record_that_runs_past_the_end(read: Read) -> None:
    record = Record(name="a/x", data=b"ab", nbytes=140, stored_nbytes=60)
    with pytest.raises(ContainerError, match="the file ends too early"):
        read(Record(name="a/x", data=b"ab", nbytes=900, time=1, stored_nbytes=2))
    assert refused(read(record_of(record), how=lambda _source, entry, _most: entry)) is None


def record_of(record: Record) -> Record:
    return Record(name=record.name, data=record.data)


# --- what torch reads and others do not ---------------------------------------------------------------------


@pytest.mark.parametrize(("nbytes", "data"), [(3, b"abc"), (9, b"abcdefPK\1")])
def test_stored_record_of_two_sizes_is_as_long_as_it_unpacks_to(read: Read, nbytes: int, data: bytes) -> None:
    record = Record(name="a/x", data=b"abcdef", nbytes=nbytes, time=1)
    assert read(record) == RecordContents(data, NoteKind.TWO_RECORD_SIZES)


@pytest.mark.parametrize(
    "record", [Record(name="a/x", data=b"ab", attributes=0x10), Record(name="a/x/", data=b"ab")]
)
def test_record_that_torch_takes_for_a_folder(read: Read, record: Record) -> None:
    assert read(record) == RecordContents(b"ab", NoteKind.UNWRITTEN_RECORD)


def test_folder_that_is_one(read: Read) -> None:
    assert read(Record(name="a/x/", attributes=0x10)) == RecordContents(b"")


def test_packed_record_that_is_longer_than_it_says(read: Read) -> None:
    assert read(packed(b"abc", deflated(b"abcdef"))) == RecordContents(b"abc", NoteKind.DAMAGED_RECORD)


def test_packed_record_that_is_cut_off(read: Read) -> None:
    whole = bytes(range(256)) * 4
    found = read(packed(whole, deflated(whole)[:-9]))
    assert whole.startswith(found.data)
    assert (bool(found.data), found.doubt) == (True, NoteKind.DAMAGED_RECORD)


@pytest.mark.parametrize("nbytes", [100, 200_000])
def test_packed_record_that_is_damaged_behind_its_beginning(read: Read, nbytes: int) -> None:
    import random

    whole = random.Random(1).randbytes(nbytes)
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    raw = packer.compress(whole) + packer.flush(zlib.Z_SYNC_FLUSH) + b"\xff" * 100
    found = read(packed(bytes(nbytes + 50), raw), 1 << 20)
    assert found == RecordContents(whole, NoteKind.DAMAGED_RECORD)


def test_packed_record_that_is_damaged_from_the_start(read: Read) -> None:
    data = bytearray(build_zip(Record(name="a/x", data=b"abc" * 100, method=DEFLATED)))
    data[LOCAL.size + 3] ^= 0x07  # the type of the first block
    assert read(bytes(data)) == RecordContents(b"", NoteKind.DAMAGED_RECORD)


def test_whoever_needs_certainty_gets_an_error(read: Read) -> None:
    with pytest.raises(ContainerError, match="a zip record is damaged: record a/x: A compressed record"):
        read(packed(b"abc", deflated(b"abcdef")), how=read_zip_record)
    assert read(Record(name="a/x", data=b"abc"), how=read_zip_record) == b"abc"


DATA = bytes(range(256)) * 40


def opened(record: Record, limits: Limits = DEFAULT_LIMITS) -> Source:
    whole = BytesSource(build_zip(Record(name="before", data=b"x"), record), "a.zip")
    return open_record(whole, read_directory(whole, limits).entries[1], limits)


def test_contents_of_a_record_are_a_source() -> None:
    for method in (0, 8):
        found = opened(Record(name="a.pth", data=DATA, method=method))
        assert isinstance(found, InflatedRecord) == bool(method)
        assert (found.nbytes, found.read(300, 12), found.read(0, 3)) == (len(DATA), DATA[300:312], DATA[:3])
        assert found.read_upto(len(DATA) - 1, 9) == DATA[-1:]
        with pytest.raises(DamagedError, match="the file ends too early"):
            found.read(len(DATA) - 1, 9)


def test_what_inflating_costs_is_counted() -> None:
    limits = DEFAULT_LIMITS.started()
    opened(Record(name="a.pth", data=bytes(1 << 22), method=8), limits).read((1 << 22) - 1, 1)
    assert limits.work is not None
    assert limits.work.parts > 4000


def test_records_that_cannot_be_read_are_refused() -> None:
    for record, words in (
        (Record(name="a", data=DATA, flags=1), "a zip record cannot be read"),
        (Record(name="a", data=DATA, method=12), "a zip record cannot be read"),
        (Record(name="a", data=DATA, method=8, nbytes=2 << 30), "a zip record is larger than"),
    ):
        with pytest.raises(ContainerError, match=words):
            opened(record)


def test_damaged_records() -> None:
    packed = build_zip(Record(name="a", data=DATA, method=8))
    start = 30 + 1
    whole = BytesSource(packed[:start] + b"\xff" * 20 + packed[start + 20 :], "a.zip")
    found = open_record(whole, read_directory(whole, DEFAULT_LIMITS).entries[0], DEFAULT_LIMITS)
    with pytest.raises(DamagedError, match="a compressed record is damaged"):
        found.read(0, 1)
    entry = read_directory(whole, DEFAULT_LIMITS).entries[0]
    with pytest.raises(DamagedError, match="a zip record has two sizes"):
        open_record(whole, entry._replace(method=0), DEFAULT_LIMITS)


def test_record_that_the_end_of_the_file_cuts_off_is_read_as_far_as_it_goes() -> None:
    plain = build_zip(Record(name="a", data=DATA))
    entry = read_directory(BytesSource(plain, "a.zip"), DEFAULT_LIMITS).entries[0]
    cut = open_record(BytesSource(plain[:1000], "a.zip"), entry, DEFAULT_LIMITS)
    assert cut.nbytes == 1000 - 31
    assert cut.read(0, 10) == DATA[:10]
    assert zlib.crc32(DATA) == entry.crc


# The names that each writer puts into its zip; the first row of a kind is told by the first sample.
SAMPLES = [
    ("torchscript", ["net/data.pkl", "net/code/__torch__.py", "net/constants.pkl", "net/version"]),
    ("torchscript", ["net/version", "net/code/net.py", "net/model.json", "net/tensors/0"]),
    ("pt2", ["net/data/weights/weight_0", "net/models/model.json", "net/archive_format"]),
    ("pt2", ["version", "serialized_exported_program.json", "serialized_state_dict.pt"]),
    ("package", ["pkg/.data/0.storage", "pkg/model/sd.pkl", "pkg/.data/extern_modules"]),
    ("npz", ["arr_0.npy", "arr_1.npy"]),
    ("stable-baselines3", ["data", "policy.pth", "policy.optimizer.pth", "_stable_baselines3_version"]),
]
# What is a zip of torch.save all the same, or of nobody.
PLAIN = [
    ["a/data.pkl", "a/data/0", "a/version"],
    ["a/DATA.pkl", "a/model.json", "a/archive_format", "a/.data/extern_modules"],
    ["a/data.pkl", "a/constants.pkl.bak", "b/constants.pkl"],
    ["arr_0.npy", "readme.txt"],
    ["readme.txt"],
    [],
]


def source_of(names: list[str]) -> BytesSource:
    return BytesSource(build_zip(*(Record(name=name) for name in names)), "a.zip")


def test_each_kind_is_told_by_its_names() -> None:
    found = [TorchZip().kind_of(source_of(names), Limits(), Progress()) for _, names in SAMPLES]
    assert found == [name for name, _ in SAMPLES]
    assert {entry.name for entry in ARCHIVES} == set(found)
    assert [TorchZip().kind_of(source_of(names), Limits(), Progress()) for names in PLAIN] == ["zip"] * len(
        PLAIN
    )


def test_directory_is_read_once(write: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    reads = []
    real = kinds.read_directory
    monkeypatch.setattr(kinds, "read_directory", lambda *args: reads.append(args) or real(*args))
    path = write(
        build_zip(Record(name="a/data.pkl", data=b"\x80\x02N."), Record(name="a/version", data=b"3"))
    )
    assert read_container(path).root is None
    assert len(reads) == 1
    source = source_of(["a/data.pkl"])
    TorchZip().kind_of(source, Limits(), Progress())
    kept = source.kept
    assert records_of(source, Limits(), Progress()) is kept


def test_damaged_directory_is_left_to_the_reader() -> None:
    broken = BytesSource(b"PK\x03\x04" + b"x" * 40, "a.zip")
    assert (TorchZip().kind_of(broken, Limits(), Progress()), broken.kept) == ("zip", None)
    with pytest.raises(ContainerError):
        records_of(broken, Limits(), Progress())
    many = source_of(["net/constants.pkl", "net/version"])
    assert TorchZip().kind_of(many, Limits(records=1), Progress()) == "zip"
    stopped = Progress()
    stopped.cancel()
    with pytest.raises(CancelledError):
        TorchZip().kind_of(many, Limits(), stopped)


class Tiny(ZipFormat):
    name = "tiny"
    what = "a tiny zip"
    is_read = False
    remedy = "look"

    def matches_records(self, records: Records) -> bool:
        return "tiny.txt" in records.names


def test_kind_from_outside_is_a_class_and_its_entry(
    write: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "inspector.containers.tiny_zip", sys.modules[__name__])
    entry = Entry("tiny", "tiny_zip:Tiny")
    monkeypatch.setattr(torch_zip, "ARCHIVES", (entry, *ARCHIVES))
    monkeypatch.setattr(formats, "FORMATS", (entry, *FORMATS))
    with pytest.raises(UnsupportedFormatError, match="this is a tiny zip") as caught:
        read_container(write(build_zip(Record(name="tiny.txt"))))
    assert caught.value.form == "tiny"
