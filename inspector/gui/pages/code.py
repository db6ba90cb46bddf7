"""The code page: the loading snippet in a chosen style, highlighted, with a button that copies it."""

from __future__ import annotations

import keyword
import re

from PySide6.QtCore import Signal
from PySide6.QtGui import QFont, QFontMetricsF, QSyntaxHighlighter, QTextCharFormat, QTextDocument
from PySide6.QtWidgets import QPlainTextEdit, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import CalmComboBox, code_field, confirm_copied, make_button
from inspector.gui.widgets.labels import blocked, plain_label
from inspector.overriding import override
from inspector.session.screen import CodePage, Screen

# Colors for Python code, as plain as can be: comments, strings, keywords, numbers and calls.

_PATTERN = re.compile(
    r"(?P<comment>\#.*)"
    r"|(?P<string>[rbfu]{0,2}(?:\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'))"
    r"|(?P<number>\b\d[\w.]*\b)"
    rf"|(?P<keyword>\b(?:{'|'.join(keyword.kwlist)})\b)"
    r"|(?P<name>\b[A-Za-z_]\w*(?=\())"
)


class PythonHighlighter(QSyntaxHighlighter):
    """Highlights one document in the theme's code colors."""

    def __init__(self, document: QTextDocument, theme: Theme) -> None:
        super().__init__(document)
        self._theme = theme
        self._formats: dict[str, QTextCharFormat] = {}
        self._read_theme()
        theme.changed.connect(self._on_theme_changed)

    @override
    def highlightBlock(self, text: str) -> None:
        for match in _PATTERN.finditer(text):
            kind = match.lastgroup
            if kind is not None:
                self.setFormat(match.start(), match.end() - match.start(), self._formats[kind])

    def _on_theme_changed(self) -> None:
        self._read_theme()
        self.rehighlight()

    def _read_theme(self) -> None:
        for kind in _PATTERN.groupindex:
            form = QTextCharFormat()
            form.setForeground(self._theme.tokens.color(f"code_{kind}"))
            if kind == "keyword":
                form.setFontWeight(QFont.Weight.DemiBold)
            self._formats[kind] = form


_LEAST_STYLE = 96


class CodePanel(QWidget):
    """Shows a `CodePage`."""

    style_chosen = Signal(str)
    copy_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._styles = CalmComboBox(least=_LEAST_STYLE)
        self._styles.setSizeAdjustPolicy(CalmComboBox.SizeAdjustPolicy.AdjustToContents)
        self._styles.setAccessibleName("Style of the loading code")
        self._styles.activated.connect(self._on_activated)
        label = plain_label("Style", "muted")
        label.setBuddy(self._styles)
        self._copy = make_button("Copy", self.copy_wanted, icon="copy", theme=theme)
        self._copy.setToolTip("Copy the loading code (Ctrl+Shift+C)")
        self._text = _build_text(theme)
        self._highlighter = PythonHighlighter(self._text.document(), theme)
        head = row(label, self._styles, 1, self._copy, spacing=8)
        column(head, (self._text, 1), spacing=12, margins=(16, 16, 16, 16), within=self)

    def show_screen(self, screen: Screen) -> None:
        code = screen.code or CodePage(styles=(), style="", text="")
        with blocked(self._styles):
            self._styles.clear()
            for choice in code.styles:
                self._styles.addItem(choice.label, choice.id)
            self._styles.setCurrentIndex(max(0, self._styles.findData(code.style)))
        self._styles.setEnabled(len(code.styles) > 1)
        self._copy.setEnabled(bool(code.text))
        if code.text != self._text.toPlainText():
            self._text.setPlainText(code.text)

    def confirm_copied(self) -> None:
        confirm_copied(self._copy, self._theme)

    def _on_activated(self, place: int) -> None:
        self.style_chosen.emit(str(self._styles.itemData(place)))


def _build_text(theme: Theme) -> QPlainTextEdit:
    text = code_field(theme, "Loading code")
    text.setTabStopDistance(4 * QFontMetricsF(text.font()).horizontalAdvance(" "))
    return text
