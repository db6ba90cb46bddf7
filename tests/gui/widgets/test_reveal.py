from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from PySide6.QtGui import QDesktopServices

from inspector.gui.dialogs.export import dialog as reveal

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


class FakeBus:
    """A session bus whose file manager answers when it is told to."""

    def __init__(self, monkeypatch) -> None:
        self.calls, self.answers, self.fails = [], [], False
        bus = self
        message = SimpleNamespace(setArguments=self.calls.append)

        def watcher(_call: object, _parent: object) -> SimpleNamespace:
            finished = SimpleNamespace(connect=bus.answers.append)
            return SimpleNamespace(
                finished=finished, isError=lambda: bus.fails, deleteLater=bus.answers.clear
            )

        connection = SimpleNamespace(isConnected=lambda: True, asyncCall=lambda call, timeout: call)
        fake = SimpleNamespace(
            QDBusConnection=SimpleNamespace(sessionBus=lambda: connection),
            QDBusMessage=SimpleNamespace(createMethodCall=lambda *_: message),
            QDBusPendingCallWatcher=watcher,
        )
        monkeypatch.setitem(sys.modules, "PySide6.QtDBus", fake)

    def answer(self, *, fails: bool) -> None:
        self.fails = fails
        self.answers[0]()


def test_the_file_manager_is_asked_and_not_waited_for(qapp, monkeypatch):
    opened, failed = [], []
    monkeypatch.setattr(reveal.sys, "platform", "linux")

    def open_folder(url) -> bool:
        opened.append(url.toLocalFile())
        return len(opened) < 2

    monkeypatch.setattr(QDesktopServices, "openUrl", open_folder)
    bus = FakeBus(monkeypatch)
    strange = Path("/runs/b\udcffst.pth")
    assert reveal.show_in_folder(strange, lambda: failed.append(1))
    assert bus.calls == [[["file:///runs/b%FFst.pth"], ""]]
    bus.answer(fails=False)
    assert opened == []
    for count in (1, 2):  # the folder is opened, and the second time nothing does that
        assert reveal.show_in_folder(PATH, lambda: failed.append(1))
        bus.answer(fails=True)
        assert opened == ["/runs"] * count
    assert failed == [1]
