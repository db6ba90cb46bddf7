from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import ExportError
from inspector.remap import files
from inspector.remap.files import OutFile, explained, writing

ROOT = Path(__file__).parents[4]
UNNAMED = hasattr(os, "O_TMPFILE")


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Each test runs with the nameless files of Linux and with the hidden names of other systems."""
    if request.param == "named":
        monkeypatch.setattr(files, "_open_unnamed", lambda part: None)
    elif not UNNAMED:
        pytest.skip("no O_TMPFILE here")
    return request.param


def status(path: Path, mode: int = 0o644) -> os.stat_result:
    path.parent.mkdir(exist_ok=True)
    path.touch()
    path.chmod(mode)
    return path.stat()


@pytest.fixture
def like(tmp_path_factory: pytest.TempPathFactory) -> os.stat_result:
    return status(tmp_path_factory.mktemp("like") / "source")


def refuse(code: int):
    def refused(*args: object, **named: object) -> None:
        raise OSError(code, os.strerror(code))

    return refused


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(
    destination: Path, like: os.stat_result, work: Callable[[OutFile], object], *, overwrite: bool = False
) -> None:
    with writing(destination, like=like, overwrite=overwrite) as out:
        os.write(out.fd, b"data")
        work(out)


@pytest.mark.parametrize("overwrite", [False, True])
def test_a_file_appears_once_it_is_complete(
    tmp_path: Path, like: os.stat_result, way: str, overwrite: bool
) -> None:
    destination = tmp_path / "out.pt"
    with writing(destination, like=like, overwrite=overwrite) as out:
        os.write(out.fd, b"data")
        assert not destination.exists()
        assert out.path.read_bytes() == b"data"
        assert bool(listing(tmp_path)) is (way == "named")
    assert listing(tmp_path) == ["out.pt"]
    assert destination.read_bytes() == b"data"


@pytest.mark.parametrize("mode", [0o644, 0o600, 0o444, 0o640, 0o755, 0o4755])
def test_permissions_are_those_of_the_source(tmp_path: Path, way: str, mode: int) -> None:
    with writing(tmp_path / "out.pt", like=status(tmp_path / "in" / "a", mode), overwrite=False):
        pass
    assert (tmp_path / "out.pt").stat().st_mode & 0o7777 == mode & 0o777


def test_what_stands_there_is_replaced_when_that_is_wanted(
    tmp_path: Path, like: os.stat_result, way: str
) -> None:
    destination = tmp_path / "out.pt"
    destination.write_bytes(b"old")
    with writing(destination, like=like, overwrite=True) as out:
        os.write(out.fd, b"new")
        assert destination.read_bytes() == b"old"
    assert destination.read_bytes() == b"new"
    assert listing(tmp_path) == ["out.pt"]


def test_what_came_there_meanwhile_stays(tmp_path: Path, like: os.stat_result, way: str) -> None:
    destination = tmp_path / "out.pt"
    with pytest.raises(ExportError, match="File exists"):
        write(destination, like, lambda out: destination.write_bytes(b"theirs"))
    assert destination.read_bytes() == b"theirs"
    assert listing(tmp_path) == ["out.pt"]


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize("error", [ExportError("no"), KeyboardInterrupt(), OSError(errno.ENOSPC, "No space")])
def test_whatever_goes_wrong_leaves_nothing(
    tmp_path: Path, like: os.stat_result, way: str, overwrite: bool, error: BaseException
) -> None:
    def fail(out: OutFile) -> None:
        raise error

    with pytest.raises((ExportError, KeyboardInterrupt)):
        write(tmp_path / "out.pt", like, fail, overwrite=overwrite)
    assert listing(tmp_path) == []


@pytest.mark.parametrize("name", ["fsync", "chmod", "link", "replace"])
def test_a_refusal_at_the_end_leaves_nothing(
    tmp_path: Path, like: os.stat_result, way: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbid(out: OutFile) -> None:
        monkeypatch.setattr(os, name, refuse(errno.EIO))
        monkeypatch.setattr(Path, name, refuse(errno.EIO), raising=False)

    with pytest.raises(ExportError, match="cannot be written: Input/output error") as error:
        write(tmp_path / "out.pt", like, forbid, overwrite=name == "replace")
    assert error.value.where == str(tmp_path / "out.pt")
    assert listing(tmp_path) == []


def test_a_folder_that_refuses_files_is_told(
    tmp_path: Path, like: os.stat_result, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "open", refuse(errno.EROFS))
    with (
        pytest.raises(ExportError, match="cannot be written: Read-only file system"),
        writing(tmp_path / "out.pt", like=like, overwrite=False),
    ):
        pass


def test_a_missing_folder_is_told(tmp_path: Path, like: os.stat_result, way: str) -> None:
    with (
        pytest.raises(ExportError, match="No such file or directory"),
        writing(tmp_path / "none" / "out.pt", like=like, overwrite=False),
    ):
        pass


@pytest.mark.parametrize("name", ["ж" * 100 + ".pt", "x" * 255])
def test_long_names_are_no_trouble(tmp_path: Path, like: os.stat_result, way: str, name: str) -> None:
    for _ in range(2):
        with writing(tmp_path / name, like=like, overwrite=True):
            pass
    assert listing(tmp_path) == [name]


def test_a_folder_need_not_be_synced(
    tmp_path: Path, like: os.stat_result, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "sync_folder", refuse(errno.EINVAL))
    with writing(tmp_path / "out.pt", like=like, overwrite=False):
        pass
    assert listing(tmp_path) == ["out.pt"]


# --- file systems that lack something -----------------------------------------------------------------------


@pytest.mark.parametrize("code", [errno.EPERM, errno.EOPNOTSUPP, errno.EINVAL])
def test_where_there_are_no_links_the_file_is_renamed(
    tmp_path: Path, like: os.stat_result, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    monkeypatch.setattr(os, "link", refuse(code))
    with writing(tmp_path / "out.pt", like=like, overwrite=False) as out:
        os.write(out.fd, b"data")
        assert out.part is not None
    assert listing(tmp_path) == ["out.pt"]
    with (
        pytest.raises(ExportError, match="File exists"),
        writing(tmp_path / "out.pt", like=like, overwrite=False),
    ):
        pass
    assert (tmp_path / "out.pt").read_bytes() == b"data"


@pytest.mark.skipif(not UNNAMED, reason="no O_TMPFILE here")
def test_where_there_are_no_nameless_files_they_have_hidden_names(
    tmp_path: Path, like: os.stat_result, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, nameless = os.open, os.O_TMPFILE

    def without(path: object, flags: int, *args: object) -> int:
        if flags & nameless == nameless:
            raise OSError(errno.EOPNOTSUPP, "no")
        return real(path, flags, *args)

    monkeypatch.setattr(os, "open", without)
    with writing(tmp_path / "out.pt", like=like, overwrite=False) as out:
        assert out.part is not None
        assert out.part.name.startswith(".out.pt.")
    monkeypatch.delattr(os, "O_TMPFILE")
    with writing(tmp_path / "out2.pt", like=like, overwrite=False) as out:
        assert out.part is not None
    assert listing(tmp_path) == ["out.pt", "out2.pt"]


def test_a_part_that_cannot_be_removed_hides_no_error(
    tmp_path: Path, like: os.stat_result, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(out: OutFile) -> None:
        monkeypatch.setattr(Path, "unlink", refuse(errno.EIO))
        raise ExportError("the reason")

    monkeypatch.setattr(files, "_open_unnamed", lambda part: None)
    with pytest.raises(ExportError, match="the reason"):
        write(tmp_path / "out.pt", like, fail)


KILLED = """
import os, signal, sys
from pathlib import Path
from inspector.remap.files import writing
with writing(Path(sys.argv[1]), like=os.stat("."), overwrite=False) as out:
    os.write(out.fd, bytes(1 << 20))
    os.kill(os.getpid(), signal.SIGKILL)
"""


def can_be_nameless(folder: Path) -> bool:
    try:
        os.close(os.open(folder, os.O_RDWR | getattr(os, "O_TMPFILE", 0), 0o600))
    except OSError:  # also where there is no such flag: a folder cannot be opened for writing
        return False
    return True


def test_a_killed_process_leaves_nothing(tmp_path: Path) -> None:
    if not can_be_nameless(tmp_path):
        pytest.skip("this file system has no nameless files")
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "out.pt")], cwd=ROOT, check=False)
    assert ended.returncode == -9
    assert listing(tmp_path) == []


def test_errors_say_where_and_why() -> None:
    with pytest.raises(ExportError) as error, explained(Path("out.pt")):
        raise OSError("something")
    assert str(error.value) == "the copy cannot be written: something: out.pt"
