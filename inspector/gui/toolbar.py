"""The one line above everything: the menus, open and reload, the machine to load on, and the search."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QKeySequence, QResizeEvent
from PySide6.QtWidgets import QLabel, QMenuBar, QSizePolicy, QToolButton, QWidget

from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.search_box import SearchBox
from inspector.gui.widgets.boxes import row
from inspector.gui.widgets.controls import CalmComboBox
from inspector.gui.widgets.labels import bare_text, blocked, describe, plain_label, plain_tooltip
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.session.screen import Choice, Screen

HEIGHT = 40
_TARGET_WIDTH = (120, 320)
_DEVICE_WIDTH = (92, 148)
_SEARCH_WIDTH = 150
_NARROW = 1000


class ActionButton(QToolButton):
    """A toolbar button for an action, with its text in the tooltip."""

    def __init__(self, theme: Theme, action: QAction) -> None:
        super().__init__()
        self._action = action
        self.setText(bare_text(action.text()))
        self.setToolButtonStyle(Qt.ToolButtonStyle.ToolButtonIconOnly)
        self.setAccessibleName(self.text())
        self.setProperty("kind", "icon")
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

    def __init__(self, spoken: str, widths: tuple[int, int]) -> None:
        super().__init__()
        self.setAccessibleName(spoken)
        self.setProperty("slim", True)
        least, most = widths
        self.setMinimumWidth(least)
        self.setMaximumWidth(most)  # its list is as wide as its longest name
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        self.setSizeAdjustPolicy(CalmComboBox.SizeAdjustPolicy.AdjustToContents)
        self.activated.connect(self._on_activated)
        self._choices: tuple[Choice, ...] = ()
        self._current = -1

    def show_choices(self, choices: tuple[Choice, ...], current: str) -> None:
        ids = [choice.id for choice in choices]
        with blocked(self):
            if choices != self._choices:
                self._choices = choices
                self.clear()
                for choice in choices:
                    self.addItem(choice.label)
                    tip = plain_tooltip(choice.tooltip)
                    self.setItemData(self.count() - 1, tip, Qt.ItemDataRole.ToolTipRole)
            self._current = ids.index(current) if current in ids else -1
            self.setCurrentIndex(self._current)
        told = choices[self._current].tooltip if self._current >= 0 else ""
        describe(self, f"{self.currentText()}\n{told}" if told else self.currentText())

    def _on_activated(self, place: int) -> None:
        with blocked(self):
            self.setCurrentIndex(self._current)  # until a screen says that it is chosen
        self.chosen.emit(self._choices[place].id)


class TopBar(QWidget):
    """Holds the menus; shows the target, the device that is wanted there, and the search of a screen."""

    target_chosen = Signal(object)
    device_chosen = Signal(object)

    def __init__(
        self, theme: Theme, menus: QMenuBar, actions: Iterable[QAction], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("topBar")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self.setFixedHeight(HEIGHT)
        self._menus = menus
        menus.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._targets = ChoiceBox("Machine to load on", _TARGET_WIDTH)
        self._targets.chosen.connect(self.target_chosen)
        self._devices = ChoiceBox("Device that is wanted there", _DEVICE_WIDTH)
        self._devices.chosen.connect(self.device_chosen)
        self._captions = (_caption("Load on", self._targets), _caption("Device", self._devices))
        self.search = SearchBox(theme)
        self.search.setMinimumWidth(_SEARCH_WIDTH)
        self.search.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self._is_ready = False
        buttons = [ActionButton(theme, action) for action in actions]
        first, second = self._captions
        choices = (first, (self._targets, 2), second, (self._devices, 1))
        row(menus, *buttons, *choices, (self.search, 3), 0, spacing=6, margins=(6, 0, 10, 0), within=self)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        ready = new.phase == "ready"
        self._is_ready = ready
        self._targets.setVisible(ready)
        self.search.setVisible(ready)
        self._devices.setVisible(ready and bool(new.devices))
        self._targets.show_choices(new.targets, new.target)
        self._devices.show_choices(new.devices, new.wanted)
        self._show_captions()
        if not ready:
            self.search.forget()
        if not ready or old is None or old.phase != "ready" or old.query != new.query:
            self.search.show_query(new.query)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._show_captions()

    def _show_captions(self) -> None:
        """Show the captions where there is room for them; the lists have their names all the same."""
        for caption in self._captions:
            box = caption.buddy()
            caption.setVisible(self.width() >= _NARROW and not box.isHidden())


def _caption(text: str, box: ChoiceBox) -> QLabel:
    label = plain_label(text, "muted")
    label.setBuddy(box)
    return label
