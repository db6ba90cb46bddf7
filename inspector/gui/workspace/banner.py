"""The verdict, read first, in one line: what becomes of a load, the way out, and whether it is safe.

Its height is the same for every file and target, so that the tree below never moves; the whole verdict, with
the exact error, opens below the line.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QResizeEvent
from PySide6.QtWidgets import QFrame, QPushButton, QSizePolicy, QWidget

from inspector.gui.theme.icons import name_icon, redraw_icons, set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import CopyInset, confirm_copied, make_button
from inspector.gui.widgets.dropdown import Dropdown
from inspector.gui.widgets.labels import ElidedLabel, describe, named, plain_label, set_state
from inspector.gui.widgets.marks import SPOKEN_TONES, ToneGlyph
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.session.screen import Banner, Chip


# How high the parts above the tree are, which is the same for every file.

BANNER_HEIGHT = 44
MAP_HEIGHT = 36


_NARROW, _TIGHT = 1120, 900
_ICON_WIDTH, _ANY_WIDTH = 36, 1 << 20
_DETAILS_WIDTH = 720
_MORE, _COPY, _ELSEWHERE = "Details", "Copy loading code", "Not this machine: back"


class VerdictDetails(QWidget):
    """The verdict in full: where the tensors were saved, what happens, the exact error, and what to do."""

    findings_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._headline = plain_label("", "strong", wrap=True, selectable=True)
        self._advice = plain_label("", "muted", wrap=True, selectable=True)
        self._error = named(
            plain_label("", "mono", wrap=True, selectable=True),
            "errorText",
            spoken="The error that loading raises",
        )
        self._speaker = plain_label("", "section")
        self._inset = CopyInset(theme, self._error, self._error.text, "Copy the error's text", spacing=12)
        self._findings = make_button("Show the findings", self.findings_wanted, kind="link")
        parts = (self._headline, self._speaker, self._inset, self._advice, row(self._findings, 1))
        column(*parts, spacing=8, margins=(16, 14, 16, 12), within=self)

    def show_banner(self, banner: Banner) -> None:
        self._headline.setText(banner.headline)
        self._advice.setText(banner.advice)
        self._speaker.setText(f"{banner.speaker} says")
        self._error.setText(banner.error_text or "")
        for part in (self._speaker, self._inset):
            part.setVisible(banner.error_text is not None)
        self._advice.setVisible(bool(banner.advice))


class BannerFrame(QFrame):
    """Shows a `Banner` and the safety chip."""

    export_wanted = Signal()
    copy_code_wanted = Signal()
    why_wanted = Signal()
    this_machine_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("banner")
        self.setFixedHeight(BANNER_HEIGHT)
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._theme = theme
        self._is_narrow = False
        self._glyph = ToneGlyph(theme, 24)
        self._verdict = ElidedLabel("", "strong")
        self._aside = ElidedLabel("", "muted")
        self._aside.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._waits = True
        self._more = make_button(_MORE, kind="quiet", icon="chevron-down")
        self._more.setAccessibleName("Details of the verdict")
        self._banner: Banner | None = None
        self._details: VerdictDetails | None = None
        self._dropdown = Dropdown(self._more, "The verdict in full", width=_DETAILS_WIDTH)
        self._dropdown.about_to_show.connect(self._fill_details)
        self._chip = named(QPushButton(), "chip", spoken="Safety")
        self._chip.clicked.connect(self.why_wanted)
        self._chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._export = make_button(
            "Export fixed copy\u2026", self.export_wanted, kind="primary", icon="export"
        )
        self._here = make_button(_ELSEWHERE, self.this_machine_wanted, icon="machine")
        self._here.setAccessibleName("Not this machine: go back to it")
        self._copy = make_button(_COPY, self.copy_code_wanted, icon="copy")
        self._copy.setAccessibleName(_COPY)
        for button in (self._here, self._more, self._export, self._copy):
            button.setProperty("slim", True)
        self._lay_out()

    @property
    def stops(self) -> tuple[QWidget, ...]:
        return (self, self._here, self._more, self._export, self._copy, self._chip)

    def show_banner(self, banner: Banner | None) -> None:
        self.setVisible(banner is not None)
        self._banner = banner
        if banner is None:
            self._dropdown.hide()
            return
        set_state(self, "tone", banner.tone)
        self._glyph.show_tone(banner.tone)
        self._verdict.setText(banner.verdict)
        self._aside.setText(banner.aside)
        if self._details is not None:
            self._details.show_banner(banner)
        # The way out stands out only where torch.load fails, and the copy loads.
        kind = "primary" if banner.is_way_out else ""
        self._here.setVisible(banner.is_elsewhere)
        self._export.setText(banner.action)
        set_state(self._export, "kind", kind)
        name_icon(self._export, "export", "on_accent" if kind else "muted")
        self._draw_icons()
        self.setAccessibleName(f"Verdict, {SPOKEN_TONES[banner.tone]}: {banner.verdict}")
        error = "" if banner.error_text is None else f"{banner.error_text} "
        self.setAccessibleDescription(f"{banner.headline} {error}{banner.advice}".strip())

    def show_safety(self, chip: Chip | None) -> None:
        self._chip.setVisible(chip is not None)
        if chip is None:
            return
        set_state(self._chip, "tone", chip.tone)
        self._chip.setText(chip.text)
        self._chip.setAccessibleName(f"Safety: {chip.text}")
        describe(self._chip, chip.tooltip)
        safe = chip.tone in ("good", "neutral")
        set_icon(self._chip, "shield" if safe else "shield-alert", self._theme.tokens, chip.tone)

    def show_waiting(self, *, waits: bool) -> None:
        """Show nothing that follows from a verdict, as long as there is none."""
        self._waits = waits
        self._draw_icons()
        for button in (self._more, self._export, self._copy):
            button.setVisible(not waits)

    def show_can_export(self, *, allowed: bool) -> None:
        self._export.setEnabled(allowed)

    def confirm_code_copied(self) -> None:
        confirm_copied(self._copy, self._theme)

    def open_details(self) -> None:
        self._dropdown.open()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space):
            self.open_details()
        else:
            super().keyPressEvent(event)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._aside.setVisible(self.width() >= _TIGHT)
        is_narrow = self.width() < _NARROW
        if is_narrow != self._is_narrow and not self._copy.property("told"):
            self._is_narrow = is_narrow
            for button, text, icon in ((self._more, _MORE, "chevron-down"), (self._copy, _COPY, "copy")):
                button.setText("" if is_narrow else text)
                button.setMaximumWidth(_ICON_WIDTH if is_narrow else _ANY_WIDTH)
                describe(button, button.accessibleName() if is_narrow else "")
                set_icon(button, icon, self._theme.tokens)

    def _draw_icons(self) -> None:
        if not self._waits:
            redraw_icons((self._here, self._more, self._export, self._copy), self._theme.tokens)

    def _fill_details(self) -> None:
        if self._details is None:
            self._details = VerdictDetails(self._theme)
            self._details.findings_wanted.connect(self._on_findings_wanted)
            self._dropdown.fill(self._details)
            if self._banner is not None:
                self._details.show_banner(self._banner)

    def _on_findings_wanted(self) -> None:
        self._dropdown.hide()
        self.why_wanted.emit()

    def _lay_out(self) -> None:
        buttons = (self._here, self._more, self._export, self._copy, self._chip)
        parts = (self._glyph, self._verdict, (self._aside, 1), 0, *buttons)
        row(*parts, spacing=8, margins=(10, 0, 8, 0), within=self)
