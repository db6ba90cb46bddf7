"""The parts of the tree that have a destination of their own, below the device map."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QWidget

from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import clear_layout, plain_label, plain_tooltip
from inspector.session.screen import BranchRow
from inspector.units import cut_text

_MOST_IN_SIGHT = 4
_MOST_CHARS = 40


class BranchList(QWidget):
    """Shows the branches as buttons; a click removes one."""

    removed = Signal(object)  # a Signal(str) would lose parts of names that are no text

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._row = QHBoxLayout(self)
        self._row.setContentsMargins(2, 0, 0, 0)
        self._row.setSpacing(8)
        self.setVisible(False)

    def show_branches(self, branches: tuple[BranchRow, ...]) -> None:
        """Show which parts of the tree go elsewhere, in the exported copy."""
        clear_layout(self._row)
        self.setVisible(bool(branches))
        self._row.addWidget(plain_label("In the copy also:", "small"))
        for branch in branches[:_MOST_IN_SIGHT]:
            text = f"{cut_text(branch.label, _MOST_CHARS)} \u2192 {branch.to}"
            button = QPushButton(text.replace("&", "&&"))
            button.setProperty("kind", "quiet")
            button.setToolTip(plain_tooltip(f"{branch.label} \u2192 {branch.to}\nClick to remove this rule."))
            button.setAccessibleName(f"Remove the rule {branch.label} to {branch.to}")
            set_icon(button, "close", self._theme.tokens)
            button.clicked.connect(partial(self.removed.emit, branch.pattern))
            self._row.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        if len(branches) > _MOST_IN_SIGHT:
            self._row.addWidget(plain_label(f"and {len(branches) - _MOST_IN_SIGHT} more", "small"))
        self._row.addStretch(1)
