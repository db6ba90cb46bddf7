"""The window without a file: a drop target, the recent files, and a demo to try."""

from __future__ import annotations

from functools import partial
from pathlib import PurePath

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.cards import add_centered, page_column
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import (
    ElidedLabel,
    clear_layout,
    named,
    plain_label,
    plain_tooltip,
    set_state,
)
from inspector.gui.widgets.marks import AppMark
from inspector.session.screen import Screen
from inspector.units import escape_text

_MOST_RECENT = 5
_WIDTH = 620


class RecentRow(QPushButton):
    """One recent file: its name and its folder."""

    def __init__(self, theme: Theme, path: str) -> None:
        super().__init__()
        place = PurePath(path)
        self.setProperty("kind", "row")
        self.setAccessibleName(f"Open {escape_text(path)}")
        self.setToolTip(plain_tooltip(escape_text(path)))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedHeight(36)
        name = ElidedLabel(escape_text(place.name))
        folder = ElidedLabel(escape_text(str(place.parent)), "small", Qt.TextElideMode.ElideMiddle)
        folder.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        row = QHBoxLayout(self)
        row.setContentsMargins(10, 0, 10, 0)
        row.setSpacing(10)
        for part, stretch in ((Glyph(theme, "clock", 16), 0), (name, 3), (folder, 4)):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
            row.addWidget(part, stretch)


class EmptyPage(QWidget):
    """Shown while there is no file."""

    open_wanted = Signal()
    demo_wanted = Signal()
    path_wanted = Signal(object)  # a Signal(str) would lose bytes of names that are not UTF-8

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("emptyPage")
        self._theme = theme
        self._zone = self._build_zone()
        self._recent_title = plain_label("Recent files", "section")
        self._recent_holder = QWidget()
        self._recent = page_column(self._recent_holder, 0)
        middle = QWidget()
        middle.setFixedWidth(_WIDTH)
        column = page_column(middle)
        column.addWidget(self._zone)
        column.addSpacing(16)
        column.addWidget(self._recent_title)
        column.addWidget(self._recent_holder)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(24, 24, 24, 24)
        whole.addStretch(1)
        whole.addWidget(middle, 0, Qt.AlignmentFlag.AlignHCenter)
        whole.addStretch(1)
        whole.addLayout(self._build_promise())

    def show_screen(self, screen: Screen) -> None:
        """List the recent files."""
        paths = screen.recent
        clear_layout(self._recent)
        self._recent_title.setVisible(bool(paths))
        self._recent_holder.setVisible(bool(paths))
        for path in paths[:_MOST_RECENT]:
            row = RecentRow(self._theme, path)
            row.clicked.connect(partial(self.path_wanted.emit, path))
            self._recent.addWidget(row)

    def show_hot(self, *, hot: bool) -> None:
        """Highlight the drop target while a file is dragged over the window."""
        set_state(self._zone, "hot", "true" if hot else "false")

    def _build_zone(self) -> QFrame:
        zone = named(QFrame(), "dropZone")
        column = QVBoxLayout(zone)
        column.setContentsMargins(32, 40, 32, 40)
        column.setSpacing(8)
        column.addWidget(AppMark(88), 0, Qt.AlignmentFlag.AlignHCenter)
        column.addSpacing(8)
        for text, role in (
            ("Drop a checkpoint here", "title"),
            ("See what it contains, where its tensors were saved, and how to load it here.", "muted"),
            (".pth  .pt  .ckpt  .bin  .safetensors  .tar", "small"),
        ):
            add_centered(column, text, role)
        column.addSpacing(16)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        open_button = make_button(
            "Open\u2026", self.open_wanted, kind="primary", icon="open", theme=self._theme
        )
        self.setFocusProxy(open_button)
        demo_button = make_button(
            "Try the demo checkpoint", self.demo_wanted, icon="spark", ink="accent", theme=self._theme
        )
        buttons.addStretch(1)
        buttons.addWidget(open_button)
        buttons.addWidget(demo_button)
        buttons.addStretch(1)
        column.addLayout(buttons)
        return zone

    def _build_promise(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        row.addWidget(Glyph(self._theme, "shield", 18, ink="good"))
        row.addWidget(plain_label("Nothing is executed, nothing is uploaded.", "muted"))
        row.addStretch(1)
        return row
