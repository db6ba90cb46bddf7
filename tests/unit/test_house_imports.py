"""The layers hold: what the contracts of pyproject.toml forbid is found; the command line starts light."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LAYERS = "Imports go one way only"
QT = "Qt and pyqtgraph only in gui"
TORCH = "torch only in worker"
NUMPY = "numpy only in gui and worker"
PICKLE = "Nothing that runs what is in a file"
WORKER = "The worker runs in a child process, nobody imports it"

# (module, line to plant, contracts that must break)
PLANTS = [
    ("model/planted.py", "import torch", {TORCH}),
    ("session/planted.py", "from inspector.gui import planted", {LAYERS}),
    ("report/planted.py", "def late():\n    import numpy.linalg", {NUMPY}),
    ("remap/planted.py", "from PySide6.QtCore import QObject", {QT}),
    ("worker/planted.py", "import pyqtgraph", {QT}),
    ("containers/planted.py", "import pickle", {PICKLE}),
    ("pickles/planted.py", "import pickletools", {PICKLE}),
    ("target/planted.py", "import marshal", {PICKLE}),
    ("worker/planted.py", "from inspector.session import screen", {LAYERS}),
    ("session/planted.py", "from inspector.worker import planted", {WORKER}),
    ("pickles/planted.py", "from inspector.containers import planted", {LAYERS}),
    ("cli/planted.py", "from inspector.gui import app", {LAYERS}),
    ("gui/planted.py", "from inspector.cli import commands", {LAYERS}),
    ("snippet/planted.py", "from inspector.remap import planted", {LAYERS}),
    ("errors.py", "import inspector.units", {LAYERS}),
    ("helpers/__init__.py", "", {LAYERS}),
]


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [Path(sys.executable).with_name("lint-imports"), "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, check=False)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package with a module to be imported in each folder."""
    folder = tmp_path_factory.mktemp("planted")
    shutil.copytree(ROOT / "inspector", folder / "inspector", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", folder)
    for package in (folder / "inspector").iterdir():
        if package.is_dir():
            (package / "planted.py").touch()
    return folder


def test_contracts_hold(copy: Path) -> None:
    answer = lint_imports(copy)
    assert answer.returncode == 0, answer.stdout
    for contract in (LAYERS, QT, TORCH, NUMPY, PICKLE, WORKER):
        assert f"{contract} KEPT" in answer.stdout


@pytest.mark.parametrize(("module", "line", "contracts"), PLANTS, ids=lambda value: str(value)[:40])
def test_planted_violation_is_found(copy: Path, module: str, line: str, contracts: set[str]) -> None:
    file = copy / "inspector" / module
    before = file.read_bytes() if file.exists() else None
    file.parent.mkdir(exist_ok=True)
    file.write_bytes((before or b"") + f"\n{line}\n".encode())
    try:
        answer = lint_imports(copy)
    finally:
        file.unlink() if before is None else file.write_bytes(before)
        if not any(file.parent.iterdir()):
            file.parent.rmdir()
    assert answer.returncode == 1
    broken = set(re.findall(r"^(.+) BROKEN\b", answer.stdout, re.MULTILINE))
    assert broken == contracts, answer.stdout


@pytest.mark.parametrize("module", ["inspector", "inspector.cli"])
def test_importing_loads_nothing_heavy_and_nothing_that_runs_pickles(module: str) -> None:
    heavy = {"PySide6", "shiboken6", "pyqtgraph", "numpy", "torch", "pickle", "_pickle", "pickletools"}
    code = f"import sys, {module}; print(*{heavy} & set(sys.modules))"
    answer = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60, check=True
    )
    assert answer.stdout.split() == []
