"""The set-up that `make` does: once for the same pins, and again without a network."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

import inspector

ROOT = Path(__file__).parents[2]
PINS = "packaging/constraints.txt"
SETUP = "packaging/linux/setup.sh"


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout without anything built, where the set-up notes that it ran."""
    (tmp_path / SETUP).parent.mkdir(parents=True)
    for name in ("Makefile", "pyproject.toml", PINS):
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (tmp_path / SETUP).write_text("#!/bin/sh\necho $1 >> ran.txt\n")
    for script in (".venv/bin/python", SETUP):
        (tmp_path / script).chmod(0o755)
    return tmp_path


def make(folder: Path, target: str) -> None:
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("MAKE", "MFLAGS"))
    }
    subprocess.run(["make", target], cwd=folder, env=environment, check=True, capture_output=True)


def test_set_up_runs_once_for_the_same_pins(checkout: Path) -> None:
    for _ in range(2):
        make(checkout, "setup")
    assert (checkout / "ran.txt").read_text() == "test\n"
    (checkout / PINS).write_text("")
    make(checkout, "setup")
    assert (checkout / "ran.txt").read_text() == "test\ntest\n"


def test_pins_can_be_installed_with_the_oldest_python_that_is_promised() -> None:
    """Debian 12 has 3.11.2, and a newer 3.11 takes releases that it must refuse."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    oldest = settings["project"]["requires-python"].removeprefix(">=") + ".0"
    pins = (line.split("==") for line in (ROOT / PINS).read_text().splitlines()[1:])
    wanted = {name.lower().replace("_", "-"): version for name, version in pins}
    refused = [
        f"{one.name} {one.version}: {one.metadata['Requires-Python']}"
        for one in metadata.distributions()
        if wanted.get(one.name.lower().replace("_", "-")) == one.version
        and not SpecifierSet(one.metadata.get("Requires-Python") or "").contains(oldest)
    ]
    assert refused == []


@pytest.mark.torch
@pytest.mark.wide
@pytest.mark.slow
def test_pins_are_written_in_a_clean_checkout(checkout: Path) -> None:
    before = (checkout / PINS).read_text().splitlines()
    make(checkout, "pins")
    after = (checkout / PINS).read_text().splitlines()
    assert after[0] == before[0]
    assert {line.partition("==")[0] for line in before[1:]} <= {line.partition("==")[0] for line in after[1:]}
    assert not [line for line in after[1:] if line.count("==") != 1 or "+" in line]


@pytest.mark.wide
@pytest.mark.slow
def test_project_is_installed_again_without_a_network(tmp_path: Path) -> None:
    """The backend needs nothing but itself; what pip fetches for an isolated build is not there."""
    without = "import sys; sys.modules['editables'] = None"
    code = f"{without}; import hatchling.build; hatchling.build.build_editable(sys.argv[1])"
    subprocess.run([sys.executable, "-c", code, tmp_path], cwd=ROOT, check=True, capture_output=True)
    assert len([*tmp_path.glob("*.whl")]) == 1


def test_the_version_has_its_date_among_the_changes() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[0] == "## Unreleased"
    dated = re.fullmatch(rf"## {re.escape(inspector.__version__)} - (\d{{4}}-\d\d-\d\d)", headings[1])
    assert dated is not None
    shop = (ROOT / "resources/desktop/checkpoint-inspector.metainfo.xml").read_text(encoding="utf-8")
    assert f'<release version="{inspector.__version__}" date="{dated[1]}"/>' in shop


def test_the_command_line_needs_no_qt() -> None:
    """`tests/unit/cli/test_adversities.py` runs the commands with no more than this."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["dependencies"] == ["numpy"]
    window = {one.partition(">")[0] for one in project["optional-dependencies"]["gui"]}
    assert window == {"pyqtgraph", "PySide6-Essentials"}
