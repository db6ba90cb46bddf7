from __future__ import annotations

import errno
import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers import source as module
from inspector.containers.packed import PackedSource, open_source
from inspector.containers.source import BytesSource, FileSource, NearReader, Window, read_small
from inspector.errors import ContainerError, DamagedError, ExportError, NotACheckpointError, TooLargeError
from inspector.limits import Limits
from tests.sweep import table

Write = Callable[..., str]


def test_reads_are_positioned(write: Write) -> None:
    with FileSource(write(b"0123456789")) as source:
        assert (source.nbytes, source.file_nbytes, source.gzipped) == (10, 10, False)
        assert source.read(7, 3) == b"789"
        assert source.read(0, 2) == b"01"
        assert source.read(10, 0) == b""


def test_short_read_says_where_the_file_ends(write: Write) -> None:
    with FileSource(write(b"0123456789")) as source, pytest.raises(ContainerError) as caught:
        source.read(8, 5)
    assert caught.value.what == "the file ends too early"
    assert caught.value.where == "byte 10 of 5 bytes wanted from byte 8 on"
    assert "incomplete" in (caught.value.remedy or "")


@table(("offset", "nbytes"), [(8, 99), (10, 1), (11, 1), (2**64, 1), (8, 2**64)])
def test_read_up_to_the_end(write: Write, offset: int, nbytes: int) -> None:
    with FileSource(write(b"0123456789")) as source:
        assert source.read_upto(offset, nbytes) == b"0123456789"[min(offset, 10) :]


@pytest.mark.parametrize(("offset", "nbytes"), [(-1, 1), (1, -1)])
def test_negative_places_are_refused(write: Write, offset: int, nbytes: int) -> None:
    with FileSource(write(b"0123")) as source, pytest.raises(ContainerError, match="points outside itself"):
        source.read_upto(offset, nbytes)


def test_reaches(write: Write) -> None:
    with FileSource(write(b"0123")) as source:
        assert [source.reaches(end) for end in (0, 4, 5)] == [True, True, False]


def test_file_is_closed_when_the_block_ends(write: Write) -> None:
    with FileSource(write(b"0123")) as source:
        pass
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(source.fileno())


def test_file_cut_off_while_open_is_a_short_read(write: Write) -> None:
    path = write(b"0123456789")
    with FileSource(path) as source:
        os.truncate(path, 4)
        assert source.read_upto(2, 8) == b"23"
        with pytest.raises(ContainerError, match="ends too early"):
            source.read(2, 8)


def test_file_that_grows_while_open_keeps_its_size(write: Write) -> None:
    path = write(b"0123")
    with FileSource(path) as source:
        with Path(path).open("ab") as file:
            file.write(b"4567")
        assert source.read_upto(0, 8) == b"0123"


def append(path: Path) -> None:
    path.write_bytes(b"more")


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def replace(path: Path) -> None:
    path.rename(path.with_name("old"))
    path.touch()


@table("change", [append, touch, replace, Path.unlink])
def test_a_file_that_changed_is_refused(write: Write, change: Callable[[Path], None]) -> None:
    path = Path(write(gzip.compress(b"data")))
    with FileSource(str(path)) as source, open_source(str(path)) as inside:
        for one in (source, inside):
            one.refuse_changed("read")
        change(path)
        for one in (source, inside):
            if change in {append, touch}:  # otherwise it is open as it was
                with pytest.raises(ExportError, match="the file changed while it was copied"):
                    one.refuse_changed("copied")
            else:
                one.refuse_changed("copied")


def test_partial_reads_are_joined(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_pread", lambda fd, nbytes, offset: os.pread(fd, min(nbytes, 3), offset))
    with FileSource(write(b"0123456789")) as source:
        assert source.read(1, 8) == b"12345678"


def test_failing_read_is_an_error_of_ours(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int, nbytes: int, offset: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(module, "_pread", fail)
    with (
        FileSource(write(b"0123")) as source,
        pytest.raises(ContainerError, match=r"cannot be read: byte 2: .*Input/output"),
    ):
        source.read(2, 1)


def test_reading_by_seeking_is_the_same(write: Write) -> None:
    """What systems without pread do."""
    with FileSource(write(b"0123456789")) as source:
        for offset, nbytes in ((7, 9), (0, 4), (10, 1), (3, 0)):
            fd = source.fileno()
            assert module._read_by_seeking(fd, nbytes, offset) == os.pread(fd, nbytes, offset)


# ------------------------------------------------------------------------------------------- not a file


def test_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ContainerError, match="no such file"):
        FileSource(str(tmp_path / "no.pt"))


def test_path_that_cannot_be(tmp_path: Path) -> None:
    for path, said in (("a\0b", ""), (str(tmp_path / ("n" * 300)), ": File name too long")):
        with pytest.raises(ContainerError) as raised:
            FileSource(path)
        assert raised.value.what == f"the file cannot be opened{said}"


def test_forbidden_file(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(path: str, flags: int) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # the tests may run as root, whom no mode stops
    with pytest.raises(ContainerError, match="the file may not be read"):
        FileSource(write(b"0123"))


def test_pipe_device_and_folder_are_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    before = os.open(os.devnull, os.O_RDONLY)
    os.close(before)
    for path in (str(pipe), "/dev/zero", "/dev/null"):
        with pytest.raises(ContainerError, match="this is not a regular file"):
            FileSource(path)
    with pytest.raises(NotACheckpointError, match="this folder is no checkpoint"):
        FileSource(str(tmp_path))
    after = os.open(os.devnull, os.O_RDONLY)
    os.close(after)
    assert after == before  # the lowest free descriptor: none was left open


def test_offset_over_4_gib(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    with path.open("wb") as file:
        file.seek(5 << 30)
        file.write(b"end")
    with FileSource(str(path)) as source:
        assert source.read((5 << 30) - 1, 4) == b"\0end"


# ------------------------------------------------------------------------------------------- gzip


@table(("offset", "nbytes"), [(999_990, 100), (999_999, 2), (1_000_000, 1), (2**50, 1)])
def test_the_bound_of_gzip_is_an_error_and_no_end(write: Write, offset: int, nbytes: int) -> None:
    with PackedSource(
        FileSource(write(gzip.compress(bytes(1_000_001)))), Limits(inflated_nbytes=1_000_000)
    ) as source:
        with pytest.raises(TooLargeError, match=r"more than 1,000,000 bytes once unpacked.*gunzip"):
            source.read_upto(offset, nbytes)
        with pytest.raises(TooLargeError):
            source.reaches(offset + nbytes)
        assert source.read_upto(offset, 0) == b""


@table("length", [0, 10, 1_000_000])
def test_gzip_that_ends_at_the_bound_or_before_ends_there(write: Write, length: int) -> None:
    with PackedSource(
        FileSource(write(gzip.compress(bytes(length)))), Limits(inflated_nbytes=1_000_000)
    ) as source:
        assert source.read_upto(0, 2**40) == bytes(length)
        assert source.read_upto(1_000_000, 1) == b""
        assert not source.reaches(1_000_001)
        assert not length or source.reaches(length)


# ------------------------------------------------------------------------------------------- holes


def sparse(path: Path, *, data_at: int, nbytes: int) -> None:
    with path.open("wb") as file:
        file.write(b"head")
        file.seek(data_at)
        file.write(b"data")
        file.truncate(nbytes)


def test_holes_are_skipped_and_never_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "sparse"
    sparse(path, data_at=1 << 24, nbytes=1 << 26)
    with FileSource(str(path)) as source:
        assert source.skip_hole(0) == 0
        assert 0 < source.skip_hole(1 << 20) <= 1 << 24
        assert source.skip_hole(1 << 24) == 1 << 24
        assert source.skip_hole(1 << 25) in {1 << 25, 1 << 26}  # a file system need not know of holes
        assert source.skip_hole(1 << 27) in {1 << 26, 1 << 27}


def test_where_nobody_knows_of_holes_nothing_is_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "sparse"
    sparse(path, data_at=1 << 24, nbytes=1 << 26)
    packed = tmp_path / "packed.gz"
    packed.write_bytes(gzip.compress(b"x"))
    with FileSource(str(path)) as source, PackedSource(FileSource(str(packed))) as inside:
        assert inside.skip_hole(5) == 5

        def refuse(*_: int) -> int:
            raise OSError(errno.EINVAL, "no")

        monkeypatch.setattr(os, "lseek", refuse)
        assert source.skip_hole(1 << 20) == 1 << 20
        monkeypatch.delattr(os, "SEEK_DATA", raising=False)
        assert source.skip_hole(1 << 20) == 1 << 20


def test_a_small_file_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"12345")
    assert read_small(path, 5) == read_small(str(path), 6) == b"12345"


def test_a_large_file_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ContainerError, match="larger than 1,000 bytes"):
        read_small(path, 1000)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path):
        with pytest.raises(ContainerError, match=r"not a regular file|this folder"):
            read_small(path, 1000)
    with pytest.raises(ContainerError, match="no such file"):
        read_small(tmp_path / "none", 1000)


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The (offset, bytes) of every read of a file."""
    seen: list[tuple[int, int]] = []

    def pread(fd: int, nbytes: int, offset: int) -> bytes:
        seen.append((offset, nbytes))
        return os.pread(fd, nbytes, offset)

    monkeypatch.setattr(module, "_pread", pread)
    return seen


def piece(near: NearReader, offset: int, nbytes: int) -> bytes:
    at = near.seek(offset, nbytes)
    return near.window[at : at + nbytes]


def test_pieces_that_stand_close_share_a_read(write: Write, reads: list[tuple[int, int]]) -> None:
    data = os.urandom(100_000)
    with FileSource(write(data)) as source:
        near = NearReader(source)
        for offset in range(0, 16_000, 100):
            assert piece(near, offset, 30) == data[offset : offset + 30]
        assert len(reads) <= 2


def test_far_pieces_are_read_alone(write: Write, reads: list[tuple[int, int]]) -> None:
    data = os.urandom(100_000)
    with FileSource(write(data)) as source:
        near = NearReader(source)
        for offset in (50_000, 90_000, 70_000, 10_000):
            assert piece(near, offset, 30) == data[offset : offset + 30]
    assert reads == [(50_000, 30), (90_000, 30), (70_000, 30), (10_000, 30)]


def test_pieces_at_the_end_are_short(write: Write) -> None:
    with FileSource(write(b"0123456789")) as source:
        near = NearReader(source)
        assert piece(near, 4, 4) == b"4567"
        assert piece(near, 8, 4) == b"89"
        assert piece(near, 20, 4) == b""
        assert piece(near, 0, 4) == b"0123"


def test_pieces_of_any_size_and_order(write: Write) -> None:
    data = os.urandom(50_000)
    with FileSource(write(data)) as source:
        near = NearReader(source)
        for step in range(2000):
            offset, nbytes = step * 7919 % 51_000, step * 31 % 300
            assert piece(near, offset, nbytes) == data[offset : offset + nbytes]


def test_a_window_is_a_file_of_its_own() -> None:
    window = Window(BytesSource(b"0123456789", "a.bin"), 3, 4)
    assert (window.path, window.nbytes) == ("a.bin", 4)
    assert window.read(1, 3) == b"456"
    assert window.read_upto(2, 10) == b"56"
    with pytest.raises(DamagedError):
        window.read(2, 3)


@table("span", [(-1, 2), (0, -1), (0, 11), (9, 2)])
def test_a_window_is_within_its_file(span: tuple[int, int]) -> None:
    with pytest.raises(DamagedError, match="ends too early"):
        Window(BytesSource(b"0123456789", "a.bin"), *span)
