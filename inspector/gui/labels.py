"""Labels for text that nobody vouches for: always plain, cut where it must be, whole in the tooltip."""

from __future__ import annotations

import html
from collections.abc import Iterator
from contextlib import contextmanager

from PySide6.QtCore import QObject, QSignalBlocker, QSize, Qt
from PySide6.QtGui import QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import QLabel, QLayout, QSizePolicy, QWidget

_SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard


@contextmanager
def blocked(*objects: QObject) -> Iterator[None]:
    """Hold back the signals of some objects while they are brought in line with a screen."""
    blockers = [QSignalBlocker(thing) for thing in objects]
    try:
        yield
    finally:
        for blocker in blockers:
            blocker.unblock()


def plain_tooltip(text: str) -> str:
    """Make a tooltip that shows the text as it stands; Qt would read `<b>` in it as mark-up."""
    return f'<p style="white-space: pre-wrap">{html.escape(text)}</p>' if text else ""


def plain_label(text: str = "", role: str = "", *, wrap: bool = False, selectable: bool = False) -> QLabel:
    """Make a label of plain text; `role` is what the style sheet calls it."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    label.setWordWrap(wrap)
    if role:
        label.setProperty("role", role)
    if selectable:
        label.setTextInteractionFlags(_SELECTABLE)
    return label


def set_state(widget: QWidget, name: str, value: str) -> None:
    """Change a property that the style sheet looks at, and have the sheet look again."""
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    for part in (widget, *widget.findChildren(QWidget)):
        part.style().unpolish(part)
        part.style().polish(part)


def clear_layout(layout: QLayout) -> None:
    """Remove and delete everything in a layout."""
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.setParent(None)
            widget.deleteLater()


class ElidedLabel(QLabel):
    """One line of plain text that is cut to the room there is; the whole of it is in the tooltip."""

    def __init__(
        self, text: str = "", role: str = "", mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
    ) -> None:
        super().__init__()
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        if role:
            self.setProperty("role", role)
        self.setText(text)

    def setText(self, text: str) -> None:
        """Show another text."""
        super().setText(text)
        self.setAccessibleName(text)
        self._refresh_tooltip()

    def minimumSizeHint(self) -> QSize:
        """Allow the label to become narrow."""
        return QSize(24, super().minimumSizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Offer the whole text as a tooltip while it does not fit."""
        super().resizeEvent(event)
        self._refresh_tooltip()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the text, cut to the width."""
        painter = QPainter(self)
        text = self.fontMetrics().elidedText(self.text(), self._mode, self.width())
        self.style().drawItemText(
            painter, self.contentsRect(), self.alignment(), self.palette(), self.isEnabled(), text, self.foregroundRole()
        )
        painter.end()

    def _refresh_tooltip(self) -> None:
        cut = self.fontMetrics().horizontalAdvance(self.text()) > self.width()
        self.setToolTip(plain_tooltip(self.text()) if cut else "")
