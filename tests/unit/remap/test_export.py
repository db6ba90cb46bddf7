"""A copy with other devices."""

from __future__ import annotations

import errno
import gzip
import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from inspector.containers import copying
from inspector.errors import CancelledError, CheckpointError, ExportError, PlanError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.pythons import choose_python
from inspector.records import replace
from inspector.remap import export, files, relabel, torch_check
from inspector.remap import rare as tar_edits
from inspector.remap.export import Export, export_copy, make_receipt, refuse_receipt, write_receipt
from inspector.remap.files import OutFile
from inspector.remap.plan import Plan, plan_remap
from inspector.remap.rules import parse_rule
from inspector.remap.torch_check import TorchCheck, check_with_torch, try_with_torch
from inspector.resources import demo_path
from tests.corpus import Case, varied
from tests.sweep import put_through, table
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tar_of, tensor, text, written, zip_of

READABLE = [case for case in varied() if case.container in {"zip", "legacy", "gzip(legacy)", "tar"}]
OBJECT = stream(mapping(a=tensor(text("cuda:0")), b=tensor(text("cuda:0"), "1")))
STORAGES = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}
MAKERS = {"zip": zip_of, "legacy": legacy_of, "tar": tar_of}
CPU, LONGER = "*=cpu", "*=cuda:11"


def planned(path: Path, *rules: str, move_all: bool = False) -> Plan:
    return plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules], move_all=move_all)


def exported(path: Path, to: Path, *rules: str, overwrite: bool = False) -> Export:
    return export_copy(str(path), to, planned(path, *rules), overwrite=overwrite)


@pytest.fixture(params=MAKERS)
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Path]:
    """A checkpoint that must stay as it is, whatever the test does."""
    path = written(tmp_path, MAKERS[request.param](OBJECT, STORAGES))
    before = path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode
    yield path
    assert (path.read_bytes(), path.stat().st_mtime_ns, path.stat().st_mode) == before


@pytest.fixture
def zip_source(tmp_path: Path) -> Path:
    """A checkpoint for what does not depend on its format."""
    return written(tmp_path, zip_of(OBJECT, STORAGES))


@pytest.fixture(params=["unnamed", "named"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "named":
        monkeypatch.setattr(files, "_open_unnamed", lambda part: None)
    return request.param


def listing(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def devices(path: Path) -> set[str]:
    return {row.device for row in open_checkpoint(str(path)).tensors}


# --- what comes out -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [CPU, LONGER])
def test_a_copy_has_the_devices_of_the_plan(source: Path, tmp_path: Path, rule: str) -> None:
    destination = tmp_path / "out.pt"
    done = exported(source, destination, rule)
    assert devices(destination) == {rule.removeprefix("*=")}
    assert done == Export(
        destination=destination,
        nbytes=destination.stat().st_size,
        moved_tensors=2,
        kept_tensors=0,
        in_one_piece=rule == CPU,
        verified=True,
        compared_nbytes=done.copied_nbytes,
        copied_nbytes=done.copied_nbytes,
    )
    assert sum(map(len, STORAGES.values())) <= done.copied_nbytes < source.stat().st_size


@pytest.mark.wide
def test_an_empty_plan_copies_byte_for_byte(tmp_path: Path) -> None:
    def check(case: Case) -> None:
        exported(case.path, tmp_path / "out", overwrite=True)
        data = case.path.read_bytes()
        assert (tmp_path / "out").read_bytes() == (
            gzip.decompress(data) if case.name.endswith(".gz") else data
        )

    put_through(check, READABLE, name=lambda case: case.name)


@pytest.mark.wide
def test_genuine_files_come_out_as_planned(tmp_path: Path) -> None:
    """Each export is opened again and compared: a difference raises. In `tests/torch` torch loads more."""
    to_mps = ("dtype:float64@cpu", "dtype:complex128@cpu", "*=mps")

    def check(case: Case) -> None:
        for rules in ((CPU,), ("*=xpu",), to_mps):
            assert exported(case.path, tmp_path / "out", *rules, overwrite=True).verified
        plan = planned(case.path, "cpu=cuda:1", move_all=True)
        export_copy(str(case.path), tmp_path / "out", plan, overwrite=True)

    put_through(check, READABLE, name=lambda case: case.name, every=2)


@pytest.mark.parametrize("verify", ["quick", "full"])
@pytest.mark.parametrize("rule", [CPU, LONGER, "xpu=cpu"])
def test_bytes_that_went_astray_are_noticed(
    source: Path, tmp_path: Path, verify: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = copying.copy_bytes

    def astray(source: int, target: int, *args: object) -> None:
        real(source, target, *args)
        os.pwrite(target, b"\xee", os.lseek(target, 0, os.SEEK_CUR) - 1)

    monkeypatch.setattr(copying, "clone_file", lambda source, target: False)
    plan = planned(source, rule)
    done = export_copy(str(source), tmp_path / "good", plan, verify=verify)
    assert done.compared_nbytes == done.copied_nbytes >= 2 * NBYTES
    monkeypatch.setattr(copying, "copy_bytes", astray)
    with pytest.raises(ExportError, match=r"the (bytes of the copy differ|copy cannot be read)"):
        export_copy(str(source), tmp_path / "out", plan, verify=verify)
    assert listing(tmp_path) == ["good", "in.pt"]


def test_a_gzip_file_is_compared_when_asked(tmp_path: Path) -> None:
    path = written(tmp_path, gzip.compress(legacy_of(OBJECT, STORAGES)))
    done = exported(path, tmp_path / "quick", CPU)
    assert done.compared_nbytes == 0 < done.copied_nbytes
    done = export_copy(str(path), tmp_path / "full", planned(path, CPU), verify="full")
    assert done.compared_nbytes == done.copied_nbytes


def test_torch_is_asked_for_its_word(
    zip_source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, set[str]]] = []

    def check(
        out: files.OutFile, original: str, devices: frozenset[str], progress: Progress, python: str | None
    ) -> TorchCheck:
        assert python == "mine"
        asked.append((original, set(devices)))
        assert open_checkpoint(str(out.path)).tensors
        return TorchCheck(verdict=verdict)

    monkeypatch.setattr(torch_check, "check_with_torch", check)
    verdict = "equal"
    done = export_copy(
        str(zip_source), tmp_path / "out", planned(zip_source, CPU), verify="torch", python="mine"
    )
    assert done.torch == TorchCheck(verdict="equal")
    assert asked == [(str(zip_source), {"cpu"})]
    verdict = "differs"
    with pytest.raises(ExportError, match="torch does not load the copy as planned"):
        export_copy(
            str(zip_source), tmp_path / "out2", planned(zip_source, CPU), verify="torch", python="mine"
        )
    assert listing(tmp_path) == ["in.pt", "out"]


def test_macos_is_asked_to_clone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    plan = planned(path, CPU)
    exported(path, tmp_path / "wanted", CPU)

    def clone(source: int, out: files.OutFile) -> bool:
        os.pwrite(out.fd, path.read_bytes(), 0)
        return os.fstat(source).st_size > 0

    monkeypatch.setattr(export.sys, "platform", "darwin")
    monkeypatch.setattr(export, "clone_by_name", clone)
    monkeypatch.setattr(copying, "copy_bytes", None)
    export_copy(str(path), tmp_path / "out", plan)
    assert (tmp_path / "out").read_bytes() == (tmp_path / "wanted").read_bytes()


def test_storages_known_by_views_only_go_along(tmp_path: Path) -> None:
    view = b"(X\x01\x00\x00\x007K\x00K\x02t"
    body = mapping(a=tensor(text("cuda:0"), "0", view=view), b=tensor(text("cuda:0"), "1"))
    path = written(tmp_path, legacy_of(stream(body), STORAGES))
    exported(path, tmp_path / "out", "path:a@cpu")
    assert {row.key: row.device for row in open_checkpoint(str(tmp_path / "out")).storages} == {
        "0": "cpu",
        "7": "cpu",
        "1": "cuda:0",
    }


# --- where it must not go -----------------------------------------------------------------------------------


SPELLINGS = ["in.pt", "./in.pt", "folder/../in.pt", "symlink", "hard link", "symlinked folder"]


@pytest.mark.parametrize("name", SPELLINGS)
def test_the_source_is_never_the_destination(zip_source: Path, name: str) -> None:
    folder = zip_source.parent
    (folder / "folder").mkdir()
    (folder / "symlink").symlink_to(zip_source)
    (folder / "hard link").hardlink_to(zip_source)
    (folder / "elsewhere").symlink_to(folder)
    destination = folder / "elsewhere" / "in.pt" if name == "symlinked folder" else folder / name
    before, data = listing(folder), zip_source.read_bytes()
    for overwrite in (False, True):
        with pytest.raises(ExportError, match="would replace the file itself"):
            exported(zip_source, destination, CPU, overwrite=overwrite)
    assert (listing(folder), zip_source.read_bytes()) == (before, data)


def test_what_stands_there_stays_unless_it_may_be_replaced(
    zip_source: Path, tmp_path: Path, way: str
) -> None:
    destination = written(tmp_path, b"precious", "out.pt")
    with pytest.raises(ExportError, match="the file already exists"):
        exported(zip_source, destination, CPU)
    assert destination.read_bytes() == b"precious"
    exported(zip_source, destination, CPU, overwrite=True)
    assert devices(destination) == {"cpu"}
    assert listing(tmp_path) == ["in.pt", "out.pt"]


def test_a_symlink_is_replaced_not_followed(zip_source: Path, tmp_path: Path, way: str) -> None:
    other = written(tmp_path, b"precious", "other")
    (tmp_path / "out.pt").symlink_to(other)
    with pytest.raises(ExportError, match="the file already exists"):
        exported(zip_source, tmp_path / "out.pt", CPU)
    exported(zip_source, tmp_path / "out.pt", CPU, overwrite=True)
    assert other.read_bytes() == b"precious"


def test_a_dangling_symlink_is_a_file_already(zip_source: Path, tmp_path: Path) -> None:
    (tmp_path / "out.pt").symlink_to(tmp_path / "nowhere")
    with pytest.raises(ExportError, match="the file already exists"):
        exported(zip_source, tmp_path / "out.pt", CPU)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("", "this is a folder"),
        ("none/out.pt", "no such folder"),
        ("in.pt/out.pt", "no such folder"),
        ("x" * 256, "File name too long"),
        ("a\0b", "this is not a file name"),
    ],
)
def test_impossible_destinations_are_told_before_any_work(zip_source: Path, name: str, what: str) -> None:
    progress = Progress()
    with pytest.raises(ExportError, match=what):
        export_copy(
            str(zip_source),
            zip_source.parent / name,
            planned(zip_source, CPU),
            overwrite=True,
            progress=progress,
        )
    assert not progress.label
    assert listing(zip_source.parent) == ["in.pt"]


# --- what the system refuses --------------------------------------------------------------------------------


def full(after: int) -> Callable[..., int]:
    """A disk that takes so many calls and is full then."""
    left = [after]

    def refused(*args: object, **named: object) -> int:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        target, data = args
        return REAL_WRITE(target, data)

    return refused


REAL_WRITE = os.write


@pytest.mark.parametrize("rule", [CPU, LONGER])
def test_a_full_disk_is_told(
    source: Path, tmp_path: Path, way: str, rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = planned(source, rule)
    for name in ("copy_file_range", "sendfile"):
        monkeypatch.delattr(os, name, raising=False)
    for after in range(writes_of(source, plan, tmp_path / "counted.pt")):
        monkeypatch.setattr(os, "write", full(after))
        with pytest.raises(ExportError, match="the copy cannot be written: No space left on device"):
            export_copy(str(source), tmp_path / "out.pt", plan)
        assert listing(tmp_path) == ["in.pt"]


def writes_of(source: Path, plan: Plan, destination: Path) -> int:
    """Count the writes that a copy takes."""
    count = [0]

    def counted(target: int, data: bytes) -> int:
        count[0] += 1
        return REAL_WRITE(target, data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "write", counted)
        export_copy(str(source), destination, plan)
    destination.unlink()
    assert count[0]
    return count[0]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 1 MB, where this process may mount one."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    command = [str(mount), "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if mount is None or os.name != "posix" or os.geteuid() or subprocess.run(command, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.parametrize("rule", [CPU, LONGER])
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_disk_that_is_truly_full_is_told(tmp_path: Path, small_disk: Path, make, rule: str) -> None:
    path = written(tmp_path, make(OBJECT, STORAGES | {"1": bytes(2 << 20)}))
    with pytest.raises(ExportError, match="No space left on device"):
        exported(path, small_disk / "out.pt", rule)
    assert listing(small_disk) == []
    exported(written(tmp_path, make(OBJECT, STORAGES)), small_disk / "out.pt", rule)
    assert listing(small_disk) == ["out.pt"]


# --- cancelling ---------------------------------------------------------------------------------------------


class Impatient(Progress):
    """Is cancelled after so many questions."""

    __slots__ = ("asked", "patience")

    def __init__(self, patience: int) -> None:
        super().__init__()
        self.asked = 0
        self.patience = patience

    def advance(self, units: int = 0) -> None:
        self.asked += 1
        if self.asked > self.patience:
            self.cancel()
        super().advance(units)


@pytest.mark.wide
@pytest.mark.parametrize("rule", [CPU, LONGER])
def test_an_export_can_be_cancelled_at_every_question(
    source: Path, tmp_path: Path, way: str, rule: str
) -> None:
    plan = planned(source, rule)
    patience = 0
    while True:
        progress = Impatient(patience)
        try:
            export_copy(str(source), tmp_path / "out.pt", plan, progress=progress)
        except CancelledError:
            assert listing(tmp_path) == ["in.pt"]
            patience += 1
            continue
        break
    assert patience > 8
    assert listing(tmp_path) == ["in.pt", "out.pt"]
    assert devices(tmp_path / "out.pt") == {rule.removeprefix("*=")}


# --- a source that changes ----------------------------------------------------------------------------------


class Meddler(Progress):
    """Does something to the source once the copying has begun, or before."""

    __slots__ = ("stage", "work")

    def __init__(self, stage: str, work: Callable[[], object]) -> None:
        super().__init__()
        self.stage = stage
        self.work: Callable[[], object] | None = work

    def start(self, label: str, total: int = 0, *, is_counted: bool = False) -> None:
        super().start(label, total)
        if label == self.stage and self.work is not None:
            work, self.work = self.work, None
            work()


def append(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b"more")


def touch(path: Path) -> None:
    os.utime(path, ns=(1, 1))


def truncate(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 30)


def put_another(path: Path) -> None:
    other = path.with_name("other")
    other.write_bytes(path.read_bytes())
    other.replace(path)


@table("rule", [CPU, LONGER])
@table("make", MAKERS.values(), ids=MAKERS)
def test_a_source_that_changes_meanwhile_is_told(tmp_path: Path, make, rule: str) -> None:
    for stage in ("reading", "copying"):
        for change in (append, touch, truncate):
            path = written(tmp_path, make(OBJECT, STORAGES))
            plan, meddler = planned(path, rule), Meddler(stage, partial(change, path))
            with pytest.raises(CheckpointError):
                export_copy(str(path), tmp_path / "out.pt", plan, progress=meddler)
            assert listing(tmp_path) == ["in.pt"], (stage, change)


@table("make", MAKERS.values(), ids=MAKERS)
@table("stage", ["finding storages", "copying"])
@table("change", [put_another, Path.unlink])
def test_a_source_that_is_replaced_meanwhile_is_copied_as_it_was(
    tmp_path: Path, make, stage: str, change: Callable[[Path], None]
) -> None:
    path = written(tmp_path, make(OBJECT, STORAGES))
    plan = planned(path, CPU)
    export_copy(str(path), tmp_path / "wanted.pt", plan)
    export_copy(str(path), tmp_path / "out.pt", plan, progress=Meddler(stage, lambda: change(path)))
    assert (tmp_path / "out.pt").read_bytes() == (tmp_path / "wanted.pt").read_bytes()


def test_a_plan_of_another_file_is_noticed(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    plan = planned(path, CPU)
    other = mapping(c=tensor(text("cuda:1"), "9"), a=tensor(text("cuda:0")))
    written(tmp_path, zip_of(stream(other), STORAGES))
    with pytest.raises(ExportError, match="the copy is not as planned"):
        export_copy(str(path), tmp_path / "out.pt", plan)
    assert listing(tmp_path) == ["in.pt"]


@pytest.mark.parametrize("there", ["*=cpu", "*=cuda:3"])
def test_there_and_back_is_the_identity(source: Path, tmp_path: Path, there: str) -> None:
    out, back = tmp_path / "out.pt", tmp_path / "back.pt"
    exported(source, out, there)
    exported(out, back, "*=cuda:0")
    assert back.read_bytes() == source.read_bytes()


# --- a copy that is not as planned --------------------------------------------------------------------------


def test_a_copy_that_is_not_as_planned_does_not_appear(
    source: Path, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relabel, "rewrite_pickle", lambda stream, plan, **more: stream.data[: stream.end])
    monkeypatch.setattr(tar_edits, "_relabelled", lambda data, record, to: data)
    with pytest.raises(ExportError, match=r"the copy is not as planned: a is not as planned\."):
        exported(source, tmp_path / "out.pt", CPU)
    assert listing(tmp_path) == ["in.pt"]


def test_a_copy_that_cannot_be_read_does_not_appear(
    source: Path, tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(relabel, "rewrite_pickle", lambda stream, plan, **more: b"\x80\x02R.")
    monkeypatch.setattr(tar_edits, "_relabelled", lambda data, record, to: b"\x80\x02nonsense")
    with pytest.raises(ExportError, match="the copy cannot be read: "):
        exported(source, tmp_path / "out.pt", CPU)
    assert listing(tmp_path) == ["in.pt"]


def test_what_is_no_file_is_not_replaced(zip_source: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ExportError, match="this is not a regular file"):
        exported(zip_source, pipe, CPU, overwrite=True)
    assert pipe.is_fifo()


# --- ways of copying ----------------------------------------------------------------------------------------


@pytest.fixture
def receipt(tmp_path: Path):
    def make(torch: TorchCheck | None = None) -> dict:
        checkpoint = open_checkpoint(str(demo_path()))
        plan = plan_remap(checkpoint, [parse_rule("cuda:1=cuda:0"), parse_rule("cpu=cuda:0")])
        done = export_copy(checkpoint.path, tmp_path / "out.pth", plan, overwrite=True)
        return make_receipt(checkpoint, plan, replace(done, torch=torch), "1.2.3")

    return make


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_receipt_says_what_was_done(receipt, tmp_path: Path) -> None:
    found = receipt()
    copy = tmp_path / "out.pth"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", found.pop("made"))
    checks = found.pop("checks")
    assert checks["opened_again"] is True
    assert checks["compared_nbytes"] == checks["copied_nbytes"] > 700_000
    assert checks["torch"] is None
    versions = found.pop("versions")
    assert versions["format"] == "zip"
    assert found == {
        "schema": 1,
        "program": "checkpoint-inspector 1.2.3",
        "original": {
            "name": "demo.pth",
            "nbytes": demo_path().stat().st_size,
            "sha256": sha256(demo_path()),
        },
        "copy": {"name": "out.pth", "nbytes": copy.stat().st_size, "sha256": sha256(copy)},
        "plan": {
            "rules": ["cuda:1=cuda:0", "cpu=cuda:0"],
            "moves": [{"from": "cuda:1", "to": "cuda:0", "tensors": 83}],
            "kept_on_cpu": 50,
            "hidden_devices": 0,
        },
    }


def test_what_torch_said_stands_in_it(receipt) -> None:
    check = TorchCheck(
        verdict="equal", call="torch.load(path)", torch="2.13.0", tensors=9, missing=("cuda:0",)
    )
    assert receipt(check)["checks"]["torch"] == {
        "verdict": "equal",
        "detail": "",
        "call": "torch.load(path)",
        "version": "2.13.0",
        "tensors": 9,
        "devices_not_tried": ["cuda:0"],
    }


def test_a_receipt_is_written_whole_and_over_nothing(receipt, tmp_path: Path) -> None:
    found, path = receipt(), tmp_path / "receipt.json"
    write_receipt(found, path)
    assert json.loads(path.read_text()) == found
    assert path.stat().st_mode & 0o777 == 0o644
    with pytest.raises(ExportError, match="the receipt cannot be written: File exists"):
        write_receipt({}, path)
    assert json.loads(path.read_text()) == found
    write_receipt({}, path, overwrite=True)
    assert path.read_text() == "{}\n"


def test_a_receipt_never_takes_the_place_of_the_copy(tmp_path: Path) -> None:
    copy = tmp_path / "out.pt"
    (tmp_path / "folder").mkdir()
    source = str(tmp_path / "in.pt")
    refuse_receipt(tmp_path / "out.json", source, copy)
    for name in ("out.pt", "folder/../out.pt"):
        with pytest.raises(ExportError, match="the receipt would replace the copy"):
            refuse_receipt(tmp_path / name, source, copy)
    with pytest.raises(ExportError, match="the receipt would replace the file itself"):
        refuse_receipt(tmp_path / "in.pt", source, copy)


# ------------------------------------------------------------------------------------------------------------
# The way to the child and back; what torch says in it is shown by tests/unit/worker/test_load_check.py.


GOOD = {
    "verdict": "equal",
    "torch": "2.13.0",
    "tensors": 3,
    "missing": ["cuda:0"],
    "call": "torch.load(path)",
}


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Path]:
    """Let another script answer instead of torch."""

    def say(code: str) -> Path:
        script = tmp_path / "script.py"
        script.write_text(f"import json, os\ndef answer(head, blocks):\n    {code}\n", encoding="utf-8")
        monkeypatch.setattr(torch_check, "worker_script", lambda _name: script)
        return script

    return say


def asked(
    out: OutFile | None = None, progress: Progress | None = None, python: str | None = None
) -> TorchCheck:
    out = out or OutFile(0, Path("copy.part"), Path("copy.part"))
    devices = ["cuda:0", "cpu", "c\n", "\u202e"]
    return check_with_torch(out, "original.pt", devices, progress or Progress(), python)


def test_paths_are_absolute_and_a_nameless_copy_is_handed_over(
    say: Callable[[str], Path], tmp_path: Path
) -> None:
    say(f"yield {{**{GOOD}, 'detail': json.dumps([head, open(head['copy']).read()])}}, b''")
    with (tmp_path / "copy.pt").open("w+") as file:
        file.write("copied")
        file.flush()
        out = OutFile(file.fileno(), Path(f"/proc/self/fd/{file.fileno()}"), None)
        head, text = json.loads(asked(out).detail)
    assert head == {
        "copy": str(out.path),
        "original": os.path.abspath("original.pt"),  # noqa: PTH100
        "devices": ["cpu", "cuda:0"],  # others do not reach torch
    }
    assert text == "copied"


def test_a_file_is_tried_without_another(say: Callable[[str], Path]) -> None:
    say(f"yield {{**{GOOD}, 'verdict': 'loads', 'detail': json.dumps(head)}}, b''")
    found = try_with_torch("a.pt", Progress())
    assert (found.verdict, found.is_bad) == ("loads", False)
    assert json.loads(found.detail) == {"copy": os.path.abspath("a.pt")}  # noqa: PTH100


@pytest.mark.parametrize("verdict", ["differs", "failed"])
def test_bad_news_is_made_harmless_and_cut(say: Callable[[str], Path], verdict: str) -> None:
    answer = {**GOOD, "verdict": verdict, "detail": "\x1b[2J\u202e" + "x" * 5000}
    say(f"yield {answer!r}, b''")
    found = asked()
    assert found.is_bad
    assert found.detail.startswith(r"\u001b[2J\u202exxx")
    assert len(found.detail) == 300


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("yield {}, b''", "what came back is none"),
        ("yield {'verdict': 'moon', 'torch': ''}, b''", "what came back is none"),
        ("yield {'verdict': []}, b''", "what came back is none"),
        ("yield {'verdict': 'equal', 'torch': '', 'missing': 1}, b''", "what came back is none"),
        ("raise SystemExit", "the child process ended before it had answered"),
        ("raise ValueError('\x1b')", r"the child process failed: ValueError: \u001b"),
    ],
)
def test_no_answer_is_no_verdict(say: Callable[[str], Path], code: str, why: str) -> None:
    say(code)
    found = asked()
    assert (found.verdict, found.is_bad) == ("unchecked", False)
    python = choose_python(None, Progress())
    assert found.detail == (
        f"torch gave no answer in {python.path} ($VIRTUAL_ENV): {why}; see whether "
        "python -c 'import torch' works, or name another Python with --python"
    )


def test_the_python_that_was_named_is_asked(say: Callable[[str], Path], tmp_path: Path) -> None:
    say(f"yield {GOOD}, b''")
    with pytest.raises(PlanError, match="there is no Python"):
        asked(python=str(tmp_path))


def test_it_can_be_cancelled() -> None:
    class Cancelled(Progress):
        __slots__ = ()

        def start(self, label: str, total: int = 0) -> None:
            super().start(label, total)
            self.cancel()

    with pytest.raises(CancelledError):
        asked(progress=Cancelled())
