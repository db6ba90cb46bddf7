"""The five functions, against a registry in memory."""

from __future__ import annotations

import pytest

from inspector.desktop.windows.this_user import Registry
from tests.unit.desktop.windows.fake_winreg import REG_DWORD, FakeWinreg


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
