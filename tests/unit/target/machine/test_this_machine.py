from __future__ import annotations

import json
import subprocess
import sys

import pytest

from inspector.errors import CancelledError, CheckpointError
from inspector.progress import Progress
from inspector.resources import PROBE, resource_path
from inspector.target.machine import this_machine
from inspector.target.machine.profile_file import MARK
from inspector.target.machine.this_machine import probe_this_machine


def answer(**torch: object) -> str:
    return json.dumps({MARK: 1, "torch": {"state": "imported", "version": "2.13.0+cpu", **torch}})


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch):
    """Let the probe be another Python program."""

    class Program(subprocess.Popen):
        code = ""

        def __init__(self, command: list[str], **options: object) -> None:
            assert command == [sys.executable, "-P", str(resource_path(PROBE))]
            super().__init__([sys.executable, "-c", Program.code], **options)

    monkeypatch.setattr(subprocess, "Popen", Program)
    return Program


@pytest.mark.parametrize("said", ["", "no json", "[]", "null", "{}", answer(cuda_count="many")])
def test_what_is_no_answer_is_an_error(child, said: str) -> None:
    child.code = f"print({said!r})"
    with pytest.raises(CheckpointError, match="torch gave no answer about this machine"):
        probe_this_machine(Progress())


def test_the_answer_is_the_last_line(child) -> None:
    said = answer(cuda_available=True, cuda_count=3)
    child.code = f"import sys; print('a greeting'); sys.stderr.write('noise'); print({said!r})"
    profile = probe_this_machine(Progress())
    assert (profile.id, profile.label, profile.cuda) == ("this", "this machine (3 CUDA GPUs)", 3)
    assert profile.torch_version == "2.13.0+cpu"


def test_a_machine_without_torch_is_a_machine(child) -> None:
    said = answer(state="missing", version=None)
    child.code = f"print({said!r})"
    profile = probe_this_machine(Progress())
    assert (profile.label, profile.devices) == ("this machine (torch is not installed)", ("cpu",))


def test_a_probe_that_fails(child) -> None:
    child.code = "import surely_not_installed"
    with pytest.raises(CheckpointError, match="no answer"):
        probe_this_machine(Progress())


def test_a_probe_that_hangs_is_ended(child, monkeypatch) -> None:
    monkeypatch.setattr(this_machine, "_TIMEOUT_S", 0.3)
    child.code = "import time; time.sleep(60)"
    with pytest.raises(CheckpointError, match="no answer"):
        probe_this_machine(Progress())


def test_a_probe_can_be_cancelled(child) -> None:
    class Impatient(Progress):
        asked = 0

        def advance(self, units: int = 0) -> None:
            self.asked += 1
            if self.asked == 3:
                self.cancel()
            super().advance(units)

    child.code = "import time; time.sleep(60)"
    with pytest.raises(CancelledError):
        probe_this_machine(Impatient())


def test_a_probe_that_cannot_be_started(monkeypatch) -> None:
    def fail(*_arguments: object, **_options: object) -> None:
        raise OSError("no more processes")

    monkeypatch.setattr(subprocess, "Popen", fail)
    with pytest.raises(CheckpointError, match="no answer"):
        probe_this_machine(Progress())


@pytest.mark.torch
@pytest.mark.slow
def test_torch_itself_is_asked() -> None:
    torch = pytest.importorskip("torch")
    profile = probe_this_machine(Progress())
    assert profile.torch_version == torch.__version__
    assert profile.evidence is not None
    assert profile.evidence.torch.state == "imported"
    assert (profile.memory_nbytes or 0) > 1 << 28
    assert profile.cuda == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
