"""The search field: counts the rows that match, steps through them, and can hide all others."""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, cast

from PySide6.QtCore import QEvent, QObject, QSize, QStringListModel, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent
from PySide6.QtWidgets import QCompleter, QFrame, QLineEdit, QListView, QToolButton

from inspector.gui.theme.icons import Glyph, draw_icons, name_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import row
from inspector.gui.widgets.labels import blocked, describe, named, plain_label, set_state
from inspector.overriding import override
from inspector.report.matching import begun_word, completions, query_words
from inspector.report.terms import HELP

if TYPE_CHECKING:
    from inspector.session.screen import Screen

_PAUSE_MS = 120
_WIDTH = 440
_HINT = "Search:  conv1  dtype:bf16  device:cuda:1  size>10MB"
_TOLD = "\n".join(f"{row.example}   {row.words}" for row in HELP)


def place_of(matches: tuple[int, ...], node: int | None) -> int | None:
    """Return the place of a node among the matches, which are in order; None where it is none."""
    place = -1 if node is None else bisect_left(matches, node)
    return place if 0 <= place < len(matches) and matches[place] == node else None


class QueryCompleter(QCompleter):
    """Lists what the word at the cursor may become; of a line's own completer it would be the whole line."""

    def __init__(self, line: QLineEdit) -> None:
        self._found = QStringListModel()
        super().__init__(self._found, line)
        self._line = line
        self.words: tuple[str, ...] = ()
        self.setWidget(line)
        named(cast("QListView", self.popup()), "completions", spoken="What this word may become")
        line.textEdited.connect(self._on_edited)
        self.activated.connect(self._on_activated)

    def _on_edited(self) -> None:
        found = completions(self._line.text()[: self._line.cursorPosition()], self.words)
        self._found.setStringList(found)
        if found:
            self.complete()
        else:
            cast("QListView", self.popup()).hide()

    def _on_activated(self, word: str) -> None:
        text, end = self._line.text(), self._line.cursorPosition()
        begin = end - len(begun_word(text[:end]))
        self._line.setText(f"{text[:begin]}{word}{text[end:]}")
        self._line.setCursorPosition(begin + len(word))


class SearchBox(QFrame):
    """A line with a count of the matches and buttons to step through them."""

    query_changed = Signal(str)
    step_wanted = Signal(int)
    only_toggled = Signal(bool)
    left = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self.setObjectName("searchBox")
        self._line = named(QLineEdit(), spoken="Search the tree")
        self._line.setPlaceholderText(_HINT)
        describe(self._line, _TOLD)
        self._line.setAcceptDrops(False)
        self._line.installEventFilter(self)
        self._line.textChanged.connect(self._on_text_changed)
        self._completer = QueryCompleter(self._line)
        self._pause = QTimer(self)
        self._pause.setSingleShot(True)
        self._pause.timeout.connect(self.flush)
        self._count = plain_label("", "small")
        self._count.setAccessibleName("Number of matches")
        self._back = self._make_button("chevron-up", "Previous match (Shift+F3)")
        self._back.clicked.connect(self._on_back)
        self._on = self._make_button("chevron-down", "Next match (F3)")
        self._on.clicked.connect(self._on_next)
        self._only = self._make_button("filter", "Show only the matches")
        self._only.setCheckable(True)
        self._only.setChecked(True)
        self._only.toggled.connect(self.only_toggled)
        self._clear = self._make_button("close", "End the search (Esc)")
        self._clear.clicked.connect(self.leave)
        self._parts = (self._count, self._back, self._on, self._only, self._clear)
        parts = (Glyph(theme, "search", 16), (self._line, 1), *self._parts)
        row(*parts, spacing=2, margins=(10, 0, 4, 0), within=self)
        self.setFocusProxy(self._line)
        self.show_matches(None, None)

    @override
    def sizeHint(self) -> QSize:
        return QSize(_WIDTH, super().sizeHint().height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(_WIDTH // 2, super().minimumSizeHint().height())

    @property
    def only(self) -> bool:
        return self._only.isChecked()

    def show_query(self, query: str) -> None:
        """Show the query of the session, unless one is being typed."""
        if not self._pause.isActive() and query != self._line.text():
            with blocked(self._line):
                self._line.setText(query)

    def forget(self) -> None:
        """Drop what was being typed: it was meant for a file that is closed."""
        self._pause.stop()

    def show_screen(self, screen: Screen) -> None:
        self._completer.words = query_words(screen.charts)
        if screen.matches is None:
            self.show_matches(None, None)
            return
        place = place_of(screen.matches, screen.selected)
        size = "" if screen.search is None else screen.search.size
        self.show_matches(len(screen.matches), place, size)

    def show_matches(self, matches: int | None, place: int | None, size: str = "") -> None:
        for part in self._parts:
            part.setVisible(matches is not None)
        set_state(self, "missed", "true" if matches == 0 else "false")
        if matches is None:
            return
        draw_icons((self._back, self._on, self._only, self._clear), self._theme.tokens)
        text = f"{matches:,}" if place is None else f"{place + 1:,} of {matches:,}"
        told = f"{text}  \u00b7  {size}" if size else text
        self._count.setText("no match" if matches == 0 else told)
        for button in (self._back, self._on):
            button.setEnabled(matches > 0)

    def begin(self) -> None:
        self._line.setFocus(Qt.FocusReason.ShortcutFocusReason)
        self._line.selectAll()

    def flush(self) -> None:
        self._pause.stop()
        self.query_changed.emit(self._line.text())

    def leave(self) -> None:
        self._line.clear()
        self.flush()
        self.left.emit()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if isinstance(event, QFocusEvent):
            set_state(self, "active", "true" if event.gotFocus() else "false")
        if isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._take_key(event)
        return super().eventFilter(watched, event)

    def _take_key(self, event: QKeyEvent) -> bool:
        if event.key() == Qt.Key.Key_Escape:
            self.leave()
            return True
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self._pause.isActive():
                self.flush()
            backwards = bool(event.modifiers() & Qt.KeyboardModifier.ShiftModifier)
            self.step_wanted.emit(-1 if backwards else 1)
            return True
        return False

    def _make_button(self, icon: str, words: str) -> QToolButton:
        button = named(QToolButton(), spoken=words)
        button.setToolTip(words)
        button.setProperty("kind", "icon")
        name_icon(button, icon)
        return button

    def _on_text_changed(self) -> None:
        self._pause.start(_PAUSE_MS)

    def _on_back(self) -> None:
        self.step_wanted.emit(-1)

    def _on_next(self) -> None:
        self.step_wanted.emit(1)
