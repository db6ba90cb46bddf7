"""Every command, line by line, where no torch can be imported."""

from __future__ import annotations

import os
import subprocess
import sysconfig
import venv
from pathlib import Path

from inspector.cli.commands import COMMANDS
from tests.docs.running import PROGRAM
from tests.docs.samples import write_samples

NEEDS_TORCH = f"{PROGRAM} run -- python train.py"
ANSWERS_NO = {
    f"{PROGRAM} check best.pth --target cpu",
    f"{PROGRAM} check best.pth --error-file traceback.txt",
    f"{PROGRAM} check best.pth --script train.py",
    f"{PROGRAM} diff epoch-1.pth epoch-2.pth --compare numbers",
}
"""This machine has no GPU, and the checkpoint was saved on two; the second epoch differs from the first."""


LINES = """
show --json best.pth
check best.pth --target cuda:1
check best.pth --error-file traceback.txt
check best.pth --script train.py
remap best.pth -o gpu.pth --map '*=cuda:0'
export best.pth -o weights.safetensors
remap best.pth --in-place
verify gpu.pth --against best.pth --map '*=cuda:0'
diff epoch-1.pth epoch-2.pth --compare numbers
stats best.pth --scan
recover half.pth -o rest.pth
snippet best.pth --target cuda
run -- python train.py
target
target --probe-script > probe.py
screenshot best.pth window.png
schema show
completion bash
desktop install
help remap
"""


def test_every_command_works_without_torch(tmp_path: Path) -> None:
    given = [f"{PROGRAM} {line}" for line in LINES.strip().splitlines()]
    assert {line.split()[1] for line in given} == set(COMMANDS)
    folder = tmp_path / "here"
    environment = _without_torch(tmp_path)
    folder.mkdir()
    write_samples(folder)
    wrong = {}
    for line in given:
        done = subprocess.run(
            ["bash", "-c", line], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        expected = {4} if line == NEEDS_TORCH else {1} if line in ANSWERS_NO else {0}
        if done.returncode not in expected or "Traceback" in done.stderr:
            wrong[line] = (done.returncode, done.stdout[-500:], done.stderr[-500:])
        if line == NEEDS_TORCH:
            assert f"there is no torch in this Python: {tmp_path / 'venv/bin/python'}" in done.stderr
    assert wrong == {}
    assert (folder / "window.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "probe.py").stat().st_size > 1000


def _without_torch(tmp_path: Path) -> dict[str, str]:
    """Return an environment whose Python has all that this one has, but torch."""
    venv.create(tmp_path / "venv", symlinks=True)
    for package in Path(sysconfig.get_path("purelib")).iterdir():
        if not package.name.startswith(("torch", "functorch")):
            (next(tmp_path.glob("venv/lib/python*/site-packages")) / package.name).symlink_to(package)
    program = tmp_path / "venv/bin" / PROGRAM
    program.write_text(f'#!/bin/sh\nexec "{tmp_path}/venv/bin/python" -m inspector "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    home = tmp_path / "home"
    home.mkdir()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "XDG_"))}
    return inherited | {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "VIRTUAL_ENV": str(tmp_path / "venv"),
        "HOME": str(home),
    }
