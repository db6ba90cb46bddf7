"""The verdict, read first: what happens on the chosen target, the exact error, and the way out."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QToolButton, QVBoxLayout

from inspector.gui.theme.icons import Glyph, set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.labels import named, plain_label, plain_tooltip, set_state
from inspector.session.screen import Banner, Chip

COPIED_MS = 1600
_SPOKEN = {"good": "Good", "bad": "Problem", "warning": "Warning", "neutral": "Note"}


def confirm_copied(button: QPushButton, theme: Theme) -> None:
    """Let a copy button say for a moment that it has done it."""
    if button.property("told"):
        return
    text, icon = button.text(), button.property("icon_name")
    ink = button.property("icon_ink")
    button.setProperty("told", True)
    button.setMinimumWidth(button.width())
    button.setText("Copied")
    set_icon(button, "check", theme.tokens, "good")

    def restore() -> None:
        button.setProperty("told", False)
        button.setText(text)
        set_icon(button, icon, theme.tokens, ink)
        button.setMinimumWidth(0)

    QTimer.singleShot(COPIED_MS, button, restore)


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
        self._glyph = Glyph(theme, "tone-neutral", 36, ink="on_fill", fill="neutral_fill")
        self._headline = plain_label("", "lead", wrap=True, selectable=True)
        self._advice = plain_label("", "muted", wrap=True, selectable=True)
        for label in (self._headline, self._advice):
            label.setAlignment(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        self._chip = named(QPushButton(), "chip", spoken="Safety")
        self._chip.clicked.connect(self.why_wanted)
        self._chip.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._export = self._make_button("Export fixed copy\u2026", "export", "primary")
        self._export.clicked.connect(self.export_wanted)
        self._copy = self._make_button("Copy loading code", "copy", "")
        self._copy.clicked.connect(self.copy_code_wanted)
        self._why = self._make_button("Why?", "", "quiet")
        self._why.clicked.connect(self.why_wanted)
        self._inset = self._build_error()
        self._lay_out()

    def show_banner(self, banner: Banner | None) -> None:
        """Show a verdict."""
        self.setVisible(banner is not None)
        if banner is None:
            return
        set_state(self, "tone", banner.tone)
        self._glyph.show_glyph(f"tone-{banner.tone}", ink="on_fill", fill=f"{banner.tone}_fill")
        self._headline.setText(banner.headline)
        self._advice.setText(banner.advice)
        self._advice.setVisible(bool(banner.advice))
        self._error.setText(banner.error_text or "")
        self._inset.setVisible(banner.error_text is not None)
        # The way out stands out only where there is something to get out of.
        kind = "" if banner.error_text is None else "primary"
        self._export.setText(banner.action)
        set_state(self._export, "kind", kind)
        set_icon(self._export, "export", self._theme.tokens, "on_accent" if kind else "muted")
        self.setAccessibleDescription(f"{_SPOKEN[banner.tone]}: {banner.headline} {banner.advice}")

    def show_safety(self, chip: Chip | None) -> None:
        """Show what loading the file would run."""
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
        """Allow or forbid the export button."""
        self._export.setEnabled(allowed)

    def confirm_code_copied(self) -> None:
        """Say that the loading code is on the clipboard."""
        confirm_copied(self._copy, self._theme)

    def _make_button(self, text: str, icon: str, kind: str) -> QPushButton:
        button = QPushButton(text)
        button.setProperty("kind", kind)
        if icon:
            set_icon(button, icon, self._theme.tokens, "on_accent" if kind == "primary" else "muted")
        return button

    def _build_error(self) -> QFrame:
        inset = named(QFrame(), "inset")
        row = QHBoxLayout(inset)
        row.setContentsMargins(12, 8, 8, 8)
        row.setSpacing(12)
        self._error = plain_label("", "mono", wrap=True, selectable=True)
        self._error.setObjectName("errorText")
        self._error.setAccessibleName("The error that torch.load raises")
        copy = named(QToolButton(), spoken="Copy the error's text")
        copy.setToolTip("Copy the error's text")
        copy.setProperty("kind", "icon")
        set_icon(copy, "copy", self._theme.tokens)
        copy.clicked.connect(self._on_copy_error)
        caption = plain_label("torch.load says", "section")
        caption.setContentsMargins(0, 2, 0, 0)
        row.addWidget(caption, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._error, 1)
        row.addWidget(copy, 0, Qt.AlignmentFlag.AlignTop)
        return inset

    def _lay_out(self) -> None:
        first = QHBoxLayout()
        first.setSpacing(16)
        first.addWidget(self._headline, 1)
        first.addWidget(self._chip, 0, Qt.AlignmentFlag.AlignTop)
        second = QHBoxLayout()
        second.setSpacing(8)
        second.addWidget(self._advice, 1)
        second.addStretch(0)
        for button in (self._export, self._copy, self._why):
            second.addWidget(button)
        words = QVBoxLayout()
        words.setSpacing(6)
        words.addLayout(first)
        words.addLayout(second)
        top = QHBoxLayout()
        top.setSpacing(16)
        top.addWidget(self._glyph, 0, Qt.AlignmentFlag.AlignTop)
        top.addLayout(words, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(16, 14, 16, 14)
        whole.setSpacing(10)
        whole.addLayout(top)
        whole.addWidget(self._inset)

    def _on_copy_error(self) -> None:
        QGuiApplication.clipboard().setText(self._error.text())
