"""Text on colors: black or white, whichever is read more easily; never below the contrast of 4.5 to 1."""

from __future__ import annotations

from PySide6.QtGui import QColor

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
