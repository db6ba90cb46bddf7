"""What a test sees of a widget: its words and its buttons."""

from __future__ import annotations

from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from inspector.gui.widgets.labels import WrappedText


def said(widget: QWidget) -> list[str]:
    """List the texts of a widget, hidden ones too."""
    labels = [label.text() for label in widget.findChildren(QLabel)]
    return labels + [text.toPlainText() for text in widget.findChildren(WrappedText)]


def shown(widget: QWidget) -> str:
    """Return the texts of a widget that are not hidden."""
    labels = [label.text() for label in widget.findChildren(QLabel) if label.isVisible()]
    return "\n".join([*labels, *(text.toPlainText() for text in widget.findChildren(WrappedText))])


def button(widget: QWidget, text: str) -> QPushButton:
    """Find the button with a text."""
    return next(each for each in widget.findChildren(QPushButton) if text in each.text())
