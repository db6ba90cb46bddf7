"""The pages in place of the tree: while a file is being read, and when it cannot be."""

from __future__ import annotations

import re
from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QToolButton,
    QWidget,
)

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import CENTER, RIGHT, Gap, column, row
from inspector.gui.widgets.cards import frameless_scroll
from inspector.gui.widgets.controls import icon_button, make_button
from inspector.gui.widgets.labels import ElidedLabel, WrappedText, named, plain_label, sentence
from inspector.gui.widgets.progress import ProgressBar
from inspector.progress import Progress
from inspector.session.screen import FailurePage, Screen
from inspector.units import escape_text

_WIDTH = 680
_ICON_SHIFT = -10
"""The picture has a margin; its lines begin where the title below it does."""


class OpeningPage(QWidget):
    """Shown while a file is read; stays blank for the first tenth of a second."""

    cancel_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.setObjectName("openingPage")
        self._name = ElidedLabel("", "lead", Qt.TextElideMode.ElideMiddle)
        self._label = ElidedLabel("", "muted")
        self._bar = ProgressBar("Progress of opening")
        self._bar.looked.connect(self._on_looked)
        cancel = make_button("Cancel", self.cancel_wanted)
        self.first_focus = cancel
        self._middle = QWidget()
        self._middle.setFixedWidth(_WIDTH)
        column(
            self._name,
            self._bar,
            self._label,
            (cancel, 0, RIGHT),
            spacing=12,
            within=self._middle,
        )
        column(2, (self._middle, 0, CENTER), 3, within=self)

    def show_screen(self, screen: Screen) -> None:
        self._middle.hide()
        self._name.setText(f"Opening {escape_text(PurePath(screen.path).name)}")
        self._bar.follow(screen.progress if screen.phase == "opening" else None, soon=True)

    def _on_looked(self, progress: Progress) -> None:
        self._middle.show()
        self._label.setText(progress.label)


class FailurePageWidget(QScrollArea):
    """Shown in place of everything else when a file cannot be read."""

    open_wanted = Signal()
    retry_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("failurePage")
        self._theme = theme
        self._title = plain_label("", "title", wrap=True, selectable=True)
        self._path = ElidedLabel("", "small", Qt.TextElideMode.ElideMiddle)
        self._what = named(WrappedText(), spoken="What went wrong")
        self._runs, self._where, self._remedy = WrappedText(), WrappedText("", "mono"), WrappedText()
        self._code = WrappedText("", "mono")
        self._copy = icon_button(theme, "copy", "Copy the loading code", self._on_copy)
        self._code_part = self._build_part("Code that loads it", self._code, self._copy)
        titles = {"What loading would run": self._runs, "Where": self._where, "What to do": self._remedy}
        parts = [self._build_part(title, text) for title, text in titles.items()]
        self._runs_part, self._where_part, self._remedy_part = parts
        content = named(QWidget(), "scrolled")
        column(2, row(1, self._build_card(), 1), 3, within=content)
        frameless_scroll(self, content)

    def show_screen(self, screen: Screen) -> None:
        """Show why the file could not be read."""
        failure = screen.failure or FailurePage(title="", what="", where="", remedy="")
        self._path.setText(escape_text(screen.path))
        self._title.setText(failure.title)
        self._what.setText(sentence(failure.what))
        self._what.setVisible(_says_more(failure.what, failure.title))
        self._runs.setText(failure.runs)
        self._runs_part.setVisible(bool(failure.runs))
        self._where.setText(failure.where)
        self._where_part.setVisible(failure.where not in {"", screen.path})
        self._remedy.setText(sentence(failure.remedy))
        self._remedy_part.setVisible(bool(failure.remedy))
        self._code.setText(failure.code.rstrip())
        self._code_part.setVisible(bool(failure.code))

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(f"{self._code.toPlainText()}\n")

    def _build_card(self) -> QFrame:
        card = QFrame()
        card.setProperty("card", True)
        card.setFixedWidth(_WIDTH)
        column(
            Glyph(self._theme, "file-broken", 56, ink="bad", shift=_ICON_SHIFT),
            Gap(8),
            self._title,
            self._path,
            Gap(8),
            self._what,
            self._runs_part,
            self._where_part,
            self._remedy_part,
            self._code_part,
            Gap(16),
            self._build_buttons(),
            spacing=8,
            margins=(32, 32, 32, 24),
            within=card,
        )
        return card

    def _build_part(self, title: str, text: WrappedText, button: QToolButton | None = None) -> QFrame:
        part = named(QFrame(), "inset")
        text.setAccessibleName(title)
        head = row((plain_label(title, "section"), 1), *([button] if button is not None else []))
        column(head, text, spacing=4, margins=(14, 10, 14, 10), within=part)
        return part

    def _build_buttons(self) -> QHBoxLayout:
        other = make_button(
            "Open another file\u2026", self.open_wanted, kind="primary", icon="open", theme=self._theme
        )
        self.first_focus = other
        again = make_button("Try again", self.retry_wanted, icon="reload", theme=self._theme)
        return row(other, again, 1, spacing=8)


def _says_more(sentence_: str, title: str) -> bool:
    """Return whether a sentence is more than its title again, but for what stands in brackets."""
    bare, titled = (re.sub(r"\W+", " ", re.sub(r" \([^()]*\)", "", text)) for text in (sentence_, title))
    return bare.strip().casefold() != titled.strip().casefold()
