"""Small pictures: the square of a device's color, the disc of a tone, the program's own mark."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QColor, QIcon, QPainter, QPaintEvent, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QWidget

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.overriding import override
from inspector.resources import resource_path

SPOKEN_TONES = {"good": "Good", "bad": "Problem", "warning": "Warning", "neutral": "Note"}


class ToneGlyph(Glyph):
    """The picture of a tone on a disc in its color."""

    def __init__(self, theme: Theme, size: int, tone: str = "neutral") -> None:
        super().__init__(theme, f"tone-{tone}", size, ink="on_fill", fill=f"{tone}_fill")

    def show_tone(self, tone: str) -> None:
        self.show_glyph(f"tone-{tone}", ink="on_fill", fill=f"{tone}_fill")


class Swatch(QWidget):
    """A square of one color, asked for anew each time it is painted: the theme may have changed."""

    def __init__(self, color: Callable[[], QColor], size: int = 12) -> None:
        super().__init__()
        self._color = color
        self.setFixedSize(size, size)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self._color())
        painter.drawRoundedRect(QRectF(self.rect()), 3.5, 3.5)
        painter.end()


def swatch_icon(theme: Theme, color: int) -> QIcon:
    return color_icon(theme.tokens.device(color))


def color_icon(color: QColor) -> QIcon:
    pixmap = QPixmap(QSize(24, 24))
    pixmap.fill(Qt.GlobalColor.transparent)
    painter = QPainter(pixmap)
    painter.setRenderHint(QPainter.RenderHint.Antialiasing)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)
    painter.drawRoundedRect(QRectF(2, 2, 20, 20), 6, 6)
    painter.end()
    icon = QIcon(pixmap)
    icon.addPixmap(pixmap, QIcon.Mode.Selected)  # or Qt would mix it with the color of the selection
    return icon


class AppMark(QWidget):
    """The program's own icon, drawn at any scale."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._renderer = QSvgRenderer(str(resource_path("icons/app.svg")))
        self.setFixedSize(size, size)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        self._renderer.render(painter, QRectF(self.rect()))
        painter.end()
