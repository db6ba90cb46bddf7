"""The window without a file: a drop target, the recent files, and a demo to try."""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from pathlib import PurePath
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QPushButton, QScrollArea, QWidget

from inspector.gui.pages.findings import AskBox, FindingCard
from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import CENTER, NO_MARGINS, Gap, column, row
from inspector.gui.widgets.cards import centered_label, frameless_scroll
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import (
    ElidedLabel,
    clear_layout,
    describe,
    named,
    plain_label,
    set_state,
)
from inspector.gui.widgets.marks import AppMark
from inspector.units import escape_text

if TYPE_CHECKING:
    from inspector.session.screen import FindingRow, Screen

_MOST_RECENT = 5
_WIDTH = 620
_KINDS = (
    ".pth  .pt  .ckpt  .bin  .safetensors  .tar  .pkl  .joblib  .gguf\n"
    "TorchScript, distributed checkpoints (DCP), DeepSpeed, models in several files"
)


class RecentRow(QPushButton):
    """One recent file: its name and its folder."""

    def __init__(self, theme: Theme, path: str) -> None:
        super().__init__()
        place = PurePath(path)
        self.setProperty("kind", "row")
        self.setAccessibleName(f"Open {escape_text(path)}")
        describe(self, escape_text(path))
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setFixedHeight(36)
        name = ElidedLabel(escape_text(place.name))
        folder = ElidedLabel(escape_text(str(place.parent)), "small", Qt.TextElideMode.ElideMiddle)
        folder.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        glyph = Glyph(theme, "clock", 16)
        for part in (glyph, name, folder):
            part.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        row(glyph, (name, 3), (folder, 4), spacing=10, margins=(10, 0, 10, 0), within=self)


class EmptyPage(QScrollArea):
    """Shown while there is no file."""

    open_wanted = Signal()
    demo_wanted = Signal()
    path_wanted = Signal(object)  # a Signal(str) would lose bytes of names that are not UTF-8
    error_pasted = Signal(str)
    fix_wanted = Signal(object)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("emptyPage")
        self._theme = theme
        self._paths: tuple[str, ...] | None = None
        self._zone = self._build_zone()
        self._ask = AskBox(theme)
        self._ask.asked.connect(self.error_pasted)
        self._ask.opened.connect(self._zone.setHidden)  # it would stand between a text and its answer
        self._answer = column(spacing=0)
        self._answered: FindingRow | None = None
        self._recent_title = plain_label("Recent files", "section")
        self._recent_holder = QWidget()
        self._recent = column(spacing=0, margins=NO_MARGINS, within=self._recent_holder)
        middle = QWidget()
        middle.setFixedWidth(_WIDTH)
        parts = (self._zone, Gap(8), self._ask, self._answer, Gap(8), self._recent_title, self._recent_holder)
        column(*parts, spacing=8, margins=NO_MARGINS, within=middle)
        promise = row(
            1,
            Glyph(theme, "shield", 18, ink="good"),
            plain_label("Nothing is executed, nothing is uploaded.", "muted"),
            1,
            spacing=8,
        )
        content = named(QWidget(), "scrolled")
        column(1, row(1, middle, 1), 1, promise, margins=(24, 16, 24, 16), within=content)
        frameless_scroll(self, content)

    def begin_error(self) -> None:
        """Open the field for an error message."""
        self._ask.begin()

    def show_screen(self, screen: Screen) -> None:
        self._ask.show_text(screen.error_text)
        if screen.explanation != self._answered:
            self._answered = screen.explanation
            self._show_answer(screen.explanation)
        if screen.recent != self._paths:
            self._paths = screen.recent
            self._show_recent(screen.recent)

    def _show_answer(self, answer: FindingRow | None) -> None:
        clear_layout(self._answer)
        if answer is not None:
            card = FindingCard(self._theme, answer, None)
            card.open_wanted.connect(self.path_wanted)
            card.fix_wanted.connect(self.fix_wanted)
            self._answer.addWidget(card)
            for first, second in pairwise((self._ask.last_stop, *card.findChildren(QPushButton))):
                QWidget.setTabOrder(first, second)

    def _show_recent(self, paths: tuple[str, ...]) -> None:
        clear_layout(self._recent)
        self._recent_title.setVisible(bool(paths))
        self._recent_holder.setVisible(bool(paths))
        for path in paths[:_MOST_RECENT]:
            row = RecentRow(self._theme, path)
            row.clicked.connect(partial(self.path_wanted.emit, path))
            self._recent.addWidget(row)

    def show_hot(self, *, hot: bool) -> None:
        set_state(self._zone, "hot", "true" if hot else "false")

    def _build_zone(self) -> QFrame:
        zone = named(QFrame(), "dropZone")
        open_button = make_button(
            "Open\u2026", self.open_wanted, kind="primary", icon="open", theme=self._theme
        )
        self.first_focus = open_button
        demo_button = make_button(
            "Try the demo checkpoint", self.demo_wanted, icon="spark", ink="accent", theme=self._theme
        )
        column(
            (AppMark(88), 0, CENTER),
            Gap(8),
            centered_label("Drop a checkpoint here, a file or a folder", "title"),
            centered_label(
                "See what it contains, where its tensors were saved, and how to load it here.", "muted"
            ),
            centered_label(_KINDS, "small"),
            Gap(16),
            row(1, open_button, demo_button, 1, spacing=8),
            spacing=8,
            margins=(32, 40, 32, 40),
            within=zone,
        )
        return zone
