"""Icons drawn from SVG files in the theme's own ink, sharp at any scale of the screen."""

from __future__ import annotations

from functools import lru_cache

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt
from PySide6.QtGui import QAction, QColor, QGuiApplication, QIcon, QPainter, QPaintEvent, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QWidget

from inspector.gui.theme import Theme, Tokens
from inspector.resources import resource_path

_NAME, _INK = "icon_name", "icon_ink"


@lru_cache(maxsize=64)
def _read_svg(name: str) -> str:
    return resource_path(f"icons/{name}.svg").read_text(encoding="utf-8")


def draw_svg(name: str, colour: QColor, size: int, ratio: float) -> QPixmap:
    """Draw an icon in one colour; `size` is in device-independent pixels."""
    pixmap = QPixmap(QSize(size, size) * ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(_read_svg(name).replace("currentColor", colour.name()).encode()))
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, size * ratio, size * ratio))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def make_icon(name: str, tokens: Tokens, ink: str = "muted", size: int = 18) -> QIcon:
    """Make a button's icon, with a paler picture for the disabled state."""
    icon = QIcon()
    for ratio in sorted({1.0, QGuiApplication.primaryScreen().devicePixelRatio()}):
        icon.addPixmap(draw_svg(name, tokens.colour(ink), size, ratio), QIcon.Mode.Normal)
        icon.addPixmap(draw_svg(name, tokens.colour("disabled"), size, ratio), QIcon.Mode.Disabled)
    return icon


def set_icon(thing: QAbstractButton | QAction, name: str, tokens: Tokens, ink: str = "muted") -> None:
    """Give a button or an action an icon that `retint` can draw again in another theme."""
    thing.setProperty(_NAME, name)
    thing.setProperty(_INK, ink)
    thing.setIcon(make_icon(name, tokens, ink))


def retint(root: QObject, tokens: Tokens) -> None:
    """Draw all icons below a widget again, after the theme has changed."""
    for thing in [*root.findChildren(QAbstractButton), *root.findChildren(QAction)]:
        name = thing.property(_NAME)
        if name:
            set_icon(thing, name, tokens, thing.property(_INK))


class Glyph(QWidget):
    """A picture within the layout; on a filled disc when `fill` is given."""

    def __init__(self, theme: Theme, name: str, size: int, *, ink: str = "faint", fill: str = "") -> None:
        super().__init__()
        self._theme = theme
        self._name, self._ink, self._fill = name, ink, fill
        self.setFixedSize(size, size)

    def show_glyph(self, name: str, *, ink: str, fill: str = "") -> None:
        """Show another picture."""
        self._name, self._ink, self._fill = name, ink, fill
        self.update()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the disc, if any, and the picture in its middle."""
        tokens, side = self._theme.tokens, self.width()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inner = side
        if self._fill:
            inner = round(side * 0.6)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(tokens.colour(self._fill))
            painter.drawEllipse(QRectF(0, 0, side, side))
        pixmap = draw_svg(self._name, tokens.colour(self._ink), inner, self.devicePixelRatioF())
        painter.drawPixmap((side - inner) // 2, (side - inner) // 2, pixmap)
        painter.end()


def app_icon() -> QIcon:
    """Give the program's own icon."""
    return QIcon(str(resource_path("icons/app.svg")))
