"""What all charts are: a row of parts with a place, words and perhaps a search, which `plot.py` draws."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from PySide6.QtCore import QRectF

from inspector.report.words.values import format_number

if TYPE_CHECKING:
    from inspector.gui.charts.plot import Plot
    from inspector.gui.theme.theme import Tokens

_LEAST_LENGTH = 1e-300
"""What can be divided once more: a double has no smaller parts of it."""
Tick = tuple[float, str]


class Drawing:
    """A chart as data. A subclass draws it, and knows the parts that can be pointed at."""

    name = ""
    description = ""  # for those who do not see it
    count = 0  # of its parts
    height = 0  # in pixels; 0 where the widget decides
    margins = 0.0, 0.0, 0.0, 0.0  # around the axes, from the left one on
    zooms = ""  # the axes that can be zoomed and moved
    is_down = False  # whether places are counted from the top
    reach = 0.0  # how near to a part is on it, in pixels: a point has no size

    def draw(self, plot: Plot, tokens: Tokens) -> None:
        """Set axes and range, and draw everything that moves with them."""

    def annotate(self, plot: Plot, tokens: Tokens) -> None:
        """Write what stays readable at any zoom; called again when the range changes."""

    def area(self, part: int) -> QRectF:
        raise NotImplementedError

    def part_at(self, x: float, y: float) -> int | None:
        return next((part for part in range(self.count) if self.area(part).contains(x, y)), None)

    def words(self, part: int) -> str:
        raise NotImplementedError

    def query(self, part: int) -> str:  # noqa: ARG002  # of most charts no part can be searched for
        return ""

    def step(self, part: int | None, across: int, down: int) -> int:
        """Return the part beside one; without one, that where the keys begin."""
        if part is None:
            return 0 if across + down > 0 else self.count - 1
        return min(max(part + across + down, 0), self.count - 1)


def round_step(length: float, most: float) -> float:
    """Return the least of 1, 2 or 5 times a power of ten that divides a length into few enough parts."""
    power = 10.0 ** math.floor(math.log10(length / most))
    return next((power * factor for factor in (1, 2, 5) if length / (power * factor) <= most), 10 * power)


def index_ticks(low: float, high: float, most: float) -> list[int]:
    step = max(1, round(round_step(high - low, max(most, 1.0)))) if high > low else 1
    return list(range(math.ceil(low / step) * step, math.floor(high) + 1, step))


def value_ticks(low: float, high: float, most: float) -> list[Tick]:
    """Return round numbers in a range, as shares of it; its ends where there are none to be told apart."""
    ends = [(0.0, format_number(low)), (1.0, format_number(high))]
    if not _LEAST_LENGTH < high - low < math.inf:
        return ends
    size = round_step(high - low, max(most, 2.0))
    values = [number * size for number in range(math.ceil(low / size), math.floor(high / size) + 1)]
    texts = [format_number(round(value) if size >= 1 else value) for value in values]
    if len(set(texts)) < max(2, len(texts)):  # so near to each other that their texts are alike
        return ends
    return [((value - low) / (high - low), text) for value, text in zip(values, texts, strict=True)]
