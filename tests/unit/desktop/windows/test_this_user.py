"""The registry and the shell of this Windows, played."""

from __future__ import annotations

import ctypes
import sys
from types import SimpleNamespace

from inspector.desktop.windows.this_user import for_this_user
from tests.unit.desktop.windows.fake_winreg import FakeWinreg


def test_the_shell_is_told_of_what_was_written(monkeypatch):
    winreg, said = FakeWinreg(), []
    monkeypatch.setitem(sys.modules, "winreg", winreg)
    shell = SimpleNamespace(SHChangeNotify=lambda *words: said.append(words))
    monkeypatch.setattr(ctypes, "windll", SimpleNamespace(shell32=shell), raising=False)
    ours = for_this_user()
    assert ours.icon.read_bytes()[:4] == b"\0\0\1\0"
    ours.install(["ci.exe"])
    assert said == [(0x08000000, 0, None, None)]
    assert r"Software\RegisteredApplications" in winreg.tree()
