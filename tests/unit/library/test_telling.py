from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

import inspector
from inspector.errors import CancelledError
from inspector.library import telling
from inspector.library.telling import Telling, told
from inspector.resources import demo_path
from tests.corpus import CORPUS

Work = Callable[[Path, Callable[[inspector.Step], object] | None], object]


class StoppedError(OSError):
    """What only the caller knows; of a kind that the program itself catches in many places."""


@pytest.fixture(autouse=True)
def _every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(telling, "_EVERY_S", 0.0)


def snapshot(folder: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}


WORK: dict[str, Work] = {
    "remap": lambda at, tell: inspector.remap(
        at / "demo.pth", at / "out.pth", verify="full", progress=tell, force=True
    ),
    "in place": lambda at, tell: inspector.remap(at / "demo.pth", in_place=True, progress=tell),
    "undo": lambda at, tell: inspector.undo(at / "patched.pth", progress=tell),
    "weights": lambda at, tell: inspector.remap(
        at / "demo.pth", at / "out.pth", only="weights", progress=tell, force=True
    ),
    "safetensors": lambda at, tell: inspector.remap(at / "demo.pth", at / "w.safetensors", progress=tell),
    "folder": lambda at, tell: inspector.remap(at / "shards", at / "copy", map="*=cuda:0", progress=tell),
    "recover": lambda at, tell: inspector.recover(at / "cut.pth", at / "out.pth", progress=tell, force=True),
    "verify": lambda at, tell: inspector.verify(at / "demo.pth", at / "demo.pth", progress=tell),
    "diff": lambda at, tell: inspector.diff(at / "demo.pth", at / "patched.pth", progress=tell),
    "check": lambda at, tell: inspector.check(at / "demo.pth", target="cpu", progress=tell),
    "snippet": lambda at, tell: inspector.snippet(at / "demo.pth", progress=tell),
    "open": lambda at, tell: inspector.open(at / "demo.pth", progress=tell),
}


@pytest.fixture
def files(tmp_path: Path) -> Path:
    data = demo_path().read_bytes()
    (tmp_path / "demo.pth").write_bytes(data)
    (tmp_path / "patched.pth").write_bytes(data)
    (tmp_path / "cut.pth").write_bytes(data[: len(data) // 2])
    (tmp_path / "out.pth").write_bytes(b"what stood there")
    shutil.copytree(CORPUS / "hf_sharded", tmp_path / "shards")
    inspector.remap(tmp_path / "patched.pth", in_place=True)
    return tmp_path


@pytest.mark.wide
def test_what_it_raises_leaves_everything_as_it_was(files: Path) -> None:
    """At the first, a middle and the last step of each work; the error arrives as it was raised."""
    before, wrong = snapshot(files), []
    for name, work in WORK.items():
        steps: list[inspector.Step] = []
        work(files, steps.append)
        restore(files, before)
        for place in (0, len(steps) // 2, len(steps) - 1):
            said = stopped_at(place, work, files)
            if said or snapshot(files) != before:
                wrong.append((name, place, steps[place], said))
    assert wrong == []


def restore(folder: Path, before: dict[str, bytes | None]) -> None:
    for path in set(folder.rglob("*")) - {Path(one) for one in before}:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    for name, data in before.items():
        if data is not None:
            Path(name).write_bytes(data)


def stopped_at(place: int, work: Work, files: Path) -> str:
    """Return what is wrong with the error that ends work at a step."""
    left, error = iter(range(place)), StoppedError(28, "as a full disk says it")

    def stop(_step: inspector.Step) -> None:
        if next(left, None) is None:
            raise error

    try:
        work(files, stop)
    except StoppedError as raised:
        return "" if raised is error and not raised.__context__ else f"after {raised.__context__!r}"
    return "nothing was raised"


def test_steps_of_a_copy(files: Path) -> None:
    steps: list[inspector.Step] = []
    done = inspector.remap(files / "demo.pth", files / "new.pth", verify="full", progress=steps.append)
    copying = [step for step in steps if step.stage == "copying"]
    assert copying[0].done == 0
    assert 0 < copying[-1].done == copying[-1].total <= done.nbytes
    assert {step.unit for step in copying} == {"bytes"}
    assert [step.done for step in copying] == sorted(step.done for step in copying)
    comparing = [step for step in steps if step.stage == "comparing bytes"]
    assert comparing[-1].fraction == 1.0
    assert {step.unit for step in steps if step.stage == "finding storages"} == {"items"}
    assert {step.done for step in steps if not step.total} == {0}


def test_statistics_of_several_tensors_are_one_stage(files: Path) -> None:
    steps: list[inspector.Step] = []
    found = inspector.stats(files / "demo.pth", "model/stem.**", progress=steps.append)
    reading = [step for step in steps if step.stage == "reading values"]
    checkpoint = inspector.open(files / "demo.pth")
    total = sum(checkpoint[one.path].nbytes for one in found)
    assert len(found) > 4
    assert (reading[0].done, reading[-1].done) == (0, total)
    assert {step.total for step in reading} == {total}
    with pytest.raises(StoppedError):
        checkpoint["model/stem.conv.weight"].stats(progress=_refuse)
    with pytest.raises(StoppedError):
        checkpoint["model/stem.conv.weight"].numpy(progress=_refuse)
    steps.clear()
    checkpoint["model/stem.conv.weight"].numpy(progress=steps.append)
    assert (steps[0].fraction, steps[-1].fraction) == (0.0, 1.0)


def _refuse(_step: inspector.Step) -> None:
    raise StoppedError


def test_it_is_told_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the start and the end of a stage, and between them when a tenth of a second went by."""
    times = iter((0.0, 0.0, 0.05, 0.11, 0.12, 0.12, 0.12, 0.12, 0.12, 0.13, 0.3))
    monkeypatch.setattr(telling, "_EVERY_S", 0.1)
    monkeypatch.setattr(telling, "_now", lambda: next(times))
    steps: list[inspector.Step] = []
    work = Telling(steps.append)
    work.start("copying", 100)
    for _ in range(5):
        work.advance(10)
    assert [step.done for step in steps] == [0, 30]
    work.advance(50)
    work.advance()
    assert [step.done for step in steps] == [0, 30, 100]
    work.start("checking")
    assert steps[-1] == inspector.Step(stage="checking", done=0, total=0, unit="bytes")
    assert steps[-1].fraction is None
    work.advance(7)  # what is counted here nobody knows
    assert len(steps) == 4
    work.advance(7)  # and the caller may want to stop
    assert steps[4:] == steps[3:4]


def test_an_error_of_the_work_is_its_own() -> None:
    with pytest.raises(inspector.PlanError), told(None):
        raise inspector.PlanError("wrong")
    with pytest.raises(StoppedError), told(_refuse) as steps:
        _wrapped(steps)
    with pytest.raises(StoppedError), told(_refuse) as steps:
        _swallowed(steps)
    assert steps.cancelled


def test_what_the_caller_handled_stays_with_the_error() -> None:
    """And what the program handled meanwhile is not put there."""

    def fail(_step: inspector.Step) -> None:
        try:
            {}["a key of the caller"]
        except KeyError:
            raise StoppedError from None

    with pytest.raises(StoppedError) as raised, told(fail) as steps:
        _wrapped(steps)
    assert isinstance(raised.value.__context__, KeyError)


def _wrapped(steps: Telling) -> None:
    try:
        steps.start("reading")
    except CancelledError as error:
        raise inspector.ExportError("what work makes of it") from error


def _swallowed(steps: Telling) -> None:
    with pytest.raises(CancelledError):
        steps.start("reading")
