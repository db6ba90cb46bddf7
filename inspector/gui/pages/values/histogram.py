"""A histogram, with a linear or logarithmic height; the mouse or the arrow keys read one bar."""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFontMetricsF, QKeyEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import plain_tooltip
from inspector.overriding import override
from inspector.report.words.values import format_number
from inspector.values.statistics import Number

_HEIGHT, _AXIS, _GAP = 190, 22, 6
_LEAST_BAR = 2.0
_MOST_TICKS = 6
_LEAST_LENGTH = 1e-300
"""What can be divided once more: a double has no smaller parts of it."""
_STEPS = {Qt.Key.Key_Left: -1, Qt.Key.Key_Right: 1}


class HistogramView(QWidget):
    """Shows counts between edges."""

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._edges: tuple[Number, ...] = ()
        self._counts: tuple[int, ...] = ()
        self._labels: tuple[str, ...] = ()
        self._ticks: tuple[tuple[float, str], ...] = ()
        self._is_log = False
        self._current: int | None = None
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMinimumHeight(_HEIGHT)
        theme.changed.connect(self.update)

    def show_counts(
        self, edges: tuple[Number, ...], counts: tuple[int, ...], labels: tuple[str, ...], summary: str
    ) -> None:
        """Show counts; `labels` are those of the edges."""
        self._edges, self._counts, self._labels = edges, counts, labels
        self._ticks = ticks_of(edges, labels)
        self._current = None
        self.setAccessibleDescription(summary)
        self.update()

    def show_heights(self, *, logarithmic: bool) -> None:
        """Choose how high bars are: as their counts, or as the logarithm of those."""
        self._is_log = logarithmic
        self.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(360, _HEIGHT)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        area = self._area()
        tokens = self._theme.tokens
        painter.setPen(QPen(tokens.color("border_strong"), 1))
        painter.drawLine(area.bottomLeft(), area.bottomRight())
        width = area.width() / max(1, len(self._counts))
        most = self._height(max(self._counts, default=0)) or 1.0
        for number, count in enumerate(self._counts):
            if count:
                height = max(_LEAST_BAR, area.height() * self._height(count) / most)
                box = QRectF(
                    area.left() + number * width, area.bottom() - height, max(1.0, width - 1), height
                )
                painter.fillRect(box, self._ink(number))
        self._paint_axis(painter, area)
        self._paint_most(painter, area)
        if self.hasFocus():
            painter.setPen(QPen(tokens.color("accent"), 1))
            painter.drawRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5))
        painter.end()

    def _ink(self, number: int) -> QColor:
        tokens = self._theme.tokens
        return tokens.color("warning_fill") if number == self._current else tokens.shade(0)

    def _height(self, count: int) -> float:
        return math.log10(count) + 0.3 if self._is_log and count else float(count)

    def _paint_axis(self, painter: QPainter, area: QRectF) -> None:
        painter.setPen(self._theme.tokens.color("faint"))
        metrics = QFontMetricsF(self.font())
        right = -math.inf
        for share, text in self._ticks:
            width = metrics.horizontalAdvance(text)
            middle = area.left() + area.width() * share
            left = min(max(area.left(), middle - width / 2), area.right() - width)
            if left < right + 2 * _GAP:
                continue
            painter.drawLine(QPointF(middle, area.bottom()), QPointF(middle, area.bottom() + 3))
            painter.drawText(QPointF(left, area.bottom() + metrics.ascent() + 4), text)
            right = left + width

    def _paint_most(self, painter: QPainter, area: QRectF) -> None:
        """Write how high the highest bar is."""
        if self._counts:
            painter.setPen(self._theme.tokens.color("faint"))
            text = f"{max(self._counts):,}"
            painter.drawText(QPointF(area.left(), area.top() - 4), text)

    def _area(self) -> QRectF:
        top = QFontMetricsF(self.font()).height() + 4
        return QRectF(self.rect()).adjusted(_GAP, top, -_GAP, -_AXIS)

    # --- reading one bar ------------------------------------------------------------------------------------

    def words_of(self, number: int) -> str:
        """Return what a bar stands for."""
        low, high = self._labels[number], self._labels[number + 1]
        return f"{low} to below {high}: {self._counts[number]:,}"

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        area = self._area()
        number = int((event.position().x() - area.left()) / max(1.0, area.width()) * len(self._counts))
        self._choose(number if 0 <= number < len(self._counts) else None, event.globalPosition())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        step = _STEPS.get(Qt.Key(event.key()))
        if step is None or not self._counts:
            super().keyPressEvent(event)
            return
        current = (-1 if step > 0 else len(self._counts)) if self._current is None else self._current
        number = min(max(0, current + step), len(self._counts) - 1)
        area = self._area()
        x = area.left() + area.width() * (number + 0.5) / len(self._counts)
        self._choose(number, self.mapToGlobal(QPointF(x, area.center().y())))

    def _choose(self, number: int | None, place: QPointF) -> None:
        if number != self._current:
            self._current = number
            words = "" if number is None else self.words_of(number)
            self.setAccessibleName(f"Histogram. {words}" if words else "Histogram")
            self.update()
            QToolTip.showText(place.toPoint(), plain_tooltip(words), self)


def ticks_of(edges: tuple[Number, ...], labels: tuple[str, ...]) -> tuple[tuple[float, str], ...]:
    """Return where on the axis what is written, as shares of its length: round numbers between even edges.

    Powers of two, whose labels are not those of the edges, are written at some of the edges.
    """
    last = len(edges) - 1
    if last < 1:
        return ()
    if labels[0] != format_number(edges[0]):
        step = max(1, round(last / _MOST_TICKS))
        return tuple((place / last, labels[place]) for place in range(0, last + 1, step))
    low, high = float(edges[0]), float(edges[-1])
    if not _LEAST_LENGTH < high - low < math.inf:
        return (0.0, labels[0]), (1.0, labels[-1])
    size = round_step(high - low)
    ticks = [number * size for number in range(math.ceil(low / size), math.floor(high / size) + 1)]
    texts = [format_number(round(tick) if size >= 1 else tick) for tick in ticks]
    if len(set(texts)) < max(2, len(texts)):  # so near to each other that their texts are alike
        return (0.0, labels[0]), (1.0, labels[-1])
    return tuple(((tick - low) / (high - low), text) for tick, text in zip(ticks, texts, strict=True))


def round_step(length: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that divides a length into few parts."""
    power = 10.0 ** math.floor(math.log10(length / _MOST_TICKS))
    return next(power * factor for factor in (1, 2, 5, 10) if length / (power * factor) <= _MOST_TICKS)


def edge_labels(edges: tuple[Number, ...]) -> tuple[str, ...]:
    """Return the labels of edges."""
    return tuple(format_number(edge) for edge in edges)


def octave_labels(exponent: int, count: int) -> tuple[str, ...]:
    """Return the labels of powers of two."""
    return tuple(f"2^{exponent + number}" for number in range(count + 1))
