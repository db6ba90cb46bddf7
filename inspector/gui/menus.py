"""The menus whose entries are not actions of the table: recent files and the theme."""

from __future__ import annotations

from pathlib import PurePath

from PySide6.QtCore import Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from inspector.gui.settings import Settings
from inspector.gui.theme.motion import set_still
from inspector.gui.theme.theme import MODES, Theme
from inspector.units import cut_text, escape_text

_NAMES = {
    "system": "Follow the &system",
    "light": "&Light",
    "dark": "&Dark",
    "contrast-light": "&High contrast, light",
    "contrast-dark": "High &contrast, dark",
}


class RecentMenu(QMenu):
    """Recent files."""

    path_wanted = Signal(object)  # a Signal(str) would lose bytes of names that are not UTF-8

    def __init__(self, parent: QWidget, title: str = "Open rece&nt") -> None:
        super().__init__(title, parent)
        self._paths: tuple[str, ...] = ()
        self.triggered.connect(self._on_triggered)

    def show_recent(self, paths: tuple[str, ...]) -> None:
        """Show these files, the latest first."""
        self.clear()
        self._paths = paths
        self.setEnabled(bool(paths))
        for number, path in enumerate(paths):
            place = PurePath(escape_text(path))
            text = f"{cut_text(place.name, 60)}    {cut_text(place.parent.name, 30)}/"
            self.addAction(text.replace("&", "&&")).setData(number)

    def _on_triggered(self, action: QAction) -> None:
        self.path_wanted.emit(self._paths[int(action.data())])


class ProfileMenu(RecentMenu):
    """Descriptions of machines that were used before, which the settings keep."""

    def __init__(self, parent: QWidget, settings: Settings) -> None:
        super().__init__(parent, "Load on a recent mach&ine")
        self._settings = settings
        self._shown: tuple[str, ...] | None = None

    def show_profiles(self, paths: tuple[str, ...]) -> None:
        """Show and keep these, if they are others than before."""
        if paths != self._shown:
            self._shown = paths
            self.show_recent(paths)
            self._settings.keep_profiles(paths)


class ThemeMenu(QMenu):
    """Light, dark, both with high contrast, or what the system prefers; and whether anything moves."""

    def __init__(self, parent: QWidget, theme: Theme, settings: Settings) -> None:
        super().__init__("T&heme", parent)
        self._theme = theme
        self._settings = settings
        group = QActionGroup(self)
        for mode in MODES:
            action = self.addAction(_NAMES[mode])
            action.setCheckable(True)
            action.setData(mode)
            action.setChecked(mode == theme.mode)
            group.addAction(action)
        self.addSeparator()
        still = self.addAction("&Reduce motion")
        still.setCheckable(True)
        still.setChecked(settings.is_still)
        still.toggled.connect(self._on_still_toggled)
        self.triggered.connect(self._on_triggered)

    def _on_still_toggled(self, still: bool) -> None:  # noqa: FBT001  # Qt passes it by position
        set_still(still=still)
        self._settings.keep_still(still=still)

    def _on_triggered(self, action: QAction) -> None:
        mode = action.data()
        if mode is None:
            return
        self._theme.set_mode(mode)
        self._settings.keep_theme(mode)
