"""The way to the child and back; what torch says in it is shown by tests/torch/test_remap_checks.py."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.child import worker_script
from inspector.errors import CancelledError
from inspector.progress import Progress
from inspector.remap.compare import torch_check
from inspector.remap.compare.torch_check import TorchCheck, check_with_torch
from inspector.remap.files.outfile import OutFile

REAL = subprocess.Popen
CALL = "torch.load(path)"
GOOD = {"verdict": "equal", "torch": "2.13.0", "tensors": 3, "missing": ["cuda:0"], "call": CALL}


def child(monkeypatch: pytest.MonkeyPatch, code: str) -> list[list[str]]:
    """Start something else instead of torch."""
    asked: list[list[str]] = []

    def start(command: list[str], **how: object) -> subprocess.Popen[str]:
        asked.append([*command, str(how["pass_fds"])])
        return REAL([sys.executable, "-c", code], **how)

    monkeypatch.setattr(subprocess, "Popen", start)
    return asked


def asked(progress: Progress | None = None, *, part: Path | None = None) -> TorchCheck:
    out = OutFile(7 if part else 0, Path("/proc/self/fd/0"), part)
    return check_with_torch(out, "original.pt", ["cuda:0", "cpu", "c\n", "\u202e"], progress or Progress())


def test_the_answer_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    commands = child(monkeypatch, f"print({json.dumps(json.dumps(GOOD))})")
    found = asked()
    assert found == TorchCheck(
        verdict="equal", call="torch.load(path)", torch="2.13.0", tensors=3, missing=("cuda:0",)
    )
    assert not found.is_bad
    (command,) = commands
    script, *rest = command[2:]
    assert script == str(worker_script("load_check"))
    # A nameless copy is handed over.
    assert rest == ["/proc/self/fd/0", str(Path("original.pt").absolute()), "cpu", "cuda:0", "(0,)"]
    asked(part=Path("part"))
    assert commands[1][-1] == "()"


@pytest.mark.parametrize("verdict", ["differs", "failed"])
def test_bad_news_is_made_harmless_and_cut(monkeypatch: pytest.MonkeyPatch, verdict: str) -> None:
    answer = {**GOOD, "verdict": verdict, "detail": "\x1b[2J\u202e" + "x" * 5000}
    child(monkeypatch, f"print({json.dumps(json.dumps(answer))})")
    found = asked()
    assert found.is_bad
    assert found.detail.startswith(r"\u001b[2J\u202exxx")
    assert len(found.detail) == 300


@pytest.mark.parametrize(
    "answer", ["", "nonsense", "[]", "{}", '{"verdict": "moon", "torch": ""}', '{"verdict": []}', "1", "null"]
)
def test_no_answer_is_no_verdict(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    child(monkeypatch, f"print({answer!r})")
    found = asked()
    assert (found.verdict, found.is_bad) == ("unchecked", False)
    assert "python -c 'import torch'" in found.detail


def test_a_child_that_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    assert asked().detail == "no child process could be started: No such file or directory"


def test_a_child_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, "import time; time.sleep(60)")
    monkeypatch.setattr(torch_check, "_TIMEOUT_S", 0.15)
    assert asked().verdict == "unchecked"


def test_cancelling_ends_the_child(monkeypatch: pytest.MonkeyPatch) -> None:
    child(monkeypatch, "import time; time.sleep(60)")
    progress = Progress()
    advance = iter([None, None, progress.cancel])

    class Impatient(Progress):
        __slots__ = ()

        def advance(self, units: int = 0) -> None:
            act = next(advance, None)
            if act is not None:
                self.cancel()
            super().advance(units)

    with pytest.raises(CancelledError):
        asked(Impatient())
