"""The verdict, read first: what happens on the chosen target, the exact error, and the way out."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QPushButton

from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import TOP, column, row
from inspector.gui.widgets.controls import CopyInset, confirm_copied, make_button
from inspector.gui.widgets.labels import named, plain_label, plain_tooltip, set_state
from inspector.gui.widgets.marks import SPOKEN_TONES, ToneGlyph
from inspector.session.screen import Banner, Chip


class BannerFrame(QFrame):
    """Shows a `Banner` and the safety chip."""

    export_wanted = Signal()
    copy_code_wanted = Signal()
    why_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setObjectName("banner")
        self._theme = theme
        self.setAccessibleName("Verdict")
        self._glyph = ToneGlyph(theme, 36)
        self._headline = plain_label("", "lead", wrap=True, selectable=True)
        self._advice = plain_label("", "muted", wrap=True, selectable=True)
        for label in (self._headline, self._advice):
            label.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        self._chip = named(QPushButton(), "chip", spoken="Safety")
        self._chip.clicked.connect(self.why_wanted)
        self._chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._export = make_button(
            "Export fixed copy\u2026", self.export_wanted, kind="primary", icon="export", theme=theme
        )
        self._copy = make_button("Copy loading code", self.copy_code_wanted, icon="copy", theme=theme)
        self._why = make_button("Why?", self.why_wanted, kind="quiet")
        self._error = named(
            plain_label("", "mono", wrap=True, selectable=True),
            "errorText",
            spoken="The error that loading raises",
        )
        self._inset = CopyInset(theme, self._error, self._error.text, "Copy the error's text", spacing=12)
        self._speaker = plain_label("", "section")
        self._speaker.setContentsMargins(0, 2, 0, 0)
        self._inset.row.insertWidget(0, self._speaker, 0, TOP)
        self._lay_out()

    def show_banner(self, banner: Banner | None) -> None:
        """Show a verdict."""
        self.setVisible(banner is not None)
        if banner is None:
            return
        set_state(self, "tone", banner.tone)
        self._glyph.show_tone(banner.tone)
        self._headline.setText(banner.headline)
        self._advice.setText(banner.advice)
        self._advice.setVisible(bool(banner.advice))
        self._speaker.setText(f"{banner.speaker} says")
        self._error.setText(banner.error_text or "")
        self._inset.setVisible(banner.error_text is not None)
        # The way out stands out only where torch.load fails.
        kind = "" if banner.error_text is None else "primary"
        self._export.setText(banner.action)
        set_state(self._export, "kind", kind)
        set_icon(self._export, "export", self._theme.tokens, "on_accent" if kind else "muted")
        self.setAccessibleDescription(f"{SPOKEN_TONES[banner.tone]}: {banner.headline} {banner.advice}")

    def show_safety(self, chip: Chip | None) -> None:
        """Show whether loading the file is safe."""
        self._chip.setVisible(chip is not None)
        if chip is None:
            return
        set_state(self._chip, "tone", chip.tone)
        self._chip.setText(chip.text)
        self._chip.setToolTip(plain_tooltip(chip.tooltip))
        self._chip.setAccessibleDescription(chip.tooltip)
        safe = chip.tone in ("good", "neutral")
        set_icon(self._chip, "shield" if safe else "shield-alert", self._theme.tokens, chip.tone)

    def show_can_export(self, *, allowed: bool) -> None:
        """Enable or disable the export button."""
        self._export.setEnabled(allowed)

    def confirm_code_copied(self) -> None:
        """Confirm that the loading code was copied."""
        confirm_copied(self._copy, self._theme)

    def _lay_out(self) -> None:
        first = row((self._headline, 1), (self._chip, 0, TOP), spacing=16)
        second = row((self._advice, 1), 0, self._export, self._copy, self._why, spacing=8)
        top = row((self._glyph, 0, TOP), (column(first, second, spacing=6), 1), spacing=16)
        column(top, self._inset, spacing=10, margins=(16, 14, 16, 14), within=self)
