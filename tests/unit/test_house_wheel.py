"""What an installation gets: the package, its data, and the command."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.wide
@pytest.mark.slow
def test_wheel_holds_the_package_its_resources_and_the_command(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, capture_output=True, timeout=300, check=True)
    (wheel,) = tmp_path.glob("checkpoint_inspector-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
        (metadata,) = (archive.read(n).decode() for n in names if n.endswith("METADATA"))
        (entry_points,) = (archive.read(n).decode() for n in names if n.endswith("entry_points.txt"))
    for file in (ROOT / "resources").rglob("*"):
        if file.is_file() and file.parent.name != "__pycache__":
            assert f"inspector/_resources/{file.relative_to(ROOT / 'resources').as_posix()}" in names
    modules = {path.relative_to(ROOT).as_posix() for path in (ROOT / "inspector").rglob("*.py")}
    assert modules | {"inspector/py.typed"} <= names
    assert not [name for name in names if name.startswith(("tests/", "benchmarks/", "packaging/"))]
    assert "checkpoint-inspector = inspector.__main__:start" in entry_points
    description = metadata.split("\n\n", 1)[1]
    assert "# Checkpoint Inspector" in description
    assert not [part for part in ("](", "![", "<!--") if part in description], "links to what a wheel has not"
