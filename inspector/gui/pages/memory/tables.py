"""The figures of a chart as a table: the legend of stacked bars, or a ranking with a bar in each line."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from PySide6.QtCore import QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPaintEvent
from PySide6.QtWidgets import QGridLayout, QLabel, QSizePolicy, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, describe, named, plain_label
from inspector.gui.widgets.marks import Swatch
from inspector.overriding import override
from inspector.session.screen import Chart, Segment
from inspector.units import format_nbytes

_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LABEL_WIDTH = 128
_FIGURE_WIDTH = 72
_MOST_COLUMNS = 2
"""More bars have their figures beside them alone."""
Ask = Callable[[str], object]


def is_ranking(chart: Chart) -> bool:
    """Return whether each bar has a single part of its own name and no track, so that no legend is needed."""
    return all(
        bar.capacity_nbytes is None and len(bar.segments) == 1 and bar.segments[0].label == bar.label
        for bar in chart.bars
    )


def needs_legend(chart: Chart) -> bool:
    """Return whether the bars do not say all by themselves."""
    return not all(len(bar.segments) == 1 and bar.segments[0].label == bar.label for bar in chart.bars)


def build_legend(chart: Chart, color_of: Callable[[Segment], QColor]) -> QWidget:
    """Build the legend of stacked bars: one line a color, one column a bar, unless there are many."""
    holder, grid = _build_grid()
    grid.setColumnStretch(1, 1)
    parts = {part.label: part for bar in chart.bars for part in bar.segments}
    bars = chart.bars if len(chart.bars) <= _MOST_COLUMNS else ()
    if len(bars) > 1:
        for column, bar in enumerate(bars, start=2):
            grid.addWidget(plain_label(bar.label, "small"), 0, column, _RIGHT)
    for line, (label, part) in enumerate(parts.items(), start=1):
        grid.addWidget(Swatch(partial(color_of, part), 10), line, 0)
        grid.addWidget(ElidedLabel(label), line, 1)
        for column, bar in enumerate(bars, start=2):
            nbytes = sum(each.nbytes for each in bar.segments if each.label == label)
            grid.addWidget(_figure(format_nbytes(nbytes) if nbytes else "\u2013"), line, column)
    return holder


def has_rooms(chart: Chart) -> bool:
    """Return whether each bar stands in a memory of its own."""
    return bool(chart.bars) and all(bar.capacity_nbytes is not None for bar in chart.bars)


def build_rooms(chart: Chart) -> QWidget:
    """Build the table of bars that stand in a memory: what each takes of how much, and what that leaves."""
    holder, grid = _build_grid()
    grid.setColumnStretch(0, 1)
    for column, title in enumerate(("", "Bytes", "Memory", "Left")):
        grid.addWidget(plain_label(title, "small"), 0, column, _RIGHT)
    for line, bar in enumerate(chart.bars, start=1):
        room, excess = bar.capacity_nbytes or 0, bar.excess_nbytes
        left = f"\u2212{format_nbytes(excess)}" if excess else format_nbytes(room - bar.nbytes)
        grid.addWidget(ElidedLabel(bar.label), line, 0)
        for column, text in enumerate((format_nbytes(bar.nbytes), format_nbytes(room), left), start=1):
            grid.addWidget(_figure(text, "warning" if column == 3 and excess else ""), line, column)
    return holder


def build_ranking(theme: Theme, chart: Chart, marks: tuple[str, ...], ask: Ask) -> QWidget:
    """Build a ranking: label, share as a bar, and size; a label that can be searched for is a button."""
    holder, grid = _build_grid()
    grid.setColumnMinimumWidth(0, _LABEL_WIDTH)
    grid.setColumnStretch(1, 1)
    total = sum(bar.segments[0].nbytes for bar in chart.bars) or 1
    for line, bar in enumerate(chart.bars):
        part = bar.segments[0]
        share = part.nbytes / total
        grid.addWidget(_label_of(part, ask), line, 0)
        is_marked = bool(part.query) and part.query in marks
        spoken = f"{bar.label}: {share:.0%}{', of what is selected' if is_marked else ''}"
        grid.addWidget(named(ShareBar(theme, share, is_marked=is_marked), spoken=spoken), line, 1)
        grid.addWidget(_figure(bar.text), line, 2)
        percent = _figure(f"{share:.0%}" if share >= 0.01 else "<1%", "small")
        percent.setMinimumWidth(36)
        grid.addWidget(percent, line, 3)
    return holder


class ShareBar(QWidget):
    """A share as a bar on a track, outlined where what is selected belongs to it."""

    def __init__(self, theme: Theme, share: float, *, is_marked: bool = False) -> None:
        super().__init__()
        self._theme, self._share, self._is_marked = theme, share, is_marked
        self.setFixedHeight(12)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        tokens = self._theme.tokens
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(tokens.color("neutral_soft"))
        painter.drawRoundedRect(QRectF(self.rect()), 4, 4)
        painter.setBrush(tokens.shade(0))
        width = max(3.0, self.width() * self._share)
        painter.drawRoundedRect(QRectF(0, 0, width, self.height()), min(4.0, width / 2), 4)
        if self._is_marked:
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.setPen(tokens.color("text"))
            painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4)
        painter.end()


def _label_of(part: Segment, ask: Ask) -> QWidget:
    if not part.query:
        label = ElidedLabel(part.label)
        label.setMaximumWidth(_LABEL_WIDTH)
        return label
    button = make_button(part.label, partial(ask, part.query), kind="link")
    describe(button, f"Search for {part.query}")
    button.setMaximumWidth(2 * _LABEL_WIDTH)
    return button


def _build_grid() -> tuple[QWidget, QGridLayout]:
    holder = QWidget()
    grid = QGridLayout(holder)
    grid.setContentsMargins(0, 0, 0, 0)
    grid.setHorizontalSpacing(12)
    grid.setVerticalSpacing(6)
    return holder, grid


def _figure(text: str, role: str = "") -> QLabel:
    label = plain_label(text, role)
    label.setMinimumWidth(_FIGURE_WIDTH)
    label.setAlignment(_RIGHT)
    return label
