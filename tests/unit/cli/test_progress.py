from __future__ import annotations

import io
import sys

import pytest

from inspector.cli import progress as module
from inspector.cli.common import hide_bars
from inspector.cli.progress import TerminalProgress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_how_far_it_is_and_then_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setattr(module, "_EVERY_S", 0)
    progress = TerminalProgress()
    progress.advance(5)
    progress.start("reading values", 2000)
    progress.advance(500)
    hide_bars()
    progress.clear()
    assert sys.stderr.getvalue().split("\r\x1b[K") == [
        "",
        "reading values: 0%, 0 B of 2.0 KB",
        "reading values: 25%, 500 B of 2.0 KB",
        "",
    ]


def test_nobody_else_sees_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress = TerminalProgress("reading")
    progress.start("reading values", 2000)
    progress.advance(500)
    progress.clear()
    assert sys.stderr.getvalue() == ""
