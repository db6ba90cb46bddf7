"""Bars of bytes: a click on a segment searches for it, and what is selected is outlined."""

from __future__ import annotations

from collections.abc import Collection
from itertools import accumulate, chain, pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPen

from inspector.gui.charts.drawing import Drawing, Tick, round_step
from inspector.gui.theme.theme import Tokens, ink_on
from inspector.overriding import override
from inspector.report.charts.bars import Bar, Chart, Segment
from inspector.units import format_nbytes

if TYPE_CHECKING:
    from inspector.gui.charts.plot import Plot

_CAPTION, _BAR, _GAP, _AXIS = 20, 26, 10, 24
_LINE, _THIN, _LABEL, _FIGURE, _SHARE, _SWATCH, _ABOVE = 22, 12, 136, 104, 48, 10, 6
"""Of a legend and a ranking: their lines, the bars in them, and the words at their left and right."""
_RADIUS, _LEAST, _PAD = 5.0, 2.0, 8.0
_TICK_PIXELS, _HALF_TEXT = 90, 22
_MOST_COLUMNS = 2
"""More bars have their figures beside them alone."""


class Bars(Drawing):
    """The bars of a `Chart`, in pixels, with their legend.

    Bars without a capacity stand on one scale, with its axis below. One with a capacity stands in a track of
    its own: the whole width is its capacity, or its length if that is more. So it is in a ranking, where each
    bar is a share of all of them in a line of its own.
    """

    is_down = True

    def __init__(self, chart: Chart, devices: Collection[str] = ()) -> None:
        bars = self._bars = chart.bars
        self._parts = [(bar, part) for bar in bars for part in bar.segments if part.nbytes > 0]
        self._areas: list[QRectF] = []
        self._is_by_device = all(part.label in devices or part.is_missing for _, part in self._parts)
        is_plain = all(
            [part.label for part in bar.segments if not part.is_missing] == [bar.label] for bar in bars
        )
        free = [bar.nbytes for bar in bars if bar.capacity_nbytes is None]
        self._is_ranking = is_plain and len(free) == len(bars)
        self._sum, self._longest = sum(free), 0 if self._is_ranking else max(free, default=0)
        self._legend = {} if is_plain else {part.label: part for _, part in self._parts}
        self._columns = bars if len(bars) <= _MOST_COLUMNS else ()
        lines = len(self._legend) + (len(self._columns) > 1)
        self._below = lines * _LINE + _ABOVE if self._legend else 0
        self.margins = 0, 0, 0, self._below
        line = _LINE if self._is_ranking else _CAPTION + _BAR + _GAP
        self.height = len(bars) * line + (_AXIS if self._longest else 0) + self._below
        self.name, self.count = chart.title, len(self._parts)
        self.description = "; ".join(map(self._describe, bars))

    # Where things are.

    def _line(self, number: int, width: float) -> QRectF:
        if self._is_ranking:
            top = number * _LINE + (_LINE - _THIN) / 2
            return QRectF(_LABEL, top, max(width - _LABEL - _FIGURE - _SHARE, 20.0), _THIN)
        return QRectF(0, number * (_CAPTION + _BAR + _GAP) + _CAPTION, width, _BAR)

    def _full(self, bar: Bar) -> int:
        if bar.capacity_nbytes is None:
            return max(self._sum if self._is_ranking else self._longest, 1)
        return max(bar.capacity_nbytes, bar.nbytes, 1)

    def _limit(self, bar: Bar, line: QRectF) -> float:
        room = self._full(bar) if bar.capacity_nbytes is None else bar.capacity_nbytes
        return line.left() + line.width() * room / self._full(bar)

    def _place(self, bar: Bar, line: QRectF) -> list[QRectF]:
        """Return the places of a bar's segments; the smallest gets two pixels."""
        length = line.width() * bar.nbytes / self._full(bar)
        sizes = [part.nbytes for part in bar.segments if part.nbytes > 0]
        widths = [max(_LEAST, length * nbytes / bar.nbytes) for nbytes in sizes]
        scale = max(length, _LEAST) / (sum(widths) or 1)
        edges = [round(line.left() + edge * scale) for edge in accumulate(widths, initial=0.0)]
        return [QRectF(left, line.top(), right - left, line.height()) for left, right in pairwise(edges)]

    # Drawing.

    @override
    def draw(self, plot: Plot, tokens: Tokens) -> None:
        if self._longest:
            plot.set_axis("bottom", self._ticks)
        plot.set_range((0, plot.room.width()), (0, plot.room.height()))
        lines = [(bar, self._line(number, plot.room.width())) for number, bar in enumerate(self._bars)]
        self._areas = list(chain.from_iterable(self._place(bar, line) for bar, line in lines))
        tracks = [line for bar, line in lines if self._is_ranking or bar.capacity_nbytes is not None]
        plot.add_bars(tracks, [tokens.color("neutral_soft")] * len(tracks))
        plot.add_bars(self._areas, [self._color(tokens, part) for _, part in self._parts])
        hatch = QColor(ink_on(tokens.color("bad_fill")))
        hatch.setAlpha(150)
        lost = [place for place, (_, part) in zip(self._areas, self._parts, strict=True) if part.is_missing]
        plot.add_bars(lost, [tokens.color("surface")] * len(lost))
        plot.add_bars(lost, [QBrush(tokens.color("bad"), Qt.BrushStyle.BDiagPattern)] * len(lost))
        for bar, line in lines:
            if bar.excess_nbytes:  # red and hatched: the color alone would not do
                beyond = QRectF(QPointF(self._limit(bar, line), line.top()), line.bottomRight())
                plot.add_bars([beyond], [tokens.color("bad_fill")])
                plot.add_bars([beyond], [QBrush(hatch, Qt.BrushStyle.BDiagPattern)])

    @override
    def annotate(self, plot: Plot, tokens: Tokens) -> None:
        for number, bar in enumerate(self._bars):
            line = self._line(number, plot.room.width())
            areas = [] if self._is_ranking or bar.capacity_nbytes is not None else self._place(bar, line)
            drawn = areas[0] | areas[-1] if areas else line
            plot.fill(drawn, tokens.color("surface"), _RADIUS, corners=True)
            (self._write_rank if self._is_ranking else self._write_caption)(plot, tokens, bar, line)
        if not self._is_ranking:
            self._write_labels(plot, tokens)
            self._write_legend(plot, tokens)

    def _write_rank(self, plot: Plot, tokens: Tokens, bar: Bar, line: QRectF) -> None:
        room = QRectF(0, line.center().y() - _LINE / 2, _LABEL - _PAD, _LINE)
        plot.write(room, bar.label, tokens.color("accent" if bar.segments[0].query else "text"))
        room.setWidth(plot.room.width())
        self._write_figures(plot, room, [bar.text, self._percent(bar)], tokens.color("text"), [0, _SHARE])

    def _write_caption(self, plot: Plot, tokens: Tokens, bar: Bar, line: QRectF) -> None:
        room, excess = line.adjusted(0, -_CAPTION, 0, -_BAR - 3), bar.excess_nbytes
        plot.write(room, bar.text, tokens.color("bad" if excess else "text"), right=True)
        room.setWidth(max(room.width() - plot.advance(bar.text) - 2 * _PAD, 24.0))
        plot.write(room, bar.label, tokens.color("muted"))
        if excess:
            x, pen = self._limit(bar, line), QPen(tokens.color("text"), 2)
            plot.stroke(QLineF(x, line.top() - 3, x, line.bottom() + 3), pen)

    def _write_labels(self, plot: Plot, tokens: Tokens) -> None:
        for (bar, part), area in zip(self._parts, self._areas, strict=True):
            room = area.adjusted(_PAD, 0, -_PAD, 0)
            room.setRight(min(room.right(), self._limit(bar, QRectF(0, 0, plot.room.width(), 0)) - _PAD))
            if not part.is_missing and plot.advance(part.label, small=True) <= room.width():
                plot.write(room, part.label, ink_on(self._color(tokens, part)), small=True)

    def _write_legend(self, plot: Plot, tokens: Tokens) -> None:
        """Write a line for each color, with a column for each bar, unless there are many."""
        bars, room = self._columns, QRectF(0, self.height - self._below + _ABOVE, plot.room.width(), _LINE)
        apart = [max(_FIGURE, plot.advance(bar.label) + 2 * _PAD) for bar in bars]
        if self._legend and len(bars) > 1:
            self._write_figures(plot, room, [bar.label for bar in bars], tokens.color("muted"), apart)
            room.translate(0, _LINE)
        for label, part in self._legend.items():
            swatch = QRectF(0, room.center().y() - _SWATCH / 2, _SWATCH, _SWATCH)
            plot.fill(swatch, self._color(tokens, part), 3.5)
            plot.write(room.adjusted(_LINE, 0, -sum(apart), 0), label, tokens.color("text"))
            sums = [sum(each.nbytes for each in bar.segments if each.label == label) for bar in bars]
            figures = [format_nbytes(nbytes) if nbytes else "\u2013" for nbytes in sums]
            self._write_figures(plot, room, figures, tokens.color("text"), apart)
            room.translate(0, _LINE)

    def _write_figures(
        self, plot: Plot, room: QRectF, texts: list[str], ink: QColor, apart: list[float]
    ) -> None:
        """Write texts from the right: each ends where the room of the one behind it begins."""
        right = 0.0
        for text, width in zip(reversed(texts), reversed(apart), strict=True):
            plot.write(room.adjusted(0, 0, -right, 0), text, ink, right=True)
            right += width

    def _color(self, tokens: Tokens, part: Segment) -> QColor:
        """Return the color of a segment; what is no device gets one that no device has."""
        if part.is_missing:
            return tokens.color("bad")
        if self._is_by_device:
            return tokens.device(part.color)
        return tokens.shade(0 if self._is_ranking else part.color)

    def _ticks(self, low: float, high: float, pixels: float) -> list[Tick]:
        step = max(1, round_step(self._longest, max(2.0, pixels // _TICK_PIXELS)))
        values = [round(number * step) for number in range(1, int(self._longest // step) + 1)]
        ticks = [(high * value / self._longest, format_nbytes(value).replace(".0 ", " ")) for value in values]
        zero = low, "\u20070"  # in the middle of its place, half of the zero would be cut off
        return [zero, *(tick for tick in ticks if tick[0] < high - _HALF_TEXT)]

    # Reading.

    @override
    def area(self, part: int) -> QRectF:
        return self._areas[part]

    @override
    def query(self, part: int) -> str:
        return self._parts[part][1].query

    @override
    def words(self, part: int) -> str:
        bar, segment = self._parts[part]
        share = segment.nbytes / (self._sum if self._is_ranking else bar.nbytes)
        said = f"{segment.label}: {format_nbytes(segment.nbytes)}, {share:.1%} ({segment.nbytes:,} bytes)"
        found = f"\nClick to search for {segment.query}" if segment.query else ""
        return f"{said}{_limit_words(bar)}{found}"

    def _describe(self, bar: Bar) -> str:
        parts = ", ".join(f"{part.label} {format_nbytes(part.nbytes)}" for part in bar.segments)
        said = f"{bar.text}, {self._percent(bar)}" if self._is_ranking else parts or "nothing"
        return f"{bar.label}: {said}{_limit_words(bar)}"

    def _percent(self, bar: Bar) -> str:
        share = bar.nbytes / self._full(bar)
        return f"{share:.0%}" if share >= 0.01 else "<1%"


def _limit_words(bar: Bar) -> str:
    if bar.capacity_nbytes is None:
        return ""
    left, excess = bar.capacity_nbytes - bar.nbytes, bar.excess_nbytes
    found = f"{format_nbytes(excess)} too much" if excess else f"{format_nbytes(left)} left"
    return f", room for {format_nbytes(bar.capacity_nbytes)}: {found}"
