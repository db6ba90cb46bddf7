"""A small picture in memory: filled shapes with smooth edges, and the PNG of it."""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterable, Sequence

Color = tuple[int, int, int]
Point = tuple[float, float]

_CHANNELS = 4
_HALF = 0.5


class Canvas:
    """A square of pixels, transparent at first; places are measured from its upper left corner."""

    def __init__(self, edge: int) -> None:
        """Begin with nothing on it."""
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
    """Add the pixels near a segment, each with the share of it that lies within the radius."""
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
