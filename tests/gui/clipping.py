"""What of a window is cut off: widgets that their parent does not show whole and no scroll bar reaches."""

from __future__ import annotations

from collections.abc import Iterator

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractScrollArea,
    QComboBox,
    QLabel,
    QScrollBar,
    QTabBar,
    QWidget,
)

from inspector.gui.widgets.labels import ElidedLabel, PathButton


def clipped(root: QWidget) -> list[str]:
    """List the widgets below one that are cut off, or too small for their text."""
    return [
        f"{type(widget).__name__} {widget.objectName() or text_of(widget)!r}: {why}"
        for widget in widgets_of(root)
        for why in (*outside(widget), *covered(widget), *too_small(widget))
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
        left, right = hidden_by(area.horizontalScrollBar(), area.horizontalScrollBarPolicy())
        top, bottom = hidden_by(area.verticalScrollBar(), area.verticalScrollBarPolicy())
        reach = QRect(0, 0, parent.width(), parent.height()).adjusted(-left, -top, right, bottom)
        if reach.contains(widget.geometry()):
            return
    yield f"{widget.geometry().getRect()} is outside of {parent.rect().getRect()}"


def hidden_by(bar: QScrollBar, policy: Qt.ScrollBarPolicy) -> tuple[int, int]:
    """Return how much a scroll bar reaches before and after what is shown: nothing if it is never there."""
    if policy == Qt.ScrollBarPolicy.ScrollBarAlwaysOff:
        return 0, 0
    return bar.value(), bar.maximum() - bar.value()


def covered(widget: QWidget) -> Iterator[str]:
    """Yield the buttons and lists that another one of the same row lies over."""
    if not isinstance(widget, QAbstractButton | QComboBox):
        return
    for other in widget.parentWidget().findChildren(
        QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly
    ):
        if other is not widget and isinstance(other, QAbstractButton | QComboBox) and other.isVisible():
            both = widget.geometry().intersected(other.geometry())
            if both.width() > 1 and both.height() > 1:
                yield f"lies over {type(other).__name__} {text_of(other)!r}"


def too_small(widget: QWidget) -> Iterator[str]:
    if isinstance(widget, ElidedLabel | PathButton) or not isinstance(widget, QLabel | QAbstractButton):
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
