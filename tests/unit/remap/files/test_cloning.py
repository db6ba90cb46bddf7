"""With stand-ins for the systems' own calls: what they do is theirs, what we make of it is shown here."""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.remap import cloning
from inspector.remap.cloning import Original, clone_by_name
from inspector.remap.files import OutFile

DATA = b"a checkpoint" * 1000


class Files:
    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "best.pth"
        self.path.write_bytes(DATA)
        self.path.chmod(0o444)
        self.original = Original(fd=os.open(self.path, os.O_RDONLY), path=str(self.path))
        part = folder / ".out.part"
        self.out = OutFile(os.open(part, os.O_RDWR | os.O_CREAT), part, part)

    def names(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())


@pytest.fixture
def files(tmp_path: Path) -> Iterator[Files]:
    made = Files(tmp_path)
    yield made
    os.close(made.original.fd)
    os.close(made.out.fd)


def on(monkeypatch: pytest.MonkeyPatch, platform: str, **calls: Callable[..., int]) -> None:
    monkeypatch.setattr(cloning.sys, "platform", platform)
    system = type("System", (), {name: staticmethod(call) for name, call in calls.items()})
    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **named: system)


def fclonefileat(source: int, folder: int, made: bytes, flags: int) -> int:
    assert (os.fstat(source).st_size, folder, flags) == (len(DATA), -2, 0)
    shutil.copyfile(f"/proc/self/fd/{source}", made)
    Path(os.fsdecode(made)).chmod(0o444)
    return 0


class CopyFile2:
    """Reports two chunks as Windows does, and stops when it is asked to."""

    def __init__(self, result: int = 0) -> None:
        self.result = result
        self.answers: list[int] = []

    def __call__(self, source: str, made: str, parameters: object) -> int:
        given = parameters._obj
        assert (given.size, given.flags, given.cancelled) == (ctypes.sizeof(given), 1, None)
        note = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)(given.routine)
        for kind, copied in ((1, 0), (2, 100), (2, len(DATA))):
            message = cloning._Message(type=kind, copied_nbytes=copied)
            self.answers.append(note(ctypes.addressof(message), None))
            if self.answers[-1]:
                return -1
        if self.result >= 0:
            shutil.copyfile(source, made)
        return self.result


def is_cloned(files: Files, progress: Progress | None = None) -> bool:
    return clone_by_name(files.original, files.out, progress or Progress())


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_the_copy_takes_the_place_of_the_empty_file(
    files: Files, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(monkeypatch, platform, fclonefileat=fclonefileat, CopyFile2=CopyFile2())
    assert is_cloned(files)
    assert os.pread(files.out.fd, len(DATA) + 1, 0) == DATA
    os.pwrite(files.out.fd, b"!", 0)  # it is the file that will be patched
    assert files.out.part == files.out.path
    assert files.out.path.read_bytes() == b"!" + DATA[1:]
    assert files.path.read_bytes() == DATA
    assert len(files.names()) == 2


@pytest.mark.parametrize("platform", ["linux", "freebsd"])
def test_elsewhere_there_is_no_such_way(files: Files, platform: str, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, platform)
    assert not is_cloned(files)


def test_a_nameless_file_is_copied_in_another_way(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "darwin", fclonefileat=fclonefileat)
    files.out.part = None
    assert not is_cloned(files)


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_a_system_that_refuses_leaves_nothing(
    files: Files, platform: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    on(monkeypatch, platform, fclonefileat=lambda *args: -1, CopyFile2=CopyFile2(-2147024891))
    names = files.names()
    assert not is_cloned(files)
    assert files.names() == names


def test_a_copy_that_cannot_be_opened_is_removed(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    on(monkeypatch, "darwin", fclonefileat=fclonefileat)
    names, real = files.names(), os.open

    def refuse(path: object, flags: int, *args: object) -> int:
        if str(path).endswith(".whole"):
            raise PermissionError
        return real(path, flags, *args)

    monkeypatch.setattr(os, "open", refuse)
    assert not is_cloned(files)
    assert files.names() == names


def test_windows_tells_of_bytes_and_can_be_stopped(files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = CopyFile2()
    on(monkeypatch, "win32", CopyFile2=copy)
    progress = Progress()
    progress.cancel()
    names = files.names()
    with pytest.raises(CancelledError):
        is_cloned(files, progress)
    assert copy.answers == [1]
    assert files.names() == names
