"""The device map in one line: a pill for each device that fits, one button to map all, one to show all."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QLayout, QWidget

from inspector.gui.theme.icons import draw_icons
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.dropdown import Dropdown, MapMenu
from inspector.gui.widgets.labels import plain_label
from inspector.gui.workspace.banner import MAP_HEIGHT
from inspector.gui.workspace.map_panel import Pill
from inspector.overriding import override
from inspector.units import format_count

if TYPE_CHECKING:
    from inspector.gui.workspace.map_panel import MapPanel
    from inspector.session.screen import BranchRow, DeviceRow

_GAP = 6
_MARGINS = (4, 0, 0, 0)
_MOST_PILLS = 16
_LEAST_WIDTH = 480
_PANEL_WIDTH = 860


class DeviceMapBar(QWidget):
    """Shows where each device goes; all of it opens below the line."""

    mapping_chosen = Signal(str, str)
    branch_removed = Signal(object)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[DeviceRow, ...] = ()
        self._branches: tuple[BranchRow, ...] = ()
        self._colors: dict[str, int] = {}
        self._pills: list[Pill] = []
        self.setFixedHeight(MAP_HEIGHT)
        self.setAccessibleName("Device map")
        self._title = plain_label("Device map", "section")
        self._all = make_button("Map all to\u2026", kind="menu")
        self.menu = MapMenu(self._all)
        self._all.setMenu(self.menu)
        self._more = make_button("Details", kind="quiet", icon="chevron-down")
        self._more.setAccessibleName("Details of the device map")
        for button in (self._all, self._more):
            button.setProperty("slim", True)
        self._panel: MapPanel | None = None
        self._dropdown = Dropdown(self._more, "The device map in full", width=_PANEL_WIDTH)
        self._dropdown.about_to_show.connect(self._fill_panel)
        self._row = row(self._title, self._more, 1, self._all, spacing=_GAP, margins=_MARGINS)
        self._row.setSizeConstraint(QLayout.SizeConstraint.SetNoConstraint)
        self.setLayout(self._row)
        theme.changed.connect(self._on_theme_changed)

    @property
    def stops(self) -> tuple[QWidget, ...]:
        return (*(pill.to for pill in self._pills), self._more, self._all)

    @property
    def is_bare(self) -> bool:
        return not self._rows

    def show_rows(
        self, rows: tuple[DeviceRow, ...], colors: dict[str, int], branches: tuple[BranchRow, ...] = ()
    ) -> None:
        """Show the map; without one there is no bar."""
        self._rows, self._colors, self._branches = rows, colors, branches
        self.setVisible(not self.is_bare)
        self._make_pills(min(len(rows), _MOST_PILLS))
        for pill, shown in zip(self._pills, rows, strict=False):
            pill.show_row(shown, colors)
        if self._panel is not None:
            self._panel.show_rows(rows, colors, branches)
        if rows:
            draw_icons((self._more,), self._theme.tokens)
        for part in (self._all, self._more):
            part.setVisible(bool(rows))
        self._arrange()

    @override
    def minimumSizeHint(self) -> QSize:
        """Return the room for one pill: the others are shown where they fit, and must not hold the window."""
        return QSize(_LEAST_WIDTH, MAP_HEIGHT)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._arrange()

    def _on_theme_changed(self) -> None:
        self.show_rows(self._rows, self._colors, self._branches)

    def _fill_panel(self) -> None:
        if self._panel is None:
            from inspector.gui.workspace.map_panel import MapPanel

            self._panel = MapPanel(self._theme)
            self._panel.mapping_chosen.connect(self.mapping_chosen)
            self._panel.branch_removed.connect(self.branch_removed)
            self._dropdown.fill(self._panel)
            self._panel.show_rows(self._rows, self._colors, self._branches)

    def _make_pills(self, count: int) -> None:
        while len(self._pills) > count:
            pill = self._pills.pop()
            self._row.removeWidget(pill)
            pill.setParent(None)
            pill.deleteLater()
        while len(self._pills) < count:
            pill = Pill(self._theme)
            pill.mapping_chosen.connect(self.mapping_chosen)
            self._pills.append(pill)
            self._row.insertWidget(len(self._pills), pill)  # behind the title

    def _arrange(self) -> None:
        """Show as many pills as fit, with what they hold if all of them fit so."""
        if not self._pills:
            return
        room = self.width() - self._title.sizeHint().width() - self._all.sizeHint().width() - 3 * _GAP
        margins = self._row.contentsMargins()
        room -= self._button_width(len(self._rows)) + margins.left() + margins.right()
        widths = self._widths(with_summary=True)
        if sum(widths) > room or len(self._rows) > len(self._pills):
            widths = self._widths(with_summary=False)
        fitting, used = 0, 0
        while fitting < len(widths) and used + widths[fitting] <= room:
            used += widths[fitting]
            fitting += 1
        fitting = max(1, fitting)
        for place, pill in enumerate(self._pills):
            pill.setVisible(place < fitting)
        self._more.setText(self._more_text(len(self._rows) - fitting))

    def _widths(self, *, with_summary: bool) -> list[int]:
        for pill in self._pills:
            pill.show_summary(visible=with_summary)
        return [pill.sizeHint().width() + _GAP for pill in self._pills]

    def _button_width(self, hidden: int) -> int:
        self._more.setText(self._more_text(hidden))
        return self._more.sizeHint().width()

    def _more_text(self, hidden: int) -> str:
        parts = [f"+{hidden} more"] if hidden else []
        parts += [format_count(len(self._branches), "rule")] if self._branches else []
        return ", ".join(parts) or "Details"
