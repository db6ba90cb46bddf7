"""A file whose tree is shown before it is judged: nothing moves when the verdict comes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QPushButton, QWidget

from inspector.gui.main_window import MainWindow
from inspector.gui.settings import Settings
from inspector.resources import demo_path
from inspector.session.controller import Session
from tests.gui.looking import shown
from tests.unit.session.documents import AtOnce

CORPUS = Path(__file__).parents[2] / "data" / "corpus"
FILES = (demo_path(), CORPUS / "safetensors" / "all.safetensors")


class PaintCounter(QObject):
    """Counts the paints of a widget."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self.count = 0
        widget.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        self.count += event.type() == QEvent.Type.Paint
        return False


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


def test_what_stands_around_the_tree_is_made_after_its_first_paint(qtbot, theme, tmp_path):
    window = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(window)
    window.resize(1280, 800)
    begun: list[bool] = []
    window.when_shown = lambda act: space.pane.painted.call(lambda: begun.append(space.is_complete) or act())
    session = Session(window, AtOnce())
    window.attach(session)
    window.show()
    space = window.workspace
    qtbot.waitExposed(window)
    paints = PaintCounter(space.tree.viewport())
    painted: list[int] = []
    space.completed.connect(lambda: painted.append(paints.count))
    session.open(str(shutil.copy(demo_path(), tmp_path)))
    assert not space.is_complete
    space.layout().activate()
    stood = space.tree.mapTo(window, space.tree.rect().topLeft()), space.tree.size()
    qtbot.waitUntil(lambda: not window.shown.is_checking)
    assert painted[0] > 0
    assert begun == [True]  # before the verdict is asked for, or it would be made beside that
    assert (space.tree.mapTo(window, space.tree.rect().topLeft()), space.tree.size()) == stood
    assert len(offered(space.banner)) == 4
    window.detach()


def unpainted(qtbot, theme, tmp_path) -> MainWindow:
    """Return a window with a file that nobody has painted yet: behind a fixture, Qt's events would come."""
    window = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(window)
    window.when_shown = lambda _: None
    session = Session(window, AtOnce())
    window.attach(session)
    session.open(str(shutil.copy(demo_path(), tmp_path)))
    return window


def test_what_is_asked_for_before_the_paint_is_there_and_shows_the_screen(qtbot, theme, tmp_path):
    window = unpainted(qtbot, theme, tmp_path)
    space = window.workspace
    assert not space.is_complete
    assert not space.device_map.isHidden()
    assert space.is_complete
    assert space.banner.accessibleName().endswith("Checking what loading this file does\u2026")
    window.detach()


def test_a_file_that_is_closed_before_the_paint_leaves_nothing_to_make(qtbot, theme, tmp_path):
    window = unpainted(qtbot, theme, tmp_path)
    space = window.workspace
    window.detach()
    space._complete()
    assert not space.is_complete
