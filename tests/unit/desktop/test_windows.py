"""What the registry holds, that nobody's default changes, and that nothing is left."""

from __future__ import annotations

import ctypes
import sys
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from inspector.desktop.freedesktop.entry import read_own_types
from inspector.desktop.suffixes import KINDS
from inspector.desktop.windows import Registry, WindowsRegistration, for_this_user
from inspector.errors import ExportError
from inspector.resources import resource_path
from tests.sweep import table
from tests.unit.desktop.fake_winreg import REG_DWORD, FakeWinreg

COMMAND = [r"C:\Program Files\CI\checkpoint-inspector-window.exe"]
LINE = r'"C:\Program Files\CI\checkpoint-inspector-window.exe" "%1"'
CLASSES = r"Software\Classes"


class Machine:
    """A registry with what Windows and other programs have in it."""

    def __init__(self) -> None:
        self.winreg = FakeWinreg()
        self.told = 0
        registry = Registry(self.winreg)
        registry.write(rf"{CLASSES}\.pt", "", "Zope.Template")
        registry.write(rf"{CLASSES}\.npy\OpenWithProgids", "Other.Array", "")
        registry.write(r"Software\RegisteredApplications", "Other", r"Software\Other\Capabilities")
        self.ours = WindowsRegistration(registry=registry, tell=self._tell, icon=Path(r"C:\ci.ico"))

    def _tell(self) -> None:
        self.told += 1


@pytest.fixture
def machine() -> Machine:
    return Machine()


def test_every_key_is_written_once(machine):
    written = machine.ours.install(COMMAND)
    assert len(set(written)) == len(written)
    assert str(written[0]).startswith("HKEY_CURRENT_USER\\Software\\Classes\\CheckpointInspector.")
    tree = machine.winreg.tree()
    program = rf"{CLASSES}\CheckpointInspector.checkpoint.1"
    assert tree[program] == {"": "PyTorch checkpoint"}
    assert tree[rf"{program}\DefaultIcon"] == {"": r"C:\ci.ico,0"}
    assert tree[rf"{program}\shell\open\command"] == {"": LINE}
    assert tree[rf"{CLASSES}\.pth\OpenWithProgids"] == {"CheckpointInspector.checkpoint.1": ""}
    application = rf"{CLASSES}\Applications\checkpoint-inspector.exe"
    assert tree[application] == {"FriendlyAppName": "Checkpoint Inspector"}
    assert tree[rf"{application}\shell\open\command"] == {"": LINE}
    assert set(tree[rf"{application}\SupportedTypes"]) == {
        suffix for kind in KINDS for suffix in kind.suffixes
    }
    capabilities = r"Software\Checkpoint Inspector\Capabilities"
    assert set(tree[rf"{capabilities}\FileAssociations"]) == {
        suffix for kind in KINDS if kind.is_own for suffix in kind.suffixes
    }
    assert tree[r"Software\RegisteredApplications"]["Checkpoint Inspector"] == capabilities
    assert machine.told == 1


def test_no_suffix_gets_a_default(machine):
    before = machine.winreg.tree()
    machine.ours.install(COMMAND)
    after = machine.winreg.tree()
    for kind in KINDS:
        for suffix in kind.suffixes:
            key = rf"{CLASSES}\{suffix}"
            assert after[key] == before.get(key, {}), key
    assert "Other.Array" in after[rf"{CLASSES}\.npy\OpenWithProgids"]


def test_twice_is_the_same_as_once_and_a_new_place_is_taken(machine):
    machine.ours.install(COMMAND)
    once = machine.winreg.tree()
    machine.ours.install(COMMAND)
    assert machine.winreg.tree() == once
    machine.ours.install([r"D:\ci.exe"])
    assert machine.winreg.tree()[rf"{CLASSES}\CheckpointInspector.gguf.1\shell\open\command"] == {
        "": r'D:\ci.exe "%1"'
    }


def test_nothing_is_left_behind(machine):
    before = machine.winreg.tree()
    written = machine.ours.install(COMMAND)
    assert set(machine.ours.remove()) == set(written)
    assert machine.winreg.tree() == before
    assert machine.told == 2
    assert machine.ours.remove() == []
    assert machine.told == 2


@table("write", [0, 1, 7, 30, 38])
def test_a_failure_puts_everything_back(write):
    machine = Machine()
    for _ in range(2):  # without a registration, and with one
        before = machine.winreg.tree()
        machine.winreg.refused = write
        with pytest.raises(ExportError, match=r"could not be written \(Access is denied\)"):
            machine.ours.install(COMMAND)
        assert machine.winreg.tree() == before
        machine.ours.install([r"C:\old.exe"])


def test_what_cannot_be_removed_is_said(machine, monkeypatch):
    machine.ours.install(COMMAND)

    def refuse(*_: object) -> None:
        raise PermissionError(13, "Access is denied")

    monkeypatch.setattr(machine.winreg, "DeleteKey", refuse)
    with pytest.raises(ExportError, match="could not be removed"):
        machine.ours.remove()


def test_a_placeholder_in_the_path_is_refused(machine):
    before = machine.winreg.tree()
    for path in (r"C:\100%1\ci.exe", r"C:\%USERNAME%\ci.exe", r"C:\%*\ci.exe"):
        with pytest.raises(ExportError, match="Windows would replace the %"):
            machine.ours.install([path])
    assert machine.winreg.tree() == before
    assert machine.ours.install([r"C:\100% ci\ci.exe"])


@pytest.fixture
def winreg() -> FakeWinreg:
    return FakeWinreg()


@pytest.fixture
def registry(winreg) -> Registry:
    return Registry(winreg)


def test_a_text_is_written_and_read(registry, winreg):
    registry.write(r"Software\A", "name", "text")
    assert registry.read(r"software\a", "name") == "text"
    assert registry.read(r"Software\A", "") is None
    assert registry.read(r"Software\B", "") is None
    winreg.root.keys["Software"].keys["A"].values["number"] = (7, REG_DWORD)
    assert registry.read(r"Software\A", "number") is None


def test_a_value_is_removed_once(registry):
    registry.write(r"Software\A", "name", "text")
    assert registry.remove(r"Software\A", "name")
    assert not registry.remove(r"Software\A", "name")
    assert not registry.remove(r"Software\B", "name")


def test_a_tree_is_removed_from_its_leaves(registry, winreg):
    registry.write(r"Software\A\B\C", "", "1")
    registry.write(r"Software\A\D", "", "2")
    registry.write(r"Software\E", "", "3")
    assert registry.remove_tree(r"Software\A")
    assert not registry.remove_tree(r"Software\A")
    assert set(winreg.tree()) == {"", "Software", r"Software\E"}


def test_only_keys_with_nothing_in_them_go(registry, winreg):
    registry.write(r"Software\Classes\.pth\OpenWithProgids", "x", "")
    registry.write(r"Software\Classes\.pt\OpenWithProgids", "x", "")
    registry.write(r"Software\Classes\.pt", "", "other")
    for suffix in (".pth", ".pt", ".none"):
        registry.remove(rf"Software\Classes\{suffix}\OpenWithProgids", "x")
        registry.remove_empty(rf"Software\Classes\{suffix}\OpenWithProgids")
    assert winreg.tree() == {
        "": {},
        "Software": {},
        r"Software\Classes": {},
        r"Software\Classes\.pt": {"": "other"},
    }
    registry.remove(r"Software\Classes\.pt", "")
    registry.remove_empty(r"Software\Classes\.pt")
    assert r"Software\Classes" in winreg.tree()


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


SPACE = "{http://www.freedesktop.org/standards/shared-mime-info}"
LONG = {".pth.tar", ".safetensors.index.json", ".bin.index.json"}
"""Suffixes in two parts, which only freedesktop knows."""
COMPANIONS = (
    "text/",
    "application/octet-stream",
    "application/zip",
    "application/x-tar",
    "application/x-hdf",
)


def test_no_desktop_knows_a_suffix_that_another_does_not():
    root = ET.parse(resource_path("desktop/checkpoint-inspector.xml")).getroot()
    own_types = read_own_types(
        resource_path("desktop/checkpoint-inspector.desktop").read_text(encoding="utf-8")
    )
    own, others = set(), set()
    for kind in root:
        name = kind.get("type")
        if not name.startswith(COMPANIONS):
            suffixes = {glob.get("pattern").removeprefix("*") for glob in kind.iter(f"{SPACE}glob")}
            (own if name in own_types else others).update(suffixes)
    assert own - LONG == {suffix for kind in KINDS if kind.is_own for suffix in kind.suffixes}
    assert others - LONG == {suffix for kind in KINDS if not kind.is_own for suffix in kind.suffixes}
    counts = Counter(suffix for kind in KINDS for suffix in kind.suffixes)
    assert max(counts.values()) == 1
