from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtGui import QDesktopServices

from inspector.gui.widgets import reveal

PATH = Path("/runs/best.cpu.pth")


@pytest.fixture
def started(monkeypatch) -> list[list[str]]:
    commands = []
    monkeypatch.setattr(reveal.subprocess, "Popen", lambda command, cwd: commands.append(command))
    monkeypatch.setattr(reveal, "find_program", lambda name: f"/bin/{name}")
    return commands


@pytest.mark.parametrize(("platform", "program"), [("win32", "explorer"), ("darwin", "open")])
def test_other_systems_have_a_program_for_it(monkeypatch, started, platform, program):
    monkeypatch.setattr(reveal.sys, "platform", platform)
    assert reveal.show_in_folder(PATH)
    assert started[0][0] == f"/bin/{program}"
    assert started[0][-1] == str(PATH)


def test_a_missing_program_is_no_drama(monkeypatch):
    def fail(_command: list[str], **_options: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(reveal.sys, "platform", "darwin")
    monkeypatch.setattr(reveal, "find_program", lambda name: None)
    assert not reveal.show_in_folder(PATH)
    monkeypatch.setattr(reveal, "find_program", lambda name: f"/bin/{name}")
    monkeypatch.setattr(reveal.subprocess, "Popen", fail)
    assert not reveal.show_in_folder(PATH)


def test_without_a_file_manager_the_folder_is_opened(qapp, monkeypatch):
    opened = []
    monkeypatch.setattr(reveal.sys, "platform", "linux")
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent")
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()) or True)
    assert reveal.show_in_folder(PATH)
    assert opened == [str(PATH.parent)]
