"""Dragging rows out of the tree: to a file manager as `.npy` files, to an editor as their paths.

File managers ask for the names of files while the pointer is over them, and read the files after the drop. So
a drag offers names at once, while a job writes the files. Where Qt sees the button go up before they are
there, it hears of that when they are (an event filter that is installed within the drag's own loop comes
before the drag's). On other platforms the system sees the button, and the drag begins when they are there.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent, QMimeData, QObject, QPoint, Qt, QTimer, QUrl, Signal
from PySide6.QtGui import QDrag, QGuiApplication, QMouseEvent, QPainter, QPixmap
from PySide6.QtWidgets import QApplication
from shiboken6 import isValid

from inspector.gui.theme.theme import Theme
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.gui.tree.view import TensorTreeView
    from inspector.session.controller import Session
    from inspector.session.values.page import TakenPage
    from inspector.session.values.taking import Taking

_SEES_BUTTON = frozenset({"xcb", "offscreen", "minimal"})
_NOT_READY = "The files were not ready when the button was let go: drag them again."
_HINT = "Drop in a folder to save as .npy, or in a text to insert the path."
_PAD = 10
_KEPT_MS = 660_000
"""Longer than files are kept, so that those of this drag are old enough."""


class _Held(QObject):
    """Keeps the release of the button back until the files are there."""

    def __init__(self) -> None:
        super().__init__()
        self._may_go = False
        self._kept: tuple[QObject, QMouseEvent] | None = None

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if self._may_go or not isinstance(event, QMouseEvent):
            return False
        if self._kept is None and event.type() == QEvent.Type.MouseButtonRelease:
            self._kept = watched, event.clone()
        return self._kept is not None  # and the place of the drop stays where it was

    def let_go(self) -> None:
        self._may_go = True
        kept, self._kept = self._kept, None
        if kept is not None and isValid(kept[0]):
            QCoreApplication.sendEvent(*kept)


class RowDrag(QObject):
    """The drags that begin in one tree."""

    told = Signal(str)

    def __init__(self, view: TensorTreeView, theme: Theme) -> None:
        super().__init__(view)
        self._view, self._theme = view, theme
        self._session: Session | None = None
        self._pressed: QPoint | None = None
        self._taking: Taking | None = None
        self._held: _Held | None = None
        self._stage = ""

    def connect_to(self, session: Session | None) -> None:
        self._session = session

    # What the view hears.

    def press(self, event: QMouseEvent) -> None:
        place = event.position().toPoint()
        is_left = event.button() == Qt.MouseButton.LeftButton
        self._pressed = place if is_left and self._view.indexAt(place).isValid() else None

    def move(self, event: QMouseEvent) -> bool:
        """Begin a drag where the pointer went far enough; return whether the event is one of a drag."""
        if self._pressed is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return self._taking is not None
        way = (event.position().toPoint() - self._pressed).manhattanLength()
        if way >= QApplication.startDragDistance():
            self._pressed = None
            self._begin()
        return True

    # The drag.

    def _begin(self) -> None:
        taking = None if self._session is None else self._session.take_out(tuple(self._view.selected_nodes()))
        if taking is None or self._taking is not None:
            return
        self._taking = taking
        self.told.emit(taking.why or _HINT)
        if not taking.files or self._stage == "ready" or QGuiApplication.platformName() in _SEES_BUTTON:
            self._drag(taking)

    def _drag(self, taking: Taking) -> None:
        drag = QDrag(self._view)
        drag.setMimeData(_mime_data(taking))
        drag.setPixmap(self._label(taking))
        drag.setHotSpot(QPoint(-_PAD, -_PAD))
        application = QCoreApplication.instance()
        self._held = _Held() if taking.files and self._stage != "ready" else None
        if self._held is not None and application is not None:
            QTimer.singleShot(0, self._held, lambda held=self._held: application.installEventFilter(held))
        action = drag.exec(Qt.DropAction.CopyAction)
        self._held = None
        self._end(kept=action != Qt.DropAction.IgnoreAction)

    def _drag_late(self) -> None:
        if self._taking is None:
            return
        if QGuiApplication.mouseButtons() & Qt.MouseButton.LeftButton:
            self._drag(self._taking)
        else:
            self.told.emit(_NOT_READY)
            self._end(kept=False)

    def _end(self, *, kept: bool) -> None:
        taking, self._taking = self._taking, None
        if taking is not None and self._session is not None:
            self._session.end_taking(taking, kept=kept)
            if kept and taking.files:
                QTimer.singleShot(_KEPT_MS, self, self._remove_left)

    def _remove_left(self) -> None:
        if self._session is not None:
            self._session.remove_left()

    def show_taken(self, page: TakenPage | None) -> None:
        """Follow the files: let a drop go on when they are there, and end the drag where they cannot be."""
        before, self._stage = self._stage, "" if page is None else page.stage
        if self._taking is None or not self._taking.files or self._stage == before:
            return
        if self._stage == "ready":
            self._go_on()
        elif self._stage != "writing":  # or the file was closed
            self.told.emit("" if page is None else page.sentence)
            if self._held is not None:
                QDrag.cancel()
            else:
                self._end(kept=False)

    def _go_on(self) -> None:
        if self._held is not None:
            QTimer.singleShot(0, self._held, self._held.let_go)
        elif QGuiApplication.platformName() not in _SEES_BUTTON:
            QTimer.singleShot(0, self, self._drag_late)

    def _label(self, taking: Taking) -> QPixmap:
        """Return what hangs on the pointer: the file, how many there are, or the path."""
        text = taking.text.partition("\n")[0]
        if taking.files:
            count = len(taking.files)
            text = os.path.basename(taking.files[0][0]) if count == 1 else f"{count} .npy files"  # noqa: PTH119 - a text
        metrics, tokens = self._view.fontMetrics(), self._theme.tokens
        shown = metrics.elidedText(text, Qt.TextElideMode.ElideMiddle, 320)
        ratio = self._view.devicePixelRatioF()
        width, height = metrics.horizontalAdvance(shown) + 2 * _PAD, metrics.height() + _PAD
        pixmap = QPixmap(round(width * ratio), round(height * ratio))
        pixmap.setDevicePixelRatio(ratio)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(tokens.color("border"))
        painter.setBrush(tokens.color("surface"))
        painter.drawRoundedRect(0, 0, width - 1, height - 1, 4, 4)
        painter.setPen(tokens.color("text"))
        painter.setFont(self._view.font())
        painter.drawText(0, 0, width, height, Qt.AlignmentFlag.AlignCenter, shown)
        painter.end()
        return pixmap


def end_drags() -> None:
    taken = sys.modules.get("inspector.session.values.taken")
    if taken is not None:
        taken.remove_left(taken.temporary_root(), taken.KEPT_AT_END_S)


def _mime_data(taking: Taking) -> QMimeData:
    data = QMimeData()
    data.setText(taking.text)
    if taking.files:
        data.setUrls([QUrl.fromLocalFile(path) for path, _ in taking.files])
    return data
