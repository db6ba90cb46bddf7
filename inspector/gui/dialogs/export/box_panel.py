"""What is written and what is left out: a tree with boxes, a search, and the patterns that say the same."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QCheckBox, QHeaderView, QLineEdit, QTreeView, QWidget

from inspector.gui.widgets.boxes import NO_MARGINS, column, row
from inspector.gui.widgets.labels import blocked, named, plain_label, plain_tooltip, set_state
from inspector.overriding import override
from inspector.report.tree import Node
from inspector.session.export.page import NO_CHOICE, OUT, PARTLY, WRITTEN, Boxes, ExportDraft, ExportPage
from inspector.units import cut_text, format_count, format_nbytes

# The rows of a file with their boxes for Qt: as a tree, or those that a search found as a list.

AnyIndex = QModelIndex | QPersistentModelIndex
MOST_LISTED = 5000
_MOST_VALUE = 40
_NO_INDEX = QModelIndex()
_TITLES = ("Name", "Size")
_CHECKS = {
    OUT: Qt.CheckState.Unchecked,
    PARTLY: Qt.CheckState.PartiallyChecked,
    WRITTEN: Qt.CheckState.Checked,
    NO_CHOICE: Qt.CheckState.Unchecked,
}
_SPOKEN = {OUT: "left out", PARTLY: "written in part", WRITTEN: "written", NO_CHOICE: "not in this export"}
_BOUND = "An item of a tuple cannot be left out alone: leave out the whole tuple."
_RIGHT = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)


def check_of(state: int) -> Qt.CheckState:
    return _CHECKS[state]


class BoxModel(QAbstractItemModel):
    """A view of `Boxes`; a click asks for another plan, and the boxes follow when it is there."""

    chosen = Signal(object, bool)

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._boxes: Boxes | None = None
        self._found: tuple[int, ...] | None = None

    @property
    def found(self) -> tuple[int, ...] | None:
        """The rows that are listed; None while the tree is shown."""
        return self._found

    def show_boxes(self, boxes: Boxes | None, found: tuple[int, ...] | None) -> None:
        """Show boxes; rows stay unfolded as long as they are those of the same file."""
        listed = None if found is None else found[:MOST_LISTED]
        tree = None if self._boxes is None else self._boxes.tree
        if (None if boxes is None else boxes.tree) is not tree or listed != self._found:
            self.beginResetModel()
            self._boxes, self._found = boxes, listed
            self.endResetModel()
            return
        self._boxes = boxes
        rows = self.rowCount()
        if rows:
            self.dataChanged.emit(self.index(0, 0), self.index(rows - 1, 1), [Qt.ItemDataRole.CheckStateRole])

    # `QAbstractItemModel`.

    @override
    def index(self, row: int, column: int, parent: AnyIndex = _NO_INDEX) -> QModelIndex:
        below = self._below(parent)
        if 0 <= row < len(below) and 0 <= column < len(_TITLES):
            return self.createIndex(row, column, below[row])
        return _NO_INDEX

    @override
    def parent(self, child: AnyIndex) -> QModelIndex:  # type: ignore[override]  # also without an argument
        if self._boxes is None or self._found is not None or not child.isValid():
            return _NO_INDEX
        nodes = self._boxes.tree.nodes
        above = nodes[child.internalId()].parent
        return self.createIndex(nodes[above].row, 0, above) if above > 0 else _NO_INDEX

    @override
    def rowCount(self, parent: AnyIndex = _NO_INDEX) -> int:
        return len(self._below(parent))

    @override
    def columnCount(self, parent: AnyIndex = _NO_INDEX) -> int:
        return len(_TITLES)

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = 0) -> Any:
        return _TITLES[section] if role == Qt.ItemDataRole.DisplayRole else None

    @override
    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        if not index.isValid():
            return Qt.ItemFlag(0)
        if self._state(index) == NO_CHOICE or self._is_bound(index):
            return Qt.ItemFlag.ItemIsSelectable
        checkable = Qt.ItemFlag.ItemIsUserCheckable if index.column() == 0 else Qt.ItemFlag(0)
        return Qt.ItemFlag.ItemIsEnabled | Qt.ItemFlag.ItemIsSelectable | checkable

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if self._boxes is None or not index.isValid():
            return None
        column, id_ = index.column(), index.internalId()
        if role == Qt.ItemDataRole.ToolTipRole:
            why = f"\n{_BOUND}" if self._is_bound(index) else ""
            return plain_tooltip(f"{self._path(id_)}\n{_SPOKEN[self._state(index)]}{why}")
        return self._name_data(index, role) if column == 0 else self._size_data(id_, role)

    def _name_data(self, index: AnyIndex, role: int) -> object:
        id_, state = index.internalId(), self._state(index)
        if role == Qt.ItemDataRole.DisplayRole:
            return self._name(id_)
        if role == Qt.ItemDataRole.CheckStateRole:
            return check_of(state)
        if role == Qt.ItemDataRole.AccessibleTextRole:
            why = f", {_BOUND}" if self._is_bound(index) else ""
            return f"{self._name(id_)}, {_SPOKEN[state]}, {self._amount(id_)}{why}"
        return None

    def _size_data(self, id_: int, role: int) -> object:
        if role == Qt.ItemDataRole.DisplayRole:
            return self._amount(id_)
        return _RIGHT if role == Qt.ItemDataRole.TextAlignmentRole else None

    @override
    def setData(self, index: AnyIndex, value: Any, role: int = Qt.ItemDataRole.EditRole) -> bool:
        if role == Qt.ItemDataRole.CheckStateRole and index.isValid():
            self.chosen.emit((index.internalId(),), self._state(index) != WRITTEN)
        return False  # it changes when the plan has

    # The rows.

    @property
    def _nodes(self) -> Sequence[Node]:
        return () if self._boxes is None else self._boxes.tree.nodes

    def _below(self, parent: AnyIndex) -> tuple[int, ...] | list[int]:
        if self._boxes is None or parent.column() > 0:
            return ()
        if self._found is not None:
            return () if parent.isValid() else self._found
        return self._boxes.tree.nodes[parent.internalId() if parent.isValid() else 0].children

    def _state(self, index: AnyIndex) -> int:
        return NO_CHOICE if self._boxes is None else self._boxes.states[index.internalId()]

    def _is_bound(self, index: AnyIndex) -> bool:
        return self._boxes is not None and index.internalId() in self._boxes.bound

    def _name(self, node: int) -> str:
        return self._nodes[node].name if self._found is None else self._path(node)

    def _amount(self, id_: int) -> str:
        node = self._nodes[id_]
        if node.kind == "value":
            return cut_text(node.text, _MOST_VALUE)
        if not node.tensors:
            return ""
        size = format_nbytes(node.nbytes)
        return size if node.kind == "tensor" else f"{format_count(node.tensors, 'tensor')}, {size}"

    def _path(self, node: int) -> str:
        steps = []
        nodes = self._nodes
        while node > 0:
            if nodes[node].kind != "bucket":
                steps.append(nodes[node].name)
            node = nodes[node].parent
        return " / ".join(reversed(steps))


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
        return self._line.is_typed_in

    def show_page(self, page: ExportPage, draft: ExportDraft) -> None:
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
