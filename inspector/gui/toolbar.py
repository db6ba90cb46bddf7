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
_DEVICE_WIDTH = 148


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


class ChoiceBox(CalmComboBox):
    """A drop-down list of choices of a screen."""

    chosen = Signal(object)  # may be a path, of which a Signal(str) would lose bytes

    def __init__(self, spoken: str, width: int) -> None:
        super().__init__()
        self.setAccessibleName(spoken)
        self.setMinimumWidth(width)
        self.setSizeAdjustPolicy(CalmComboBox.SizeAdjustPolicy.AdjustToContents)
        self.activated.connect(self._on_activated)
        self._choices: tuple[Choice, ...] = ()

    def show_choices(self, choices: tuple[Choice, ...], current: str) -> None:
        """Show the choices, and which of them is the current one."""
        ids = [choice.id for choice in choices]
        with blocked(self):
            if choices != self._choices:
                self._choices = choices
                self.clear()
                for choice in choices:
                    self.addItem(choice.label)
            self.setCurrentIndex(ids.index(current) if current in ids else -1)
        self.setToolTip(plain_tooltip(self.currentText()))

    def _on_activated(self, place: int) -> None:
        self.chosen.emit(self._choices[place].id)


class TopBar(QToolBar):
    """Shows the target, the device that is wanted there, and the search of a screen."""

    target_chosen = Signal(object)
    device_chosen = Signal(object)

    def __init__(self, theme: Theme, actions: Iterable[QAction]) -> None:
        super().__init__("Toolbar")
        self.setObjectName("topBar")
        self.setMovable(False)
        self.setFloatable(False)
        self.setContextMenuPolicy(Qt.ContextMenuPolicy.PreventContextMenu)
        for action in actions:
            self.addWidget(ActionButton(theme, action))
        self._targets = ChoiceBox("Machine to load on", _TARGET_WIDTH)
        self._targets.chosen.connect(self.target_chosen)
        self._devices = ChoiceBox("Device that is wanted there", _DEVICE_WIDTH)
        self._devices.setMaximumWidth(_DEVICE_WIDTH)  # its list is as wide as the names of the GPUs
        self._devices.chosen.connect(self.device_chosen)
        self.search = SearchBox(theme)
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        self._shown = [self.addWidget(self._space(12)), *self._captioned("Load on", self._targets)]
        self._shown_by_choice = [self.addWidget(self._space(8)), *self._captioned("Device", self._devices)]
        self.addWidget(gap)
        self._shown.append(self.addWidget(self.search))

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show what the bar shows of a screen."""
        ready = new.phase == "ready"
        for action in self._shown:
            action.setVisible(ready)
        for action in self._shown_by_choice:
            action.setVisible(ready and bool(new.devices))
        self._targets.show_choices(new.targets, new.target)
        self._devices.show_choices(new.devices, new.wanted)
        if not ready:
            self.search.forget()
        if not ready or old is None or old.query != new.query:
            self.search.show_query(new.query)

    def _captioned(self, caption: str, box: ChoiceBox) -> tuple[QAction, QAction]:
        label = plain_label(caption, "muted")
        label.setBuddy(box)
        return self.addWidget(label), self.addWidget(box)

    def _space(self, width: int) -> QWidget:
        space = QWidget()
        space.setFixedWidth(width)
        return space
