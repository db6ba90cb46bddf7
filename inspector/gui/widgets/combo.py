"""Drop-down lists as this window wants them."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtWidgets import QComboBox, QListView

from inspector.overriding import override


class CalmComboBox(QComboBox):
    """A list that the mouse wheel does not change by accident while the page scrolls under it."""

    def __init__(self) -> None:
        super().__init__()
        self.setView(QListView())  # the style's own pop-up takes no notice of the style sheet
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @override
    def wheelEvent(self, e: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(e)
        else:
            e.ignore()
