"""The palette: each action of a window, and each other window, by a few letters of its name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from PySide6.QtCore import QEvent, QObject, Qt, QTimer
from PySide6.QtGui import QAction, QKeyEvent, QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QHeaderView,
    QLineEdit,
    QMainWindow,
    QMenu,
    QTreeWidget,
    QTreeWidgetItem,
    QWidget,
)

from inspector.gui.widgets.boxes import column
from inspector.gui.widgets.labels import bare_text, named
from inspector.overriding import override
from inspector.records import dataclass
from inspector.report.matching import matching

_SIZE = (560, 420)
_STEPS = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: 8, Qt.Key.Key_PageUp: -8}
_NATIVE = QKeySequence.SequenceFormat.NativeText
_TOP = 90
"""How far below the top of its window it opens."""


@dataclass(frozen=True, slots=True)
class Entry:
    """What can be chosen: its words with those of the menu before them, its key, and what it does."""

    text: str
    key: str
    run: Callable[[], object]


def entries_of(window: QMainWindow) -> tuple[Entry, ...]:
    """Return what can be done now: what is in a menu and enabled, then the other windows."""
    found = [entry for top in window.menuBar().actions() for entry in _below(top, "")]
    others = (each for each in QApplication.topLevelWidgets() if isinstance(each, QMainWindow))
    found += [
        Entry(f"Window: {each.windowTitle()}", "", _raising(each))
        for each in others
        if each is not window and each.isVisible()
    ]
    return tuple(found)


def _below(action: QAction, before: str) -> Iterator[Entry]:
    text, menu = f"{before}{bare_text(action.text())}", action.menu()
    if isinstance(menu, QMenu):
        for each in menu.actions():
            yield from _below(each, f"{text}: ")
    elif text != before and action.isEnabled():
        yield Entry(text, action.shortcut().toString(_NATIVE), action.trigger)


def _raising(window: QWidget) -> Callable[[], None]:
    def bring_to_front() -> None:
        window.raise_()
        window.activateWindow()

    return bring_to_front


class Palette(QDialog):
    """A line to type in, above what it finds; Enter does it, and the arrows choose."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("All actions")
        self._entries = entries_of(window)
        self._line = named(QLineEdit(), spoken="Find an action")
        self._line.setPlaceholderText("What do you want to do?")
        self._line.installEventFilter(self)
        self._line.textChanged.connect(self._on_typed)
        self._list = named(QTreeWidget(), "palette", spoken="Actions")
        self._list.setRootIsDecorated(False)
        self._list.setUniformRowHeights(True)
        self._list.setHeaderHidden(True)
        self._list.setColumnCount(2)
        self._list.header().setStretchLastSection(False)
        self._list.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self._list.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self._list.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the arrows are taken where one types
        self._list.itemClicked.connect(self._take)
        column(self._line, (self._list, 1), spacing=8, margins=(12, 12, 12, 12), within=self)
        room = window.size()
        self.resize(min(_SIZE[0], room.width()), min(_SIZE[1], room.height()))
        self.move(
            window.x() + (room.width() - self.width()) // 2,
            window.y() + min(_TOP, (room.height() - self.height()) // 2),
        )
        self._on_typed("")

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            step = _STEPS.get(Qt.Key(event.key()))
            if step is not None:
                self._step(step)
                return True
            if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
                self._take(self._list.currentItem())
                return True
        return super().eventFilter(watched, event)

    def _on_typed(self, text: str) -> None:
        self._list.clear()
        for place in matching(text, [entry.text for entry in self._entries]):
            entry = self._entries[place]
            item = QTreeWidgetItem(self._list, [entry.text, entry.key])
            item.setData(0, Qt.ItemDataRole.UserRole, place)
            item.setForeground(1, self.palette().placeholderText())
        self._list.setCurrentIndex(self._list.model().index(0, 0))

    def _step(self, step: int) -> None:
        count = self._list.topLevelItemCount()
        if count:
            at = self._list.currentIndex().row() + step
            self._list.setCurrentIndex(self._list.model().index(max(0, min(at, count - 1)), 0))

    def _take(self, item: QTreeWidgetItem | None) -> None:
        if item is None:
            return
        entry = self._entries[int(item.data(0, Qt.ItemDataRole.UserRole))]
        self.accept()
        QTimer.singleShot(0, entry.run)  # when this one is gone: what it does may open another dialog
