"""What stands around the tree: verdict, device map and pages, and the bar that tells of a changed file.

The first paint of the tree needs none of it, so it is made right after that; until then its room is kept.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QWidget

from inspector.gui.pages.tabs import PageTabs
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import NO_MARGINS, column
from inspector.gui.workspace.banner import BannerFrame
from inspector.gui.workspace.changed_bar import ChangedBar
from inspector.gui.workspace.device_map import DeviceMapBar

if TYPE_CHECKING:
    from inspector.gui.commands import Commands
    from inspector.session.screen import Screen


class Around:
    """Makes the parts and shows screens in them; the workspace puts bar and pages where they stay."""

    def __init__(self, theme: Theme, commands: Commands, above: QWidget, *, spacing: int) -> None:
        self._above = above
        self.changed = ChangedBar(theme)
        self.banner = BannerFrame(theme, self._above)
        self.device_map = DeviceMapBar(theme, self._above)
        self.pages = PageTabs(theme, commands)
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
            self.device_map.show_rows(new.device_map, colors, new.branches, new.no_map, new.map_choices)
            self.device_map.setVisible(new.awaits_map or not self.device_map.is_bare)
            _chain(self._above, *self.banner.stops, *self.device_map.stops)
        self._above.setVisible(not (self.banner.isHidden() and self.device_map.isHidden()))
        self.pages.show_screen(new)

    def forget(self) -> None:
        """Release the file that was shown."""
        self.changed.watch("", None)
        self.pages.forget()


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
