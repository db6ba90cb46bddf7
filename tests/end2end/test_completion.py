"""What three shells offer at Tab, each in a pseudo-terminal, having read the script as its users do."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.end2end.shells import STARTS, Shell

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=sorted(STARTS))
def shell(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shell]:
    """One of the shells, in a folder with files that have names as people give them."""
    program = shutil.which(request.param)
    if program is None:
        pytest.skip(f"{request.param} is not installed")
    words = [sys.executable, "-P", "-m", "inspector", "completion", request.param]
    said = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    script, folder = tmp_path / "script", tmp_path / "files"
    script.write_text(said.stdout, encoding="utf-8")
    (folder / "runs").mkdir(parents=True)
    for name in ("best.pth", "my last.pth"):
        (folder / name).touch()
    with Shell(program, script, folder) as started:
        yield started


def test_commands_options_values_and_files_are_offered(shell: Shell) -> None:
    offered = {
        "checkpoint-inspector ": ("show", "check", "remap", "export", "completion", "help"),
        "ckpti scr": ("screenshot",),
        "checkpoint-inspector be": ("best.pth",),
        "ckpti --": ("--demo", "--version"),
        "ckpti best.pth ": ("runs",),
        "ckpti remap --hid": ("--hidden-devices",),
        "ckpti export --": ("--ema", "--cast", "--strip-prefix"),
        "ckpti remap --verify ": ("quick", "full", "torch", "none"),
        "ckpti remap --verify=fu": ("full",),
        "ckpti remap best.pth -o ": ("best.pth", "my", "runs"),
        "ckpti remap --into ": ("runs/",),
        "ckpti show my": ("my\\ last.pth",),
        "ckpti check best.pth -t ": ("this", "xpu", "2xcuda"),
        "ckpti check best.pth --target be": ("best.pth",),  # the profile of a machine
        "ckpti snippet --style transf": ("transformers",),
        "ckpti desktop ": ("install", "remove"),
        "ckpti help compl": ("completion",),
        "ckpti schema ": ("diff", "export", "verify"),
        "ckpti run --target ": ("this", "mps"),
        "ckpti run -- cat be": ("best.pth",),
        "ckpti run -- unam": ("uname",),
    }
    for line, expected in offered.items():
        shell.press_tab(line, *expected)


def test_nothing_else_is_offered(shell: Shell) -> None:
    assert "--only" not in shell.press_tab("ckpti remap --", "--verify")
    assert "best.pth" not in shell.press_tab("ckpti desktop ", "install", "remove")
    assert "best.pth" not in shell.press_tab("ckpti remap --into ", "runs")
    assert "--map" not in shell.press_tab("ckpti show --", "--filter")
    assert "install" not in shell.press_tab("ckpti target --", "--probe-script")
