"""How a row of the tree is painted: the device as color *and* text, the devices of a group in proportion.

Indents are painted here too: Qt would push the names of deep branches out of their column. Where rows are
unfolded too deep for it, all are indented less, and the column takes room from others.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QPointF, QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetrics, QPainter, QPainterPath, QPen, QPolygonF
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem, QTreeView

from inspector.gui.theme.theme import Theme, Tokens, ink_on
from inspector.gui.tree.columns import widest
from inspector.gui.tree.model import NODE_ROLE, Column, TreeModel
from inspector.gui.tree.selection import Rows
from inspector.gui.widgets.labels import cut_path
from inspector.overriding import override
from inspector.report.tree import Node
from inspector.units import format_nbytes, unescaped_path

if TYPE_CHECKING:
    from inspector.report.query import Query
    from inspector.report.terms import Span

ROW_HEIGHT = 26
_PAD = 10
_STRIP_WIDTH, _STRIP_HEIGHT = 36, 8
_CHIP = 10
_MARK, _MARK_ROOM = 12, 16
_LAST = 1 << 30  # the CPU, -1, comes last, as in the charts
_SPARK_HEIGHT, _SPARK_STEP, _SPARK_MARGIN = 8, 4, 5
_RIGHT = 4
_WIDE_SIZE = "8.888 MB"
"""Few texts of sizes are wider."""
INDENT, _NARROW_INDENT = 12, 6
ARROW = 20
"""Width of the place of the arrow before a name."""
_LEAST_NAME = 100
_MOST_LEVELS = 64
"""Rows that are nested deeper than any model are not indented further."""
_NAME_LEFT = 6
_LONG_NAME = 64
_CENTER_LEFT = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft


def paint_chip(painter: QPainter, x: float, middle: float, color: QColor) -> None:
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
    painter.setPen(Qt.PenStyle.NoPen)
    x = area.left()
    for (color, _), width in zip(parts, widths, strict=True):
        painter.setBrush(color)  # `fillRect` would have PySide make the names of 160 gradients
        painter.drawRect(QRectF(x, area.top(), width * scale, area.height()))
        x += width * scale
    painter.restore()


def paint_spark(painter: QPainter, area: QRectF, heights: tuple[int, ...], color: QColor) -> None:
    """Paint a histogram of a tensor's values, given as heights from 0 to 8; what is not empty is seen."""
    floor = area.bottom() - _SPARK_MARGIN
    room = area.height() - 2 * _SPARK_MARGIN
    for place, height in enumerate(heights):
        if height:
            tall = max(1.0, room * height / _SPARK_HEIGHT)
            left = area.left() + _PAD + place * _SPARK_STEP
            painter.fillRect(QRectF(left, floor - tall, _SPARK_STEP - 1, tall), color)


class RowDelegate(QStyledItemDelegate):
    """Paints the cells of the tree in the theme's colors."""

    def __init__(self, theme: Theme, model: TreeModel, view: QTreeView) -> None:
        super().__init__(view)
        self._theme = theme
        self._model = model
        self._view = view
        self.rows: Rows = model
        """What the view shows at present: the tree, or a list of its rows."""
        self.query: Query | None = None
        self.sparks: tuple[tuple[int, ...], ...] = ()
        self.step = INDENT

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(48, max(ROW_HEIGHT, option.fontMetrics.height() + 8))

    def indent(self, level: int) -> int:
        """Return how far the arrow of a row at this level stands from the edge of its column."""
        return self.step * min(level, _MOST_LEVELS)

    def arrow_of(self, cell: QRect, level: int) -> QRect:
        return QRect(cell.left() + self.indent(level), cell.top(), ARROW, cell.height())

    def needs_of(self, node_ids: Iterable[int]) -> dict[Column, int]:
        """Return how wide the columns must be to show some rows whole; 0 for empty ones."""
        measure, pads = self._view.fontMetrics().horizontalAdvance, _PAD + _RIGHT + 1
        nodes, named = self._model.tree.nodes, self.rows.name_of
        rows = [(node_id, nodes[node_id]) for node_id in node_ids]
        names: dict[int, set[str]] = {}
        for node_id, node in rows:
            names.setdefault(self.rows.level(node_id), set()).add(named(node)[:_LONG_NAME])
        devices = [(node.kind == "tensor", self.rows.text(id_, Column.DEVICE)) for id_, node in rows]
        tensors, groups = (
            {text for is_tensor, text in devices if is_tensor is kind} for kind in (True, False)
        )
        shapes, types = {node.shape_text for _, node in rows}, {node.type_text for _, node in rows}
        values = {*self._model.scalars.values(), *[self.rows.text(id_, Column.VALUE) for id_, _ in rows]}
        marks = _MARK_ROOM if self._model.marks else 0
        most = max((node.nbytes for _, node in rows), default=0)
        chips, strips = widest(tensors, measure) + _CHIP + 8, widest(groups, measure) + _STRIP_WIDTH + 8
        sparks = max(map(len, self.sparks), default=0) * _SPARK_STEP
        ends = (self.indent(level) + widest(texts, measure) for level, texts in names.items())
        return {
            Column.NAME: max(ends, default=0) + ARROW + _NAME_LEFT + _RIGHT + marks,
            Column.DEVICE: max(chips if any(tensors) else 0, strips if any(groups) else 0) + pads,
            Column.SHAPE: widest(shapes, measure) + pads,
            Column.TYPE: widest(types, measure) + pads,
            Column.SIZE: widest((_WIDE_SIZE, format_nbytes(most)), measure) + 2 * _PAD,
            Column.VALUE: max(widest(values, measure), sparks) + pads,
        }

    @override
    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        node_id, column = int(index.data(NODE_ROLE)), index.column()
        node = self._model.tree.nodes[node_id]
        style = option.widget.style()
        style.drawPrimitive(QStyle.PrimitiveElement.PE_PanelItemViewItem, option, painter, option.widget)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setFont(option.font)
        area = QRectF(option.rect)
        if column == Column.DEVICE:
            area = self._paint_devices(painter, area, node)
        mark = self._model.mark(node_id)
        has_spark = node.kind == "tensor" and self.sparks and not self.rows.text(node_id, Column.VALUE)
        if column == Column.VALUE and has_spark:
            paint_spark(painter, area, self.sparks[node.index], self._theme.tokens.color("accent"))
        if column == Column.NAME:
            area = self._paint_arrow(painter, option, index)
            if mark:
                area = self._paint_mark(painter, area)
            if self.query is not None:
                self._paint_match(
                    painter, area, node_id, self._spans(self.query, node_id), option.fontMetrics
                )
        self._paint_text(painter, area, node_id, column, option.fontMetrics)
        if column == Column.NAME and option.state & QStyle.StateFlag.State_HasFocus:
            self._paint_focus(painter, option)
        painter.restore()

    def _paint_arrow(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QRectF:
        node_id = int(index.data(NODE_ROLE))
        place = QRectF(self.arrow_of(option.rect, self.rows.level(node_id)))
        if self.rows.hasChildren(index):
            painter.setPen(QPen(self._theme.tokens.color("muted"), 1.5))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawPolyline(
                _chevron(
                    place.center(),
                    is_open=self._view.isExpanded(self.rows.index_of(node_id)),
                )
            )
        return QRectF(option.rect).adjusted(place.right() - option.rect.left() - 4, 0, 0, 0)

    def _paint_mark(self, painter: QPainter, area: QRectF) -> QRectF:
        left, middle = area.left() + _NAME_LEFT, area.center().y() + 0.5
        corners = [(0.0, 5.5), (_MARK, 5.5), (_MARK / 2, -5.5)]
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.tokens.color("bad_fill"))
        painter.drawPolygon(QPolygonF([QPointF(left + x, middle + y) for x, y in corners]))
        painter.setPen(QPen(ink_on(self._theme.tokens.color("bad_fill")), 1.5))
        x = left + _MARK / 2
        painter.drawLine(QPointF(x, middle - 1.5), QPointF(x, middle + 1.5))
        painter.drawPoint(QPointF(x, middle + 4))
        return area.adjusted(_MARK_ROOM, 0, 0, 0)

    def _paint_devices(self, painter: QPainter, area: QRectF, node: Node) -> QRectF:
        tokens, colors = self._theme.tokens, self._model.tree.colors
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

    def _spans(self, query: Query, node_id: int) -> list[Span]:
        """Return what to mark in a name: what matched, or all of it where that stands elsewhere."""
        node, name = self._model.node(node_id), self.rows.text(node_id, Column.NAME)
        spans = spans_in_name(query, node, name)
        if spans or self._model.is_filtered or not self._model.is_match(node_id):
            return spans
        return [(0, len(name))]  # among rows that do not match, one that does so otherwise

    def _paint_match(
        self, painter: QPainter, area: QRectF, node_id: int, spans: list[Span], metrics: QFontMetrics
    ) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._theme.tokens.color("match"))
        room, name = area.width() - _NAME_LEFT - 4, self.rows.text(node_id, Column.NAME)
        text = cut_path(name, metrics, room)
        spans, name = spans_in_cut(spans, name, text), text
        for start, end in spans:
            left = min(float(metrics.horizontalAdvance(name[:start])), room)
            width = min(metrics.horizontalAdvance(name[:end]) + 4.0, room + 4) - left
            ground = QRectF(area.left() + _NAME_LEFT - 2 + left, area.top() + 4, width, area.height() - 8)
            painter.drawRoundedRect(ground, 4, 4)

    def _paint_text(
        self, painter: QPainter, area: QRectF, node_id: int, column: int, metrics: QFontMetrics
    ) -> None:
        text = self.rows.text(node_id, column)
        if not text:
            return
        left, right = (
            (_NAME_LEFT if column == Column.NAME else _PAD),
            (_PAD if column == Column.SIZE else _RIGHT),
        )
        room = area.adjusted(left, 0, -right, 0)
        align = _CENTER_LEFT
        if column == Column.SIZE:
            align = Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight
        ink = _ink(self._theme.tokens, self._model.node(node_id), column)
        if column == Column.VALUE and self._model.mark(node_id):
            ink = self._theme.tokens.color("bad")
        painter.setPen(QPen(ink))
        painter.drawText(room, align, _cut(text, column, metrics, room.width()))

    def _paint_focus(self, painter: QPainter, option: QStyleOptionViewItem) -> None:
        area = QRectF(option.rect)
        painter.setPen(QPen(self._theme.tokens.color("accent"), 2))
        x = area.left() + 1
        painter.drawLine(QPointF(x, area.top() + 5), QPointF(x, area.bottom() - 5))


def _cut(text: str, column: int, metrics: QFontMetrics, room: float) -> str:
    """Return the text of a cell as far as there is room; of a path, the end says most."""
    if column == Column.NAME:
        return cut_path(text, metrics, room)
    is_count = column in (Column.TYPE, Column.SHAPE) and text[:1].isdigit() and "\u00d7" not in text
    if is_count and metrics.horizontalAdvance(text) > room:
        count = text.partition(" ")[0]  # a part of a number would be a wrong one
        return count if metrics.horizontalAdvance(count) <= room else "\u2026"
    return metrics.elidedText(text, Qt.TextElideMode.ElideRight, int(room))


def spans_in_cut(spans: list[Span], name: str, text: str) -> list[Span]:
    """Return what to mark in the part of a name that is shown: all of it where the match is not in it."""
    if text == name or not spans:
        return spans
    gone = len(name) - len(text)
    if name.endswith(text[1:]):
        found = [(max(start - gone, 1), end - gone) for start, end in spans if end - gone > 1]
        return found or [(0, len(text))]
    return [(0, len(text))]


def spans_in_name(query: Query, node: Node, name: str) -> list[Span]:
    path = unescaped_path(node.path.rstrip("/.") if node.kind == "group" else node.path)
    start = len(path) - len(name)
    if start < 0 or not path.endswith(name):
        return []
    cut = ((max(first - start, 0), last - start) for first, last in query.spans(path))
    return [(first, last) for first, last in cut if last > first]


def _chevron(middle: QPointF, *, is_open: bool) -> QPolygonF:
    """Return the corners of an arrow that points down, or to the right."""
    flat, steep = (4.0, 2.0) if is_open else (2.0, 4.0)
    x, y = middle.x(), middle.y() + 0.5
    if is_open:
        return QPolygonF([QPointF(x - flat, y - steep), QPointF(x, y + steep), QPointF(x + flat, y - steep)])
    return QPolygonF([QPointF(x - flat, y - steep), QPointF(x + flat, y), QPointF(x - flat, y + steep)])


def indent_for(deepest: int, width: int) -> int:
    """Return the indent of a level with which the deepest shows its name, but never less than can be seen."""
    room = width - ARROW - _LEAST_NAME
    return min(INDENT, max(_NARROW_INDENT, room // max(1, min(deepest, _MOST_LEVELS))))


def least_width(deepest: int) -> int:
    return _NARROW_INDENT * min(deepest, _MOST_LEVELS) + ARROW + _LEAST_NAME


def _ink(tokens: Tokens, node: Node, column: int) -> QColor:
    """Return the ink of a cell: strong for names and for what a tensor has itself, pale for totals."""
    if column == Column.NAME:
        return tokens.color("text")
    if column == Column.VALUE or (node.kind == "tensor" and column in (Column.DEVICE, Column.SHAPE)):
        return tokens.color("text")
    return tokens.color("muted")
