"""What a test sees of a widget: its words and its buttons."""

from __future__ import annotations

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtWidgets import QGraphicsSimpleTextItem, QLabel, QPushButton, QWidget

from inspector.gui.charts.view import RING, ChartView
from inspector.gui.widgets.labels import WrappedText


def said(widget: QWidget) -> list[str]:
    """List the texts of a widget, hidden ones too."""
    labels = [label.text() for label in widget.findChildren(QLabel)]
    return labels + [text.toPlainText() for text in widget.findChildren(WrappedText)]


def shown(widget: QWidget) -> str:
    """Return the texts of a widget that are not hidden."""
    labels = [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]
    return "\n".join([*labels, *(text.toPlainText() for text in widget.findChildren(WrappedText))])


def button(widget: QWidget, text: str) -> QPushButton:
    """Find the button with a text."""
    return next(each for each in widget.findChildren(QPushButton) if text in each.text())


def charts_of(widget: QWidget) -> list[ChartView]:
    """List the charts that are in a widget and not hidden, with what they show drawn."""
    found = [view for view in widget.findChildren(ChartView) if not view.isHidden()]
    for view in found:
        view.plot()
    return found


def words_in(view: ChartView) -> list[str]:
    """List what is written beside the axes of a chart."""
    items = view.plot().widget.scene().items(Qt.SortOrder.AscendingOrder)
    return [item.text() for item in items if isinstance(item, QGraphicsSimpleTextItem)]


def area_of(view: ChartView, part: int) -> QRect:
    """Return where a part of a chart is, in pixels."""
    area, plot = view.drawing.area(part), view.plot()
    corners = [plot.point_of(corner).toPoint() for corner in (area.topLeft(), area.bottomRight())]
    return QRect(*corners).normalized().translated(QPoint(RING, RING))


def colors_in(image: QImage, area: QRect | None = None) -> set[str]:
    """List the colors of a picture, or of an area of it."""
    area = area or image.rect()
    return {
        image.pixelColor(x, y).name()
        for x in range(area.left(), area.right(), 2)
        for y in range(area.top(), area.bottom(), 2)
    }
