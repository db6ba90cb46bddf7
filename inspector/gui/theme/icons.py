"""Icons drawn from SVG files in the theme's own ink, sharp at any scale of the screen."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache

from PySide6.QtCore import QByteArray, QObject, QRectF, QSize, Qt
from PySide6.QtGui import (
    QAction,
    QColor,
    QGuiApplication,
    QIcon,
    QPainter,
    QPaintEvent,
    QPixmap,
    QPixmapCache,
)
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QAbstractButton, QWidget

from inspector.gui.theme.theme import Theme, Tokens
from inspector.overriding import override
from inspector.resources import resource_path

ICON_SIZE = 18
_GAP = 5
_NAME, _INK = "icon_name", "icon_ink"


@lru_cache(maxsize=64)
def _read_svg(name: str) -> str:
    return resource_path(f"icons/{name}.svg").read_text(encoding="utf-8")


def draw_svg(name: str, color: QColor, size: int, ratio: float) -> QPixmap:
    """Draw an icon in one color, once for all places; `size` is in device-independent pixels."""
    return _cached(f"{name} {color.name()} {size} {ratio}", lambda: _tint(_outline(name, size, ratio), color))


def _outline(name: str, size: int, ratio: float) -> QPixmap:
    """Return an icon in black, of which those in a color are made: to read SVG takes longer than to tint."""
    return _cached(f"{name} {size} {ratio}", lambda: _render(name, size, ratio))


def _cached(key: str, draw: Callable[[], QPixmap]) -> QPixmap:
    known = QPixmap()
    if QPixmapCache.find(key, known):
        return known
    drawn = draw()
    QPixmapCache.insert(key, drawn)
    return drawn


def _render(name: str, size: int, ratio: float) -> QPixmap:
    pixmap = QPixmap(QSize(size, size) * ratio)
    pixmap.fill(Qt.GlobalColor.transparent)
    renderer = QSvgRenderer(QByteArray(_read_svg(name).replace("currentColor", "#000000").encode()))
    painter = QPainter(pixmap)
    renderer.render(painter, QRectF(0, 0, size * ratio, size * ratio))
    painter.end()
    pixmap.setDevicePixelRatio(ratio)
    return pixmap


def _tint(outline: QPixmap, color: QColor) -> QPixmap:
    pixmap = QPixmap(outline)
    painter = QPainter(pixmap)
    painter.setCompositionMode(QPainter.CompositionMode.CompositionMode_SourceIn)
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(color)  # `fillRect` would have PySide make the names of 160 gradients
    painter.drawRect(QRectF(0, 0, pixmap.width(), pixmap.height()))
    painter.end()
    return pixmap


def _widen(pixmap: QPixmap, gap: int) -> QPixmap:
    """Add room at the right, since a style sheet cannot set the distance between a button's icon and text."""
    ratio = pixmap.devicePixelRatio()
    wide = QPixmap(QSize(ICON_SIZE + gap, ICON_SIZE) * ratio)
    wide.setDevicePixelRatio(ratio)
    wide.fill(Qt.GlobalColor.transparent)
    painter = QPainter(wide)
    painter.drawPixmap(0, 0, pixmap)
    painter.end()
    return wide


def make_icon(name: str, tokens: Tokens, ink: str = "muted", gap: int = 0) -> QIcon:
    """Make a button's icon, with a paler picture for the disabled state and a gap before the text."""
    icon = QIcon()
    for ratio in sorted({1.0, QGuiApplication.primaryScreen().devicePixelRatio()}):
        for mode, token in ((QIcon.Mode.Normal, ink), (QIcon.Mode.Disabled, "disabled")):
            pixmap = draw_svg(name, tokens.color(token), ICON_SIZE, ratio)
            icon.addPixmap(_widen(pixmap, gap) if gap else pixmap, mode)
    return icon


def set_icon(thing: QAbstractButton | QAction, name: str, tokens: Tokens, ink: str = "muted") -> None:
    """Set the icon of a button or an action; `retint` draws it again in another theme."""
    name_icon(thing, name, ink)
    gap = _GAP if isinstance(thing, QAbstractButton) and thing.text() else 0
    thing.setIcon(make_icon(name, tokens, ink, gap))
    if isinstance(thing, QAbstractButton):
        thing.setIconSize(QSize(ICON_SIZE + gap, ICON_SIZE))


def name_icon(thing: QAbstractButton | QAction, name: str, ink: str = "muted") -> None:
    """Set which icon something has, and leave drawing it to `draw_icons`: most menus are never opened."""
    thing.setProperty(_NAME, name)
    thing.setProperty(_INK, ink)


def draw_icons(things: Iterable[QAbstractButton | QAction], tokens: Tokens) -> None:
    """Draw the icons that were named but not drawn yet."""
    redraw_icons([thing for thing in things if thing.icon().isNull()], tokens)


def redraw_icons(things: Iterable[QAbstractButton | QAction], tokens: Tokens) -> None:
    """Draw the icons that were named, whether or not they were drawn before."""
    for thing in things:
        name = thing.property(_NAME)
        if name:
            set_icon(thing, name, tokens, thing.property(_INK))


def retint(root: QObject, tokens: Tokens) -> None:
    things: list[QAbstractButton | QAction] = []
    things += root.findChildren(QAbstractButton)
    things += root.findChildren(QAction)
    redraw_icons(things, tokens)


class Glyph(QWidget):
    """A picture within the layout; on a filled disc when `fill` is given."""

    def __init__(
        self, theme: Theme, name: str, size: int, *, ink: str = "faint", fill: str = "", shift: int = 0
    ) -> None:
        super().__init__()
        self._shift = shift
        self._theme = theme
        self._name, self._ink, self._fill = name, ink, fill
        self.setFixedSize(size, size)

    def show_glyph(self, name: str, *, ink: str, fill: str = "") -> None:
        self._name, self._ink, self._fill = name, ink, fill
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        tokens, side = self._theme.tokens, self.width()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        inner = side
        if self._fill:
            inner = round(side * 0.6)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(tokens.color(self._fill))
            painter.drawEllipse(QRectF(0, 0, side, side))
        pixmap = draw_svg(self._name, tokens.color(self._ink), inner, self.devicePixelRatioF())
        painter.drawPixmap((side - inner) // 2 + self._shift, (side - inner) // 2, pixmap)
        painter.end()


def app_icon() -> QIcon:
    return QIcon(str(resource_path("icons/app.svg")))
