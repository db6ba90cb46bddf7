"""A file whose tree is shown before it is judged: nothing moves when the verdict comes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtWidgets import QPushButton, QWidget

from inspector.gui.main_window import MainWindow
from inspector.gui.settings import Settings
from inspector.resources import demo_path
from inspector.session.controller import Session
from tests.gui.looking import shown
from tests.unit.session.documents import AtOnce

CORPUS = Path(__file__).parents[2] / "data" / "corpus"
FILES = (demo_path(), CORPUS / "safetensors" / "all.safetensors")


def offered(widget: QWidget) -> list[str]:
    return [each.accessibleName() for each in widget.findChildren(QPushButton) if each.isVisible()]


@pytest.mark.parametrize("file", FILES, ids=lambda path: path.suffix)
def test_the_tree_stands_still_when_the_verdict_comes(qtbot, theme, tmp_path, file):
    path = str(shutil.copy(file, tmp_path))
    window = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(window)
    acts = []
    window.when_shown = acts.append
    session = Session(window, AtOnce())
    window.attach(session)
    window.show()
    qtbot.waitExposed(window)
    session.open(path)
    space = window.workspace
    assert window.shown.is_checking
    assert not window.is_drawn
    before = space.tree.mapTo(window, space.tree.rect().topLeft()), space.tree.size()
    assert shown(space.banner) == "Checking what loading this file does\u2026"
    assert offered(space.banner) == []
    space.pages.grab()
    assert not space.pages._built
    (act,) = acts
    act()
    assert not window.shown.is_checking
    assert len(offered(space.banner)) == 4  # details, export, code, safety
    assert (space.tree.mapTo(window, space.tree.rect().topLeft()), space.tree.size()) == before
    qtbot.waitUntil(lambda: window.is_drawn and bool(space.pages._built))
    window.detach()
