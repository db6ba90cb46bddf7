"""What lies beside a checkpoint does not run: every command, the window and the probe in its folder."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from inspector.child import Worker, find_program
from inspector.progress import Progress
from inspector.resources import PROBE, demo_path, resource_path
from tests.hostile.poison import poison, poisoned_environment

pytestmark = pytest.mark.torch  # a poisoned torch.py among what lies there
ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "inspector"
SCRIPT = Path(__file__).with_name("in_poison.py")
COMMANDS: tuple[tuple[str, int], ...] = (
    ("show best.pth", 0),
    ("show --json best.pth", 0),
    ("check --target cpu best.pth", 1),
    ("target", 0),
    ("target --probe-script", 0),
    ("snippet best.pth", 0),
    ("remap best.pth -o copy.pth --map *=cpu --receipt receipt.json", 0),
    ("verify copy.pth --against best.pth --map *=cpu", 0),
    ("export best.pth -o weights.pth --compact", 0),
    ("export best.pth -o weights.safetensors", 0),
    ("remap other.pth --in-place --map *=cpu", 0),
    ("remap other.pth --undo", 0),
    ("recover cut.pth -o recovered.pth", 0),
    ("screenshot best.pth picture.png", 0),
    ("desktop install", 0),
    ("desktop remove", 0),
)
WINDOW = ["open", "probe", "check", "draft", "cast", "draft", "torch", "second launch"]


@pytest.fixture
def marks(tmp_path: Path) -> Path:
    return tmp_path / "marks.txt"


@pytest.fixture
def folder(tmp_path: Path, marks: Path) -> Path:
    """A checkpoint among what others put there."""
    folder = tmp_path / "downloads"
    folder.mkdir()
    for name in ("best.pth", "other.pth", "third.pth", "cut.pth"):
        shutil.copy(demo_path(), folder / name)
    with (folder / "cut.pth").open("r+b") as file:
        file.truncate(file.seek(0, os.SEEK_END) - 400)
    poison(folder, marks)
    return folder


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    runtime = tmp_path / "runtime"
    runtime.mkdir(mode=0o700)
    kept = {name: value for name, value in poisoned_environment().items() if not name.startswith("COV")}
    return {**kept, "PYTHONPATH": str(ROOT), "QT_QPA_PLATFORM": "offscreen", "XDG_RUNTIME_DIR": str(runtime)}


def ran(marks: Path) -> str:
    return marks.read_text(encoding="utf-8") if marks.exists() else ""


def test_the_traps_work(folder: Path, marks: Path, environment: dict[str, str]) -> None:
    """Without care everything of it runs."""
    subprocess.run([sys.executable, "-m", "json.tool", "--help"], cwd=folder, env=environment, check=False)
    subprocess.run(["nvidia-smi"], cwd=folder, env=environment, check=True)
    assert ran(marks).splitlines()[-1] == "nvidia-smi was started"
    assert "importlib was imported\n" in ran(marks)


@pytest.mark.torch
@pytest.mark.slow
def test_no_command_and_no_window_runs_what_lies_there(
    folder: Path, marks: Path, environment: dict[str, str]
) -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, SCRIPT, "best.pth", "third.pth"],
        input=json.dumps([command.split() for command, _ in COMMANDS]),
        capture_output=True,
        text=True,
        cwd=folder,
        env=environment,
        check=False,
    )
    assert ran(marks) == ""
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout.splitlines()[-1])
    codes = dict(zip((command for command, _ in COMMANDS), answer["codes"], strict=True))
    assert codes == dict(COMMANDS), done.stderr
    assert answer["done"] == WINDOW, done.stderr
    assert {"cast.pt", "checked.pt"} <= {path.name for path in folder.iterdir()}


PYTHON = [sys.executable, "-S"]  # without site-packages: then torch, too, could only come from the folder
STARTS = {
    "the installed command": [Path(sys.executable).with_name("checkpoint-inspector"), "show", "best.pth"],
    "the module": [*PYTHON, "-P", "-m", "inspector", "show", "best.pth"],
    "the package's own file": [*PYTHON, "-P", PACKAGE / "__main__.py", "show", "best.pth"],
    "the file without -P": [*PYTHON, PACKAGE / "__main__.py", "show", "best.pth"],
    "the saved probe": [*PYTHON, "checkpoint_inspector_probe.py"],
    "the piped probe": [*PYTHON, "-"],
}


@pytest.mark.parametrize("start", STARTS)
def test_no_way_to_start_runs_what_lies_there(
    folder: Path, marks: Path, environment: dict[str, str], start: str
) -> None:
    script = resource_path(PROBE).read_bytes()
    (folder / Path(PROBE).name).write_bytes(script)
    done = subprocess.run(
        STARTS[start], input=script, capture_output=True, cwd=folder, env=environment, check=False
    )
    assert ran(marks) == ""
    assert done.returncode == 0, done.stderr
    assert done.stdout


@pytest.mark.parametrize("start", ["the installed command", "the module", "the file without -P"])
def test_a_search_path_that_names_the_folder_counts_no_longer_than_python_itself_starts(
    folder: Path, marks: Path, environment: dict[str, str], start: str
) -> None:
    """`PYTHONPATH=.`: what is imported before our first line is not there; all else is."""
    path = os.pathsep.join([".", str(ROOT)])
    asked = [sys.executable, "-P", "-c", "import inspector, re, runpy, sys; print(*sys.modules)"]
    taken = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()
    before = {name.partition(".")[0] for name in taken} | {"inspector", "sitecustomize", "usercustomize"}
    shutil.rmtree(folder / "inspector")
    for module in folder.glob("*.py"):
        if module.stem in before:
            module.unlink()
    assert {"argparse", "json", "pickle", "pathlib"} <= {module.stem for module in folder.glob("*.py")}
    done = subprocess.run(
        STARTS[start], capture_output=True, cwd=folder, env={**environment, "PYTHONPATH": path}, check=False
    )
    assert ran(marks) == ""
    assert done.returncode == 0, done.stderr


WHERE = """
from importlib.util import find_spec
def answer(head, blocks):
    yield {name: find_spec(name).origin for name in ("json", "numpy", "torch")}, b""
"""


def test_children_trust_no_relative_entry_of_a_search_path(
    tmp_path: Path, folder: Path, marks: Path, environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `export PYTHONPATH=$PYTHONPATH:/my/code` makes one where the variable was empty."""
    monkeypatch.chdir(folder)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", f"{os.pathsep}.{os.pathsep}{ROOT}")
    script = tmp_path / "script.py"
    script.write_text(WHERE, encoding="ascii")
    with Worker() as worker:
        places = worker.ask(script, {}, progress=Progress(), timeout_s=60).head
    assert {name: Path(place).parents[1] for name, place in places.items()} == {
        "json": Path(json.__file__).parents[1],
        "numpy": Path(find_spec("numpy").origin).parents[1],
        "torch": Path(find_spec("torch").origin).parents[1],
    }
    assert find_program("nvidia-smi") is None
    assert find_program("sh") not in {None, str(folder / "sh")}
    assert ran(marks) == ""
