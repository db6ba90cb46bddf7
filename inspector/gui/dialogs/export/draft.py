"""The first state of the export dialog: what to write, what that changes, and where."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QGridLayout,
    QHBoxLayout,
    QLabel,
    QLineEdit,
    QPushButton,
    QVBoxLayout,
    QWidget,
)

from inspector.gui.dialogs.export.box_panel import BoxPanel
from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.cards import WholeArea, fill_lines, page_column
from inspector.gui.widgets.controls import CalmComboBox, button_row
from inspector.gui.widgets.labels import blocked, named, plain_label, plain_tooltip, set_state
from inspector.gui.widgets.path_text import PathText
from inspector.records import replace
from inspector.session.export.page import Destination, ExportDraft, ExportPage, ExportWish
from inspector.session.screen import Choice

# What to write: the kind of export, and its options.

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


_COPY, _IN_PLACE = "Export a fixed copy", "Change the file itself"
_FOLDER = "Export a fixed copy of the folder"
_MAIN_WIDTH, _SIDE_WIDTH, _SPACING = 440, 420, 24


class DraftPage(QWidget):
    """Asks for the kind and the destination, and tells what will change."""

    export_wanted = Signal(object, bool)  # a path in a Signal(str) would lose the bytes that are no UTF-8
    wish_changed = Signal(object)
    browse_wanted = Signal()
    look_wanted = Signal(object)
    rows_chosen = Signal(object, bool)
    search_wanted = Signal(str)
    closed = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._theme = theme
        self._draft = ExportDraft(wish=ExportWish(), kinds=(), destination="", summary=())
        self._is_waiting = False
        self._found: Destination | None = None
        self._put = PathText()
        self._title = plain_label(_COPY, "lead")
        self._promise = plain_label("", "muted")
        self._options = ExportOptions()
        self._options.wish_changed.connect(self.wish_changed)
        self._caption = plain_label("", "section")
        self._boxes = self._build_boxes()
        self._lines, self._omissions, self._warnings = QVBoxLayout(), QVBoxLayout(), QVBoxLayout()
        for lines in (self._lines, self._omissions, self._warnings):
            lines.setSpacing(6)
        self._path = named(QLineEdit(), spoken="Destination")
        self._path.textEdited.connect(self._on_edited)
        self._browse = QPushButton("Browse\u2026")
        self._browse.clicked.connect(self.browse_wanted)
        self._size = plain_label("", "small")
        self._note = plain_label("", "warning", wrap=True)
        self._build_answers()
        self._destination_part = self._build_destination()
        self._lay_out()

    def fit(self, width: int) -> None:
        is_narrow = width < _MAIN_WIDTH + _SPACING + _SIDE_WIDTH
        ways = QBoxLayout.Direction
        self._both.setDirection(ways.TopToBottom if is_narrow else ways.LeftToRight)
        for around in (self._area, self):  # which are told later that what is in them has grown
            around.updateGeometry()

    @property
    def destination(self) -> str:
        return self._put.path_of(self._path.text())

    @property
    def makes_folder(self) -> bool:
        return self._draft.makes_folder

    def show_draft(self, page: ExportPage, draft: ExportDraft, *, fresh: bool) -> None:
        """Show a draft; one that answers a change keeps the destination that was typed.

        Nothing can be exported while the next draft is waited for, or what stands at the destination is not
        known.
        """
        self._is_waiting, self._found = page.stage == "looking", page.destination
        if fresh:
            self._overwrite.setChecked(False)
        if fresh or draft != self._draft:
            typed = self.destination if not fresh and self.destination != self._draft.destination else ""
            self._draft = draft
            self._show_texts(draft)
            self._show_destination(typed or draft.destination)
        self._boxes.setVisible(draft.can_exclude and draft.boxes is not None)
        self._boxes.show_page(page, draft)
        self.refresh()

    def choose_destination(self, path: str) -> None:
        self._show_destination(path)
        self.look_wanted.emit(path)

    def refresh(self) -> None:
        found = self._found
        known = found if found is not None and found.path == self.destination else None
        what = known.found if known is not None else ""
        self._overwrite.setVisible(what == "file")
        self._note.setText(known.note if known is not None else "")
        self._note.setVisible(bool(self._note.text()))
        good = what == "free" or (what == "file" and self._overwrite.isChecked())
        if self._draft.in_place:
            good = self._sure.isChecked()
        is_settled = not self._is_waiting and not self._boxes.is_typed_in
        self._export.setEnabled(good and not self._draft.refusal and is_settled)

    def _show_texts(self, draft: ExportDraft) -> None:
        self._title.setText(_IN_PLACE if draft.in_place else _FOLDER if draft.makes_folder else _COPY)
        what = "folder" if draft.makes_folder else "file"
        self._promise.setText("" if draft.in_place else f"The {what} itself stays as it is.")
        self._path.setAccessibleName("Destination, a new folder" if draft.makes_folder else "Destination")
        self._promise.setVisible(not draft.in_place)
        self._options.show_draft(draft)
        self._caption.setText("What changes" if draft.in_place else "What the copy changes")
        self._caption.setVisible(bool(draft.summary))
        fill_lines(self._theme, self._lines, draft.summary, "arrow-right", "accent")
        omitted = () if draft.refusal else draft.omissions
        fill_lines(self._theme, self._omissions, omitted, "tone-warning", "warning")
        warnings = (draft.refusal,) if draft.refusal else draft.warnings
        fill_lines(self._theme, self._warnings, warnings, "tone-warning", "warning")
        self._size.setText(f"Size of the copy: {draft.size}" if draft.size else "")
        self._sure.setChecked(False)
        self._sure.setVisible(draft.in_place)
        self._destination_part.setVisible(not draft.in_place)
        self._export.setText("Change" if draft.in_place else "Export")
        kind = "primary" if draft.is_way_out else ""
        set_state(self._export, "kind", kind)
        set_icon(self._export, "export", self._theme.tokens, "on_accent" if kind else "muted")

    def _show_destination(self, path: str) -> None:
        self._put = PathText(path)
        self._path.setText(self._put.text)
        self._path.setCursorPosition(len(self._put.text))

    def _on_patterns(self, text: str) -> None:
        if text != self._draft.wish.exclude:
            self.wish_changed.emit(replace(self._draft.wish, exclude=text))
        self.refresh()

    def _on_edited(self) -> None:
        self.refresh()
        self.look_wanted.emit(self.destination)

    def _build_answers(self) -> None:
        self._overwrite = QCheckBox("Replace the existing file")
        self._overwrite.toggled.connect(self.refresh)
        self._sure = QCheckBox("Change this file")
        self._sure.toggled.connect(self.refresh)
        self._export = QPushButton("Export")
        self._export.setProperty("kind", "primary")
        set_icon(self._export, "export", self._theme.tokens, "on_accent")
        self._export.clicked.connect(self._on_export)

    def _build_boxes(self) -> BoxPanel:
        boxes = BoxPanel()
        boxes.setMinimumWidth(_SIDE_WIDTH)
        boxes.chosen.connect(self.rows_chosen)
        boxes.search_wanted.connect(self.search_wanted)
        boxes.patterns_changed.connect(self._on_patterns)
        boxes.typed.connect(self.refresh)
        return boxes

    def _build_destination(self) -> QWidget:
        part = QWidget()
        label = plain_label("Destination", "section")
        label.setBuddy(self._path)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._path, 1)
        row.addWidget(self._browse)
        column = QVBoxLayout(part)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addWidget(label)
        column.addLayout(row)
        for widget in (self._size, self._note, self._overwrite):
            column.addWidget(widget)
        return part

    def _lay_out(self) -> None:
        cancel = QPushButton("Cancel")
        cancel.clicked.connect(self.closed)
        main = QWidget()
        main.setMinimumWidth(_MAIN_WIDTH)
        column = page_column(main)
        column.addWidget(self._title)
        column.addWidget(self._promise)
        column.addSpacing(4)
        column.addWidget(self._options)
        column.addSpacing(8)
        column.addWidget(self._caption)
        column.addLayout(self._lines)
        column.addLayout(self._omissions)
        column.addLayout(self._warnings)
        column.addSpacing(8)
        column.addWidget(self._destination_part)
        column.addWidget(self._sure)
        column.addStretch(1)
        content = QWidget()
        both = self._both = QHBoxLayout(content)
        both.setContentsMargins(0, 0, 0, 0)
        both.setSpacing(_SPACING)
        both.addWidget(main, 1)
        both.addWidget(self._boxes, 1)
        page = page_column(self)
        self._area = WholeArea(content)
        page.addWidget(self._area, 1)
        page.addSpacing(8)
        page.addLayout(button_row(cancel, self._export))

    def _on_export(self) -> None:
        overwrite = not self._overwrite.isHidden() and self._overwrite.isChecked()
        self.export_wanted.emit("" if self._draft.in_place else self.destination, overwrite)
