"""What is written and what is left out: a tree with boxes, a search, and the patterns that say the same."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QHeaderView, QLineEdit, QTreeView, QWidget

from inspector.gui.dialogs.export.box_model import MOST_LISTED, BoxModel, check_of
from inspector.gui.widgets.boxes import NO_MARGINS, column, row
from inspector.gui.widgets.labels import blocked, named, plain_label, set_state
from inspector.overriding import override
from inspector.session.export.page import NO_CHOICE, WRITTEN, ExportDraft, ExportPage

_PAUSE_MS = 300
_MOST_TYPED = 30_000
_LEAST_SIZE = (300, 220)


class PatientLine(QLineEdit):
    """A field that asks when the typing pauses, and at Enter, which presses no button of the dialog."""

    asked = Signal(str)

    def __init__(self) -> None:
        super().__init__()
        self._pause = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._ask)
        self.textEdited.connect(self._pause.start)

    @property
    def is_typed_in(self) -> bool:
        """Whether something was typed that was not asked for yet."""
        return self._pause.isActive()

    @override
    def keyPressEvent(self, arg__1: QKeyEvent) -> None:
        if arg__1.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            self._ask()
            arg__1.accept()
        else:
            super().keyPressEvent(arg__1)

    def _ask(self) -> None:
        self._pause.stop()
        self.asked.emit(self.text())


class BoxPanel(QWidget):
    """Copies the boxes and patterns of a draft."""

    chosen = Signal(object, bool)
    patterns_changed = Signal(str)
    search_wanted = Signal(str)
    typed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self._found: tuple[int, ...] = ()
        self._caption = plain_label("What is written", "section")
        self._search = named(PatientLine(), spoken="Search the rows")
        self._search.setPlaceholderText("Search: layer4, role:optimizer, size>1GB")
        self._search.setClearButtonEnabled(True)
        self._search.asked.connect(self.search_wanted)
        self._all = QCheckBox("All that were found")
        self._all.clicked.connect(self._on_all)
        self._model = BoxModel(self)
        self._model.chosen.connect(self.chosen)
        self._tree = named(QTreeView(), "boxes", spoken="What is written")
        self._set_up_tree()
        self._line = named(PatientLine(), spoken="Patterns of what is left out")
        self._line.setPlaceholderText("optimizer/**  scheduler/**")
        self._line.setToolTip(
            "Patterns of paths: * stands for anything but a slash, ** for anything; quotes hold spaces"
        )
        self._line.asked.connect(self.patterns_changed)
        self._line.textEdited.connect(self.typed)
        label = plain_label("Leave out", "muted")
        label.setBuddy(self._line)
        patterns = row(label, (self._line, 1), spacing=8)
        parts = (self._caption, self._search, self._all, (self._tree, 1), patterns)
        column(*parts, spacing=8, margins=NO_MARGINS, within=self)

    def _set_up_tree(self) -> None:
        tree = self._tree
        tree.setModel(self._model)
        tree.setUniformRowHeights(True)
        tree.setHeaderHidden(True)
        tree.setMinimumSize(*_LEAST_SIZE)
        tree.setIndentation(14)
        tree.setTabKeyNavigation(False)
        tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # of long paths the ends differ
        tree.header().setStretchLastSection(False)
        tree.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        tree.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)

    @property
    def is_typed_in(self) -> bool:
        """Whether patterns were typed that are not in the plan yet."""
        return self._line.is_typed_in

    def show_page(self, page: ExportPage, draft: ExportDraft) -> None:
        """Show the boxes of a draft."""
        found = page.matches
        self._model.show_boxes(draft.boxes, found)
        self._tree.setRootIsDecorated(found is None)
        self._tree.viewport().update()
        if self._search.text() != page.query and not self._search.is_typed_in:
            self._search.setText(page.query)
        self._show_found(draft, found)
        self._show_patterns(draft.wish.exclude)
        set_state(self._line, "missed", "true" if draft.unused else "false")

    def _show_found(self, draft: ExportDraft, found: tuple[int, ...] | None) -> None:
        self._found = found or ()
        self._all.setVisible(found is not None)
        state = NO_CHOICE if draft.boxes is None else draft.boxes.state_of(self._found)
        count = len(self._found)
        more = f"; the first {MOST_LISTED:,} are listed" if count > MOST_LISTED else ""
        text = f"All {count:,} that were found{more}" if count > 1 else "The one that was found"
        self._all.setText(text if count else "Nothing was found")
        self._all.setEnabled(state != NO_CHOICE)
        with blocked(self._all):
            self._all.setTristate(check_of(state) == Qt.CheckState.PartiallyChecked)
            self._all.setCheckState(check_of(state))
        self._all.setProperty("is_written", state == WRITTEN)

    def _show_patterns(self, text: str) -> None:
        is_long = len(text) > _MOST_TYPED
        self._line.setReadOnly(is_long)
        if is_long:
            self._line.setText(f"{text[:60]} \u2026 (chosen row by row)")
        elif self._line.text() != text and not self._line.is_typed_in:
            self._line.setText(text)

    def _on_all(self) -> None:
        self.chosen.emit(self._found, not self._all.property("is_written"))
