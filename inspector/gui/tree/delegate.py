"""How a row of the tree is painted: the device as color *and* text, the devices of a group in proportion."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QModelIndex, QObject, QPersistentModelIndex, QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem

from inspector.gui.theme.theme import Theme, Tokens
from inspector.gui.tree.model import NODE_ROLE, Column, cell_text
from inspector.overriding import override
from inspector.report.tree import Node, Tree

ROW_HEIGHT = 26
_PAD = 10
_STRIP_WIDTH, _STRIP_HEIGHT = 36, 8
_CHIP = 10
_LAST = 1 << 30  # the CPU, -1, comes last, as in the charts
_CENTER_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


def paint_chip(painter: QPainter, x: float, middle: float, color: QColor) -> None:
    """Paint the small square before the name of a device."""
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawRoundedRect(QRectF(x, middle - _CHIP / 2, _CHIP, _CHIP), 3, 3)


def paint_strip(painter: QPainter, area: QRectF, parts: list[tuple[QColor, int]]) -> None:
    """Paint a rounded strip divided in proportion; the smallest part gets two pixels."""
    total = sum(nbytes for _, nbytes in parts)
    if total <= 0:
        return
    widths = [max(2.0, area.width() * nbytes / total) for _, nbytes in parts]
    scale = area.width() / sum(widths)
    outline = QPainterPath()
    outline.addRoundedRect(area, area.height() / 2, area.height() / 2)
    painter.save()
    painter.setClipPath(outline, Qt.ClipOperation.IntersectClip)
    x = area.left()
    for (color, _), width in zip(parts, widths, strict=True):
        painter.fillRect(QRectF(x, area.top(), width * scale, area.height()), color)
        x += width * scale
    painter.restore()


class RowDelegate(QStyledItemDelegate):
    """Paints the cells of the tree in the theme's colors."""

    def __init__(self, theme: Theme, tree: Callable[[], Tree], parent: QObject) -> None:
        super().__init__(parent)
        self._theme = theme
        self._tree = tree
        self.matches: frozenset[int] | set[int] = frozenset()

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(48, max(ROW_HEIGHT, option.fontMetrics.height() + 8))

    @override
    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        node_id, column = int(index.data(NODE_ROLE)), index.column()
        node = self._tree().nodes[node_id]
        style = option.widget.style()
        style.drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, option.widget)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(option.font)
        area = QRectF(option.rect)
        if column == Column.DEVICE:
            area = self._paint_devices(painter, area, node)
        if column == Column.NAME and node_id in self.matches:
            self._paint_match(painter, area, node, option.fontMetrics)
        self._paint_text(painter, area, node, column, option.fontMetrics)
        if column == Column.NAME and option.state & QStyle.StateFlag.State_HasFocus:
            self._paint_focus(painter, option)
        painter.restore()

    def _paint_devices(self, painter: QPainter, area: QRectF, node: Node) -> QRectF:
        tokens, colors = self._theme.tokens, self._tree().colors
        ranked = sorted((colors.get(device, -1) % _LAST, nbytes) for device, nbytes in node.devices)
        parts = [(tokens.device(-1 if index == _LAST - 1 else index), nbytes) for index, nbytes in ranked]
        if not parts:
            return area
        middle, x = area.center().y() + 0.5, area.left() + _PAD
        if node.kind == "tensor":
            paint_chip(painter, x, middle, parts[0][0])
            return area.adjusted(_CHIP + 8, 0, 0, 0)
        strip = QRectF(x, middle - _STRIP_HEIGHT / 2, _STRIP_WIDTH, _STRIP_HEIGHT)
        paint_strip(painter, strip, parts)
        return area.adjusted(_STRIP_WIDTH + 8, 0, 0, 0)

    def _paint_match(self, painter: QPainter, area: QRectF, node: Node, metrics: QFontMetrics) -> None:
        width = min(metrics.horizontalAdvance(node.name) + 8.0, area.width() - 6)
        ground = QRectF(area.left() + 2, area.top() + 4, width, area.height() - 8)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.tokens.color("match"))
        painter.drawRoundedRect(ground, 4, 4)

    def _paint_text(
        self, painter: QPainter, area: QRectF, node: Node, column: int, metrics: QFontMetrics
    ) -> None:
        text = cell_text(node, column)
        if not text:
            return
        left, right = (6 if column == Column.NAME else _PAD), (_PAD if column == Column.SIZE else 4)
        room = area.adjusted(left, 0, -right, 0)
        mode = Qt.TextElideMode.ElideMiddle if column == Column.NAME else Qt.TextElideMode.ElideRight
        align = _CENTER_LEFT
        if column == Column.SIZE:
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        painter.setPen(QPen(_ink(self._theme.tokens, node, column)))
        painter.drawText(room, align, metrics.elidedText(text, mode, int(room.width())))

    def _paint_focus(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        area = QRectF(option.rect)
        painter.setPen(QPen(self._theme.tokens.color("accent"), 2))
        x = area.left() + 1
        painter.drawLine(QPointF(x, area.top() + 5), QPointF(x, area.bottom() - 5))


def _ink(tokens: Tokens, node: Node, column: int) -> QColor:
    """Return the ink of a cell: strong for names and for what a tensor has itself, pale for totals."""
    if column == Column.NAME:
        return tokens.color("text")
    if node.kind == "tensor" and column in (Column.DEVICE, Column.SHAPE):
        return tokens.color("text")
    return tokens.color("muted")
