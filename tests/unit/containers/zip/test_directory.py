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
    END64,
    LOCAL,
    LOCATOR64,
    NO_VERSION,
    UNDECODABLE,
    DirectoryError,
    MinizError,
    Trouble,
    ZipDirectory,
    ZipEnd,
    ZipEntry,
    find_end,
    miniz_words,
    no_folder_words,
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


Write = Callable[..., str]
Find = Callable[[bytes], ZipEnd]
A_END, B_END = Record(name="a/x", data=b"first"), Record(name="a/y", data=b"second")
LARGE = Record(name="a/large", data=bytes(80_000))


@pytest.fixture
def find(write: Write) -> Find:
    """Find the end of bytes."""

    def find(data: bytes) -> ZipEnd:
        with FileSource(write(data)) as source:
            return find_end(source)

    return find


def patched(data: bytes, at: int, form: str, *values: object) -> bytes:
    """Bytes with some of them changed; counted from the end where `at` is negative."""
    changed = bytearray(data)
    struct.pack_into(form, changed, at if at >= 0 else len(data) + at, *values)
    return bytes(changed)


# --- which end ----------------------------------------------------------------------------------------------


@table("zip64", [False, True])
@table("comment", [b"", b"c", b"c" * 65535, b"PK\x05\x06", b"PK\x05\x06" + b"x" * 17])
def test_comment_behind_the_end(find: Find, comment: bytes, zip64: bool) -> None:
    data = build_zip(LARGE, comment=comment, zip64=zip64)
    found = find(data)
    assert (found.count, found.start, found.end) == (1, data.index(b"PK\1\2"), len(data))
    assert found.doubts == ()


def test_bytes_behind_the_archive(find: Find) -> None:
    data = build_zip(A_END, B_END)
    found = find(data + bytes(1000))
    assert (found.count, found.end, found.doubts) == (2, len(data), ())


@table("behind", [65_535, 65_536, 69_562])
def test_end_is_looked_for_as_far_back_as_miniz_looks(find: Find, behind: int) -> None:
    found = find(build_zip(LARGE) + bytes(behind))
    assert found.count == 1
    assert found.doubts == (() if behind < 65_536 else (NoteKind.FAR_END,))


def test_end_too_far_from_the_end_of_the_file_is_not_found(find: Find) -> None:
    with pytest.raises(DirectoryError, match="its end is missing") as caught:
        find(build_zip(LARGE) + bytes(69_563))
    assert caught.value.miniz == MinizError.NO_DIRECTORY


def test_beginning_of_a_file_is_searched_only_by_whole_blocks(find: Find) -> None:
    """miniz reads 4,096 bytes at once, and fails on the step that leads in front of the file."""
    data = build_zip(A_END)
    first = len(data) - END.size  # where the end stands
    assert find(data + bytes(4096 - len(data))).count == 1
    assert find(data + bytes(4096 + first - len(data))).count == 1
    with pytest.raises(DirectoryError, match="its end is missing"):
        find(data + bytes(4096 + first + 1 - len(data)))
    assert find(data + bytes(4096 + 4093 - len(data))).count == 1


@table("nbytes", [0, 1, 4, 17, 18, 20, 21])
def test_no_end_in_a_tiny_file(find: Find, nbytes: int) -> None:
    data = (b"PK\x05\x06" + bytes(30))[:nbytes]
    with pytest.raises(DirectoryError, match=f"the zip has no directory: its end is missing: {nbytes} bytes"):
        find(data)


def test_zip_cut_off_anywhere_has_no_directory(find: Find) -> None:
    data = build_zip(A_END, B_END)
    for nbytes in range(0, len(data), 7):
        with pytest.raises(DirectoryError) as caught:
            find(data[:nbytes])
        assert (caught.value.remedy or "").startswith("the file is incomplete: fetch or copy it again")


def test_end_in_the_comment_is_taken_as_torch_takes_it(find: Find) -> None:
    """The last signature with room for an end behind it counts, though a comment says it."""
    other = build_zip(B_END)
    start = len(build_zip(A_END)) + other.index(b"PK\x01\x02")
    fake = END.pack(b"PK\x05\x06", 0, 0, 1, 1, 49, start, 0)
    found = find(build_zip(A_END, comment=other[: other.index(b"PK\x05\x06")] + fake))
    assert found.start == start
    assert found.doubts == (NoteKind.TWO_ENDS,)


def test_end_before_others_that_do_not_end_with_the_file(find: Find) -> None:
    inner = build_zip(B_END)
    whole = build_zip(Record(name="a/inner", data=inner))
    assert find(whole).doubts == ()
    assert find(whole + b"\0").doubts == (NoteKind.TWO_ENDS,)


# --- where the directory is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("field", [-6, -10])
def test_directory_that_does_not_end_where_the_end_begins(find: Find, field: int) -> None:
    data = build_zip(A_END, B_END)
    before = struct.unpack_from("<L", data, len(data) + field)[0]
    assert find(patched(data, field, "<L", before)).doubts == ()
    assert find(patched(data, field, "<L", before - 2)).doubts == (NoteKind.TWO_DIRECTORIES,)


def test_prefix_that_moves_everything(find: Find) -> None:
    """Python's zipfile adds the prefix to all places, torch does not."""
    assert find(bytes(100) + build_zip(A_END)).doubts == (NoteKind.TWO_DIRECTORIES,)


@pytest.mark.parametrize("start", [1 << 20, 2**32 - 1])
def test_directory_said_to_be_behind_the_end(find: Find, start: int) -> None:
    with pytest.raises(DirectoryError, match="the zip directory is damaged") as caught:
        find(build_zip(A_END, start=start))
    assert caught.value.miniz == MinizError.CORRUPTED


def test_directory_too_small_for_its_records(find: Find) -> None:
    data = build_zip(A_END, B_END)
    with pytest.raises(DirectoryError) as caught:
        find(patched(data, -10, "<L", 2 * CENTRAL.size - 1))
    assert caught.value.miniz == MinizError.CORRUPTED


@table("disks", [(0, 1), (1, 0), (2, 2), (0xFFFF, 0xFFFF)])
def test_archive_of_several_disks(find: Find, disks: tuple[int, int]) -> None:
    data = build_zip(A_END)
    with pytest.raises(DirectoryError) as caught:
        find(patched(data, -18, "<2H", *disks))
    assert caught.value.miniz == MinizError.MULTIDISK
    assert find(patched(data, -18, "<2H", 1, 1)).disk == 1


def test_counts_that_differ(find: Find) -> None:
    with pytest.raises(DirectoryError) as caught:
        find(patched(build_zip(A_END, B_END), -14, "<H", 1))
    assert caught.value.miniz == MinizError.MULTIDISK


# --- Zip64 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 7])
def test_locator_that_points_to_no_end_is_passed_over(find: Find, place: int) -> None:
    """The plain end counts; Python would look in front of the locator."""
    data = build_zip(A_END, zip64=True)
    start, nbytes = data.index(b"PK\1\2"), CENTRAL.size + 3
    data = patched(data, data.index(b"PK\x06\x07") + 8, "<Q", place)
    found = find(patched(data, -END.size, "<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, nbytes, start, 0))
    assert (found.start, found.doubts) == (start, (NoteKind.TWO_DIRECTORIES,))


@table("outside", [1, 2**63, 2**64 - 300])
def test_locator_that_points_past_the_end_of_the_file(find: Find, outside: int) -> None:
    data = build_zip(A_END, zip64=True)
    with pytest.raises(DirectoryError) as caught:
        find(patched(data, data.index(b"PK\x06\x07") + 8, "<Q", len(data) - END64.size + outside))
    assert caught.value.miniz == MinizError.NOT_A_ZIP


def test_locator_in_front_of_byte_76_is_passed_over(find: Find) -> None:
    """There is no room for a Zip64 end in front of it, so miniz does not look for one; others do."""
    hidden = END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, 46, 200)
    front = b"PK\3\4" + bytes(50)
    end = END.pack(b"PK\5\6", 0, 0, 0, 0, 0, 0, len(hidden) + 46)
    locator = LOCATOR64.pack(b"PK\6\7", 0, len(front) + LOCATOR64.size + END.size, 1)
    found = find(front + locator + end + hidden + bytes(46))
    assert (found.count, found.start) == (0, 0)
    assert NoteKind.TWO_DIRECTORIES in found.doubts
    later = b"PK\3\4" + bytes(80)
    locator = LOCATOR64.pack(b"PK\6\7", 0, len(later) + LOCATOR64.size + END.size, 1)
    hidden = END64.pack(b"PK\6\6", 44, 45, 45, 0, 0, 1, 1, 46, 100)
    found = find(later + locator + end + hidden + bytes(46))
    assert (found.count, found.start, found.doubts) == (
        1,
        100,
        (NoteKind.TWO_DIRECTORIES, NoteKind.TWO_DIRECTORY_SIZES),
    )


@table(
    ("field", "form", "value", "miniz"),
    [
        (4, "<Q", 43, MinizError.CORRUPTED),
        (16, "<L", 2, MinizError.MULTIDISK),
        (24, "<Q", 2, MinizError.MULTIDISK),
        (24, "<2Q", 2, MinizError.DIRECTORY_SIZE),
        (32, "<Q", 1 << 32, MinizError.DIRECTORY_SIZE),
        (40, "<Q", 1 << 32, MinizError.DIRECTORY_SIZE),
        (48, "<Q", 1 << 40, MinizError.CORRUPTED),
        (56 + 16, "<L", 2, MinizError.MULTIDISK),
    ],
)
def test_zip64_end_that_miniz_refuses(
    find: Find, field: int, form: str, value: int, miniz: MinizError
) -> None:
    data = build_zip(A_END, zip64=True)
    values = (value,) if form != "<2Q" else (1 << 32, 1 << 32)
    with pytest.raises(DirectoryError) as caught:
        find(patched(data, data.index(b"PK\6\6") + field, form, *values))
    assert caught.value.miniz == miniz


@table(("field", "form"), [(-12, "<H"), (-10, "<L"), (-6, "<L")])
def test_narrow_figures_that_are_neither_full_nor_the_wide_ones(find: Find, field: int, form: str) -> None:
    data = build_zip(A_END, zip64=True)
    assert find(data).doubts == ()
    assert find(patched(data, field, form, 0)).doubts == (NoteKind.TWO_DIRECTORY_SIZES,)


def test_zip64_end_elsewhere_than_in_front_of_its_locator(find: Find) -> None:
    data = build_zip(A_END, zip64=True)
    at = data.index(b"PK\6\6")
    moved = data[:at] + data[at : at + END64.size] + b"\0" * 7 + data[at + END64.size :]
    assert find(moved).doubts == (NoteKind.TWO_DIRECTORIES,)


torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch
PICKLE = Record(name="a/data.pkl", data=b"\x80\x02N.")
VERSION = Record(name="a/version", data=b"3\n")


@table(
    ("records", "words"),
    [
        ([PICKLE], NO_VERSION),
        ([Record(name="data.pkl")], no_folder_words("data.pkl")),
        ([PICKLE, VERSION, Record(name="b/x")], no_folder_words("b/x", "a/")),
        ([PICKLE, VERSION, Record(name=b"a/\xff")], UNDECODABLE),
        ([VERSION], miniz_words("locating file data.pkl", MinizError.NOT_FOUND)),
        (
            [VERSION, Record(name="a/data.pkl", data=b"1234", flags=1)],
            miniz_words("retrieving file meta-data for data.pkl", MinizError.ENCRYPTED),
        ),
        (
            [VERSION, Record(name="a/data.pkl", data=b"1234", method=99)],
            miniz_words("retrieving file meta-data for data.pkl", MinizError.METHOD),
        ),
    ],
)
def test_words(records: list[Record], words: str) -> None:
    with pytest.raises(Exception, match=r".") as caught:
        torch.load(io.BytesIO(build_zip(*records)))
    said = f"{type(caught.value).__name__}: {caught.value}"
    kind, _, rest = words.partition(": ")
    assert said.startswith(kind)
    assert rest in said
