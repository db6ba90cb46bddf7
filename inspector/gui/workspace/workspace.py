"""What is shown while a file is open: the verdict, the device map, then the tree and the pages.

Nothing above the tree changes its height, so that the tree stands still; what has more to say opens over it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QRect, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QVBoxLayout, QWidget

from inspector.gui.commands import Commands
from inspector.gui.pages.tabs import PageTabs
from inspector.gui.theme.theme import Theme
from inspector.gui.workspace.banner import BannerFrame
from inspector.gui.workspace.changed_bar import ChangedBar
from inspector.gui.workspace.device_map import DeviceMapBar
from inspector.gui.workspace.tree_pane import TreePane
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.session.screen import Screen

_MARGIN = 8
_SIDE = 10
_SHARES = (58, 42)


class Workspace(QWidget):
    """Lays the parts out; the window connects them."""

    def __init__(self, theme: Theme, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent)  # each part is made where it stays: to move one restyles all that is in it
        self.setObjectName("workspace")
        self.changed = ChangedBar(theme)
        self.banner = BannerFrame(theme, self)
        self.device_map = DeviceMapBar(theme, self)
        self._splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.pane = TreePane(theme, self._splitter)
        self.tree = self.pane.tree
        self.pages = PageTabs(theme, commands, self._splitter)
        self._splitter.setHandleWidth(_MARGIN)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.pane)
        self._splitter.addWidget(self.pages)
        self.first_focus = self.tree  # no focus proxy: Tab would jump to it over all that stands before
        self.pages.setMinimumWidth(360)
        for place, share in enumerate(_SHARES):
            self._splitter.setStretchFactor(place, share)
        self._splitter.setSizes([share * 100 for share in _SHARES])
        column = QVBoxLayout(self)
        column.setContentsMargins(_SIDE, _MARGIN, _SIDE, _MARGIN)
        column.setSpacing(_MARGIN)
        column.addWidget(self.banner)
        column.addWidget(self.device_map)
        column.addWidget(self._splitter, 1)
        self.changed.setParent(self)
        self.changed.shown.connect(self._place_changed)

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowActivate:  # its user may have been at other programs
            self.changed.touched.emit()
        return super().event(event)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show a screen; each part is updated only where its own fields differ."""
        self.pane.show_changes(old, new)
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
            self.device_map.show_rows(new.device_map, colors, new.branches, new.no_map, new.map_choices)
            self.device_map.setVisible(new.awaits_map or not self.device_map.is_bare)
            _chain(*self.banner.stops, *self.device_map.stops, self.tree)
        self.pages.show_screen(new)

    def forget(self) -> None:
        """Release the file that was shown."""
        self.pane.forget()
        self.changed.watch("", None)
        self.pages.forget()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._place_changed()

    def _place_changed(self) -> None:
        """Put the bar over the lower edge of the contents: what comes and goes moves nothing."""
        size = self.changed.sizeHint()
        width = min(size.width(), self.width() - 2 * _SIDE)
        left, top = (self.width() - width) // 2, self.height() - size.height() - 2 * _MARGIN
        self.changed.setGeometry(QRect(left, top, width, size.height()))
        self.changed.raise_()

    def split_state(self) -> QByteArray:
        """Return the position of the splitter, to be remembered."""
        return self._splitter.saveState()

    def restore_split(self, state: QByteArray) -> None:
        """Put the splitter where it was."""
        self._splitter.restoreState(state)


def _chain(*stops: QWidget) -> None:
    """Let Tab go from each of some widgets to the next, however late they were made."""
    for first, second in pairwise(stops):
        QWidget.setTabOrder(first, second)


def _mapped(screen: Screen) -> tuple[object, ...]:
    """Return what the device map reads of a screen."""
    parts = screen.device_map, screen.branches, screen.charts, screen.no_map, screen.map_choices
    return *parts, screen.is_checking


def _device_colors(screen: Screen) -> dict[str, int]:
    """Return the colors of the file's devices, and of those that they are mapped to."""
    parts = (part for chart in screen.charts for bar in chart.bars for part in bar.segments)
    colors = {part.label: part.color for part in parts}
    return colors | {row.device: row.color for row in screen.device_map}
