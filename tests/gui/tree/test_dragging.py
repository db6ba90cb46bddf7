"""Rows are dragged out as files: the drop waits until they are there, and nothing else does."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QEvent, QEventLoop, QObject, QPoint, Qt, QTimer
from PySide6.QtTest import QTest

from inspector.gui.tree import dragging
from inspector.gui.tree.dragging import end_drags
from inspector.gui.tree.view import TensorTreeView
from inspector.overriding import override
from inspector.progress import Progress
from inspector.session.values import taken
from inspector.session.values.page import TakenPage
from inspector.session.values.taking import Taking
from tests.gui import fakes
from tests.gui.asked import AskedSession

LEFT = Qt.MouseButton.LeftButton


class HandDrag(QObject):
    """Does what Qt's drag does where there is a screen: a loop, and a filter that waits for the button."""

    running: HandDrag | None = None
    dropped: list[tuple[list[str], str]] = []  # noqa: RUF012 - of one test

    def __init__(self, _: QObject) -> None:
        super().__init__()
        self._loop, self._action = QEventLoop(), Qt.DropAction.IgnoreAction

    def setMimeData(self, data) -> None:  # noqa: N802 - Qt's name
        self._data = data

    def setPixmap(self, pixmap) -> None:  # noqa: N802 - Qt's name
        assert not pixmap.isNull()

    def setHotSpot(self, _) -> None:  # noqa: N802 - Qt's name
        pass

    def exec(self, action: Qt.DropAction) -> Qt.DropAction:
        type(self).running, self._offered = self, action
        QCoreApplication.instance().installEventFilter(self)
        self._loop.exec()
        QCoreApplication.instance().removeEventFilter(self)
        type(self).running = None
        return self._action

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() != QEvent.Type.MouseButtonRelease:
            return False
        self.dropped.append(([url.toLocalFile() for url in self._data.urls()], self._data.text()))
        self._action = self._offered
        self._loop.exit()
        return True

    @classmethod
    def cancel(cls) -> None:
        assert cls.running is not None
        cls.running._loop.exit()


class Desk(QObject):
    """A tree and a hand; what the hand does is done in turns of the event loop."""

    def __init__(self, qtbot, theme, taking: Taking) -> None:
        super().__init__()
        self.view = TensorTreeView(theme)
        qtbot.addWidget(self.view)
        self.view.show_tree(fakes.make_tree(fakes.training_leaves(), fakes.COLOURS))
        self.view.resize(700, 400)
        self.view.show()
        qtbot.waitExposed(self.view)
        self.session = AskedSession()
        self.session.take_out.return_value = taking
        self.view.drag.connect_to(self.session)
        self.told: list[str] = []
        self.view.drag.told.connect(self.told.append)
        self.steps: list[object] = []

    @property
    def start(self) -> QPoint:
        return self.view.visualRect(self.view.model().index(0, 0)).center()

    def drag(self, *steps) -> None:
        """Drag the first row; take one of these steps in each turn, while Qt's loop of the drag runs."""
        self.steps = list(steps)
        timer = QTimer(self, interval=5)
        timer.timeout.connect(self._step)
        timer.start()
        viewport, away = self.view.viewport(), self.start + QPoint(60, 10)
        before = self.session.take_out.call_count
        QTest.mousePress(viewport, LEFT, pos=self.start)
        QTest.mouseMove(viewport, self.start + QPoint(1, 0))
        assert self.session.take_out.call_count == before
        QTest.mouseMove(viewport, away)
        timer.stop()

    def _step(self) -> None:
        if self.steps:
            self.steps.pop(0)()

    def release(self) -> None:
        QTest.mouseRelease(self.view.viewport(), LEFT, pos=self.start)

    def wait(self) -> None:
        """Do nothing for a turn."""

    def show(self, stage: str, sentence: str = "") -> None:
        self.view.drag.show_taken(TakenPage(stage=stage, progress=Progress(), sentence=sentence))


@pytest.fixture(autouse=True)
def _hand_drag(monkeypatch) -> None:
    """Qt's offscreen platform drags nothing."""
    monkeypatch.setattr(dragging, "QDrag", HandDrag)
    HandDrag.dropped.clear()


FILES = Taking(
    folder="/t/f", files=(("/t/f/a.npy", {}), ("/t/f/b.npy", {})), nbytes=8, text="m/a\nm/b", why=""
)
PATHS = Taking(folder="/t/f", files=(), nbytes=0, text="m/lr", why="There is no tensor in it.")


def test_the_drop_waits_for_the_files(qtbot, theme):
    desk = Desk(qtbot, theme, FILES)
    seen = []
    desk.drag(
        lambda: desk.show("writing"),
        desk.wait,
        desk.release,
        desk.wait,
        lambda: seen.append(list(HandDrag.dropped)),
        lambda: desk.show("ready"),
    )
    assert seen == [[]]  # let go of, and not dropped
    assert HandDrag.dropped == [(["/t/f/a.npy", "/t/f/b.npy"], "m/a\nm/b")]
    desk.session.take_out.assert_called_once_with((desk.view.current_node(),))
    desk.session.end_taking.assert_called_once_with(FILES, kept=True)
    assert desk.told == [dragging._HINT]


def test_files_that_are_there_are_dropped_when_the_button_goes_up(qtbot, theme):
    desk = Desk(qtbot, theme, FILES)
    desk.drag(lambda: desk.show("ready"), desk.wait, desk.wait, desk.release)
    assert len(HandDrag.dropped) == 1
    desk.drag(desk.wait, HandDrag.cancel)  # Escape
    assert [call.kwargs for call in desk.session.end_taking.mock_calls] == [{"kept": True}, {"kept": False}]


@pytest.mark.parametrize("is_released", [False, True])
def test_files_that_cannot_be_written_end_the_drag_with_a_sentence(qtbot, theme, is_released):
    desk = Desk(qtbot, theme, FILES)
    hand = desk.release if is_released else desk.wait
    desk.drag(desk.wait, hand, lambda: desk.show("failed", "The file is cut."))
    assert HandDrag.dropped == []
    assert desk.told[-1] == "The file is cut."
    desk.session.end_taking.assert_called_once_with(FILES, kept=False)


def test_what_is_no_file_is_a_text(qtbot, theme):
    desk = Desk(qtbot, theme, PATHS)
    desk.drag(desk.wait, desk.wait, desk.release)
    assert HandDrag.dropped == [([], "m/lr")]
    assert desk.told == ["There is no tensor in it."]


@pytest.mark.parametrize("is_down", [False, True])
def test_where_the_system_sees_the_button_the_drag_begins_with_the_files(qtbot, theme, monkeypatch, is_down):
    monkeypatch.setattr(dragging, "_SEES_BUTTON", frozenset())
    desk = Desk(qtbot, theme, FILES)
    dragged = []
    monkeypatch.setattr(desk.view.drag, "_drag", dragged.append)
    buttons = LEFT if is_down else Qt.MouseButton.NoButton
    monkeypatch.setattr(dragging.QGuiApplication, "mouseButtons", lambda: buttons)
    desk.drag()
    assert dragged == []
    desk.show("writing")
    desk.show("ready")
    qtbot.waitUntil(lambda: bool(dragged) or len(desk.told) == 2)
    assert dragged == ([FILES] if is_down else [])
    assert desk.told[1:] == ([] if is_down else [dragging._NOT_READY])


def test_without_a_file_nothing_is_dragged(qtbot, theme):
    desk = Desk(qtbot, theme, FILES)
    desk.session.take_out.return_value = None
    desk.drag()
    desk.session.take_out.return_value = FILES
    desk.view.drag.connect_to(None)
    QTest.mousePress(desk.view.viewport(), LEFT, pos=QPoint(5, desk.view.viewport().height() - 4))
    QTest.mouseMove(desk.view.viewport(), desk.start)
    assert (desk.told, desk.session.end_taking.called) == ([], False)


def test_old_files_are_removed_later_and_when_the_program_ends(qtbot, theme, monkeypatch, tmp_path: Path):
    monkeypatch.setattr(dragging, "_KEPT_MS", 0)
    desk = Desk(qtbot, theme, FILES)
    desk.drag(lambda: desk.show("ready"), desk.wait, desk.wait, desk.release)
    qtbot.waitUntil(lambda: desk.session.remove_left.called)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    folder = tmp_path / "checkpoint-inspector-drag-1"
    folder.mkdir()
    end_drags()
    assert folder.exists()  # a file manager may still read it
    old = time.time() - 2 * taken.KEPT_AT_END_S
    os.utime(folder, (old, old))
    end_drags()
    assert not folder.exists()
