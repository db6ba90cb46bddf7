"""What the registry holds, that nobody's default changes, and that nothing is left."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.desktop.suffixes import KINDS
from inspector.desktop.windows.this_user import Registry, WindowsRegistration
from inspector.errors import ExportError
from tests.sweep import table
from tests.unit.desktop.windows.fake_winreg import FakeWinreg

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
