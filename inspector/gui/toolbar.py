"""The bar above everything: open, reload, the machine to load on, and the search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QSizePolicy, QToolBar, QToolButton, QWidget

from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.search_box import SearchBox
from inspector.gui.widgets.controls import CalmComboBox
from inspector.gui.widgets.labels import bare_text, blocked, plain_label, plain_tooltip

if TYPE_CHECKING:
    from inspector.session.screen import Choice, Screen

_TARGET_WIDTH = 240


class ActionButton(QToolButton):
    """A toolbar button for an action, with its text beside its icon."""

    def __init__(self, theme: Theme, action: QAction) -> None:
        super().__init__()
        self._action = action
        self.setText(bare_text(action.text()))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonTextBesideIcon)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        set_icon(self, str(action.property("icon_name")), theme.tokens)
        action.changed.connect(self._on_action_changed)
        self.clicked.connect(action.trigger)
        self._on_action_changed()

    def _on_action_changed(self) -> None:
        self.setEnabled(self._action.isEnabled())
        keys = self._action.shortcut().toString(QKeySequence.SequenceFormat.NativeText)
        self.setToolTip(f"{self.text()} ({keys})" if keys else self.text())


class TopBar(QToolBar):
    """Shows the target and the search of a screen."""

    target_chosen = Signal(object)  # may be a path, of which a Signal(str) would lose bytes

    def __init__(self, theme: Theme, actions: Iterable[QAction]) -> None:
        super().__init__("Toolbar")
        self.setObjectName("topBar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        for action in actions:
            self.addWidget(ActionButton(theme, action))
        self._target_label = plain_label("Load on", "muted")
        self._targets = CalmComboBox()
        self._targets.setAccessibleName("Machine to load on")
        self._targets.setMinimumWidth(_TARGET_WIDTH)
        self._targets.setSizeAdjustPolicy(CalmComboBox.SizeAdjustPolicy.AdjustToContents)
        self._targets.activated.connect(self._on_activated)
        self._target_label.setBuddy(self._targets)
        self.search = SearchBox(theme)
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._shown = [self.addWidget(self._space(12)), self.addWidget(self._target_label)]
        self._shown.append(self.addWidget(self._targets))
        self.addWidget(gap)
        self._shown.append(self.addWidget(self.search))
        self._choices: tuple[Choice, ...] = ()

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show what the bar shows of a screen."""
        ready = new.phase == "ready"
        for action in self._shown:
            action.setVisible(ready)
        if new.targets != self._choices:
            self._choices = new.targets
            with blocked(self._targets):
                self._targets.clear()
                for choice in new.targets:
                    self._targets.addItem(choice.label)
        ids = [choice.id for choice in self._choices]
        place = ids.index(new.target) if new.target in ids else -1
        with blocked(self._targets):
            self._targets.setCurrentIndex(place)
        self._targets.setToolTip(plain_tooltip(self._targets.currentText()))
        if not ready:
            self.search.forget()
        if not ready or old is None or old.query != new.query:
            self.search.show_query(new.query)

    def _space(self, width: int) -> QWidget:
        space = QWidget()
        space.setFixedWidth(width)
        return space

    def _on_activated(self, place: int) -> None:
        self.target_chosen.emit(self._choices[place].id)
