"""`python -P -m inspector` is the command, and so is the file by its path."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

import inspector

ROOT = Path(inspector.__file__).resolve().parents[1]
MAIN = ROOT / "inspector" / "__main__.py"


@pytest.fixture
def flags(monkeypatch: pytest.MonkeyPatch):
    """Let it be started with `-P` or without, on a path of the test's own."""

    def start(*path: str, safe: bool) -> None:
        names = [name for name in dir(sys.flags) if not name.startswith(("_", "n_"))]
        flags = {name: getattr(sys.flags, name) for name in names} | {"safe_path": safe}
        monkeypatch.setattr(sys, "flags", SimpleNamespace(**flags))
        monkeypatch.setattr(sys, "path", list(path))
        monkeypatch.setattr(sys, "argv", ["inspector", "--version"])

    return start


def test_runs_the_command(flags, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    flags(*sys.path, safe=True)
    monkeypatch.delitem(sys.modules, "inspector.__main__", raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module("inspector", run_name="__main__")
    assert ended.value.code == 0
    assert "checkpoint-inspector" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("path", "safe", "after"),
    [
        (["/folder", str(ROOT), "/lib"], False, [str(ROOT), "/lib"]),
        ([str(ROOT), "/lib"], True, [str(ROOT), "/lib"]),
        (["/folder", "/lib"], False, [str(ROOT), "/lib"]),
        (["/lib"], True, [str(ROOT), "/lib"]),
    ],
)
def test_the_folder_where_it_was_started_leaves_the_path(flags, path, safe, after) -> None:
    main = importlib.import_module("inspector.__main__")
    flags(*path, safe=safe)
    with pytest.raises(SystemExit):
        main.start()
    assert sys.path == after


def test_a_checkout_that_is_not_installed_is_started_by_its_path(tmp_path: Path) -> None:
    command = [sys.executable, "-S", "-P", str(MAIN), "--version"]
    said = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert said.stdout.startswith("checkpoint-inspector ")


def test_runs_nothing_when_imported() -> None:
    sys.modules.pop("inspector.__main__", None)
    assert callable(importlib.import_module("inspector.__main__").start)
