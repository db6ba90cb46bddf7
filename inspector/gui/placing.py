"""Where windows open: the first fits its screen, and later ones cascade inside it."""

from __future__ import annotations

from PySide6.QtCore import QMargins, QPoint, QRect, QSize
from PySide6.QtWidgets import QMainWindow

WISHED = QSize(1280, 800)
LEAST = QSize(800, 480)
CASCADE = 32
TITLE_BAR = QMargins(1, 32, 1, 1)
"""What a window manager puts around a window, as long as it has not told."""


def first_size(area: QRect, frame: QMargins = TITLE_BAR) -> QSize:
    return WISHED.boundedTo(area.marginsRemoved(frame).size())


def fit(window: QRect, area: QRect, frame: QMargins = TITLE_BAR) -> QRect:
    """Return a window's inner rectangle, moved and made smaller until it is inside the free area."""
    room = area.marginsRemoved(frame)
    size = window.size().boundedTo(room.size())
    left = max(room.left(), min(window.left(), room.left() + room.width() - size.width()))
    top = max(room.top(), min(window.top(), room.top() + room.height() - size.height()))
    return QRect(QPoint(left, top), size)


def cascade(last: QRect, area: QRect, frame: QMargins = TITLE_BAR) -> QRect:
    """Return the inner rectangle for a window after another: beside it, or at the first corner again."""
    wished = last.translated(CASCADE, CASCADE)
    fitted = fit(wished, area, frame)
    if fitted.topLeft() == wished.topLeft():
        return fitted
    room = area.marginsRemoved(frame)
    corner = QPoint(
        wished.left() if wished.left() == fitted.left() else room.left(),
        wished.top() if wished.top() == fitted.top() else room.top(),
    )
    return fit(QRect(corner, last.size()), area, frame)


def put_beside(last: QMainWindow, window: QMainWindow) -> None:
    inner, outer = last.geometry(), last.frameGeometry()
    frame = TITLE_BAR
    if inner != outer:
        left, top = inner.left() - outer.left(), inner.top() - outer.top()
        frame = QMargins(left, top, outer.right() - inner.right(), outer.bottom() - inner.bottom())
    window.setGeometry(cascade(last.normalGeometry(), last.screen().availableGeometry(), frame))
