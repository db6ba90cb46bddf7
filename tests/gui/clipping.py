"""What of a window is cut off: widgets that their parent does not show whole and no scroll bar reaches."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRect
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QComboBox,
    QLabel,
    QScrollBar,
    QTabBar,
    QWidget,
)

from inspector.gui.widgets.labels import ElidedLabel


def clipped(root: QWidget) -> list[str]:
    """List the widgets below one that are cut off, or too small for their text."""
    return [
        f"{type(widget).__name__} {widget.objectName() or text_of(widget)!r}: {why}"
        for widget in widgets_of(root)
        for why in (*outside(widget), *too_small(widget))
    ]


def widgets_of(root: QWidget) -> Iterator[QWidget]:
    """Yield all visible widgets of a window, without its popups and what Qt makes within its own widgets."""
    for child in root.children():
        if isinstance(child, QWidget) and child.isVisible() and not child.isWindow():
            yield child
            if not isinstance(child, QComboBox | QTabBar | QScrollBar):
                yield from widgets_of(child)


def outside(widget: QWidget) -> Iterator[str]:
    parent = widget.parentWidget()
    if parent is None or parent.rect().contains(widget.geometry()):
        return
    area = parent.parentWidget()
    if isinstance(area, QAbstractScrollArea) and parent is area.viewport():
        reach = QRect(0, 0, parent.width(), parent.height()).adjusted(
            -area.horizontalScrollBar().value(),
            -area.verticalScrollBar().value(),
            area.horizontalScrollBar().maximum() - area.horizontalScrollBar().value(),
            area.verticalScrollBar().maximum() - area.verticalScrollBar().value(),
        )
        if reach.contains(widget.geometry()):
            return
    yield f"{widget.geometry().getRect()} is outside of {parent.rect().getRect()}"


def too_small(widget: QWidget) -> Iterator[str]:
    if isinstance(widget, ElidedLabel) or not isinstance(widget, QLabel | QAbstractButton):
        return
    if isinstance(widget, QLabel) and widget.wordWrap():
        needed = widget.heightForWidth(widget.width())
        if widget.height() < needed:
            yield f"{needed} px of text in {widget.height()}"
        return
    wished = widget.minimumSizeHint() if isinstance(widget, QLabel) else widget.sizeHint()
    if text_of(widget) and (widget.width() < wished.width() or widget.height() < wished.height() - 1):
        yield f"{wished.toTuple()} needed, {widget.size().toTuple()} there"


def text_of(widget: QWidget) -> str:
    text = getattr(widget, "text", None)
    return text() if callable(text) else ""
