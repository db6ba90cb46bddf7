from __future__ import annotations

import contextlib
import errno
import gzip
import os
import runpy
import struct
import zipfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from inspector.containers.source import BytesSource
from inspector.errors import CancelledError, CheckpointError, ContainerError, ExportError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.remap import files, in_place
from inspector.remap.files import record_path
from inspector.remap.in_place import Overlay, patch_in_place, undo_patch
from inspector.remap.plan import Plan, plan_remap
from inspector.remap.relabel import Patch
from inspector.remap.rules import parse_rule
from tests.builders import tars
from tests.corpus import Case, varied
from tests.sweep import put_through, table
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tar_of, tensor, text, written, zip_of

DATA = bytes(range(100))
PIECES = (Patch(3, b"abc"), Patch(6, b"d"), Patch(50, b"efgh"), Patch(96, b"ijkl"))
WHOLE = DATA[:3] + b"abcd" + DATA[7:50] + b"efgh" + DATA[54:96] + b"ijkl"


@table("step", [1, 2, 3, 7, 100])
def test_pieces_are_read_in_place_of_what_is_there(step: int) -> None:
    with Overlay(BytesSource(DATA, "x"), PIECES, 100) as source:
        assert b"".join(source.read_upto(at, step) for at in range(0, 100, step)) == WHOLE
        assert source.read_upto(99, 5) == b"l"
        assert source.skip_hole(7) == 7


def test_a_file_may_be_cut_off_and_never_grows() -> None:
    with Overlay(BytesSource(DATA, "x"), PIECES, 52) as source:
        assert (source.nbytes, source.file_nbytes) == (52, 52)
        assert source.read_upto(0, 200) == WHOLE[:52]
    with Overlay(BytesSource(DATA, "x"), (), 1 << 40) as source:
        assert source.nbytes == 100


CASES = [case for case in varied() if case.container in {"zip", "legacy", "tar"}]
OBJECT = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:0"), "1")))
STORAGES = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}
MAKERS = {"zip": zip_of, "legacy": legacy_of, "tar": tar_of}
CPU, LONGER = "*=cpu", "*=cuda:11"
KINDS = [("zip", CPU), ("zip", LONGER), ("legacy", CPU), ("tar", CPU)]


def planned(path: Path, *rules: str, move_all: bool = False) -> Plan:
    return plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules], move_all=move_all)


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def devices(path: Path) -> set[str]:
    return {row.device for row in open_checkpoint(str(path)).tensors}


@pytest.fixture(params=KINDS, ids=lambda kind: f"{kind[0]}-{kind[1]}")
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, str]:
    """A file and the rule that changes it: over its old pickle, behind the end, or to the byte."""
    kind, rule = request.param
    return written(tmp_path, MAKERS[kind](OBJECT, STORAGES)), rule


# --- what comes out -----------------------------------------------------------------------------------------


def test_a_file_is_changed_and_given_back_to_the_last_bit(made: tuple[Path, str]) -> None:
    path, rule = made
    before, status = path.read_bytes(), path.stat()
    done = patch_in_place(str(path), planned(path, rule))
    assert devices(path) == {rule.removeprefix("*=")}
    assert done.record == path.with_name("in.pt.undo")
    assert done.moved_tensors == 2
    assert done.verified
    assert done.nbytes == path.stat().st_size
    assert done.appended == (rule == LONGER)
    assert (done.nbytes > len(before)) == done.appended
    assert path.stat().st_ino == status.st_ino
    assert undo_patch(str(path)) == len(before)
    assert path.read_bytes() == before
    assert path.stat().st_mtime_ns == status.st_mtime_ns
    assert listing(path.parent) == ["in.pt"]


@pytest.mark.wide
def test_genuine_files_are_changed_and_given_back(tmp_path: Path) -> None:
    """Each is opened again and compared with its plan: a difference raises. Storages stay where they are."""

    def check(case: Case) -> None:
        before = case.path.read_bytes()
        path = written(tmp_path, before)
        places = [(row.key, row.file_offset, row.nbytes) for row in open_checkpoint(str(path)).storages]
        for rule in (CPU, "cpu=cuda:0", LONGER):
            try:
                done = patch_in_place(str(path), planned(path, rule))
            except ExportError:
                refused(path, rule, "everything behind them would move")
                continue
            rows = open_checkpoint(str(path)).storages
            assert [(row.key, row.file_offset, row.nbytes) for row in rows] == places
            if done.record is not None:
                undo_patch(str(path))
            assert path.read_bytes() == before
            assert listing(tmp_path) == ["in.pt"]

    put_through(check, CASES, name=lambda case: case.name, every=2)


@pytest.mark.wide
def test_a_tar_file_of_many_storages_is_given_back(tmp_path: Path) -> None:
    storages = [tars.Storage(number, "cuda:0", bytes(4)) for number in range(1500)]
    before = tars.checkpoint(stream(mapping()), storages, [])
    path = written(tmp_path, before)
    assert patch_in_place(str(path), planned(path, CPU)).record is not None
    undo_patch(str(path))
    assert path.read_bytes() == before


def test_nothing_is_written_where_nothing_changes(made: tuple[Path, str]) -> None:
    path, _ = made
    before = path.read_bytes(), path.stat().st_mtime_ns
    done = patch_in_place(str(path), planned(path, "xpu:3=cpu"))
    assert (done.record, done.written_nbytes, done.moved_tensors, done.verified) == (None, 0, 0, False)
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before
    assert listing(path.parent) == ["in.pt"]


def test_a_file_need_not_be_checked(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    path, rule = made
    monkeypatch.setattr(in_place, "check_copy", None)
    assert not patch_in_place(str(path), planned(path, rule), verify=False).verified
    assert devices(path) == {rule.removeprefix("*=")}


def test_a_deflated_pickle_gets_a_new_record(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES, deflated=("data.pkl",)))
    assert patch_in_place(str(path), planned(path, CPU)).appended
    assert devices(path) == {"cpu"}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None


def test_a_link_is_followed_and_the_record_stands_beside_the_file(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    path = written(tmp_path / "there", zip_of(OBJECT, STORAGES))
    link = tmp_path / "link.pt"
    link.symlink_to(path)
    done = patch_in_place(str(link), planned(link, CPU))
    assert done.record == path.with_name("in.pt.undo") == record_path(link)
    assert devices(path) == {"cpu"}
    undo_patch(str(link))
    assert devices(path) == {"cuda:0"}
    assert link.is_symlink()


# --- what is refused ----------------------------------------------------------------------------------------


def refused(path: Path, rule: str, what: str, *, force: bool = False) -> ExportError:
    before = path.read_bytes()
    names = listing(path.parent)
    with pytest.raises(ExportError, match=what) as error:
        patch_in_place(str(path), planned(path, rule), force=force)
    assert path.read_bytes() == before
    assert listing(path.parent) == names
    return error.value


@table(
    ("data", "rule"),
    [
        (legacy_of(OBJECT, STORAGES), LONGER),
        # A byte shorter: there is nothing to fill the place with.
        (tar_of(stream(mapping(a=tensor(text("cuda:10")))), {"0": STORAGES["0"]}), "*=cuda:1"),
    ],
)
def test_names_of_another_length_have_no_room(tmp_path: Path, data: bytes, rule: str) -> None:
    error = refused(written(tmp_path, data), rule, "everything behind them would move")
    assert error.remedy == "write a copy instead, with -o"


def test_a_gzip_file_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(legacy_of(OBJECT, STORAGES)))
    refused(path, CPU, "a gzip file cannot be changed in place")


def test_what_stands_behind_a_zip_is_not_written_over(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES) + b"something")
    refused(path, LONGER, "there are bytes after the end of the zip")
    patch_in_place(str(path), planned(path, CPU))
    assert path.read_bytes().endswith(b"something")


def test_rival_records_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES, **{"DATA.PKL": OBJECT}))
    refused(path, CPU, "several records are named archive/data.pkl")


def test_a_second_change_waits_for_the_first_to_be_settled(made: tuple[Path, str]) -> None:
    path, rule = made
    patch_in_place(str(path), planned(path, rule))
    error = refused(path, "*=xpu", "its undo record is still there")
    assert error.where == str(record_path(path))
    assert error.remedy is not None
    assert "--undo" in error.remedy


def test_a_protected_file_wants_force(made: tuple[Path, str]) -> None:
    path, rule = made
    path.chmod(0o444)
    if os.access(path, os.W_OK):  # root may write it, and shall be asked all the same
        refused(path, rule, "the file is write-protected")
        patch_in_place(str(path), planned(path, rule), force=True)
        assert devices(path) == {rule.removeprefix("*=")}
        undo_patch(str(path), force=True)
    else:
        refused(path, rule, "the file cannot be changed: Permission denied", force=True)


def test_a_file_that_opens_although_it_is_protected_wants_force(
    made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Root may open it, and so may whom a list of rights allows it: here its mode changes meanwhile."""
    path, rule = made
    lock = in_place._lock

    def lock_and_protect(fd: int, name: str) -> None:
        lock(fd, name)
        os.fchmod(fd, 0o444)

    monkeypatch.setattr(in_place, "_lock", lock_and_protect)
    refused(path, rule, "the file is write-protected")


def test_a_file_of_several_names_wants_force(made: tuple[Path, str]) -> None:
    path, rule = made
    other = path.with_name("other")
    other.hardlink_to(path)
    refused(path, rule, "the file has 2 hard links")
    patch_in_place(str(path), planned(path, rule), force=True)
    assert devices(other) == {rule.removeprefix("*=")}


def test_two_runs_do_not_change_one_file_at_once(made: tuple[Path, str]) -> None:
    fcntl = pytest.importorskip("fcntl")
    path, rule = made
    with path.open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        refused(path, rule, "another process of this program")
    patch_in_place(str(path), planned(path, rule))


def test_systems_without_locks_do_without(made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    path, rule = made

    def none(*args: object) -> None:
        raise OSError(errno.ENOLCK, "no locks")

    monkeypatch.setattr(fcntl, "flock", none)
    patch_in_place(str(path), planned(path, rule))
    undo_patch(str(path))
    monkeypatch.setitem(__import__("sys").modules, "fcntl", None)  # as on Windows
    patch_in_place(str(path), planned(path, rule))
    assert devices(path) == {rule.removeprefix("*=")}


def test_what_is_missing_or_no_checkpoint_is_told(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    plan = planned(path, CPU)
    with pytest.raises(ExportError, match="the file cannot be changed: No such file"):
        patch_in_place(str(tmp_path / "none"), plan)
    with pytest.raises(ExportError, match="there is nothing to undo"):
        undo_patch(str(path))
    path.write_bytes(b"something else entirely")
    with pytest.raises(ContainerError):
        patch_in_place(str(path), plan)
    assert listing(tmp_path) == ["in.pt"]


def test_a_plan_of_another_file_is_noticed_and_the_file_restored(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    plan = planned(path, CPU)
    other = zip_of(stream(mapping(c=tensor(text("cuda:1"), "9"), a=tensor(text("cuda:0")))), STORAGES)
    path.write_bytes(other)
    with pytest.raises(ExportError, match="not as planned, and was restored"):
        patch_in_place(str(path), plan)
    assert path.read_bytes() == other
    assert listing(tmp_path) == ["in.pt"]


class Meddler(Progress):
    """Does something at a stage."""

    __slots__ = ("stage", "work")

    def __init__(self, stage: str, work: Callable[[], object]) -> None:
        super().__init__()
        self.stage = stage
        self.work = work

    def start(self, label: str, total: int = 0, *, is_counted: bool = False) -> None:
        super().start(label, total)
        if label == self.stage:
            self.work()
            self.advance()


def test_a_file_that_changes_meanwhile_is_left_alone(made: tuple[Path, str]) -> None:
    path, rule = made
    plan = planned(path, rule)
    stage = "finding storages" if path.read_bytes().startswith(b"PK") else "reading"
    with pytest.raises(ExportError, match="the file changed while it was read"):
        patch_in_place(str(path), plan, progress=Meddler(stage, lambda: os.utime(path, ns=(1, 1))))
    assert listing(path.parent) == ["in.pt"]


def test_cancelling_while_it_is_checked_restores_the_file(made: tuple[Path, str]) -> None:
    path, rule = made
    before, plan = path.read_bytes(), planned(path, rule)
    progress = Meddler("checking the file", lambda: None)
    progress.work = progress.cancel
    with pytest.raises(CancelledError):
        patch_in_place(str(path), plan, progress=progress)
    assert path.read_bytes() == before
    assert listing(path.parent) == ["in.pt"]


def test_what_the_disk_made_of_the_bytes_is_compared(
    made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A byte that changes on its way to the disk: each that was written is seen, none is our fault."""
    path, rule = made
    before, plan = path.read_bytes(), planned(path, rule)
    done = patch_in_place(str(path), plan)
    after = path.read_bytes()
    undo_patch(str(path))
    changed = {place for place, byte in enumerate(after) if before[place : place + 1] != bytes([byte])}
    places = sorted({*range(0, len(after), 13), *list(changed)[::7]})
    seen = set()
    for place in places:
        monkeypatch.setattr(files.os, "fsync", partial(_damaged, path, place, os.fsync))
        try:
            patch_in_place(str(path), plan)
        except CheckpointError:
            seen.add(place)
        monkeypatch.undo()
        path.write_bytes(before)
        record_path(path).unlink(missing_ok=True)
    assert done.verified
    assert changed.intersection(places) <= seen


def _damaged(path: Path, place: int, real: Callable[[int], None], fd: int) -> None:
    real(fd)
    if os.fstat(fd).st_ino == path.stat().st_ino:
        byte = os.pread(fd, 1, place)
        os.pwrite(fd, bytes(one ^ 0x21 for one in byte), place)


# --- whatever fails, at every write -------------------------------------------------------------------------

MOST_CALLS = 100
CALLS = ("write", "fsync", "ftruncate", "lseek", "utime", "link")


class Counted:
    """Lets so many calls of the system pass and fails then, once or for good."""

    def __init__(self, after: int, error: BaseException, *, is_lasting: bool) -> None:
        self.left = after
        self.error = error
        self.is_lasting = is_lasting

    def install(self, patch: pytest.MonkeyPatch) -> Counted:
        for name in CALLS:
            patch.setattr(os, name, self._wrapped(getattr(os, name)))
        return self

    def _wrapped(self, real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            self.left -= 1
            if self.left == -1 or (self.is_lasting and self.left < 0):
                raise self.error
            return real(*args, **named)

        return call


@pytest.mark.parametrize("way", ["unnamed", "named"])
@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()])
def test_a_failure_at_any_call_leaves_the_file_as_it_was(
    made: tuple[Path, str], error: BaseException, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rule = made
    if way == "named":
        monkeypatch.setattr(files, "_open_unnamed", lambda part: None)
    before, plan = path.read_bytes(), planned(path, rule)
    failures = 0
    for after in range(MOST_CALLS):
        with pytest.MonkeyPatch.context() as patch:
            system = Counted(after, error, is_lasting=False).install(patch)
            try:
                patch_in_place(str(path), plan)
            except (ExportError, KeyboardInterrupt):
                failures += 1
                is_done = False
            else:  # the failure was one that can be lived with, or did not come any more
                is_done = True
        if is_done:
            assert devices(path) == {rule.removeprefix("*=")}
            undo_patch(str(path))
        assert path.read_bytes() == before
        assert listing(path.parent) == ["in.pt"]
        if system.left >= 0:
            break
    assert system.left >= 0
    assert failures > 3


def test_a_crash_at_any_call_leaves_what_undo_restores(made: tuple[Path, str]) -> None:
    """The system refuses everything from one call on, as if the process were gone."""
    path, rule = made
    before, plan = path.read_bytes(), planned(path, rule)
    restored = 0
    for after in range(MOST_CALLS):
        with pytest.MonkeyPatch.context() as patch:
            system = Counted(after, OSError(errno.EIO, "gone"), is_lasting=True).install(patch)
            with contextlib.suppress(ExportError):
                patch_in_place(str(path), plan)
        if record_path(path).exists():
            undo_patch(str(path))
            restored += 1
        assert path.read_bytes() == before
        for name in listing(path.parent):  # a hidden part that could not be removed either
            if name != "in.pt":
                (path.parent / name).unlink()
        if system.left >= 0:
            break
    assert system.left >= 0
    assert restored > 2


def test_an_undo_that_breaks_off_can_be_done_again(made: tuple[Path, str]) -> None:
    path, rule = made
    before, plan = path.read_bytes(), planned(path, rule)
    again = 0
    for after in range(MOST_CALLS):
        patch_in_place(str(path), plan)
        with pytest.MonkeyPatch.context() as patch:
            system = Counted(after, OSError(errno.EIO, "gone"), is_lasting=True).install(patch)
            with contextlib.suppress(ExportError):
                undo_patch(str(path))
        if record_path(path).exists():
            undo_patch(str(path))
            again += 1
        assert path.read_bytes() == before
        assert listing(path.parent) == ["in.pt"]
        if system.left >= 0:
            break
    assert system.left >= 0
    assert again > 1


def test_what_cannot_be_restored_is_told_with_the_way_out(
    made: tuple[Path, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, rule = made
    before, plan = path.read_bytes(), planned(path, rule)

    def refuse(*args: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(in_place, "_write", refuse)
        patch.setattr(in_place, "restore", refuse)
        with pytest.raises(ExportError, match="the file could not be restored: Input/output error") as error:
            patch_in_place(str(path), plan)
    again = f"checkpoint-inspector remap {path} --undo"
    assert error.value.remedy == f"once it can be written, restore it with: {again}"
    undo_patch(str(path))
    assert path.read_bytes() == before


def test_a_folder_is_not_changed_in_place(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    plan = planned(path, CPU)
    folder = tmp_path / "run"
    folder.mkdir()
    with pytest.raises(ExportError, match="a folder cannot be changed in place") as caught:
        patch_in_place(str(folder), plan)
    assert caught.value.remedy == "write a copy instead, with -o"
    assert listing(tmp_path) == sorted((path.name, "run"))


SCRIPT = Path(__file__).parents[3] / "benchmarks" / "kill_export.py"
COUNT = 300
OBJECT_IN_PLACE_KILLED = stream(
    b"]("
    + b"".join(
        tensor(text("cuda:0"), str(number)).replace(b"K\x04", b"M" + struct.pack("<H", 4))
        for number in range(COUNT)
    )
    + b"e"
)
STORAGES_IN_PLACE_KILLED = {str(number): bytes([number % 256]) * 16 for number in range(COUNT)}


@pytest.mark.wide
@pytest.mark.slow
@pytest.mark.parametrize(("make", "rule"), [(zip_of, "*=cuda:11"), (legacy_of, "*=cpu")])
def test_nothing_is_lost_and_nothing_is_left(monkeypatch, tmp_path: Path, make, rule: str) -> None:
    monkeypatch.syspath_prepend(SCRIPT.parent)  # as where a script is started by its path
    path = tmp_path / "in.pt"
    path.write_bytes(make(OBJECT_IN_PLACE_KILLED, STORAGES_IN_PLACE_KILLED))
    trial = runpy.run_path(str(SCRIPT))["Trial"](path, 7)
    for turn in range(5):
        trial.run("copy" if turn % 2 else "in place", rule)
    assert sum(trial.counts.values()) == 5
    assert path.read_bytes() == make(OBJECT_IN_PLACE_KILLED, STORAGES_IN_PLACE_KILLED)
