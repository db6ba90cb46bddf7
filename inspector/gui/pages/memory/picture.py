"""Charts as pictures that stand by themselves: with their title and their legend, as PNG or SVG."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Protocol

from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QFont, QFontMetricsF, QGuiApplication, QImage, QImageWriter, QPainter
from PySide6.QtSvg import QSvgGenerator

from inspector.gui.pages.memory.bars_paint import BarsPainter, color_of
from inspector.gui.theme.theme import Tokens
from inspector.session.screen import Chart
from inspector.tuples import NamedTuple
from inspector.units import format_nbytes

_MARGIN, _TITLE, _LINE = 16.0, 26.0, 20.0
_SWATCH, _GAP = 10.0, 18.0
_PNG_RATIO = 2


class Picture(Protocol):
    """Something that can be painted at its own size."""

    @property
    def height(self) -> float:
        """How high it is."""

    def paint(self, painter: QPainter) -> None:
        """Paint it from (0, 0) on."""


class Entry(NamedTuple):
    """A line of a legend."""

    color: QColor
    text: str


class Legend:
    """Swatches with their words, in as many lines as they need."""

    def __init__(self, entries: Sequence[Entry], width: float, tokens: Tokens, font: QFont) -> None:
        self._tokens, self._font = tokens, font
        metrics = QFontMetricsF(font)
        self._places: list[tuple[float, float, Entry]] = []
        x, y = 0.0, 0.0
        for entry in entries:
            room = _SWATCH + 6 + metrics.horizontalAdvance(entry.text)
            if x and x + room > width:
                x, y = 0.0, y + _LINE
            self._places.append((x, y, entry))
            x += room + _GAP
        self.height = y + _LINE if entries else 0.0

    def paint(self, painter: QPainter) -> None:
        """Paint all lines."""
        painter.setFont(self._font)
        for x, y, entry in self._places:
            painter.fillRect(QRectF(x, y + 5, _SWATCH, _SWATCH), entry.color)
            painter.setPen(self._tokens.color("text"))
            room = QRectF(x + _SWATCH + 6, y, 2000, _LINE)
            painter.drawText(room, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft, entry.text)


class Titled:
    """A picture below its title, with a legend below it."""

    def __init__(self, title: str, body: Picture, legend: Legend, tokens: Tokens, font: QFont) -> None:
        self._title, self._body, self._legend = title, body, legend
        self._tokens, self._font = tokens, QFont(font)
        self._font.setBold(True)

    @property
    def height(self) -> float:
        """How high it is."""
        return _TITLE + self._body.height + (8 + self._legend.height if self._legend.height else 0)

    def paint(self, painter: QPainter) -> None:
        """Paint it from (0, 0) on."""
        painter.setFont(self._font)
        painter.setPen(self._tokens.color("text"))
        painter.drawText(QRectF(0, 0, 4000, _TITLE - 6), Qt.AlignmentFlag.AlignVCenter, self._title)
        painter.save()
        painter.translate(0, _TITLE)
        self._body.paint(painter)
        painter.translate(0, self._body.height + 8)
        self._legend.paint(painter)
        painter.restore()


def chart_picture(
    chart: Chart, width: float, tokens: Tokens, font: QFont, devices: Collection[str]
) -> Titled:
    """Return the picture of a chart of bars."""
    parts = {part.label: part for bar in chart.bars for part in bar.segments}
    is_plain = all(len(bar.segments) == 1 and bar.segments[0].label == bar.label for bar in chart.bars)
    entries = [
        Entry(color_of(tokens, chart, devices, part), f"{part.label}  {format_nbytes(part.nbytes)}")
        if len(chart.bars) == 1
        else Entry(color_of(tokens, chart, devices, part), part.label)
        for part in parts.values()
    ]
    legend = Legend([] if is_plain else entries, width, tokens, font)
    return Titled(chart.title, BarsPainter(chart, width, tokens, font, devices), legend, tokens, font)


def as_png(pictures: Sequence[Picture], width: float, tokens: Tokens) -> bytes:
    """Return pictures, one below the other, as a PNG of twice as many pixels."""
    size = _size(pictures, width)
    image = QImage(size * _PNG_RATIO, QImage.Format.Format_ARGB32)
    image.setDevicePixelRatio(_PNG_RATIO)
    image.fill(tokens.color("surface"))
    painter = QPainter(image)
    _paint_all(painter, pictures)
    painter.end()
    kept = QByteArray()
    buffer = QBuffer(kept)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    QImageWriter(buffer, QByteArray(b"png")).write(image)
    return bytes(kept.data())


def as_svg(pictures: Sequence[Picture], width: float, tokens: Tokens, title: str) -> bytes:
    """Return pictures, one below the other, as an SVG."""
    size = _size(pictures, width)
    kept = QByteArray()
    buffer = QBuffer(kept)
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    made = QSvgGenerator()
    made.setOutputDevice(buffer)
    made.setSize(size)
    made.setResolution(round(QGuiApplication.primaryScreen().logicalDotsPerInchX()))  # or text is smaller
    made.setViewBox(QRectF(0, 0, size.width(), size.height()))
    made.setTitle(title)
    painter = QPainter(made)
    painter.fillRect(QRectF(0, 0, size.width(), size.height()), tokens.color("surface"))
    _paint_all(painter, pictures)
    painter.end()
    return bytes(kept.data())


def _size(pictures: Sequence[Picture], width: float) -> QSize:
    height = sum(picture.height for picture in pictures) + _MARGIN * (len(pictures) + 1)
    return QSize(round(width + 2 * _MARGIN), round(height))


def _paint_all(painter: QPainter, pictures: Sequence[Picture]) -> None:
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    y = _MARGIN
    for picture in pictures:
        painter.save()
        painter.translate(_MARGIN, y)
        picture.paint(painter)
        painter.restore()
        y += picture.height + _MARGIN
