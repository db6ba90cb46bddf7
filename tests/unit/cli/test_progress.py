from __future__ import annotations

import io
import sys
from collections.abc import Callable

import pytest

from inspector.cli import progress as module
from inspector.cli.common import bars, complain, hide_bars, say
from inspector.cli.progress import TerminalProgress
from inspector.errors import CancelledError


class Terminal(io.StringIO):
    encoding = "utf-8"

    def isatty(self) -> bool:
        return True


@pytest.fixture
def open_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Terminal]:
    """Opens a terminal on which every step shows; pytest puts its own stderr back before each test."""
    monkeypatch.setattr(module, "_AFTER_S", 0)
    monkeypatch.setattr(module, "_EVERY_S", 0)
    monkeypatch.setenv("COLUMNS", "80")

    def open_it() -> Terminal:
        monkeypatch.setattr(sys, "stderr", Terminal())
        return sys.stderr

    return open_it


def shown_last(terminal: Terminal) -> str:
    """What stands on the terminal's only line."""
    return terminal.getvalue().rpartition("\x1b[2K")[2].strip()


def test_a_terminal_sees_how_far_it_is_and_then_nothing(open_terminal) -> None:
    terminal = open_terminal()
    progress = TerminalProgress("never")
    progress.start("reading values", 2000)
    progress.advance(500)
    assert "Reading values" in shown_last(terminal)
    assert "500 B of 2.0 KB" in shown_last(terminal)
    hide_bars()
    assert shown_last(terminal) == ""
    hide_bars()
    progress.advance(500)
    assert len(bars) == 1
    hide_bars()
    progress._hide()


@pytest.mark.parametrize("write", [lambda: say("a\n"), lambda: complain("a")])
def test_nothing_is_written_beside_a_bar(open_terminal, write) -> None:
    open_terminal()
    progress = TerminalProgress("never")
    progress.start("reading values", 2000)
    write()
    assert progress._bar is None


def test_a_short_moment_shows_no_bar(open_terminal, monkeypatch) -> None:
    monkeypatch.setattr(module, "_AFTER_S", 1000)
    terminal = open_terminal()
    progress = TerminalProgress()
    progress.start("reading values", 2000)
    assert (bars, terminal.getvalue()) == ([], "")


def test_a_pager_is_not_written_into(open_terminal, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    progress = TerminalProgress()
    progress.start("reading values", 2000)
    assert (bars, sys.stderr.getvalue()) == ([], "")


def test_it_can_be_stopped(open_terminal) -> None:
    open_terminal()
    progress = TerminalProgress("never")
    progress.start("reading values", 2000)
    progress.cancel()
    with pytest.raises(CancelledError):
        progress.advance()
    hide_bars()
