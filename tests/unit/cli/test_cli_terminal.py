"""The command on a terminal of its own: a pseudo-terminal with a pager, a bar and Ctrl+C."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.resources import demo_path
from tests.unit.cli.test_cli_process import ROOT, environment

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no pseudo-terminals")
ORDERS = re.compile(r"\x1b\[[0-9;]*[mKA]|\r")
SLOW = """
import sys, time
from inspector import cli
from inspector.cli.commands import show
def slow(path, options):
    progress = options.display.progress()
    progress.start("copying", 1_000_000_000)
    while True:
        progress.advance(1_000_000)
        time.sleep(0.01)
show._page = slow
raise SystemExit(cli.main(["show", "a"]))
"""

# A busy machine may take so long for the demo that a bar appears before the pager.
SWIFT = """
from inspector.cli import main, progress
progress._AFTER_S = 1000
raise SystemExit(main())
"""


class Terminal:
    """A pseudo-terminal with a command in it, as its only user sees it."""

    def __init__(self, command: list[str], **env: str) -> None:
        self.ours, theirs = os.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            command,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env=environment({"TERM": "xterm", "COLUMNS": "80", "LINES": "24", "LC_ALL": "C.UTF-8", **env}),
        )
        os.close(theirs)

    def read(self, until: str | None = None) -> None:
        """Read what is shown, until something is; else until the command is gone."""
        while until is None or until not in self.text:
            assert select.select([self.ours], [], [], 200)[0], self.text
            try:
                part = os.read(self.ours, 65536)
            except OSError:
                break
            self.text += part.decode()

    def end(self) -> int:
        self.read()
        os.close(self.ours)
        return self.process.wait(200)


@pytest.mark.wide
@pytest.mark.usefixtures("heard")
def test_ctrl_c_takes_the_bar_away() -> None:
    terminal = Terminal([sys.executable, "-c", SLOW])
    terminal.read("left")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "Copying" in terminal.text
    assert "Traceback" not in terminal.text
    assert ORDERS.sub("", terminal.text.rpartition("\x1b[2K")[2]).strip() == ""


@pytest.mark.wide
def test_a_long_answer_is_paged_with_the_verdict_first(tmp_path: Path) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!{sys.executable}\nimport sys\nprint('PAGED', *sys.stdin.read().split('\\n')[:3])\n")
    pager.chmod(0o755)
    command = [sys.executable, "-c", SWIFT, "show", str(demo_path())]
    terminal = Terminal(command, PAGER=str(pager))
    assert terminal.end() == 0
    shown = ORDERS.sub("", terminal.text)
    assert shown.startswith("PAGED ")
    assert "safe: weights only" in shown
    assert shown.count("\n") == 1
