"""Where names are cut when there is no room for them: so that two of them do not read alike."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable

from PySide6.QtCore import QSize, Qt
from PySide6.QtGui import QFontMetrics, QFontMetricsF, QResizeEvent
from PySide6.QtWidgets import QPushButton

from inspector.gui.widgets.labels import describe
from inspector.overriding import override

DOTS = "\u2026"
_LEAST_WIDTH, _FRAME = 40, 2
_STEP = re.compile(r"\.| / |/")


def cut_path(path: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return a path cut to a width: without its first steps, since its last ones tell it from others.

    A single name loses its middle; its ends may be a number or a kind.
    """
    if metrics.horizontalAdvance(path) <= room:
        return path
    ends = [DOTS + path[step.start() if " " in step[0] else step.end() :] for step in _STEP.finditer(path)]
    place = _first_fitting(ends, metrics.horizontalAdvance, room)
    return metrics.elidedText(path, Qt.TextElideMode.ElideMiddle, int(room)) if place is None else ends[place]


def _first_fitting(texts: list[str], measure: Callable[[str], float], room: float) -> int | None:
    """Return the first of some texts that fits: each is shorter than the one before."""
    place = bisect_left(texts, True, key=lambda text: measure(text) <= room)
    return place if place < len(texts) else None


class PathButton(QPushButton):
    """A link with a path on it, cut as the room requires; all of it is in the tooltip."""

    def __init__(self, path: str, clicked: Callable[[], object]) -> None:
        super().__init__(_inert(path))
        self._path = path
        self.setProperty("kind", "link")
        self.setMinimumWidth(_LEAST_WIDTH)
        describe(self, path)
        self.clicked.connect(clicked)

    @override
    def sizeHint(self) -> QSize:
        """Return the size of the whole path, whatever part of it is shown."""
        hint, measure = super().sizeHint(), self.fontMetrics().horizontalAdvance
        hint.setWidth(hint.width() + measure(self._path) - measure(self.text().replace("&&", "&")))
        return hint

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        text = _inert(cut_path(self._path, self.fontMetrics(), self.width() - _FRAME))
        if text != self.text():
            self.setText(text)


def _inert(text: str) -> str:
    """Return a text whose ampersands are no keys."""
    return text.replace("&", "&&")
