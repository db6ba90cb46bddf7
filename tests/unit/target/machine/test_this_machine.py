from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.errors import CheckpointError
from inspector.progress import Progress
from inspector.target import profile_file
from inspector.target.profile_file import MARK, probe_this_machine
from tests.sweep import table


def answer(**torch: object) -> str:
    return json.dumps({MARK: 1, "torch": {"state": "imported", "version": "2.13.0+cpu", **torch}})


@pytest.fixture
def say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Let the probe be another script."""

    def say(code: str) -> None:
        script = tmp_path / "script.py"
        script.write_text(f"def answer(head, blocks):\n    {code}\n", encoding="utf-8")
        monkeypatch.setattr(profile_file, "worker_script", lambda _name: script)

    return say


@pytest.mark.wide
@table("said", ["", "no json", "[]", "null", "{}", answer(cuda_count="many")])
def test_what_is_no_answer_is_an_error(say: Callable[[str], None], said: str) -> None:
    say(f"yield {{}}, {said.encode()!r}")
    with pytest.raises(CheckpointError, match="torch gave no answer about this machine"):
        probe_this_machine(Progress())


def test_a_worker_that_fails_is_an_error(say: Callable[[str], None]) -> None:
    say("raise SystemExit")
    with pytest.raises(CheckpointError, match="no answer"):
        probe_this_machine(Progress())


def test_the_answer_is_a_profile(say: Callable[[str], None]) -> None:
    said = answer(cuda_available=True, cuda_count=3)
    say(f"yield {{}}, {said.encode()!r}")
    profile = probe_this_machine(Progress())
    assert (profile.id, profile.label, profile.count("cuda")) == ("this", "this machine (3 CUDA GPUs)", 3)
    assert profile.torch_version == "2.13.0+cpu"


def test_a_machine_without_torch_is_a_machine(say: Callable[[str], None]) -> None:
    said = answer(state="missing", version=None)
    say(f"yield {{}}, {said.encode()!r}")
    profile = probe_this_machine(Progress())
    assert (profile.label, profile.devices) == ("this machine (torch is not installed)", ("cpu",))


@pytest.mark.wide
@pytest.mark.torch
@pytest.mark.slow
def test_torch_itself_is_asked() -> None:
    torch = pytest.importorskip("torch")
    profile = probe_this_machine(Progress())
    assert profile.torch_version == torch.__version__
    assert profile.evidence is not None
    assert profile.evidence.torch.state == "imported"
    assert (profile.memory_nbytes or 0) > 1 << 28
    assert profile.count("cuda") == (torch.cuda.device_count() if torch.cuda.is_available() else 0)
