"""What stands around the tree: verdict, device map and pages, and the bar that tells of a changed file."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QFileSystemWatcher, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QWidget

from inspector.gui.pages.tabs import PageTabs
from inspector.gui.theme.icons import Glyph, draw_icons
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, column
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import plain_label
from inspector.gui.workspace.banner import BannerFrame
from inspector.gui.workspace.device_map import DeviceMapBar
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.containers.source import Stamp
    from inspector.gui.commands import Commands
    from inspector.session.screen import Screen


# Shows that the file on disk is no longer the one that was read, and offers to read it again.

_SETTLED_MS = 400
_CHANGED = "The file has changed on disk since it was read."
_GONE = "The file is gone from the disk; this is what it contained."
_FOLDER_CHANGED = "A file of this checkpoint has changed on disk since it was read."
_MOST_WATCHED = 64


class ChangedBar(QFrame):
    """Watches a file, or the files of a folder, and asks to have a look when something happens to one.

    Hidden as long as the file stays the same. The look itself is a job: a disk may hang. To watch a file asks
    the disk as well, and here; so that is done only where a job has just had its answer.
    """

    reload_wanted = Signal()
    touched = Signal()
    shown = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("changedBar")
        self._theme = theme
        self._path = ""
        self._parts: tuple[str, ...] = ()
        self._read: Stamp | None = None
        self._seen: Stamp | None = None
        self._looked: Stamp | None = None
        self._watcher = QFileSystemWatcher(self)
        self._watcher.fileChanged.connect(self._on_touched)
        self._watcher.directoryChanged.connect(self._on_touched)
        self._pause = QTimer(self)  # a checkpoint is written in many pieces
        self._pause.setSingleShot(True)
        self._pause.timeout.connect(self.touched)
        self._words = plain_label("")
        self._reload = make_button("Reload", self.reload_wanted, icon="reload")
        dismiss = make_button("Not now", self.hide, kind="quiet")
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 8, 6)
        row.setSpacing(8)
        row.addWidget(Glyph(theme, "clock", 18, ink="warning"))
        row.addWidget(self._words, 1)
        row.addWidget(self._reload)
        row.addWidget(dismiss)
        self.hide()

    def watch(self, path: str, stamp: Stamp | None, parts: tuple[str, ...] = ()) -> None:
        """Watch another file; an empty path watches nothing.

        Args:
            stamp: What it looked like when it was read, which may be a while ago.
            parts: The files that are read for it, where there are several.
        """
        if watched := self._watcher.files() + self._watcher.directories():
            self._watcher.removePaths(watched)
        self._pause.stop()
        self.hide()
        self._path, self._parts = path, parts[:_MOST_WATCHED]
        self._read = self._seen = self._looked = stamp
        if path:
            self._watch_on()

    def show_file(self, stamp: Stamp | None) -> None:
        """Show what the file looked like last, if that is something else than before; None if it was gone."""
        if stamp is not None and stamp is not self._looked:
            self._watch_on()  # replaced by another file, and the watch went with the old one
        self._looked = stamp
        if stamp != self._seen:
            self._seen = stamp
            changed = _FOLDER_CHANGED if self._parts else _CHANGED
            self._words.setText(_GONE if stamp is None else changed)
            self._reload.setVisible(stamp is not None)
            self.setVisible(stamp != self._read)

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        draw_icons((self._reload,), self._theme.tokens)
        self.shown.emit()

    def _watch_on(self) -> None:
        watched = {*self._watcher.files(), *self._watcher.directories()}
        if self._path not in watched and not self._watcher.addPath(self._path):
            self._watcher.addPath(str(Path(self._path).parent))  # gone, or its name is not UTF-8
        for part in self._parts:
            if part not in watched:
                self._watcher.addPath(part)

    def _on_touched(self) -> None:
        self._pause.start(_SETTLED_MS)


class Around:
    """Makes the parts and shows screens in them; the workspace puts bar and pages where they stay."""

    def __init__(
        self, theme: Theme, commands: Commands, above: QWidget, beside: QWidget, *, spacing: int
    ) -> None:
        self._above = above
        self.changed = ChangedBar(theme)
        self.banner = BannerFrame(theme, self._above)
        self.device_map = DeviceMapBar(theme, self._above)
        self.pages = PageTabs(theme, commands, beside)
        column(self.banner, self.device_map, spacing=spacing, margins=NO_MARGINS, within=above)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show a screen; each part is updated only where its own fields differ."""
        if old is None or old.tree is not new.tree:
            self.changed.watch(new.path, new.stamp, new.parts)
        self.changed.show_file(new.on_disk)
        if old is None or old.banner != new.banner:
            self.banner.show_banner(new.banner)
        if old is None or old.safety != new.safety:
            self.banner.show_safety(new.safety)
        if old is None or old.is_checking != new.is_checking:
            self.banner.show_waiting(waits=new.is_checking)
        if old is None or old.can_export != new.can_export:
            self.banner.show_can_export(allowed=new.can_export)
        if old is None or _mapped(old) != _mapped(new):
            colors = _device_colors(new)
            self.device_map.show_rows(new.device_map, colors, new.branches)
            self.device_map.menu.show_choices(new.map_choices, new.no_map)
            self.device_map.setVisible(new.awaits_map or not self.device_map.is_bare)
            _chain(self._above, *self.banner.stops, *self.device_map.stops)
        self._above.setVisible(not (self.banner.isHidden() and self.device_map.isHidden()))
        self.pages.show_screen(new)

    def forget(self) -> None:
        self.changed.watch("", None)
        self.pages.forget()


def _chain(*stops: QWidget) -> None:
    for first, second in pairwise(stops):
        QWidget.setTabOrder(first, second)


def _mapped(screen: Screen) -> tuple[object, ...]:
    return screen.device_map, screen.branches, screen.charts, screen.is_checking


def _device_colors(screen: Screen) -> dict[str, int]:
    parts = (part for chart in screen.charts for bar in chart.bars for part in bar.segments)
    colors = {part.label: part.color for part in parts}
    return colors | {row.device: row.color for row in screen.device_map}
