"""What is shown while a file is open: the verdict, the device map, then the tree and the pages.

Nothing above the tree changes its height, so that the tree stands still; what has more to say opens over it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, QRect, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QSplitter, QWidget

from inspector.gui.commands import Commands
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column
from inspector.gui.workspace.room import BANNER_HEIGHT, MAP_HEIGHT
from inspector.gui.workspace.tree_pane import TreePane
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.gui.pages.tabs import PageTabs
    from inspector.gui.workspace.around import Around
    from inspector.gui.workspace.banner import BannerFrame
    from inspector.gui.workspace.changed_bar import ChangedBar
    from inspector.gui.workspace.device_map import DeviceMapBar
    from inspector.session.screen import Screen

_MARGIN = 8
_SIDE = 10
_SHARES = (58, 42)
_LEAST_WIDTH = 360
_ANY_HEIGHT = (1 << 24) - 1


class Workspace(QWidget):
    """Lays the parts out; the window connects them."""

    completed = Signal()

    def __init__(self, theme: Theme, commands: Commands, parent: QWidget | None = None) -> None:
        super().__init__(parent)  # each part is made where it stays: to move one restyles all that is in it
        self.setObjectName("workspace")
        self._theme = theme
        self._commands = commands
        self._around: Around | None = None
        self._unshown: Screen | None = None  # what stands around the tree is not made yet
        self._above = QWidget(self)  # made first: Tab goes from what is in it to the tree
        self._splitter = QSplitter(Qt.Orientation.Horizontal, self)
        self.pane = TreePane(theme, self._splitter)
        self.tree = self.pane.tree
        self._splitter.setHandleWidth(_MARGIN)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.addWidget(self.pane)
        nothing = QWidget(self._splitter)
        nothing.setMinimumWidth(_LEAST_WIDTH)
        self._splitter.addWidget(nothing)
        self.first_focus = self.tree  # no focus proxy: Tab would jump to it over all that stands before
        for place, share in enumerate(_SHARES):
            self._splitter.setStretchFactor(place, share)
        self._splitter.setSizes([share * 100 for share in _SHARES])
        margins = (_SIDE, _MARGIN, _SIDE, _MARGIN)
        column(self._above, (self._splitter, 1), spacing=_MARGIN, margins=margins, within=self)

    @property
    def banner(self) -> BannerFrame:
        """The verdict."""
        return self.around.banner

    @property
    def device_map(self) -> DeviceMapBar:
        """Where each device goes."""
        return self.around.device_map

    @property
    def pages(self) -> PageTabs:
        """The pages at the right."""
        return self.around.pages

    @property
    def changed(self) -> ChangedBar:
        """The bar that tells of a changed file."""
        return self.around.changed

    @property
    def is_complete(self) -> bool:
        """Whether there is more than the tree already."""
        return self._around is not None

    @property
    def around(self) -> Around:
        """What stands around the tree; made after its first paint, or when it is first asked for."""
        if self._around is None:
            from inspector.gui.workspace.around import Around

            self._around = Around(self._theme, self._commands, self._above, spacing=_MARGIN)
            self._put_aside(self._around.pages)
            self._around.changed.setParent(self)
            self._around.changed.shown.connect(self._place_changed)
            self._above.setMinimumHeight(0)
            self._above.setMaximumHeight(_ANY_HEIGHT)
            self.completed.emit()
            unshown, self._unshown = self._unshown, None
            if unshown is not None:
                self._around.show_changes(None, unshown)
        return self._around

    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.WindowActivate and self._around is not None:
            self.changed.touched.emit()  # its user may have been at other programs
        return super().event(event)

    def show_changes(self, old: Screen | None, new: Screen) -> None:
        """Show a screen; each part is updated only where its own fields differ."""
        self.pane.show_changes(old, new)
        if self._around is None and new.is_checking:
            self._unshown = new
            self._keep_room(new)
            return
        if self._around is None:
            self._unshown = old = None
        self.around.show_changes(old, new)

    def forget(self) -> None:
        """Release the file that was shown."""
        self.pane.forget()
        self._unshown = None
        if self._around is not None:
            self._around.forget()

    def _put_aside(self, pages: PageTabs) -> None:
        """Put the pages beside the tree, where nothing was."""
        pages.setMinimumWidth(_LEAST_WIDTH)
        nothing = self._splitter.replaceWidget(1, pages)
        self._splitter.setStretchFactor(1, _SHARES[1])
        if nothing is not None:
            nothing.deleteLater()

    def complete_when_painted(self) -> None:
        """Make what is missing around the tree after its next paint; call it when the tree can be seen."""
        if self._unshown is not None:
            self.pane.painted.call(self._complete)

    def _complete(self) -> None:
        """Make what is missing around the tree, unless there is no file any more."""
        if self._unshown is not None:
            self.around  # noqa: B018 - made by being asked for

    def _keep_room(self, screen: Screen) -> None:
        """Keep the room of what is about to be shown above the tree."""
        heights = [BANNER_HEIGHT] * (screen.banner is not None)
        heights += [MAP_HEIGHT] * (screen.awaits_map or bool(screen.no_map))
        self._above.setFixedHeight(sum(heights) + _MARGIN * max(0, len(heights) - 1))
        self._above.setVisible(bool(heights))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        if self._around is not None:
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
