"""Colors for Python code, as plain as can be: comments, strings, keywords, numbers and calls."""

from __future__ import annotations

import keyword
import re

from PySide6.QtGui import QFont, QSyntaxHighlighter, QTextCharFormat, QTextDocument

from inspector.gui.theme.theme import Theme
from inspector.overriding import override

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
