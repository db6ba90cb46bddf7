"""The status bar: the path of the file at the left, short facts at the right."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QStatusBar

from inspector.gui.widgets.labels import ElidedLabel, plain_label


class StatusLine(QStatusBar):
    """Shows the status of a screen; its first text is the one that may be elided."""

    def __init__(self) -> None:
        super().__init__()
        self._path = ElidedLabel("", mode=Qt.TextElideMode.ElideMiddle)
        self._facts = plain_label("")
        self.setSizeGripEnabled(False)
        self.setContentsMargins(12, 0, 12, 0)
        self.addWidget(self._path, 1)
        self.addPermanentWidget(self._facts)

    def show_status(self, status: tuple[str, ...]) -> None:
        self._path.setText(status[0] if status else "")
        self._facts.setText("   \u00b7   ".join(status[1:]))
