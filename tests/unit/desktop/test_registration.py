"""Which desktop is registered with, and how the program finds the command that starts it again."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import inspector
from inspector.desktop.freedesktop.registration import FreedesktopRegistration
from inspector.desktop.macos import MacRegistration
from inspector.desktop.registration import find_registration, find_running_command
from inspector.desktop.windows import WindowsRegistration
from tests.unit.desktop.fake_winreg import FakeWinreg

PACKAGE = Path(inspector.__file__).resolve().parent


def test_each_platform_has_a_registration_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "winreg", FakeWinreg())
    for platform, kind in (
        ("linux", FreedesktopRegistration),
        ("freebsd14", FreedesktopRegistration),
        ("win32", WindowsRegistration),
        ("darwin", MacRegistration),
    ):
        monkeypatch.setattr(sys, "platform", platform)
        assert isinstance(find_registration(), kind), platform


def make_program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("#!/bin/sh\n", encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def interpreter(tmp_path, monkeypatch) -> Path:
    """Pretend to run with an interpreter that has no script of ours beside it."""
    path = make_program(tmp_path / "venv" / "bin" / "python")
    monkeypatch.setattr(sys, "executable", str(path))
    monkeypatch.setattr(sys, "argv", ["/somewhere/pytest"])
    return path


def test_a_bundle_starts_itself(monkeypatch, interpreter):
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert find_running_command() == [str(interpreter)]


def test_nothing_of_windows_opens_a_console(monkeypatch, interpreter):
    main = str(PACKAGE / "__main__.py")
    monkeypatch.setattr(sys, "platform", "win32")
    assert find_running_command() == [str(interpreter), "-P", main]
    windowed = make_program(interpreter.parent / "pythonw.exe")
    assert find_running_command() == [str(windowed), "-P", main]
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    assert find_running_command() == [str(interpreter)]
    windowed = make_program(interpreter.parent / "checkpoint-inspector-window.exe")
    assert find_running_command() == [str(windowed)]


def test_the_script_that_runs_is_started_again(monkeypatch, interpreter, tmp_path):
    script = make_program(tmp_path / "bin" / "checkpoint-inspector")
    monkeypatch.setattr(sys, "argv", [str(script), "desktop", "install"])
    assert find_running_command() == [str(script)]


def test_the_script_beside_the_interpreter_is_found(interpreter):
    script = make_program(interpreter.parent / "checkpoint-inspector")
    assert find_running_command() == [str(script)]


def test_without_a_script_the_package_is_started_by_its_path(interpreter):
    """Nothing is looked up in the folder where a file manager starts it."""
    assert find_running_command() == [str(interpreter), "-P", str(PACKAGE / "__main__.py")]


def test_a_script_of_that_name_is_not_looked_for_on_the_path(monkeypatch, interpreter, tmp_path):
    script = make_program(tmp_path / "elsewhere" / "checkpoint-inspector")
    monkeypatch.setenv("PATH", str(script.parent))
    monkeypatch.setattr(sys, "argv", ["checkpoint-inspector"])
    monkeypatch.chdir(tmp_path)
    assert find_running_command()[0] == str(interpreter)
