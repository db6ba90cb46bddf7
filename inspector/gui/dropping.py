"""Files that are dragged onto a window: what a drop would do is shown while they are over it."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import QRectF, Qt, QTimer
from PySide6.QtGui import (
    QColor,
    QDragEnterEvent,
    QDragLeaveEvent,
    QDragMoveEvent,
    QDropEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QWidget

from inspector.gui.commands import Frame
from inspector.gui.theme.icons import draw_svg
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.path_text import path_of_url
from inspector.overriding import override
from inspector.units import escape_text

_MARGIN = 12
_ICON = 48
_EDGE = 2 * _MARGIN


class DropOverlay(QWidget):
    """Shows that a drop is welcome; transparent to the mouse."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._text = ""
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.setAcceptDrops(False)
        self.hide()

    def cover(self, area: QWidget, text: str) -> None:
        """Cover a part of the window, and write what a drop would do; an empty text uncovers it."""
        if text == self._text:  # a drag moves often
            return
        self._text = text
        self.setVisible(bool(text))
        self.setGeometry(area.geometry())
        self.raise_()
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        veil = QColor(tokens.color("window"))
        veil.setAlpha(150)
        painter.fillRect(self.rect(), veil)
        frame = QRectF(self.rect()).adjusted(_MARGIN, _MARGIN, -_MARGIN, -_MARGIN)
        painter.setPen(QPen(tokens.color("accent"), 2, Qt.PenStyle.DashLine))
        ground = tokens.color("accent_soft")
        ground.setAlpha(215)
        painter.setBrush(ground)
        painter.drawRoundedRect(frame, 16, 16)
        font = self.font()
        font.setPointSizeF(font.pointSizeF() * 1.6)
        font.setWeight(font.Weight.DemiBold)
        painter.setFont(font)
        painter.setPen(tokens.color("text"))
        line = frame.adjusted(_EDGE, _ICON, -_EDGE, 0)
        text = painter.fontMetrics().elidedText(self._text, Qt.TextElideMode.ElideMiddle, int(line.width()))
        painter.drawText(line, Qt.AlignmentFlag.AlignCenter, text)
        icon = draw_svg("drop", tokens.color("accent"), _ICON, self.devicePixelRatioF())
        place = frame.center()
        painter.drawPixmap(int(place.x() - _ICON / 2), int(place.y() - _ICON), icon)
        painter.end()


class DropFrame(Frame):
    """A window that takes files: it opens them, or with Ctrl held compares them with its own."""

    def show_drop(self, text: str) -> None:
        raise NotImplementedError  # `MainWindow` does, see `Frame`

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if _dropped_paths(event):
            self.dragMoveEvent(event)

    @override
    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.setDropAction(Qt.DropAction.CopyAction)  # file managers offer to move, too
        event.accept()
        self.show_drop(self._promise(event))

    @override
    def dragLeaveEvent(self, event: QDragLeaveEvent) -> None:
        self.show_drop("")

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        paths = _dropped_paths(event)
        event.setDropAction(Qt.DropAction.CopyAction)
        event.accept()
        compares = self._asks_to_compare(event)
        self.show_drop("")
        # The source of the drag waits for the end of this event: open afterwards.
        QTimer.singleShot(0, self, lambda: (self.compare_with if compares else self.open_paths)(paths))

    def _asks_to_compare(self, event: QDropEvent) -> bool:
        return bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier) and self.can_compare

    def _promise(self, event: QDropEvent) -> str:
        if not self.can_compare or self.shown is None:
            return "Drop to open"
        if self._asks_to_compare(event):
            return f"Drop to compare with {escape_text(PurePath(self.shown.path).name)}"
        return "Drop to open, or with Ctrl to compare"


def _dropped_paths(event: QDropEvent) -> list[str]:
    if event.source() is not None:  # rows of a window of ours
        return []
    return [path_of_url(url) for url in event.mimeData().urls() if url.isLocalFile()]
