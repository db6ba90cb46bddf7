"""Rows and columns, written as what stands in them."""

from __future__ import annotations

from typing import TypeVar

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QHBoxLayout, QLayout, QVBoxLayout, QWidget

TOP = Qt.AlignmentFlag.AlignTop
LEFT = Qt.AlignmentFlag.AlignLeft
RIGHT = Qt.AlignmentFlag.AlignRight
CENTER = Qt.AlignmentFlag.AlignHCenter
MIDDLE = Qt.AlignmentFlag.AlignVCenter
TOP_LEFT = TOP | LEFT
"""Where the caption of a text stands that wraps or can be selected: such a text begins at the top."""
NO_MARGINS = (0, 0, 0, 0)
_ANYWHERE = Qt.AlignmentFlag(0)


class Gap(int):
    """A distance in pixels between two parts."""


Part = QWidget | QLayout | int | tuple[QWidget | QLayout, int] | tuple[QWidget, int, Qt.AlignmentFlag]
"""A widget or layout, perhaps with stretch and alignment; a `Gap`; a plain int is a stretch of nothing."""
Box = TypeVar("Box", bound=QBoxLayout)


def row(
    *parts: Part,
    spacing: int | None = None,
    margins: tuple[int, int, int, int] | None = None,
    within: QWidget | None = None,
) -> QHBoxLayout:
    """Lay parts out from left to right; what is not given is left to the style."""
    return _fill(QHBoxLayout(within) if within else QHBoxLayout(), parts, spacing, margins)


def column(
    *parts: Part,
    spacing: int | None = None,
    margins: tuple[int, int, int, int] | None = None,
    within: QWidget | None = None,
) -> QVBoxLayout:
    """Lay parts out from top to bottom; what is not given is left to the style."""
    return _fill(QVBoxLayout(within) if within else QVBoxLayout(), parts, spacing, margins)


def _fill(
    box: Box, parts: tuple[Part, ...], spacing: int | None, margins: tuple[int, int, int, int] | None
) -> Box:
    if spacing is not None:
        box.setSpacing(spacing)
    if margins is not None:
        box.setContentsMargins(*margins)
    for part in parts:
        _add(box, part)
    return box


def _add(box: QBoxLayout, part: Part) -> None:
    if isinstance(part, Gap):
        box.addSpacing(part)
    elif isinstance(part, int):
        box.addStretch(part)
    elif not isinstance(part, tuple):
        _add(box, (part, 0))
    elif isinstance(part[0], QLayout):
        box.addLayout(part[0], part[1])
    else:
        box.addWidget(part[0], part[1], part[2] if len(part) == 3 else _ANYWHERE)
