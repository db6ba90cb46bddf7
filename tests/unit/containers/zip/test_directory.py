from __future__ import annotations

import contextlib
import io
import itertools
import os
import struct
import zipfile
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from inspector.containers.notes import NoteKind
from inspector.containers.source import FileSource, Source
from inspector.containers.zip.directory import (
    CENTRAL,
    DEFLATED,
    END,
    LOCAL,
    DirectoryError,
    MinizError,
    Trouble,
    ZipDirectory,
    ZipEntry,
    payload_offset,
    payload_offsets,
    place_of,
    read_directory,
)
from inspector.containers.zip.records import read_zip_record
from inspector.errors import CancelledError, ContainerError
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders.zips import Record, ZipBuilder, build_zip
from tests.sweep import table

Open = Callable[..., Source]


def headers_of(entries: Sequence[ZipEntry]) -> list[int]:
    """Where the local headers of records start."""
    return [entry.header_offset for entry in entries]


A, B = Record(name="a/x", data=b"first"), Record(name="a/y", data=b"second")


@pytest.fixture
def open_(write: Callable[..., str]) -> Open:
    """Write bytes and open them; the descriptor lives as long as the test."""
    sources = []

    def open_(data: bytes) -> Source:
        sources.append(FileSource(write(data, f"{len(sources)}.zip")))
        return sources[-1]

    yield open_
    for source in sources:
        source.close()


def directory(source: Source, **limits: int) -> ZipDirectory:
    return read_directory(source, Limits(**limits))


def contents(source: Source, entries: tuple[ZipEntry, ...]) -> dict[str, bytes]:
    return {entry.name: read_zip_record(source, entry, 1 << 20) for entry in entries}


# ------------------------------------------------------------------------------------------- the directory


def test_entries_tell_what_the_directory_tells(open_: Open) -> None:
    data = build_zip(
        A, Record(name="a/y", data=b"second", crc=0, flags=0x808, comment=b"note", extra=b"FB\0\0")
    )
    found = directory(open_(data))
    first, second = found.entries
    assert first == ZipEntry("a/x", 0, 5, 5, 0, zlib.crc32(b"first"), 0, found.start)
    assert type(first) is ZipEntry
    assert second == ZipEntry("a/y", 30 + 3 + 5, 6, 6, 0, 0, 0x808, found.start + CENTRAL.size + 3)
    assert found.end == len(data)
    assert data[found.start :].startswith(b"PK\x01\x02")


def test_zip_of_python_is_read_as_python_reads_it(open_: Open) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/stored", b"x" * 1000)
        archive.writestr("a/deflated", b"y" * 1000, zipfile.ZIP_DEFLATED)
        with archive.open("a/streamed", "w", force_zip64=True) as file:
            file.write(b"z" * 1000)
        archive.comment = b"a comment"
    source = open_(buffer.getvalue())
    found = directory(source)
    with zipfile.ZipFile(buffer) as archive:
        assert contents(source, found.entries) == {name: archive.read(name) for name in archive.namelist()}
    assert found.end == source.nbytes


def test_empty_zip(open_: Open) -> None:
    assert directory(open_(build_zip())).entries == ()


# ------------------------------------------------------------------------------------------- Zip64


def test_zip64_end_and_entries(open_: Open) -> None:
    data = build_zip(
        A, Record(name="a/y", data=b"second", zip64=True, central_extra=b"xx\x02\0ab"), zip64=True
    )
    source = open_(data)
    assert contents(source, directory(source).entries) == {"a/x": b"first", "a/y": b"second"}


def test_zip64_fields_come_in_a_fixed_order_and_only_where_needed(open_: Open) -> None:
    extra = struct.pack("<2HQ", 1, 8, 30 + 3 + 5)
    data = build_zip(A, Record(name="a/y", data=b"second", offset=0xFFFFFFFF, central_extra=extra))
    source = open_(data)
    assert contents(source, directory(source).entries)["a/y"] == b"second"


@table(
    ("extra", "trouble"),
    [(b"", Trouble.NONE), (b"\x01\0\0\0", Trouble.ZIP64), (b"\x02\0\x02\0ab", Trouble.NONE)],
)
def test_zip64_extra_without_the_figure_leaves_it(open_: Open, extra: bytes, trouble: Trouble) -> None:
    record = Record(name="a/x", data=b"1", stored_nbytes=1, nbytes=0xFFFFFFFF, central_extra=extra)
    entry = directory(open_(build_zip(record))).entries[0]
    assert (entry.nbytes, entry.trouble) == (0xFFFFFFFF, trouble)


@table(
    "extra",
    [
        b"\x01",
        b"\x01\0\x08\0",
        b"\x01\0\x08\0abc",
        b"\x02\0\xff\xff",
        b"\x02\0\0\0\x02\0\0\0\x01\0",
    ],
)
def test_extra_fields_that_break_off(open_: Open, extra: bytes) -> None:
    with pytest.raises(DirectoryError) as caught:
        directory(open_(build_zip(Record(name="a/x", nbytes=0xFFFFFFFF, central_extra=extra))))
    assert caught.value.miniz == MinizError.CORRUPTED


def test_zip64_field_that_is_too_short_is_read_on_and_refused_later(open_: Open) -> None:
    extra = struct.pack("<2HQ", 1, 0, 1)
    record = Record(
        name="a/x", data=b"1", stored_nbytes=1, nbytes=0xFFFFFFFF, central_extra=extra + b"FB\0\0"
    )
    entry = directory(open_(build_zip(record))).entries[0]
    assert (entry.nbytes, entry.trouble) == (1, Trouble.ZIP64)


@pytest.mark.wide
def test_more_than_65535_records(open_: Open) -> None:
    builder = ZipBuilder()
    for number in range(66_000):
        builder.add(Record(name=f"a/{number}", data=b"%d" % number))
    source = open_(builder.finish(zip64=True))
    found = directory(source)
    assert len(found.entries) == 66_000
    assert read_zip_record(source, found.entries[65_999], 100) == b"65999"


def test_offsets_over_4_gib(tmp_path: Path) -> None:
    path, gap = tmp_path / "large.zip", 5 << 30
    builder = ZipBuilder()
    builder.add(A)
    with path.open("wb") as file:
        file.write(builder.body)
        file.seek(gap)
        local = LOCAL.pack(b"PK\x03\x04", 0, 0, 0, 0, 0, 0, 0, 0, 3, 0) + b"a/y" + b"second"
        file.write(local)
        extra = struct.pack("<2HQ", 1, 8, gap)
        entry = CENTRAL.pack(b"PK\1\2", 0, 0, 0, 0, 0, 0, 0, 6, 6, 3, len(extra), 0, 0, 0, 0, 0xFFFFFFFF)
        builder.central += entry + b"a/y" + extra
        builder.count += 1
        builder.body = bytearray()
        tail = builder.finish(zip64=True, start=gap + len(local))
        at = tail.index(b"PK\x06\x07")
        file.write(
            tail[: at + 8] + struct.pack("<Q", gap + len(local) + len(builder.central)) + tail[at + 16 :]
        )
    with FileSource(str(path)) as source:
        found = directory(source)
        assert found.entries[1].header_offset == gap
        assert contents(source, found.entries) == {"a/x": b"first", "a/y": b"second"}


# ------------------------------------------------------------------------------------------- damage, limits


def test_damaged_entry(open_: Open) -> None:
    data = bytearray(build_zip(A, B))
    second = data.index(b"PK\1\2", data.index(b"PK\1\2") + 1)
    data[second] = 0
    with pytest.raises(ContainerError, match=f"the zip directory is damaged: byte {second:,}"):
        directory(open_(bytes(data)))


def test_directory_that_breaks_off(open_: Open) -> None:
    data = build_zip(A, B)
    start, end = data.index(b"PK\1\2"), data.index(b"PK\5\6")
    for nbytes in (2 * CENTRAL.size, end - start - 1):
        cut = data[: start + nbytes] + END.pack(b"PK\5\6", 0, 0, 2, 2, nbytes, start, 0)
        place = start + (end - start) // 2
        with pytest.raises(DirectoryError, match=f"the zip directory breaks off: byte {place:,}$"):
            directory(open_(cut))


def test_directory_longer_or_shorter_than_its_records(open_: Open) -> None:
    data = build_zip(A, B)
    assert directory(open_(data)).doubts == ()
    found = directory(open_(data[:-14] + struct.pack("<2H", 1, 1) + data[-10:]))
    assert [entry.name for entry in found.entries] == ["a/x"]
    assert found.doubts == (NoteKind.MORE_RECORDS,)


@table(
    ("lies", "miniz"),
    [
        ({"nbytes": 3}, MinizError.CORRUPTED),
        ({"stored_nbytes": 3}, MinizError.CORRUPTED),
        ({"stored_nbytes": 0, "time": 1}, MinizError.CORRUPTED),
        ({"stored_nbytes": 0, "method": DEFLATED}, MinizError.CORRUPTED),
        ({"nbytes": 900, "stored_nbytes": 900}, MinizError.CORRUPTED),
        ({"offset": 1 << 30}, MinizError.CORRUPTED),
        ({"disk": 2}, MinizError.MULTIDISK),
        ({"disk": 0xFFFF}, MinizError.MULTIDISK),
        ({"flags": 0x2000}, MinizError.ENCRYPTED),
    ],
)
def test_entry_that_miniz_refuses(open_: Open, lies: dict[str, int], miniz: MinizError) -> None:
    with pytest.raises(DirectoryError) as caught:
        directory(open_(build_zip(A, Record(name="a/z", data=b"12345", **lies))))
    assert caught.value.miniz == miniz


@table(
    ("record", "trouble"),
    [
        (Record(name="a/z", data=b"12345", nbytes=3, time=1), Trouble.NONE),
        (Record(name="a/z", data=b"12345", disk=1), Trouble.NONE),
        (Record(name="a/z", data=b"12345", attributes=0x10), Trouble.UNWRITTEN),
        (Record(name="a/z/", data=b"12345"), Trouble.UNWRITTEN),
        (Record(name="a/z", data=b"", nbytes=0xFFFFFFFF), Trouble.UNWRITTEN),
        (Record(name="a/z", data=b"12345", attributes=0x81A40000), Trouble.NONE),
    ],
)
def test_entry_that_miniz_takes(open_: Open, record: Record, trouble: Trouble) -> None:
    assert directory(open_(build_zip(A, record))).entries[1].trouble == trouble


def test_offset_beyond_64_bits_wraps_around(open_: Open) -> None:
    """miniz takes the directory, and finds no header there when it is asked for the record."""
    extra = struct.pack("<2HQ", 1, 8, (1 << 64) - 20)
    source = open_(build_zip(A, Record(name="a/z", offset=0xFFFFFFFF, central_extra=extra)))
    entries = directory(source).entries
    assert entries[1].header_offset == (1 << 64) - 20
    assert list(payload_offsets(source, headers_of(entries))) == [33, None]


def test_number_of_records_is_bounded(open_: Open) -> None:
    source = open_(build_zip(A, B))
    assert directory(source, records=2).entries
    with pytest.raises(ContainerError, match="too large: 2 records, 98 bytes") as raised:
        directory(source, records=1, storages=7)
    assert raised.value.remedy.startswith("at most 7 tensors of a zip are read")


def test_size_of_the_directory_is_bounded(open_: Open) -> None:
    source = open_(build_zip(A, B))
    assert directory(source, directory_nbytes=98).entries
    with pytest.raises(ContainerError, match="too large: 2 records, 98 bytes") as raised:
        directory(source, directory_nbytes=97)
    assert raised.value.remedy is None


def test_cancellation(open_: Open) -> None:
    source, progress = open_(build_zip(A)), Progress()
    read_directory(source, Limits(), progress)
    progress.cancel()
    with pytest.raises(CancelledError):
        read_directory(source, Limits(), progress)


@table(
    ("name", "text"),
    [
        ("a/name with spaces", "a/name with spaces"),
        ("a/\u043a\u043b\u044e\u0447/\u540d\u524d", "a/\u043a\u043b\u044e\u0447/\u540d\u524d"),
        (b"a/\xff", "a/\udcff"),
        (b"a/\0b", "a/\0b"),
        ("", ""),
        ("n" * 65535, "n" * 65535),
    ],
)
def test_name_is_utf_8_or_escaped(open_: Open, name: str | bytes, text: str) -> None:
    assert directory(open_(build_zip(Record(name=name)))).entries[0].name == text


def test_place_in_an_error_is_short_and_printable() -> None:
    entry = ZipEntry("a/\x1b[31m\u202e" + "n" * 300, 0, 0, 0, 0, 0, 0, 0)
    assert place_of(entry).startswith("record a/\\u001b[31m\\u202ennn")
    assert len(place_of(entry)) < 140


# ------------------------------------------------------------------------------------------- payloads


def offset_of(source: Source, number: int) -> int:
    return payload_offset(source, directory(source).entries[number])


def test_payload_stands_behind_the_local_header_not_the_central_one(open_: Open) -> None:
    data = build_zip(
        Record(name="a/x", data=b"first", local_name="another name", extra=b"FB\x10\0" + b"Z" * 16)
    )
    source = open_(data)
    assert offset_of(source, 0) == LOCAL.size + 12 + 20 == data.index(b"first")
    assert contents(source, directory(source).entries) == {"a/x": b"first"}


def test_record_whose_local_header_is_elsewhere(open_: Open) -> None:
    source = open_(build_zip(A, Record(name="a/y", offset=3), Record(name="a/z", offset=7)))
    for number in (1, 2):
        with pytest.raises(ContainerError, match=r"not where the directory says: record a/[yz]$"):
            offset_of(source, number)
    found = list(payload_offsets(source, headers_of(directory(source).entries)))
    assert found == [33, None, None]


def test_payloads_of_many_records_in_any_order(open_: Open) -> None:
    records = [
        Record(name=f"a/{number}", data=os.urandom(number * 37 % 9000), extra=b"Z" * (number % 64))
        for number in range(300)
    ]
    data = build_zip(*records)
    source = open_(data)
    entries = directory(source).entries
    for order in (entries, entries[::-1], entries[::7] + entries[3::11]):
        for entry, offset in zip(order, payload_offsets(source, headers_of(order)), strict=True):
            assert offset == payload_offset(source, entry)
            assert zlib.crc32(data[offset : offset + entry.nbytes]) == entry.crc


def test_local_header_at_the_very_end(open_: Open) -> None:
    data = build_zip(A)
    entry = directory(open_(data)).entries[0]
    for nbytes in range(0, 40, 3):
        source = open_(data[:nbytes])
        expected = [33] if nbytes >= LOCAL.size else [None]
        assert list(payload_offsets(source, [entry.header_offset])) == expected


@pytest.mark.wide
def test_every_flipped_byte_ends_in_words(write: Callable[..., str]) -> None:
    data = build_zip(
        A, Record(name="a/y", data=b"second" * 9, method=DEFLATED, zip64=True), zip64=True, comment=b"c"
    )
    for at, mask in itertools.product(range(len(data)), (0x01, 0xFF)):
        changed = data[:at] + bytes([data[at] ^ mask]) + data[at + 1 :]
        with FileSource(write(changed)) as source, contextlib.suppress(ContainerError):
            assert len(contents(source, directory(source).entries)) <= 2
