"""Which picture a checkpoint has: a bar for each device, and a sign on a dangerous one."""

from __future__ import annotations

import json
from functools import lru_cache

from inspector.desktop.thumbnail.canvas import Canvas, Color
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.totals import device_totals
from inspector.records import dataclass, replace
from inspector.report.colors import NEUTRAL, device_colors
from inspector.resources import resource_path
from inspector.safety.verdict import judge

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
    """Draw a red triangle with an exclamation mark over the upper right corner."""
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
    """Return the colors of the window's light theme."""
    return {
        name: (int(text[1:3], 16), int(text[3:5], 16), int(text[5:7], 16))
        for name, text in _read_theme().items()
        if text.startswith("#")
    }
