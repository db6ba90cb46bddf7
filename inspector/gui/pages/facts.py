"""Groups of facts in two aligned columns, and the file page, which consists of them."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import TOP, TOP_LEFT, column, row
from inspector.gui.widgets.cards import ScrollPanel, card_row, fill_lines
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import ElidedLabel, WrappedText, focus_kept, named, plain_label
from inspector.gui.widgets.progress import ProgressBar
from inspector.progress import Progress
from inspector.report.details import FactGroup
from inspector.session.screen import CheckPage, Screen

# The check whether the bytes of the file are as they were saved: its button, its progress, its result.

_ICONS = {"good": "check", "bad": "tone-bad", "warning": "tone-warning", "neutral": "arrow-right"}


class CheckCard(QFrame):
    """Shows a `CheckPage`."""

    check_wanted = Signal()
    cancel_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._page = CheckPage()
        self._hint = plain_label("", "muted", wrap=True)
        self._label = plain_label("", "muted")
        self._bar = ProgressBar("Progress of the check")
        self._bar.looked.connect(self._on_looked)
        self._lines = column(spacing=6)
        self._check = make_button("Check every byte", self.check_wanted, icon="shield", theme=theme)
        self._cancel = make_button("Cancel", self.cancel_wanted)
        words = column(self._hint, self._label, self._bar, self._lines, spacing=6)
        card_row(self, (words, 1), (self._check, 0, TOP), (self._cancel, 0, TOP))
        self.show_check(self._page)

    def show_check(self, page: CheckPage) -> None:
        self._page = page
        runs = page.progress is not None
        self._hint.setText(page.hint)
        self._hint.setVisible(not runs and not page.lines)
        self._label.setVisible(runs)
        self._bar.setVisible(runs)
        with focus_kept(self._check, self._cancel):
            self._check.setVisible(not runs)
            self._cancel.setVisible(runs)
        fill_lines(self._theme, self._lines, page.lines, _ICONS[page.tone], page.tone)
        self._bar.follow(page.progress)

    def _on_looked(self, progress: Progress) -> None:
        self._label.setText(progress.label)


_LABEL_WIDTHS = (136, 240)
_LONGEST_WORD = 24


class FactsPanel(ScrollPanel):
    """Groups of facts in two aligned columns; every value can be selected and copied."""

    def __init__(self, theme: Theme, name: str, empty: tuple[str, str, str]) -> None:
        super().__init__(theme, name)
        self._empty = empty

    def show_facts(self, groups: tuple[FactGroup, ...]) -> None:
        if not groups:
            self.show_empty(*self._empty)
            return
        self.clear()
        for group in groups:
            self.cards.addWidget(build_group(group, self.fontMetrics()))
        self.cards.addStretch(1)
        self.verticalScrollBar().setValue(0)


def build_group(group: FactGroup, metrics: QFontMetrics) -> QWidget:
    holder, title = QWidget(), plain_label(group.title, "strong", wrap=True)
    lines = column(title, named(QFrame(), "line"), spacing=7, margins=(0, 0, 0, 8), within=holder)
    longest = max((metrics.horizontalAdvance(label) for label, _ in group.facts), default=0)
    width = min(max(longest + 2, _LABEL_WIDTHS[0]), _LABEL_WIDTHS[1])
    for label, value in group.facts:
        lines.addLayout(_build_fact(label, value, width))
    return holder


def _build_fact(label: str, value: str, width: int) -> QHBoxLayout:
    """Lay out a fact in a row of its own: a grid miscounts the heights of texts that wrap."""
    text = _value_text(label, value)
    if not label:
        return row((text, 1, TOP), spacing=16)
    name = ElidedLabel(label, "muted", Qt.TextElideMode.ElideMiddle)
    name.setFixedWidth(width)
    name.setAlignment(TOP_LEFT)
    return row((name, 0, TOP), (text, 1, TOP), spacing=16)


def _value_text(label: str, value: str) -> QWidget:
    longest = max(map(len, value.split()), default=0)
    if longest > _LONGEST_WORD:
        text: QWidget = WrappedText(value)
    else:
        text = plain_label(value or "\u2013", wrap=True, selectable=True)
    text.setAccessibleName(f"{label}: {value}")
    text.setMinimumWidth(40)
    return text


class FilePanel(FactsPanel):
    """The facts of the file, below the check of its bytes."""

    check_wanted = Signal()
    check_cancelled = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "File", ("file", "No facts", "Nothing is known about this file."))
        self._facts: tuple[FactGroup, ...] | None = None
        self._check: CheckCard | None = None

    def show_screen(self, screen: Screen) -> None:
        if self._check is None or self._facts != screen.file:
            self._facts = screen.file
            self.show_facts(screen.file)
            self._check = CheckCard(self.theme)
            self._check.check_wanted.connect(self.check_wanted)
            self._check.cancel_wanted.connect(self.check_cancelled)
            self.cards.insertWidget(0, self._check)
        self._check.show_check(screen.check)
