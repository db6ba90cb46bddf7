from __future__ import annotations

import platform
import sys
import sysconfig
from pathlib import Path

import pytest

from inspector.child import Worker, worker_script
from inspector.progress import Progress
from inspector.worker.environment import answer


def test_torch_is_found_by_its_metadata_or_by_its_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A build that stands on the path without metadata is a torch as well."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), sysconfig.get_path("stdlib")])
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert list(answer({}, iter(()))) == [({"version": platform.python_version(), "torch": None}, b"")]
    (tmp_path / "torch.py").write_text("raise SystemExit", encoding="utf-8")
    assert next(answer({}, iter(())))[0]["torch"] == ""
    (tmp_path / "torch-2.9.dist-info").mkdir()
    (tmp_path / "torch-2.9.dist-info/METADATA").write_text("Name: torch\nVersion: 2.9\n", encoding="utf-8")
    assert next(answer({}, iter(())))[0]["torch"] == "2.9"


def test_a_child_answers_too() -> None:
    with Worker() as worker:
        head = worker.ask(worker_script("environment"), {}, progress=Progress(), timeout_s=60).head
    assert head["version"] == platform.python_version()
