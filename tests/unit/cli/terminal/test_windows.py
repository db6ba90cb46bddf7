from __future__ import annotations

import ctypes
import io
from types import SimpleNamespace

import pytest

from inspector.cli.terminal import paint as windows
from inspector.cli.terminal.paint import look_of, obeys_codes


class Kernel:
    """Stands in for kernel32: a console, perhaps one of before Windows 10, or none."""

    def __init__(self, *, is_console: bool = True, is_old: bool = False) -> None:
        self.is_console = is_console
        self.is_old = is_old
        self.asked: list[tuple[int, int]] = []
        self.GetStdHandle, self.GetConsoleMode = self.get_handle, self.get_mode
        self.SetConsoleMode = self.set_mode

    def get_handle(self, number: int) -> int:
        return number

    def get_mode(self, handle: int, mode: object) -> int:
        mode._obj.value = 3
        return int(self.is_console)

    def set_mode(self, handle: int, mode: int) -> int:
        self.asked.append((handle, mode))
        return int(not self.is_old)


class Stream(io.StringIO):
    encoding = "utf-8"

    def fileno(self) -> int:
        return 2


@pytest.mark.parametrize(
    ("kernel", "answer"),
    [(Kernel(), True), (Kernel(is_old=True), False), (Kernel(is_console=False), True), (None, False)],
    ids=["console", "old console", "no console", "no library"],
)
def test_a_console_is_asked_to_take_codes(monkeypatch, kernel, answer) -> None:
    monkeypatch.setattr(windows, "IS_WINDOWS", True)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=kernel), raising=False)
    answered = obeys_codes(Stream()), look_of(Stream(), "always", {"WT_SESSION": "x"}).depth
    plain = look_of(Stream(), "never", {}).depth
    monkeypatch.undo()
    assert answered == (answer, "true" if answer else "none")
    assert plain == "none"
    assert kernel is None or kernel.asked == [(-12, 7)] * 2 * kernel.is_console


def test_a_stream_that_is_no_file_takes_none(monkeypatch) -> None:
    monkeypatch.setattr(windows, "IS_WINDOWS", True)
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(kernel32=Kernel()), raising=False)
    answered = obeys_codes(io.StringIO())
    monkeypatch.undo()
    assert not answered


def test_other_systems_are_not_asked(monkeypatch) -> None:
    monkeypatch.setattr(windows, "IS_WINDOWS", False)
    assert obeys_codes(io.StringIO())
