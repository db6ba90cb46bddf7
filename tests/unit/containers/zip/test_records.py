from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any

import pytest

from inspector.containers.notes import NoteKind
from inspector.containers.source import FileSource
from inspector.containers.zip.directory import DEFLATED, LOCAL, read_directory
from inspector.containers.zip.records import (
    RecordContents,
    read_contents,
    read_zip_record,
    refused,
)
from inspector.errors import ContainerError
from inspector.limits import Limits
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


def test_wrong_checksum_is_the_callers_matter(read: Read) -> None:
    assert read(Record(name="a/x", data=b"ab", crc=7)) == RecordContents(b"ab")


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
