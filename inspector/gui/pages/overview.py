"""The first page: what the file is, in two columns of facts where there is room for them."""

from __future__ import annotations

import re
from functools import partial

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QBoxLayout, QFrame, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, TOP, TOP_LEFT, column, row
from inspector.gui.widgets.cards import ScrollPanel
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, WrappedText, describe, named, plain_label
from inspector.overriding import override
from inspector.report.overview import Overview, OverviewGroup, OverviewLine
from inspector.session.screen import Screen

_BEFORE_UNIT = re.compile(r"(?<=[0-9]) (?=[KMGTPE]?B\b|%)")
"""A number and its unit stand in one line."""
_CAPTION_WIDTH, _CAPTION_PAD, _MOST_CAPTION = 104, 6, 16
"""Of captions: what they have, what stands beside the longest, and how many letters have room."""
_TWO_COLUMNS = 760
_LONGEST_WORD, _LEAST_TEXT = 24, 40
_BETWEEN, _BETWEEN_COLUMNS = 12, 32
_LEFT = 2
"""So many groups stand at the left: the model and its training."""


class OverviewPanel(ScrollPanel):
    """Shows the overview of a screen."""

    query_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Overview")
        self._shown: Overview | None = None
        self._query = self._path = ""
        self._caption_width = _CAPTION_WIDTH
        self._columns = QBoxLayout(QBoxLayout.Direction.TopToBottom)

    def show_screen(self, screen: Screen) -> None:
        self._query = screen.query
        if screen.overview is None or screen.overview == self._shown:
            return
        self._shown = screen.overview
        self._build()
        if self._path != screen.path:  # else a machine or a map was chosen, and what is read stays in sight
            self.verticalScrollBar().setValue(0)
        self._path = screen.path

    @override
    def changeEvent(self, arg__1: QEvent) -> None:
        super().changeEvent(arg__1)
        if arg__1.type() == QEvent.Type.FontChange:
            QTimer.singleShot(0, self, self._build)  # captions are cut and sized by their font

    def _build(self) -> None:
        if self._shown is None:
            return
        self.clear()
        self.cards.addWidget(_wrapped(self._shown.title, "lead"))
        captions = [line.caption for group in self._shown.groups for line in group.lines]
        metrics = self.fontMetrics()
        longest = max(map(metrics.horizontalAdvance, captions), default=0) + _CAPTION_PAD
        self._caption_width = max(_CAPTION_WIDTH, min(longest, _MOST_CAPTION * metrics.averageCharWidth()))
        parts = [self._build_group(group) for group in self._shown.groups]
        holder = QWidget()
        self._columns = QBoxLayout(QBoxLayout.Direction.TopToBottom, holder)
        self._columns.setContentsMargins(*NO_MARGINS)
        self._arrange()
        for half in (parts[:_LEFT], parts[_LEFT:]):
            self._columns.addWidget(_build_half(half), 1, TOP)
        self.cards.addWidget(holder)
        self.cards.addStretch(1)

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        super().resizeEvent(arg__1)
        self._arrange()

    def _arrange(self) -> None:
        """Put the halves side by side, or one below the other."""
        is_wide = self.viewport().width() >= _TWO_COLUMNS
        direction = QBoxLayout.Direction.LeftToRight if is_wide else QBoxLayout.Direction.TopToBottom
        self._columns.setDirection(direction)
        self._columns.setSpacing(_BETWEEN_COLUMNS if is_wide else _BETWEEN)

    def _build_group(self, group: OverviewGroup) -> QWidget:
        holder, title = QWidget(), plain_label(group.title, "strong", wrap=True)
        lines = column(title, named(QFrame(), "line"), spacing=4, margins=NO_MARGINS, within=holder)
        for line in group.lines:
            caption = self._build_caption(line)
            caption.setFixedWidth(self._caption_width)
            lines.addLayout(row((caption, 0, TOP), (_build_text(line), 1, TOP), spacing=12))
        return holder

    def _build_caption(self, line: OverviewLine) -> QWidget:
        caption = ElidedLabel(line.caption, "muted", Qt.TextElideMode.ElideMiddle)
        caption.setAlignment(TOP_LEFT)
        caption.setContentsMargins(1, 1, 0, 0)  # the border of a button
        if not line.query:
            return caption
        middle, room = Qt.TextElideMode.ElideMiddle, self._caption_width - 2
        shown = self.fontMetrics().elidedText(line.caption, middle, room)
        button = make_button(shown, partial(self._on_query_wanted, line.query), kind="fact")
        describe(button, f"Search for {line.query}")
        button.setFixedHeight(self.fontMetrics().height() + 2)
        button.setCursor(Qt.CursorShape.PointingHandCursor)
        button.setAccessibleName(f"{line.caption}: search for {line.query}")
        return button

    def _on_query_wanted(self, query: str) -> None:
        """Search for what was clicked; a second click ends that search."""
        self.query_wanted.emit("" if query == self._query else query)


def _build_half(parts: list[QWidget]) -> QWidget:
    half = QWidget()
    column(*parts, spacing=_BETWEEN, margins=NO_MARGINS, within=half)
    return half


def _build_text(line: OverviewLine) -> QWidget:
    text = _wrapped(line.text)
    text.setAccessibleName(f"{line.caption}: {line.text}")
    if not line.why:
        return text
    holder = QWidget()
    column(text, _wrapped(line.why, "small"), spacing=0, margins=NO_MARGINS, within=holder)
    return holder


def _wrapped(words: str, role: str = "") -> QWidget:
    words = _BEFORE_UNIT.sub("\u00a0", words)
    is_long = max(map(len, words.split()), default=0) > _LONGEST_WORD
    text = WrappedText(words, role) if is_long else plain_label(words, role, wrap=True, selectable=True)
    text.setMinimumWidth(_LEAST_TEXT)
    if not role:
        text.setContentsMargins(0, 1, 0, 0)  # as the captions have it
    return text
