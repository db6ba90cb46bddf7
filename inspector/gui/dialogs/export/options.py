"""What to write: the kind of export, and its options."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QCheckBox, QGridLayout, QLabel, QWidget

from inspector.gui.widgets.controls import CalmComboBox
from inspector.gui.widgets.labels import blocked, named, plain_label, plain_tooltip
from inspector.session.export.page import ExportDraft, ExportWish
from inspector.session.screen import Choice

_LABEL_WIDTH = 68
_CASTS = (("", "as they are"), ("bfloat16", "bfloat16"), ("float16", "float16"))
_VERIFIES = (
    ("quick", "Open the copy again and compare"),
    ("full", "Compare every byte as well"),
    ("torch", "Load it with torch as well"),
)


class ExportOptions(QWidget):
    """One line for each question that the kind of export leaves open."""

    wish_changed = Signal(object)

    def __init__(self) -> None:
        super().__init__()
        self._wish = ExportWish()
        self._kinds = named(CalmComboBox(), spoken="What is written")
        self._kinds.activated.connect(self._on_changed)
        self._refused = plain_label("", "small", wrap=True)
        self._casts = named(CalmComboBox(), spoken="Type of the weights")
        for id_, label in _CASTS:
            self._casts.addItem(label, id_)
        self._casts.activated.connect(self._on_changed)
        self._ema = QCheckBox("The averaged weights (EMA)")
        self._ema.toggled.connect(self._on_changed)
        self._hidden = QCheckBox("Devices outside of tensors as well")
        self._hidden.setToolTip("torch.device values, device meshes and random generators")
        self._hidden.toggled.connect(self._on_changed)
        self._verify = named(CalmComboBox(), spoken="How the copy is checked")
        for id_, label in _VERIFIES:
            self._verify.addItem(label, id_)
        self._verify.activated.connect(self._on_changed)
        self._labels: dict[QWidget, QLabel] = {}
        self._grid = QGridLayout(self)
        self._lay_out()

    def _lay_out(self) -> None:
        self._grid.setContentsMargins(0, 0, 0, 0)
        self._grid.setHorizontalSpacing(12)
        self._grid.setVerticalSpacing(8)
        self._grid.setColumnStretch(1, 1)
        self._grid.setColumnMinimumWidth(0, _LABEL_WIDTH)
        self._add("Write", self._kinds)
        self._add("", self._refused)
        self._add("Weights", self._casts)
        self._add("", self._ema)
        self._add("", self._hidden)
        self._add("Check", self._verify)

    def show_draft(self, draft: ExportDraft) -> None:
        """Show what is asked for, and only the questions that go with it."""
        wish = self._wish = draft.wish
        with blocked(self._kinds, self._casts, self._ema, self._hidden, self._verify):
            self._kinds.clear()
            for kind in draft.kinds:
                self._add_kind(kind)
            self._kinds.setCurrentIndex(max(0, self._kinds.findData(wish.kind)))
            self._casts.setCurrentIndex(max(0, self._casts.findData(wish.cast)))
            self._ema.setChecked(wish.ema)
            self._hidden.setChecked(wish.hidden)
            self._verify.setCurrentIndex(max(0, self._verify.findData(wish.verify)))
        refused = tuple(dict.fromkeys(kind.why for kind in draft.kinds if kind.why))
        self._refused.setText("\n".join(refused))
        self._show(self._refused, shown=bool(refused))
        self._show(self._kinds, shown=len(draft.kinds) > 1)
        self._show(self._casts, shown=draft.can_cast)
        self._show(self._ema, shown=draft.can_average)
        self._show(self._hidden, shown=draft.can_change_hidden)
        self._show(self._verify, shown=draft.can_verify)

    def _add_kind(self, kind: Choice) -> None:
        self._kinds.addItem(kind.label, kind.id)
        if kind.why:
            place = self._kinds.count() - 1
            self._kinds.setItemData(place, 0, Qt.ItemDataRole.UserRole - 1)  # Qt's own flags of an item
            self._kinds.setItemData(place, plain_tooltip(kind.why), Qt.ItemDataRole.ToolTipRole)

    def _add(self, text: str, widget: QWidget) -> None:
        line = self._grid.rowCount()
        label = self._labels[widget] = plain_label(text, "muted")
        label.setBuddy(widget)
        self._grid.addWidget(label, line, 0)
        self._grid.addWidget(widget, line, 1)

    def _show(self, widget: QWidget, *, shown: bool) -> None:
        widget.setVisible(shown)
        self._labels[widget].setVisible(shown)

    def _on_changed(self) -> None:
        self.wish_changed.emit(
            ExportWish(
                kind=str(self._kinds.currentData() or "copy"),
                cast=str(self._casts.currentData()),
                ema=self._ema.isChecked(),
                exclude=self._wish.exclude,
                verify=str(self._verify.currentData()),
                hidden=self._hidden.isChecked(),
            )
        )
