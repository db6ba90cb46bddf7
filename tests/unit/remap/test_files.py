from __future__ import annotations

import ctypes
import errno
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from inspector.errors import ExportError
from inspector.model.build import open_checkpoint
from inspector.remap import files
from inspector.remap.export_form import export_form
from inspector.remap.files import (
    OutFile,
    clone_by_name,
    copy_times,
    device_word,
    free_folder,
    free_path,
    refuse_destination,
    refuse_parts,
    writing,
)
from inspector.remap.forms import Form
from tests.builders.folders import two_shards

ROOT = Path(__file__).parents[3]
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


def test_times_are_those_of_the_original(tmp_path: Path) -> None:
    for name in ("in.pt", "out.pt"):
        (tmp_path / name).touch()
    os.utime(tmp_path / "in.pt", ns=(3, 5))
    copy_times(str(tmp_path / "in.pt"), tmp_path / "out.pt")
    assert (tmp_path / "out.pt").stat().st_mtime_ns == 5
    with pytest.raises(ExportError, match="the times cannot be set: No such file"):
        copy_times(str(tmp_path / "in.pt"), tmp_path / "none")


def test_a_folder_that_may_not_be_entered_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(path: Path) -> bool:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(Path, "is_dir", refused)
    with pytest.raises(ExportError, match="Permission denied"):
        refuse_destination(str(tmp_path / "in.pt"), tmp_path / "out.pt", overwrite=False)


def test_a_source_that_is_gone_is_left_to_its_reader(tmp_path: Path) -> None:
    refuse_destination(str(tmp_path / "none"), tmp_path / "out.pt", overwrite=False)


def test_no_part_of_a_checkpoint_is_written_over(tmp_path: Path) -> None:
    index = two_shards(tmp_path / "run")
    part = index.with_name("pytorch_model-00001-of-00002.bin")
    (tmp_path / "link.bin").symlink_to(part)
    (index.with_name("mine.bin")).touch()
    (tmp_path / "other").mkdir()
    other = tmp_path / "other/model.bin.index.json"
    other.write_text("{}")
    parts = [row.path for row in open_checkpoint(str(index)).parts]
    refused = []
    for place in (
        part,
        tmp_path / "link.bin",
        index,
        index.with_name("mine.bin"),
        tmp_path / "new.bin",
        other,
    ):
        try:
            refuse_parts(parts, place)
        except ExportError:
            refused.append(place.name)
    assert refused == [part.name, "link.bin", index.name]
    refuse_parts((), part)
    before = part.read_bytes()
    with pytest.raises(ExportError, match="a part of the checkpoint itself"):
        export_form(str(index.parent), part, None, Form(shape="state-dict"), overwrite=True)
    assert part.read_bytes() == before


def test_the_word_is_the_type_of_device() -> None:
    assert device_word({"cpu"}) == "cpu"
    assert device_word({"cuda:0", "cuda:1"}) == "cuda"
    assert device_word({"cuda:0", "cpu"}) == "fixed"
    assert device_word(()) == "fixed"


def test_the_path_stays_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path, free in (
        ("best.pth", "best.cpu.pth"),
        ("./best.pth", "./best.cpu.pth"),
        ("a/../best.pth", "a/../best.cpu.pth"),
        ("best.pt.gz", "best.cpu.pt"),
        ("best", "best.cpu.pth"),
        ("v1.0 of the long-suffixed model", "v1.0 of the long-suffixed model.cpu.pth"),
        ("b/b", "b/b.cpu.pth"),
        ("model_best.pth.tar", "model_best.cpu.pth.tar"),
        ("data.tar", "data.cpu.tar"),
        (".pth.tar", ".cpu.pth.tar"),
    ):
        assert free_path(path, "cpu") == free, path
    assert free_path("best.pth", "weights", "safetensors") == "best.weights.safetensors"


def test_what_stands_there_is_left_alone(tmp_path: Path) -> None:
    Path(tmp_path / "best.cpu.pth").touch()
    Path(tmp_path / "best.cpu-2.pth").symlink_to("nowhere")
    assert free_path(str(tmp_path / "best.pth"), "cpu") == str(tmp_path / "best.cpu-3.pth")


def test_a_long_name_is_cut(tmp_path: Path) -> None:
    name = Path(free_path(str(tmp_path / ("\u540d" * 84 + ".pt")), "cpu")).name
    assert len(os.fsencode(name)) < 255
    assert name.endswith("\u540d.cpu.pt")


def test_folder_beside_a_folder_has_no_suffix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "model.index.json").touch()
    for path in (tmp_path / "run", f"{tmp_path / 'run'}/", tmp_path / "run" / "model.index.json"):
        assert free_folder(str(path), "cpu") == str(tmp_path / "run.cpu")
    (tmp_path / "run.cpu").mkdir()
    assert free_folder(str(tmp_path / "run"), "cpu") == str(tmp_path / "run.cpu-2")
    monkeypatch.chdir(tmp_path / "run")
    for path in (".", "model.index.json"):
        assert free_folder(path, "gpu") == str(tmp_path / "run.gpu")


DATA = b"a checkpoint" * 1000


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[tuple[int, OutFile]]:
    """A file that may only be read, and one that is being written."""
    path, part = tmp_path / "best.pth", tmp_path / ".out.part"
    path.write_bytes(DATA)
    path.chmod(0o444)
    source = os.open(path, os.O_RDONLY)
    out = OutFile(os.open(part, os.O_RDWR | os.O_CREAT), part, part)
    yield source, out
    os.close(source)
    os.close(out.fd)


def fclonefileat(source: int, folder: int, made: bytes, flags: int) -> int:
    assert (os.fstat(source).st_size, folder, flags) == (len(DATA), -2, 0)
    shutil.copyfile(f"/proc/self/fd/{source}", made)
    Path(os.fsdecode(made)).chmod(0o444)
    return 0


def on_macos(monkeypatch: pytest.MonkeyPatch, call: Callable[..., int] = fclonefileat) -> None:
    system = type("System", (), {"fclonefileat": staticmethod(call)})
    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **named: system)


def test_a_clone_takes_the_place_of_the_empty_file(
    pair: tuple[int, OutFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    on_macos(monkeypatch)
    source, out = pair
    assert clone_by_name(source, out)
    assert os.pread(out.fd, len(DATA) + 1, 0) == DATA
    os.pwrite(out.fd, b"!", 0)  # it is the file that will be patched
    assert out.part == out.path
    assert out.path.read_bytes() == b"!" + DATA[1:]
    assert (tmp_path / "best.pth").read_bytes() == DATA
    assert len(listing(tmp_path)) == 2


def test_what_cannot_be_cloned_leaves_nothing(
    pair: tuple[int, OutFile], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = pair
    names, real = listing(tmp_path), os.open
    on_macos(monkeypatch, lambda *args: -1)
    assert not clone_by_name(source, out)
    assert listing(tmp_path) == names

    def refuse_whole(path: object, flags: int, *args: object) -> int:
        if str(path).endswith(".whole"):
            raise PermissionError
        return real(path, flags, *args)

    on_macos(monkeypatch)
    monkeypatch.setattr(os, "open", refuse_whole)
    assert not clone_by_name(source, out)
    assert listing(tmp_path) == names
    out.part = None  # a nameless file is copied in another way
    assert not clone_by_name(source, out)
