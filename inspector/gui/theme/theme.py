"""The look as data: named colors from a theme file become a palette, a style sheet and a font.

`setColorScheme` does nothing on many Linux desktops, so the window always carries a palette of its own; the
system's preference is only asked for. Device colors are told apart with any kind of color vision (after
Okabe and Ito, https://jfly.uni-koeln.de/color/), and no place in the window relies on color alone.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette, QStyleHints
from PySide6.QtWidgets import QApplication

from inspector.records import dataclass
from inspector.resources import resource_path

if TYPE_CHECKING:
    from PySide6.QtGui import QAccessibilityHints


WHITE, SOFT_BLACK, BLACK = QColor("#ffffff"), QColor("#10131a"), QColor("#000000")
_ENOUGH = 4.5


def luminance(color: QColor) -> float:
    """Return the relative luminance of a color, as WCAG 2 defines it."""
    channels = [value / 255 for value in (color.red(), color.green(), color.blue())]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: QColor, other: QColor) -> float:
    """Return the contrast of two colors, from 1 to 21."""
    lighter, darker = sorted((luminance(one), luminance(other)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def ink_on(color: QColor) -> QColor:
    """Return the color of text on a color; black reaches where the softer one and white do not."""
    best = max((WHITE, SOFT_BLACK), key=lambda ink: contrast(ink, color))
    return best if contrast(best, color) >= _ENOUGH else BLACK


def mixed(color: QColor, ground: QColor, share: float) -> QColor:
    parts = ((color.red(), ground.red()), (color.green(), ground.green()), (color.blue(), ground.blue()))
    return QColor(*(round(one * (1 - share) + other * share) for one, other in parts))


ZOOMS = (80, 90, 100, 110, 125, 150, 175, 200)
"""How large text may be, in percent of what the desktop says."""
MODES = ("system", "light", "dark", "contrast-light", "contrast-dark")
"""What may be chosen: to follow the system, or the name of a theme."""
_PLAIN_FAMILIES = {"Sans", "Sans Serif", "DejaVu Sans", "sans-serif", ""}
_BETTER_FAMILIES = ("Inter", "Noto Sans", "Open Sans", "Cantarell", "Ubuntu", "Roboto", "DejaVu Sans")
_MONO_FAMILIES = (
    "JetBrains Mono",
    "Cascadia Mono",
    "SF Mono",
    "Menlo",
    "Consolas",
    "Noto Sans Mono",
    "DejaVu Sans Mono",
)
_ROLES = {
    QPalette.ColorRole.Window: "window",
    QPalette.ColorRole.WindowText: "text",
    QPalette.ColorRole.Base: "surface",
    QPalette.ColorRole.AlternateBase: "sunken",
    QPalette.ColorRole.Text: "text",
    QPalette.ColorRole.Button: "surface",
    QPalette.ColorRole.ButtonText: "text",
    QPalette.ColorRole.BrightText: "bad",
    QPalette.ColorRole.Light: "surface",
    QPalette.ColorRole.Midlight: "hover",
    QPalette.ColorRole.Mid: "border",
    QPalette.ColorRole.Dark: "border_strong",
    QPalette.ColorRole.Shadow: "border_strong",
    QPalette.ColorRole.Highlight: "selection",
    QPalette.ColorRole.HighlightedText: "text",
    QPalette.ColorRole.Link: "accent",
    QPalette.ColorRole.LinkVisited: "accent",
    QPalette.ColorRole.ToolTipBase: "tooltip",
    QPalette.ColorRole.ToolTipText: "tooltip_text",
    QPalette.ColorRole.PlaceholderText: "faint",
    QPalette.ColorRole.Accent: "accent",
}
_TEXT_ROLES = (QPalette.ColorRole.WindowText, QPalette.ColorRole.Text, QPalette.ColorRole.ButtonText)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tokens:
    """The colors of one theme, by name.

    Attributes:
        colors: Color texts (`#rrggbb`) by token.
        devices: Colors of the other devices, in their fixed order.
        shades: Colors of what is not a device (roles, types), so that it is not taken for one.
    """

    name: str
    dark: bool
    colors: dict[str, str]
    cpu: str
    devices: tuple[str, ...]
    shades: tuple[str, ...]

    def color(self, token: str) -> QColor:
        return QColor(self.colors[token])

    def device(self, index: int) -> QColor:
        """Return the color of a device; after the last one they repeat in another shade."""
        if index < 0:
            return QColor(self.cpu)
        turn, place = divmod(index, len(self.devices))
        color = QColor(self.devices[place])
        shade = 100 + 28 * min(turn, 3)
        return color.lighter(shade) if self.dark else color.darker(shade)

    def shade(self, index: int) -> QColor:
        """Return the color of something that is not a device."""
        return QColor(self.cpu if index < 0 else self.shades[index % len(self.shades)])


def read_tokens(name: str) -> Tokens:
    """Read a theme that ships with the program: one of `MODES`, but the first."""
    data = json.loads(resource_path(f"themes/{name}.json").read_text(encoding="utf-8"))
    return Tokens(
        name=name,
        dark=data["dark"],
        colors=data["colors"],
        cpu=data["cpu"],
        devices=tuple(data["devices"]),
        shades=tuple(data["shades"]),
    )


def build_palette(tokens: Tokens) -> QPalette:
    palette = QPalette()
    for role, token in _ROLES.items():
        palette.setColor(role, tokens.color(token))
    for role in _TEXT_ROLES:
        palette.setColor(QPalette.ColorGroup.Disabled, role, tokens.color("disabled"))
    return palette


def build_sheet(tokens: Tokens, base_points: float) -> str:
    """Fill in the tokens (`@name`) of the style sheet; text sizes follow the font of the system."""
    values = dict(tokens.colors)
    values["icons"] = resource_path("icons").as_posix()
    values["marks"] = "-dark" if tokens.dark else ""  # dark themes have light accents
    values["mono"] = ", ".join(f'"{family}"' for family in _MONO_FAMILIES)
    for name, factor in (("small", 0.9), ("base", 1.0), ("lead", 1.08), ("title", 1.9)):
        values[f"size_{name}"] = f"{base_points * factor:.1f}pt"
    template = resource_path("themes/window.qss").read_text(encoding="utf-8")
    return re.sub(r"@(\w+)", lambda match: values[match[1]], template)


def mono_font(points: float) -> QFont:
    font = QFont(list(_MONO_FAMILIES))
    font.setStyleHint(QFont.StyleHint.Monospace)
    font.setPointSizeF(points)
    return font


def interface_font(system: QFont) -> QFont:
    """Return the font of the desktop, or where there is none, the best that is installed."""
    font = QFont(system)
    if font.family() not in _PLAIN_FAMILIES:
        return font
    families = set(QFontDatabase.families())
    font.setFamily(next((name for name in _BETTER_FAMILIES if name in families), font.family()))
    font.setPointSizeF(max(font.pointSizeF(), 9.5))
    return font


def _accessibility(hints: QStyleHints) -> QAccessibilityHints | None:
    """Return what the system says of contrast; Qt asks it from 6.10 on."""
    ask = getattr(hints, "accessibility", None)
    return ask() if ask is not None else None


def _wants_contrast(hints: QStyleHints) -> bool:
    asked = _accessibility(hints)
    return asked is not None and asked.contrastPreference() == Qt.ContrastPreference.HighContrast


class Theme(QObject):
    """The theme of the running program; all windows share one."""

    changed = Signal()

    def __init__(self, app: QApplication, mode: str = "system") -> None:
        super().__init__(app)
        self._app = app
        self._system_palette_dark = app.palette().window().color().lightness() < 128
        self.mode = mode
        app.setStyle("Fusion")
        self._font = interface_font(app.font())
        self.zoom = 100
        app.setFont(self._font)
        self.tokens = self._wanted()
        self._apply()
        hints = QGuiApplication.styleHints()
        hints.colorSchemeChanged.connect(self._on_system_changed)
        asked = _accessibility(hints)
        if asked is not None:
            asked.contrastPreferenceChanged.connect(self._on_system_changed)

    @property
    def base_points(self) -> float:
        """Size of ordinary text, in points."""
        return float(self._app.font().pointSizeF())

    def set_mode(self, mode: str) -> None:
        """Choose one of `MODES`."""
        self.mode = mode
        self._on_system_changed()

    def set_zoom(self, percent: int) -> None:
        """Choose how large text is: one of `ZOOMS`."""
        if percent == self.zoom:
            return
        self.zoom = percent
        font = QFont(self._font)
        font.setPointSizeF(self._font.pointSizeF() * percent / 100)
        self._app.setFont(font)
        self._apply()
        self.changed.emit()

    def _on_system_changed(self) -> None:
        wanted = self._wanted()
        if wanted.name != self.tokens.name:
            self.tokens = wanted
            self._apply()
            self.changed.emit()

    def _wanted(self) -> Tokens:
        if self.mode != "system":
            return read_tokens(self.mode)
        hints = QGuiApplication.styleHints()
        scheme = hints.colorScheme()
        is_unknown = scheme == Qt.ColorScheme.Unknown
        is_dark = self._system_palette_dark if is_unknown else scheme == Qt.ColorScheme.Dark
        name = "dark" if is_dark else "light"
        return read_tokens(f"contrast-{name}" if _wants_contrast(hints) else name)

    def _apply(self) -> None:
        self._app.setPalette(build_palette(self.tokens))
        self._app.setStyleSheet(build_sheet(self.tokens, self.base_points))
