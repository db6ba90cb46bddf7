from __future__ import annotations

import io
import os
import sys

import pytest

from inspector.cli.terminal import writer as module
from inspector.cli.terminal.writer import Pager, can_page, pager_command


@pytest.fixture(autouse=True)
def _there(monkeypatch) -> None:
    """Every program is there, but the one that is called `missing`."""
    monkeypatch.setattr(module.shutil, "which", lambda name: None if "missing" in name else name)
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", "bin", "/bin"]))
    for name in ("PAGER", "TERM", "LESS"):
        monkeypatch.delenv(name, raising=False)


class Process:
    """A pager that runs; its user is interrupted once, and leaves when it has read as much as it wants."""

    def __init__(self, words: tuple[str, ...], **options: object) -> None:
        if words == ("fails",):
            raise PermissionError
        self.options = options
        self.waits = 0
        self.stdin = Pipe(is_left=words == ("left",))

    def wait(self) -> None:
        self.waits += 1
        if self.waits == 1:
            raise KeyboardInterrupt


class Pipe(io.StringIO):
    def __init__(self, *, is_left: bool) -> None:
        super().__init__()
        self.is_left = is_left
        self.read = ""

    def flush(self) -> None:
        if self.is_left:
            raise BrokenPipeError

    def close(self) -> None:
        if not self.closed:
            self.read = self.getvalue()
        super().close()


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (None, ("/bin/less", "-FRX")),
        ("less -S", ("/bin/less", "-S", "-R")),
        ("most -w", ("/bin/most", "-w")),
        ("/opt/less", ("/opt/less", "-R")),
        ("/opt/missing", ()),
        ("", ()),
        ("cat", ()),
        ("missing -x", ()),
        ("'", ("/bin/less", "-FRX")),
    ],
)
def test_the_pager_is_the_users(monkeypatch, chosen, words) -> None:
    if chosen is not None:
        monkeypatch.setenv("PAGER", chosen)
    assert pager_command() == words


def test_there_may_be_none(monkeypatch) -> None:
    monkeypatch.setattr(module.shutil, "which", lambda _name: None)
    assert pager_command() == ()


def test_a_terminal_that_cannot_go_back_is_not_paged(monkeypatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    assert pager_command() == ()


def test_messages_wait_until_the_pager_is_gone(monkeypatch, capsys) -> None:
    monkeypatch.setattr(module.subprocess, "Popen", Process)
    pager = Pager(("less",), sys.stdout)
    process = pager._process
    assert pager.write("a\n")
    sys.stderr.write("late\n")
    assert capsys.readouterr().err == ""
    pager.close()
    assert process.stdin.read == "a\n"
    assert process.waits == 2
    assert process.options["env"]["LESS"] == "FRX"
    assert capsys.readouterr().err == "late\n"


def test_a_pager_that_its_user_leaves_is_no_error(monkeypatch, capsys) -> None:
    monkeypatch.setattr(module.subprocess, "Popen", Process)
    pager = Pager(("left",), sys.stdout)
    assert not pager.write("a\n")
    assert not pager.write("b\n")
    pager.close()
    assert capsys.readouterr() == ("", "")


def test_what_a_pager_that_fails_was_to_show_is_written(monkeypatch, capsys) -> None:
    monkeypatch.setattr(module.subprocess, "Popen", Process)
    pager = Pager(("fails",), sys.stdout)
    assert pager.write("a\n")
    pager.close()
    assert capsys.readouterr() == ("a\n", "")


def test_somebody_must_be_there_to_turn_pages(monkeypatch) -> None:
    first, second = os.openpty()
    with os.fdopen(first), os.fdopen(second, "w") as terminal:
        for stdin, stdout, answer in (
            (terminal, terminal, True),
            (io.StringIO(), terminal, False),
            (terminal, io.StringIO(), False),
            (None, terminal, False),
        ):
            monkeypatch.setattr(sys, "stdin", stdin)
            monkeypatch.setattr(sys, "stdout", stdout)
            answered = can_page()
            monkeypatch.undo()
            assert answered == answer
