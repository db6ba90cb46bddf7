"""The keyboard shortcuts, collected from the menus of the window, and the dialog about the program."""

from __future__ import annotations

from typing import cast

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QMainWindow,
    QMenu,
    QWidget,
)

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import TOP, column, row
from inspector.gui.widgets.controls import button_row, make_button
from inspector.gui.widgets.labels import bare_text, named, plain_label
from inspector.gui.widgets.marks import AppMark
from inspector.report.search.terms import HELP

_NATIVE = QKeySequence.SequenceFormat.NativeText


class HelpDialog(QDialog):
    """Lists every action that has a key, and the syntax of the search."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keyboard shortcuts and search")
        left, right = column(spacing=16), column(spacing=16)
        columns = row(left, right, spacing=40)
        for place, entry in enumerate(window.menuBar().actions()):
            (left if place < 2 else right).addLayout(_menu_block(entry))
        right.addLayout(_block("Search", HELP))
        for side in (left, right):
            side.addStretch(1)
        title = plain_label("Keyboard shortcuts and search", "lead")
        column(title, columns, _close_row(self), spacing=16, margins=(28, 24, 28, 20), within=self)


class AboutDialog(QDialog):
    """Shows what the program does, and what it never does."""

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("About Checkpoint Inspector")
        self.setFixedWidth(460)
        words = plain_label("Nothing in a file is ever executed, and nothing is uploaded.", wrap=True)
        about = "What a PyTorch checkpoint contains, where its tensors were saved, and how to load it here."
        column(
            AppMark(72),
            plain_label("Checkpoint Inspector", "title"),
            plain_label(about, "muted", wrap=True),
            row((Glyph(theme, "shield", 18, ink="good"), 0, TOP), (words, 1)),
            _close_row(self),
            spacing=12,
            margins=(28, 28, 28, 20),
            within=self,
        )


def _menu_block(entry: QAction) -> QGridLayout:
    menu = cast("QMenu", entry.menu())
    keys = {action: action.shortcut().toString(_NATIVE) for action in menu.actions()}
    rows = tuple((keys[action], bare_text(action.text())) for action in menu.actions() if keys[action])
    return _block(bare_text(entry.text()), rows)


def _block(title: str, rows: tuple[tuple[str, str], ...]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(6)
    grid.setColumnMinimumWidth(0, 120)
    grid.setColumnStretch(1, 1)
    grid.addWidget(plain_label(title, "section"), 0, 0, 1, 2)
    grid.addWidget(named(QFrame(), "line"), 1, 0, 1, 2)
    for line, (keys, words) in enumerate(rows, start=2):
        grid.addWidget(plain_label(keys, "mono"), line, 0)
        grid.addWidget(plain_label(words), line, 1)
    return grid


def _close_row(dialog: QDialog) -> QHBoxLayout:
    close = make_button("Close", dialog.accept, kind="primary")
    close.setDefault(True)
    return button_row(close)
