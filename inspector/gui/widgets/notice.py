"""A message box that reports what could not be done, and blocks nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

if TYPE_CHECKING:
    from inspector.session.screen import FailurePage


def show_notice(parent: QWidget, failure: FailurePage) -> QMessageBox:
    """Show what went wrong, where, what loading would run, and what to do about it."""
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle(failure.title)
    box.setText(f"{failure.title}: {failure.what}")
    box.setInformativeText("\n".join(text for text in (failure.runs, failure.where, failure.remedy) if text))
    box.open()
    return box
