from __future__ import annotations

import json
import subprocess
import sys

import pytest

from inspector.errors import CancelledError, CheckpointError
from inspector.progress import Progress
from inspector.target import this_machine
from inspector.target.this_machine import probe_this_machine, profile_of

NOTHING = {"torch": "2.13.0+cpu", "cuda": 0, "mps": False, "xpu": 0}


@pytest.fixture
def child(monkeypatch: pytest.MonkeyPatch):
    """Let the probe be another Python program."""

    class Program(subprocess.Popen):
        code = ""

        def __init__(self, command: list[str], **options: object) -> None:
            assert command == [sys.executable, "-m", "inspector.worker.probe"]
            super().__init__([sys.executable, "-c", Program.code], **options)

    monkeypatch.setattr(subprocess, "Popen", Program)
    return Program


@pytest.mark.parametrize(
    ("found", "label"),
    [
        ({}, "this machine (CPU only)"),
        ({"cuda": 1}, "this machine (1 CUDA GPU)"),
        ({"cuda": 8}, "this machine (8 CUDA GPUs)"),
        ({"mps": True}, "this machine (Apple GPU)"),
        ({"xpu": 1}, "this machine (1 Intel GPU)"),
        ({"cuda": 2, "xpu": 2}, "this machine (2 CUDA GPUs, 2 Intel GPUs)"),
    ],
)
def test_a_machine_is_named_by_its_gpus(found: dict[str, object], label: str) -> None:
    profile = profile_of({**NOTHING, **found})
    assert (profile.id, profile.label, profile.torch_version) == ("this", label, "2.13.0+cpu")
    assert (profile.cuda, profile.mps, profile.xpu) == (
        *(found.get("cuda", 0), found.get("mps", False), found.get("xpu", 0)),
    )


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "no json",
        "[]",
        "null",
        "{}",
        json.dumps({**NOTHING, "cuda": "many"}),
        json.dumps({**NOTHING, "cuda": None}),
        json.dumps({**NOTHING, "xpu": -1}),
        json.dumps({**NOTHING, "cuda": 10**9}),
    ],
)
def test_what_is_no_answer_is_an_error(child, answer: str) -> None:
    child.code = f"print({answer!r})"
    with pytest.raises(CheckpointError, match="torch gave no answer about this machine"):
        probe_this_machine(Progress())


def test_the_answer_is_the_last_line(child) -> None:
    said = json.dumps({**NOTHING, "cuda": 3})
    child.code = f"import sys; print('a greeting'); sys.stderr.write('noise'); print({said!r})"
    assert probe_this_machine(Progress()).cuda == 3


def test_a_machine_without_torch(child) -> None:
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
    assert profile.cuda == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
