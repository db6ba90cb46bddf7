"""The picture of a file that file managers show in place of its icon.

File managers ask for one for each file of a folder, one process each, without a screen and before anybody has
decided to open it. So it is drawn by plain arithmetic, within tighter bounds than a file that is opened.
"""

from __future__ import annotations

import json
import math
import struct
import zlib
from collections.abc import Iterable, Sequence
from functools import lru_cache

from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.totals import device_totals
from inspector.records import dataclass, replace
from inspector.report.colors import NEUTRAL, device_colors
from inspector.resources import resource_path
from inspector.safety.verdict import judge

# A small picture in memory: filled shapes with smooth edges, and the PNG of it.

Color = tuple[int, int, int]
Point = tuple[float, float]

_CHANNELS = 4
_HALF = 0.5


class Canvas:
    """A square of pixels, transparent at first; places are measured from its upper left corner."""

    def __init__(self, edge: int) -> None:
        self.edge = edge
        self._pixels = bytearray(edge * edge * _CHANNELS)

    def pixel(self, x: int, y: int) -> tuple[int, ...]:
        """Return red, green, blue and opacity of a pixel."""
        at = (y * self.edge + x) * _CHANNELS
        return tuple(self._pixels[at : at + _CHANNELS])

    def fill(self, box: tuple[float, float, float, float], radius: float, color: Color) -> None:
        """Fill a rectangle with round corners, given by its left, upper, right and lower edge."""
        left, top, right, bottom = (round(edge) for edge in box)
        radius = max(min(radius, (right - left) / 2, (bottom - top) / 2), 0.0)
        for y in range(top, bottom):
            # How far the corner reaches into this row, which is that far from the straight part.
            inside = min(y + _HALF - top, bottom - y - _HALF)
            depth = radius - inside
            cut = radius - math.sqrt(radius * radius - depth * depth) if depth > 0 else 0.0
            first, last = left + math.ceil(cut), right - math.ceil(cut)
            self._span(y, first, last, color)
            if edge := math.ceil(cut) - cut:
                self.blend({(first - 1, y): edge, (last, y): edge}.items(), color)

    def stroke(self, lines: Iterable[Sequence[Point]], width: float, color: Color) -> None:
        """Draw lines from point to point with round ends; one that is crossed is not drawn twice."""
        cover: dict[tuple[int, int], float] = {}
        for line in lines:
            for start, end in zip(line, line[1:] or line, strict=False):
                _cover_segment(cover, start, end, width / 2)
        self.blend(cover.items(), color)

    def blend(self, cover: Iterable[tuple[tuple[int, int], float]], color: Color) -> None:
        """Lay a color over pixels, each as far as it is covered."""
        for (x, y), share in cover:
            if not (0 <= x < self.edge and 0 <= y < self.edge):
                continue
            at = (y * self.edge + x) * _CHANNELS
            below = self._pixels[at + 3] / 255
            whole = share + below * (1 - share)
            for channel, value in enumerate(color):
                under = self._pixels[at + channel] * below * (1 - share)
                self._pixels[at + channel] = round((value * share + under) / whole)
            self._pixels[at + 3] = round(whole * 255)

    def to_png(self) -> bytes:
        """Write it as a PNG, see https://www.w3.org/TR/png-3/."""
        row = self.edge * _CHANNELS
        rows = (self._pixels[at : at + row] for at in range(0, len(self._pixels), row))
        head = struct.pack(">IIBBBBB", self.edge, self.edge, 8, 6, 0, 0, 0)
        data = zlib.compress(b"".join(b"\0" + line for line in rows))
        chunks = ((b"IHDR", head), (b"IDAT", data), (b"IEND", b""))
        return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, content) for name, content in chunks)

    def _span(self, y: int, first: int, last: int, color: Color) -> None:
        first, last = max(first, 0), min(last, self.edge)
        if 0 <= y < self.edge and first < last:
            at = (y * self.edge + first) * _CHANNELS
            self._pixels[at : at + (last - first) * _CHANNELS] = bytes((*color, 255)) * (last - first)


def _cover_segment(cover: dict[tuple[int, int], float], start: Point, end: Point, radius: float) -> None:
    (x0, y0), (x1, y1) = start, end
    dx, dy = x1 - x0, y1 - y0
    length = dx * dx + dy * dy or 1.0
    reach = radius + 1
    for y in range(math.floor(min(y0, y1) - reach), math.ceil(max(y0, y1) + reach)):
        for x in range(math.floor(min(x0, x1) - reach), math.ceil(max(x0, x1) + reach)):
            px, py = x + _HALF - x0, y + _HALF - y0
            along = min(max((px * dx + py * dy) / length, 0.0), 1.0)
            share = radius + _HALF - math.hypot(px - along * dx, py - along * dy)
            if share > cover.get((x, y), 0.0):
                cover[x, y] = min(share, 1.0)


def _chunk(name: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))


LIMITS: Limits = replace(
    DEFAULT_LIMITS,
    pickle_nbytes=64 << 20,
    opcodes=4_000_000,
    values=1_000_000,
    seconds=5.0,
    parts=8_000_000,
    chars=32 << 20,
    inflated_nbytes=128 << 20,
)
"""A fifth of what a file may cost that somebody opens: a folder may hold a hundred, and nobody asked."""

_MOST_BARS = 12
_FEWEST_ROWS = 3
_LEFT, _RIGHT, _TOP, _BOTTOM = 14.0, 50.0, 10.0, 54.0
"""Where the bars stand, in parts of which the picture has 64."""
_PARTS = 64.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One bar.

    Attributes:
        color: Its number among the accelerators, or `NEUTRAL`.
        share: Its length against the longest one, from 0 to 1.
    """

    color: int
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """What is drawn.

    Attributes:
        bars: One for each device, in their fixed order; the last may stand for all others.
    """

    bars: tuple[Bar, ...]
    is_dangerous: bool


def draw_file(path: str, edge: int) -> bytes:
    """Draw the picture of a file as a PNG."""
    return draw(picture_of(open_checkpoint(path, LIMITS)), edge)


def picture_of(checkpoint: Checkpoint) -> Picture:
    """Return what is drawn of a checkpoint."""
    totals = device_totals(checkpoint)
    colors = device_colors(row.device for row in totals)
    bars = [(colors[row.device], row.nbytes) for row in totals]
    if len(bars) > _MOST_BARS:
        rest = bars[_MOST_BARS - 1 :]
        bars[_MOST_BARS - 1 :] = [(NEUTRAL, sum(nbytes for _, nbytes in rest))]
    longest = max((nbytes for _, nbytes in bars), default=0) or 1
    return Picture(
        bars=tuple(Bar(color=color, share=nbytes / longest) for color, nbytes in bars),
        is_dangerous=judge(checkpoint).may_harm,
    )


def draw(picture: Picture, edge: int) -> bytes:
    """Draw a picture as a PNG: a sheet of paper with its bars."""
    canvas, unit = Canvas(edge), edge / _PARTS
    palette = _palette()
    line = max(unit / 2, 1.0)
    sheet = (8 * unit, 2 * unit, 56 * unit, 62 * unit)
    canvas.fill(sheet, 4 * unit, palette["border_strong"])
    left, top, right, bottom = sheet
    canvas.fill((left + line, top + line, right - line, bottom - line), 4 * unit - line, palette["surface"])
    _draw_bars(canvas, picture.bars, palette, unit)
    if picture.is_dangerous:
        _draw_sign(canvas, palette, unit)
    return canvas.to_png()


def _draw_bars(canvas: Canvas, bars: tuple[Bar, ...], palette: dict[str, Color], unit: float) -> None:
    height = (_BOTTOM - _TOP) / max(len(bars), _FEWEST_ROWS)
    thick = height * 0.72
    room = (_RIGHT - _LEFT) * unit
    for row, bar in enumerate(bars):
        bottom = _TOP + height * (row + 1) - height * 0.14
        top, left = (bottom - thick) * unit, _LEFT * unit
        canvas.fill((left, top, left + room, bottom * unit), thick * unit / 2, palette["grid"])
        if bar.share:
            end = left + max(room * bar.share, thick * unit)
            canvas.fill((left, top, end, bottom * unit), thick * unit / 2, _color_of(bar, palette))


def _draw_sign(canvas: Canvas, palette: dict[str, Color], unit: float) -> None:
    x, top, bottom, half = 53 * unit, 4 * unit, 15 * unit, 6.5 * unit
    corners = [(x, top), (x + half, bottom), (x - half, bottom), (x, top)]
    inner = [
        [(x - half * part / 8, y), (x + half * part / 8, y)]
        for part, y in ((part, top + (bottom - top) * part / 8) for part in range(9))
    ]
    canvas.stroke([corners], 5 * unit, palette["surface"])
    canvas.stroke([corners, *inner], 3 * unit, palette["bad_fill"])
    mark = [[(x, 7 * unit), (x, 11.2 * unit)], [(x, 14.4 * unit)]]
    canvas.stroke(mark, max(1.8 * unit, 1.0), palette["on_fill"])


def _color_of(bar: Bar, palette: dict[str, Color]) -> Color:
    if bar.color == NEUTRAL:
        return palette["cpu"]
    return palette[f"device {bar.color % int(_read_theme()['turn'])}"]


@lru_cache(maxsize=1)
def _read_theme() -> dict[str, str]:
    theme = json.loads(resource_path("themes/light.json").read_text(encoding="utf-8"))
    devices = {f"device {index}": color for index, color in enumerate(theme["devices"])}
    return {**theme["colors"], "cpu": theme["cpu"], **devices, "turn": str(len(devices))}


def _palette() -> dict[str, Color]:
    return {
        name: (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))
        for name, text in _read_theme().items()
        if text.startswith("#")
    }
