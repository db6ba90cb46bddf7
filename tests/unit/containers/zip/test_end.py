from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from inspector.containers.notes import NoteKind
from inspector.containers.source import FileSource
from inspector.containers.zip.directory import (
    CENTRAL,
    END,
    END64,
    LOCATOR64,
    DirectoryError,
    MinizError,
    ZipEnd,
    find_end,
)
from tests.builders.zips import Record, build_zip
from tests.sweep import table

Write = Callable[..., str]
Find = Callable[[bytes], ZipEnd]
A, B = Record(name="a/x", data=b"first"), Record(name="a/y", data=b"second")
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
    data = build_zip(A, B)
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
    data = build_zip(A)
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
    data = build_zip(A, B)
    for nbytes in range(0, len(data), 7):
        with pytest.raises(DirectoryError) as caught:
            find(data[:nbytes])
        assert (caught.value.remedy or "").startswith("the file is incomplete: fetch or copy it again")


def test_end_in_the_comment_is_taken_as_torch_takes_it(find: Find) -> None:
    """The last signature with room for an end behind it counts, though a comment says it."""
    other = build_zip(B)
    start = len(build_zip(A)) + other.index(b"PK\x01\x02")
    fake = END.pack(b"PK\x05\x06", 0, 0, 1, 1, 49, start, 0)
    found = find(build_zip(A, comment=other[: other.index(b"PK\x05\x06")] + fake))
    assert found.start == start
    assert found.doubts == (NoteKind.TWO_ENDS,)


def test_end_before_others_that_do_not_end_with_the_file(find: Find) -> None:
    inner = build_zip(B)
    whole = build_zip(Record(name="a/inner", data=inner))
    assert find(whole).doubts == ()
    assert find(whole + b"\0").doubts == (NoteKind.TWO_ENDS,)


# --- where the directory is ---------------------------------------------------------------------------------


@pytest.mark.parametrize("field", [-6, -10])
def test_directory_that_does_not_end_where_the_end_begins(find: Find, field: int) -> None:
    data = build_zip(A, B)
    before = struct.unpack_from("<L", data, len(data) + field)[0]
    assert find(patched(data, field, "<L", before)).doubts == ()
    assert find(patched(data, field, "<L", before - 2)).doubts == (NoteKind.TWO_DIRECTORIES,)


def test_prefix_that_moves_everything(find: Find) -> None:
    """Python's zipfile adds the prefix to all places, torch does not."""
    assert find(bytes(100) + build_zip(A)).doubts == (NoteKind.TWO_DIRECTORIES,)


@pytest.mark.parametrize("start", [1 << 20, 2**32 - 1])
def test_directory_said_to_be_behind_the_end(find: Find, start: int) -> None:
    with pytest.raises(DirectoryError, match="the zip directory is damaged") as caught:
        find(build_zip(A, start=start))
    assert caught.value.miniz == MinizError.CORRUPTED


def test_directory_too_small_for_its_records(find: Find) -> None:
    data = build_zip(A, B)
    with pytest.raises(DirectoryError) as caught:
        find(patched(data, -10, "<L", 2 * CENTRAL.size - 1))
    assert caught.value.miniz == MinizError.CORRUPTED


@table("disks", [(0, 1), (1, 0), (2, 2), (0xFFFF, 0xFFFF)])
def test_archive_of_several_disks(find: Find, disks: tuple[int, int]) -> None:
    data = build_zip(A)
    with pytest.raises(DirectoryError) as caught:
        find(patched(data, -18, "<2H", *disks))
    assert caught.value.miniz == MinizError.MULTIDISK
    assert find(patched(data, -18, "<2H", 1, 1)).disk == 1


def test_counts_that_differ(find: Find) -> None:
    with pytest.raises(DirectoryError) as caught:
        find(patched(build_zip(A, B), -14, "<H", 1))
    assert caught.value.miniz == MinizError.MULTIDISK


# --- Zip64 --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [0, 7])
def test_locator_that_points_to_no_end_is_passed_over(find: Find, place: int) -> None:
    """The plain end counts; Python would look in front of the locator."""
    data = build_zip(A, zip64=True)
    start, nbytes = data.index(b"PK\1\2"), CENTRAL.size + 3
    data = patched(data, data.index(b"PK\x06\x07") + 8, "<Q", place)
    found = find(patched(data, -END.size, "<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, nbytes, start, 0))
    assert (found.start, found.doubts) == (start, (NoteKind.TWO_DIRECTORIES,))


@table("outside", [1, 2**63, 2**64 - 300])
def test_locator_that_points_past_the_end_of_the_file(find: Find, outside: int) -> None:
    data = build_zip(A, zip64=True)
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
    data = build_zip(A, zip64=True)
    values = (value,) if form != "<2Q" else (1 << 32, 1 << 32)
    with pytest.raises(DirectoryError) as caught:
        find(patched(data, data.index(b"PK\6\6") + field, form, *values))
    assert caught.value.miniz == miniz


@table(("field", "form"), [(-12, "<H"), (-10, "<L"), (-6, "<L")])
def test_narrow_figures_that_are_neither_full_nor_the_wide_ones(find: Find, field: int, form: str) -> None:
    data = build_zip(A, zip64=True)
    assert find(data).doubts == ()
    assert find(patched(data, field, form, 0)).doubts == (NoteKind.TWO_DIRECTORY_SIZES,)


def test_zip64_end_elsewhere_than_in_front_of_its_locator(find: Find) -> None:
    data = build_zip(A, zip64=True)
    at = data.index(b"PK\6\6")
    moved = data[:at] + data[at : at + END64.size] + b"\0" * 7 + data[at + END64.size :]
    assert find(moved).doubts == (NoteKind.TWO_DIRECTORIES,)
