from __future__ import annotations

import errno
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.containers import copying
from inspector.containers.copying import clone_file, copy_bytes, write_bytes, write_over
from inspector.errors import CancelledError, ExportError
from inspector.progress import Progress

DATA = bytes(range(256)) * 20_000  # 5 MB, so that reading takes several steps


class Files:
    def __init__(self, folder: Path) -> None:
        (folder / "source").write_bytes(DATA)
        self.source = os.open(folder / "source", os.O_RDONLY)
        self.source_rw = os.open(folder / "source", os.O_RDWR)
        self.path = folder / "target"
        self.target = os.open(self.path, os.O_RDWR | os.O_CREAT)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    yield made
    os.close(made.source)
    os.close(made.source_rw)
    os.close(made.target)


def refuse(code: int):
    def refused(*args: object, **named: object) -> int:
        raise OSError(code, os.strerror(code))

    return refused


def ways(monkeypatch: pytest.MonkeyPatch, *refused: str, code: int = errno.EOPNOTSUPP) -> list[str]:
    """Refuse some ways; gives the list that fills with the names of those that were asked."""
    asked: list[str] = []
    for name in ("copy_file_range", "sendfile", "read"):
        real = refuse(code) if name in refused else getattr(os, name)

        def spy(*args: object, name: str = name, real=real, **named: object) -> object:
            asked.append(name)
            return real(*args, **named)

        monkeypatch.setattr(os, name, spy)
    return asked


@pytest.mark.parametrize(
    ("refused", "used"),
    [
        ((), "copy_file_range"),
        (("copy_file_range",), "sendfile"),
        (("copy_file_range", "sendfile"), "read"),
    ],
)
@pytest.mark.parametrize("code", [errno.EXDEV, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL, errno.EPERM])
def test_each_way_copies_the_same_bytes(
    files: Files, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...], used: str, code: int
) -> None:
    asked = ways(monkeypatch, *refused, code=code)
    write_bytes(files.target, b"head")
    progress = Progress()
    progress.start("copying", len(DATA) - 11)
    copy_bytes(files.source, files.target, 7, len(DATA) - 11, progress)
    assert files.path.read_bytes() == b"head" + DATA[7:-4]
    assert asked[-1] == used
    assert progress.done == len(DATA) - 11


def test_a_way_that_was_refused_is_not_asked_again(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ways(monkeypatch, "copy_file_range", "sendfile")
    copy_bytes(files.source, files.target, 0, len(DATA), Progress())
    assert asked.count("copy_file_range") == asked.count("sendfile") == 1


@pytest.mark.parametrize("name", ["copy_file_range", "sendfile"])
def test_a_way_that_copies_nothing_is_given_up(
    files: Files, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(os, name, lambda *args, **named: 0)
    copy_bytes(files.source, files.target, 0, len(DATA), Progress())
    assert files.path.read_bytes() == DATA


def test_systems_without_such_calls_read_and_write(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying.sys, "platform", "darwin")
    asked = ways(monkeypatch)
    for name in ("copy_file_range", "pread", "pwrite"):
        monkeypatch.delattr(os, name, raising=False)
    copy_bytes(files.source, files.target, 0, len(DATA), Progress())
    assert files.path.read_bytes() == DATA
    assert set(asked) == {"read"}
    assert not clone_file(files.source, files.target)


@pytest.mark.parametrize("refused", [(), ("copy_file_range",), ("copy_file_range", "sendfile")])
def test_a_source_that_ends_too_early_is_told(
    files: Files, monkeypatch: pytest.MonkeyPatch, refused: tuple[str, ...]
) -> None:
    ways(monkeypatch, *refused)
    with pytest.raises(ExportError, match="ended while it was copied"):
        copy_bytes(files.source, files.target, 0, len(DATA) + 1, Progress())


@pytest.mark.parametrize("name", ["copy_file_range", "sendfile"])
def test_other_failures_are_not_taken_for_a_refusal(
    files: Files, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    ways(monkeypatch, "copy_file_range")
    monkeypatch.setattr(os, name, refuse(errno.ENOSPC))
    with pytest.raises(OSError, match="No space"):
        copy_bytes(files.source, files.target, 0, len(DATA), Progress())


def test_the_last_way_has_no_other_to_give_way_to(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    ways(monkeypatch, "copy_file_range", "sendfile", "read")
    with pytest.raises(OSError, match="not supported"):
        copy_bytes(files.source, files.target, 0, len(DATA), Progress())


def test_copying_can_be_cancelled(files: Files) -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        copy_bytes(files.source, files.target, 0, len(DATA), progress)
    assert not files.path.read_bytes()


def test_short_writes_are_finished(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    assert write_bytes(files.target, b"0123456789") == 10
    assert files.path.read_bytes() == b"0123456789"


def test_bytes_are_written_over_others(files: Files) -> None:
    write_bytes(files.target, b"0123456789")
    write_over(files.target, 3, b"abc")
    assert files.path.read_bytes() == b"012abc6789"


# --- holes --------------------------------------------------------------------------------------------------

HOLE = 4 << 20


@pytest.fixture(params=["seeking", "no seeking", "nothing to seek with"])
def sparse(files: Files, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bytes:
    """A source of data, a hole, data, a hole; systems differ in whether they tell where these are."""
    os.ftruncate(files.source_rw, 0)
    os.pwrite(files.source_rw, b"head" * 4096, 0)
    os.pwrite(files.source_rw, b"tail" * 4096, HOLE)
    os.ftruncate(files.source_rw, 2 * HOLE)
    if os.fstat(files.source).st_blocks * 512 >= 2 * HOLE:
        pytest.skip("this file system has no holes")
    if request.param == "no seeking":
        real = os.lseek

        def lseek(fd: int, offset: int, whence: int) -> int:
            if whence in {os.SEEK_DATA, os.SEEK_HOLE}:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            return real(fd, offset, whence)

        monkeypatch.setattr(os, "lseek", lseek)
    elif request.param == "nothing to seek with":
        monkeypatch.delattr(os, "SEEK_DATA")
    return os.pread(files.source, 2 * HOLE, 0)


@pytest.mark.parametrize(
    ("start", "end"), [(0, 2 * HOLE), (5, HOLE + 7), (HOLE - 99, HOLE), (HOLE, 2 * HOLE)]
)
def test_holes_are_read_as_zeros(files: Files, sparse: bytes, start: int, end: int) -> None:
    write_bytes(files.target, b"first")
    progress = Progress()
    copy_bytes(files.source, files.target, start, end - start, progress)
    write_bytes(files.target, b"last")
    assert files.path.read_bytes() == b"first" + sparse[start:end] + b"last"
    assert progress.done == end - start


@pytest.mark.parametrize("sparse", ["seeking"], indirect=True)
def test_holes_stay_holes(files: Files, sparse: bytes) -> None:
    copy_bytes(files.source, files.target, 0, 2 * HOLE, Progress())
    assert files.path.read_bytes() == sparse
    assert os.fstat(files.target).st_blocks <= os.fstat(files.source).st_blocks + 16
    with pytest.raises(ExportError, match="ended while it was copied"):
        copy_bytes(files.source, files.target, 2 * HOLE - 1, 2, Progress())


def test_advice_may_be_refused(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "posix_fadvise", refuse(errno.EINVAL), raising=False)
    copy_bytes(files.source, files.target, 0, len(DATA), Progress())
    monkeypatch.delattr(os, "posix_fadvise")
    copy_bytes(files.source, files.target, 0, len(DATA), Progress())
    assert files.path.read_bytes() == DATA * 2


# --- cloning ------------------------------------------------------------------------------------------------


def test_a_file_system_that_cannot_clone_says_so(files: Files) -> None:
    fcntl = pytest.importorskip("fcntl")
    patch = pytest.MonkeyPatch()
    with patch.context() as context:
        context.setattr(fcntl, "ioctl", refuse(errno.EOPNOTSUPP))
        assert not clone_file(files.source, files.target)
        context.setattr(fcntl, "ioctl", refuse(errno.ENOSPC))
        with pytest.raises(OSError, match="No space"):
            clone_file(files.source, files.target)


def test_a_file_system_that_clones_is_asked_for_the_whole_file(
    files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    asked: list[tuple[int, int, int]] = []
    monkeypatch.setattr(fcntl, "ioctl", lambda *args: asked.append(args))
    assert clone_file(files.source, files.target)
    assert asked == [(files.target, 0x40049409, files.source)]


@pytest.fixture(params=["btrfs", "xfs"])
def sharing_disk(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Path]:
    """A file system whose files can share blocks, where this process may make and mount one."""
    make, mount = shutil.which(f"mkfs.{request.param}"), shutil.which("mount")
    if make is None or mount is None or os.name != "posix" or os.geteuid():
        pytest.skip(f"no {request.param} can be made and mounted here")
    image, folder = tmp_path / "image", tmp_path / "disk"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(320 << 20)
    for command in ([make, "-q", str(image)], [mount, "-o", "loop", str(image), str(folder)]):
        if subprocess.run(command, check=False, capture_output=True).returncode:
            pytest.skip(f"no {request.param} can be made and mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_files_share_their_blocks_where_they_can(sharing_disk: Path) -> None:
    path = sharing_disk / "in.pt"
    path.write_bytes(os.urandom(8 << 20))
    os.sync()
    with path.open("rb") as source, (sharing_disk / "out.pt").open("w+b") as target:
        before = os.statvfs(sharing_disk).f_bavail
        assert clone_file(source.fileno(), target.fileno())
        os.fsync(target.fileno())
        taken = (before - os.statvfs(sharing_disk).f_bavail) * os.statvfs(sharing_disk).f_frsize
    assert taken < 1 << 20
    assert (sharing_disk / "out.pt").read_bytes() == path.read_bytes()
