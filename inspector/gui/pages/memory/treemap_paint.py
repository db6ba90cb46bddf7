"""Paints a treemap: cells in their colors, groups in frames with a tag, and labels where they fit."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QBrush, QColor, QFont, QFontMetricsF, QPainter, QPen

from inspector.gui.theme.theme import Tokens, ink_on, mixed
from inspector.gui.widgets.labels import cut_path
from inspector.report.charts.modules import ModuleMap, damage_in, labels_of, parts_of
from inspector.report.charts.treemap import Box, Cell, Frame, Picture
from inspector.units import format_nbytes

_PAD = 5
_LEAST_LABEL = 30
_TAG_ROOM, _TAG_WIDTH = (64, 34), 300
_MOST_TAGS = 80
_LEAST_TAG, _LEAST_CUT = 8, 6
"""How many letters of a name tell what it is, of a group and of one of many in it."""
_DIMMED, _HATCH = 0.8, 130
_FRAME_PIXELS = {1: 3, 2: 2}


def snapped(box: Box) -> QRect:
    """Return a box with edges between pixels, so that neighbors meet without a gap."""
    left, top = round(box.x), round(box.y)
    return QRect(left, top, round(box.x + box.width) - left, round(box.y + box.height) - top)


class _Label(NamedTuple):
    """What is written on a cell: a name, cut or not, and below it the size."""

    room: QRectF
    ink: QColor
    text: str
    name: str
    size: str


class TreemapPainter:
    """Paints one picture of a map."""

    def __init__(self, page: ModuleMap, tokens: Tokens, colors: Sequence[QColor], font: QFont) -> None:
        self._page, self._tokens, self._colors, self._font = page, tokens, colors, font
        self._strong = QFont(font)
        self._strong.setBold(True)
        self._metrics, self._strong_metrics = QFontMetricsF(font), QFontMetricsF(self._strong)
        self._ground = tokens.color("surface")
        dimmed = [mixed(color, self._ground, _DIMMED) for color in colors]
        self._shown = {False: [(color, ink_on(color)) for color in colors]}
        self._shown[True] = [(color, ink_on(color)) for color in dimmed]
        self._loose = tokens.color("neutral_soft")

    def paint(self, painter: QPainter, picture: Picture, matches: Sequence[int] | None) -> None:
        """Paint everything; with matches, cells without one are dimmed."""
        painter.setFont(self._font)
        tags = self._tags(picture.frames)
        labels: list[_Label] = []
        for cell in picture.cells:
            area = snapped(cell.box)
            if area.width() > 0 and area.height() > 0:
                is_dim = matches is not None and not self._is_match(cell, matches)
                covered = [place for place, _ in tags if place.intersects(area)]
                below = max((place.bottom() + 1 - area.y() for place in covered), default=0)
                label = self._paint_cell(painter, cell, area, below, is_dim=is_dim)
                if label is not None:
                    labels.append(label)
        for label in _told_apart(labels):
            self._paint_label(painter, label)
        self._paint_frames(painter, picture.frames)
        for place, text in tags:
            self._paint_tag(painter, place, text)

    def _is_match(self, cell: Cell, matches: Sequence[int]) -> bool:
        """Return whether a match is in a cell; in one of smaller rows, outside of those that are shown."""
        if cell.what == "loose":
            return False
        end = cell.node + 1 if cell.what == "own" else self._page.areas.end(cell.node)
        found = bisect_left(matches, end) - bisect_left(matches, cell.node)
        if cell.what == "rest":
            ends = map(self._page.areas.end, cell.shown)
            found -= sum(
                bisect_left(matches, stop) - bisect_left(matches, row)
                for row, stop in zip(cell.shown, ends, strict=True)
            )
            found -= bisect_left(matches, cell.node + 1) - bisect_left(matches, cell.node)
        return found > 0

    # Cells.

    def _paint_cell(
        self, painter: QPainter, cell: Cell, area: QRect, below: int, *, is_dim: bool
    ) -> _Label | None:
        inner = area.adjusted(0, 0, -1 if area.width() > 3 else 0, -1 if area.height() > 3 else 0)
        stripes = self._stripes(cell, inner.width(), inner.height())
        palette = self._shown[is_dim]
        for kind, x, y, width, height in stripes:
            painter.fillRect(inner.x() + x, inner.y() + y, width, height, palette[kind][0])
        if not stripes:
            painter.fillRect(inner, self._loose)
        ink = palette[stripes[0][0]][1] if stripes else ink_on(self._loose)
        if damage_in(self._page, cell):
            hatch = QColor(ink)
            hatch.setAlpha(_HATCH)
            painter.fillRect(inner, QBrush(hatch, Qt.BrushStyle.BDiagPattern))
        if inner.width() < _LEAST_LABEL and cell.what == "row":
            return None
        if cell.what in {"rest", "loose"} and min(inner.width(), inner.height()) > 8:
            self._paint_dashes(painter, inner, ink)
        room = inner if len(stripes) < 2 else QRect(inner.topLeft(), QSize(*stripes[0][3:]))
        return self._label(cell, room.adjusted(0, below, 0, 0), ink, is_tagged=below > 0)

    def _stripes(self, cell: Cell, width: int, height: int) -> list[tuple[int, int, int, int, int]]:
        """Return the parts of a cell, the largest first, as stripes across its longer side.

        Each is a kind with its place and size within the cell.
        """
        parts = parts_of(self._page, cell)
        held = sorted([(nbytes, kind) for kind, nbytes in enumerate(parts) if nbytes], reverse=True)
        if len(held) == 1:
            return [(held[0][1], 0, 0, width, height)]
        found, start, taken, is_wide = [], 0, 0, width >= height
        length = width if is_wide else height
        for nbytes, kind in held:
            taken += nbytes
            end = round(length * taken / cell.nbytes)
            if end > start:
                size = end - start
                found.append((kind, start, 0, size, height) if is_wide else (kind, 0, start, width, size))
            start = end
        return found

    def _paint_dashes(self, painter: QPainter, area: QRect, ink: QColor) -> None:
        pale = QColor(ink)
        pale.setAlpha(150)
        painter.setPen(QPen(pale, 1, Qt.PenStyle.DashLine))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(area.adjusted(2, 2, -3, -3))

    def _label(self, cell: Cell, area: QRect, ink: QColor, *, is_tagged: bool) -> _Label | None:
        """Return the first name of a cell that fits, else the last one cut; a number is never cut."""
        room = QRectF(area).adjusted(_PAD, 3, -_PAD, -3)
        if room.width() < _LEAST_LABEL or room.height() < self._metrics.height():
            return None
        labels = labels_of(self._page, cell)
        labels = labels[1:] or labels if is_tagged else labels
        for text in labels:
            if self._metrics.horizontalAdvance(text) <= room.width():
                return _Label(room, ink, text, text, format_nbytes(cell.nbytes))
        if cell.what == "rest":
            return None
        cut = cut_path(labels[-1], self._metrics, room.width())
        if len(cut) < _LEAST_CUT:
            return None
        return _Label(room, ink, cut, labels[-1], format_nbytes(cell.nbytes))

    def _paint_label(self, painter: QPainter, label: _Label) -> None:
        room, line = QRectF(label.room), self._metrics.height()
        painter.setPen(label.ink)
        painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, label.text)
        if room.height() >= 2 * line and self._metrics.horizontalAdvance(label.size) <= room.width():
            room.setTop(room.top() + line)
            painter.drawText(room, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignTop, label.size)

    # Groups.

    def _paint_frames(self, painter: QPainter, frames: Sequence[Frame]) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        for frame in frames:
            pixels = _FRAME_PIXELS.get(frame.depth, 0)
            if pixels:
                painter.setPen(QPen(self._ground, pixels))
                painter.drawRect(snapped(frame.box))

    def _tags(self, frames: Sequence[Frame]) -> list[tuple[QRect, str]]:
        """Return the tags of groups: one for all in the same corner, outer ones first, as far as they fit."""
        corners: dict[tuple[float, float], list[Frame]] = {}
        for frame in frames:
            if frame.depth and frame.box.width >= _TAG_ROOM[0] and frame.box.height >= _TAG_ROOM[1]:
                corners.setdefault((frame.box.x, frame.box.y), []).append(frame)
        found: list[tuple[QRect, str]] = []
        nodes = self._page.areas.tree.nodes
        for within in list(corners.values())[:_MOST_TAGS]:
            box = within[0].box
            room = min(box.width - 3 * _PAD, _TAG_WIDTH)
            name = " / ".join(nodes[frame.node].name for frame in within)
            text = cut_path(name, self._strong_metrics, room)
            if text != name and len(text) < _LEAST_TAG:
                continue
            width = round(self._strong_metrics.horizontalAdvance(text)) + 2 * _PAD
            height = round(self._strong_metrics.height()) + 2
            place = QRect(round(box.x) + 3, round(box.y) + 3, width, height)
            if not any(place.intersects(other) for other, _ in found):
                found.append((place, text))
        return found

    def _paint_tag(self, painter: QPainter, place: QRect, text: str) -> None:
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._ground)
        painter.drawRoundedRect(place, 3, 3)
        painter.setPen(self._tokens.color("text"))
        painter.setFont(self._strong)
        painter.drawText(place, Qt.AlignmentFlag.AlignCenter, text)
        painter.setFont(self._font)


def _told_apart(labels: Sequence[_Label]) -> list[_Label]:
    """Return the labels without those that read alike and stand for different names: they would mislead."""
    names: dict[str, set[str]] = {}
    for label in labels:
        names.setdefault(label.text, set()).add(label.name)
    return [label for label in labels if len(names[label.text]) == 1]
