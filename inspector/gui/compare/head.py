"""The head of a comparison: both files, whether they are equal, and the kinds of difference to choose."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QFrame, QPushButton, QSizePolicy, QWidget

from inspector.gui.dialogs.export.box_panel import PatientLine
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import MIDDLE, column, row
from inspector.gui.widgets.controls import icon_button, make_button
from inspector.gui.widgets.flow import FlowLayout
from inspector.gui.widgets.labels import (
    ElidedLabel,
    blocked,
    clear_layout,
    describe,
    named,
    plain_label,
    set_state,
)
from inspector.gui.widgets.marks import SPOKEN_TONES, ToneGlyph
from inspector.session.comparing.screen import ComparedFile, CompareScreen, KindChoice

_SEARCH_WIDTH = 240


class FileCard(QFrame):
    """One of the two files, with a button that opens it in a window of its own."""

    open_wanted = Signal()

    def __init__(self, theme: Theme, letter: str) -> None:
        super().__init__()
        self.setProperty("card", True)
        self._letter = letter
        self._name = ElidedLabel("", "strong", Qt.TextElideMode.ElideMiddle)
        self._line = ElidedLabel("", "small")
        self._open = icon_button(theme, "open", f"Open {letter} in a window of its own", self.open_wanted)
        words = column(self._name, self._line, spacing=0)
        row(
            plain_label(letter, "lead"),
            (words, 1),
            self._open,
            spacing=10,
            margins=(12, 6, 8, 6),
            within=self,
        )

    def show_file(self, file: ComparedFile) -> None:
        """Show a file."""
        self._name.setText(file.name)
        self._line.setText(file.line)
        describe(self, file.path)
        self.setAccessibleName(f"File {self._letter}: {file.name}, {file.line}")


class CompareHead(QWidget):
    """Shows the upper part of a `CompareScreen`."""

    kind_chosen = Signal(str, bool)
    equal_shown = Signal(bool)
    swap_wanted = Signal()
    copy_wanted = Signal()
    search_wanted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.cards = FileCard(theme, "A"), FileCard(theme, "B")
        swap = icon_button(theme, "swap", "Compare B with A", self.swap_wanted)
        self._glyph = ToneGlyph(theme, 24)
        self._verdict = plain_label("", "strong", wrap=True, selectable=True)
        self._verdict.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Maximum)
        self._alerts = column(spacing=2)
        self._notes = column(spacing=2)
        self._copy = make_button("Copy as text", self.copy_wanted, icon="copy", theme=theme)
        self._equal = QCheckBox("List equal tensors too")
        self._equal.toggled.connect(self.equal_shown)
        self.search = named(PatientLine(), spoken="Search the differences")
        self.search.setPlaceholderText("Search: layer4 shape *.bias")
        self.search.setToolTip("Words that names and differences hold; * stands for anything (Ctrl+F)")
        self.search.setClearButtonEnabled(True)
        self.search.setMinimumWidth(_SEARCH_WIDTH)
        self.search.asked.connect(self.search_wanted)
        self._chips: dict[str, QPushButton] = {}
        self._kinds = named(QWidget(), spoken="Kinds of difference")
        self._flow = FlowLayout(self._kinds)
        files = row((self.cards[0], 1), (swap, 0, MIDDLE), (self.cards[1], 1), spacing=8)
        self._banner = named(QFrame(), "banner")
        words = column(1, self._alerts, self._verdict, self._notes, 1, spacing=4)
        row(self._glyph, (words, 1), self._copy, spacing=12, margins=(12, 8, 8, 8), within=self._banner)
        choices = row((self._kinds, 1, MIDDLE), self._equal, self.search, spacing=12)
        column(files, self._banner, choices, spacing=8, margins=(0, 0, 0, 0), within=self)

    def show_changes(self, old: CompareScreen | None, new: CompareScreen) -> None:
        """Show what differs from the last screen."""
        for card, file in zip(self.cards, (new.a, new.b), strict=True):
            card.show_file(file)
        if old is None or (old.verdict, old.alerts, old.notes) != (new.verdict, new.alerts, new.notes):
            self._glyph.show_tone(new.tone)
            set_state(self._banner, "tone", new.tone)
            self._banner.setAccessibleName(f"{SPOKEN_TONES[new.tone]}: {new.verdict}")
            self._verdict.setText(new.verdict)
            for lines, texts, role in ((self._alerts, new.alerts, "bad"), (self._notes, new.notes, "muted")):
                clear_layout(lines)
                for text in texts:
                    lines.addWidget(plain_label(text, role, wrap=True, selectable=True))
        if old is None or old.kinds != new.kinds:
            self._show_kinds(new.kinds)
        if self.search.text() != new.query and not self.search.is_typed_in:
            self.search.setText(new.query)
        with blocked(self._equal):
            self._equal.setChecked(not new.only_differences)
        self._equal.setEnabled(not any(kind.chosen for kind in new.kinds))

    def _show_kinds(self, kinds: tuple[KindChoice, ...]) -> None:
        if list(self._chips) != [kind.id for kind in kinds]:
            clear_layout(self._flow)
            self._chips = {kind.id: self._chip(kind.id) for kind in kinds}
        for kind in kinds:
            chip = self._chips[kind.id]
            chip.setText(f"{kind.label}  {kind.count:,}")
            with blocked(chip):
                chip.setChecked(kind.chosen)
            chip.setAccessibleName(f"Only {kind.label}: {kind.count:,}")

    def _chip(self, kind: str) -> QPushButton:
        chip = make_button("", kind="legend")
        chip.setCheckable(True)
        chip.toggled.connect(lambda chosen: self.kind_chosen.emit(kind, chosen))
        self._flow.addWidget(chip)
        return chip
