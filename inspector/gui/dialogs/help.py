"""The keyboard shortcuts, collected from the menus of the window, and the dialog about the program."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from typing import cast

from PySide6 import __version__ as pyside_version
from PySide6.QtCore import QLocale, QSize, Qt, QTimer, qVersion
from PySide6.QtGui import QAction, QGuiApplication, QKeySequence
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLayout,
    QMainWindow,
    QMenu,
    QScrollArea,
    QWidget,
)

from inspector import __version__
from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import TOP, TOP_LEFT, column, row
from inspector.gui.widgets.cards import frameless_scroll
from inspector.gui.widgets.controls import button_row, code_field, confirm_copied, make_button
from inspector.gui.widgets.labels import bare_text, named, plain_label
from inspector.gui.widgets.marks import AppMark
from inspector.report.terms import HELP
from inspector.session.log import MOST_LINES, LogLine
from inspector.session.screen import Screen
from inspector.units import format_count, format_nbytes

# What a helper must know of the program and this machine: versions and settings, and no paths or names.

ABSENT = "not installed"


def versions() -> tuple[tuple[str, str], ...]:
    """Return the programs that this one is made of, each with its version; nothing is imported for it."""
    python = f"{platform.python_version()} ({platform.python_implementation()})"
    return (
        ("Checkpoint Inspector", __version__),
        ("Python", python),
        ("Qt", f"{qVersion()} (PySide6 {pyside_version})"),
        ("pyqtgraph", installed("pyqtgraph")),
        ("NumPy", installed("numpy")),
        ("PyTorch", f"{installed('torch')} (only checks copies, where asked)"),
    )


def installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ABSENT


def diagnostics(window: QWidget, shown: Screen | None, theme: Theme) -> str:
    """Return all of it as text: versions, the system, the screen, and of the file its format and size."""
    size, ratio = window.screen().size(), window.devicePixelRatioF()
    lines = [f"{name}: {what}" for name, what in versions()]
    lines += [
        f"System: {platform.system()} {platform.release()}, {platform.machine()}",
        f"Windows: {QGuiApplication.platformName()}, {theme.tokens.name}, {QLocale.system().name()}",
        f"Screen: {size.width()} x {size.height()} at {ratio:g}",
        f"Installed: {'as a package' if 'site-packages' in __file__ else 'from its sources'}",
        *_file_lines(shown),
    ]
    return "\n".join(lines) + "\n"


def _file_lines(screen: Screen | None) -> list[str]:
    if screen is None:
        return []
    lines = [f"Window: {screen.phase}{', not judged yet' if screen.is_checking else ''}"]
    root = screen.tree.nodes[0] if screen.tree is not None else None
    if root is not None and screen.status:
        lines.append(
            f"File: {screen.status[1]}, {format_count(root.tensors, 'tensor')}, {format_nbytes(root.nbytes)}"
        )
        lines.append(f"Findings: {', '.join(sorted({row.id for row in screen.findings})) or 'none'}")
    return lines


_NATIVE = QKeySequence.SequenceFormat.NativeText
_ABOUT_WIDTH = 480
_AROUND_HEIGHT = 150
_MOST_OF_SCREEN = 0.9
_LICENSES = (
    ("Checkpoint Inspector", "Apache License 2.0"),
    ("Qt, PySide6", "LGPL 3.0"),
    ("Python", "PSF License 2"),
    ("pyqtgraph", "MIT"),
    ("NumPy", "BSD 3-Clause"),
)


class HelpDialog(QDialog):
    """Lists every action that has a key, and the syntax of the search."""

    def __init__(self, window: QMainWindow) -> None:
        super().__init__(window)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Keyboard shortcuts and search")
        left, right = column(spacing=10), column(spacing=10)
        page = named(QWidget(), "scrolled")
        row(left, right, spacing=40, margins=(0, 0, 0, 0), within=page)
        for place, entry in enumerate(window.menuBar().actions()):
            (left if place < 2 else right).addLayout(_menu_block(entry))
        right.addLayout(_block("Search", HELP))
        for side in (left, right):
            side.addStretch(1)
        title = plain_label("Keyboard shortcuts and search", "lead")
        area = frameless_scroll(QScrollArea(), page)
        area.setAccessibleName("Keyboard shortcuts and search")
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        area.setFocus()  # the keys scroll it
        column(title, (area, 1), _close_row(self), spacing=16, margins=(28, 24, 28, 20), within=self)
        # All of it where the screen has room, else what fits, and a scroll bar.
        room = self.screen().availableGeometry().size() * _MOST_OF_SCREEN
        whole = page.sizeHint() + QSize(2 * 28 + area.verticalScrollBar().sizeHint().width(), _AROUND_HEIGHT)
        self.resize(whole.boundedTo(room))


class AboutDialog(QDialog):
    """Shows what the program does and what it never does, what it is made of, and under which licenses."""

    def __init__(self, theme: Theme, parent: QWidget, diagnostics: Callable[[], str]) -> None:
        super().__init__(parent)
        self._theme, self._diagnostics = theme, diagnostics
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("About Checkpoint Inspector")
        words = plain_label("Nothing in a file is ever executed, and nothing is uploaded.", wrap=True)
        about = "What a PyTorch checkpoint contains, where its tensors were saved, and how to load it here."
        wide = plain_label(about, "muted", wrap=True)
        wide.setFixedWidth(_ABOUT_WIDTH)
        self._copy = make_button("Copy diagnostics", self._on_copy, icon="copy", theme=theme)
        self._copy.setToolTip("Versions, system and screen; no paths, no names of files or tensors")
        close = make_button("Close", self.accept, kind="primary")
        close.setDefault(True)
        page = column(
            AppMark(72),
            plain_label("Checkpoint Inspector", "title"),
            wide,
            row((Glyph(theme, "shield", 18, ink="good"), 0, TOP), (words, 1)),
            _facts("Versions", versions()),
            _facts("Licenses", _LICENSES),
            button_row(self._copy, close),
            spacing=12,
            margins=(28, 28, 28, 20),
            within=self,
        )
        page.setSizeConstraint(QLayout.SizeConstraint.SetFixedSize)  # a dialog gets two thirds of the screen
        close.setFocus()

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._diagnostics())
        confirm_copied(self._copy, self._theme)


def _facts(title: str, rows: tuple[tuple[str, str], ...]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(4)
    grid.setColumnStretch(1, 1)
    grid.addWidget(plain_label(title, "section"), 0, 0, 1, 2)
    for line, (name, what) in enumerate(rows, start=1):
        caption = plain_label(name, "muted")
        caption.setAlignment(TOP_LEFT)
        grid.addWidget(caption, line, 0)
        grid.addWidget(plain_label(what, selectable=True), line, 1)
    return grid


def _menu_block(entry: QAction) -> QGridLayout:
    menu = cast("QMenu", entry.menu())
    keys = {action: action.shortcut().toString(_NATIVE) for action in menu.actions()}
    rows = tuple((keys[action], bare_text(action.text())) for action in menu.actions() if keys[action])
    return _block(bare_text(entry.text()), rows)


def _block(title: str, rows: tuple[tuple[str, str], ...]) -> QGridLayout:
    grid = QGridLayout()
    grid.setHorizontalSpacing(16)
    grid.setVerticalSpacing(2)
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


_POLL_MS = 500
_SIZE = (720, 420)
_MARKS = {"done": " ", "warning": "!", "error": "x"}
_SPOKEN = {"done": "", "warning": "warning: ", "error": "error: "}
_EMPTY = "Nothing was done in this window yet."


class LogDialog(QDialog):
    """Shows the last lines of `Screen.log`."""

    def __init__(self, theme: Theme, parent: QWidget, log: Callable[[], tuple[LogLine, ...]]) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle("Log")
        self.resize(*_SIZE)
        self._theme = theme
        self._log = log
        self._shown: tuple[LogLine, ...] | None = None
        self._field = code_field(theme, "What was done in this window")
        self._copy = make_button("Copy all", self._on_copy, icon="copy", theme=theme)
        close = make_button("Close", self.accept, kind="primary")
        said = f"What was done in this window, the last {MOST_LINES:,} steps. Nothing of it is saved."
        column(
            plain_label("Log", "lead"),
            plain_label(said, "muted", wrap=True),
            (self._field, 1),
            button_row(self._copy, close),
            spacing=10,
            margins=(24, 20, 24, 20),
            within=self,
        )
        close.setDefault(True)
        self._timer = QTimer(self, interval=_POLL_MS)
        self._timer.timeout.connect(self.refresh)
        self._timer.start()
        self.refresh()

    def refresh(self) -> None:
        log = self._log()
        if log == self._shown:
            return
        self._shown = log
        self._field.setPlainText("\n".join(map(_line, log)) or _EMPTY)
        bar = self._field.verticalScrollBar()
        bar.setValue(bar.maximum())

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(f"{self._field.toPlainText()}\n")
        confirm_copied(self._copy, self._theme)


def _line(line: LogLine) -> str:
    at = time.strftime("%H:%M:%S", time.localtime(line.at))
    return f"{at}  {_MARKS[line.kind]} {_SPOKEN[line.kind]}{line.text}"
