"""`python -m inspector` is the command."""

from __future__ import annotations

import importlib
import runpy
import sys

import pytest


def test_runs_the_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(sys, "argv", ["inspector", "--version"])
    monkeypatch.delitem(sys.modules, "inspector.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("inspector", run_name="__main__")
    assert ended.value.code == 0
    assert "checkpoint-inspector" in capsys.readouterr().out


def test_runs_nothing_when_imported() -> None:
    sys.modules.pop("inspector.__main__", None)
    assert importlib.import_module("inspector.__main__").main is importlib.import_module("inspector.cli").main
