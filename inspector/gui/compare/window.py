"""The window that shows two checkpoints side by side; it decides nothing and copies a `CompareScreen`."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt, QTimer, Signal
from PySide6.QtGui import QColor, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFrame,
    QGridLayout,
    QHeaderView,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QTreeView,
    QWidget,
)

from inspector.gui.compare.frame import ComparingFrame
from inspector.gui.dialogs.export.box_panel import PatientLine
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import CENTER, MIDDLE, TOP, column, row
from inspector.gui.widgets.cards import frameless_scroll
from inspector.gui.widgets.controls import icon_button, make_button
from inspector.gui.widgets.flow import FlowLayout
from inspector.gui.widgets.labels import (
    ElidedLabel,
    WrappedText,
    blocked,
    clear_layout,
    describe,
    named,
    plain_label,
    plain_tooltip,
    set_state,
)
from inspector.gui.widgets.marks import SPOKEN_TONES, ToneGlyph
from inspector.gui.widgets.progress import ProgressBar
from inspector.overriding import override
from inspector.report.comparing.rows import DiffRow
from inspector.session.comparing.compose import leaf_name
from inspector.session.comparing.screen import ComparedFile, CompareScreen, KindChoice, RowGroup, Selection
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.session.comparing.session import CompareSession

# The head of a comparison: both files, whether they are equal, and the kinds of difference to choose.

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


# The rows of a comparison for a tree view: groups, and the two files side by side.

_Index = QModelIndex | QPersistentModelIndex
_ROLE = Qt.ItemDataRole
_MOST_CHARS = 300
_NOWHERE = QModelIndex()
MARKS = {"+": "Added", "-": "Removed", "~": "Changed", ">": "Renamed", "=": "Equal", "!": "Code"}
"""What each mark is called: nothing is told by a color or a sign alone."""
_REORDERED = "~ Reordered"
_INKS = {"+": "good", "-": "bad", "~": "warning", ">": "accent", "=": "muted", "!": "bad"}


class Column(IntEnum):
    """The columns of the list."""

    NAME = 0
    WHAT = 1
    A = 2
    B = 3
    DETAIL = 4


class CompareModel(QAbstractItemModel):
    """Shows groups of rows; a group has the id 0, and its rows the number of the group plus 1."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._rows: tuple[DiffRow, ...] = ()
        self._groups: tuple[RowGroup, ...] = ()
        self._names = ("A", "B")

    def show_screen(self, screen: CompareScreen) -> None:
        self.beginResetModel()
        self._rows, self._groups = screen.rows, screen.groups
        self._names = screen.a.name, screen.b.name
        self.endResetModel()

    def row_of(self, index: _Index) -> int | None:
        """Return the number of the row at an index; None for a group."""
        if not index.isValid() or not index.internalId():
            return None
        return self._groups[index.internalId() - 1].rows[index.row()]

    def index_of(self, row: int) -> QModelIndex:
        for number, group in enumerate(self._groups):
            if row in group.rows:
                return self.createIndex(group.rows.index(row), 0, number + 1)
        return QModelIndex()

    @override
    def index(self, row: int, column: int, parent: _Index = _NOWHERE) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    @override
    def parent(self, index: _Index) -> QModelIndex:  # type: ignore[override]  # QObject has another parent()
        if not index.isValid() or not index.internalId():
            return QModelIndex()
        return self.createIndex(index.internalId() - 1, 0, 0)

    @override
    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        if not parent.isValid():
            return len(self._groups)
        return len(self._groups[parent.row()].rows) if not parent.internalId() and not parent.column() else 0

    @override
    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return len(Column)

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole) -> object:
        if orientation != Qt.Orientation.Horizontal or role not in {_ROLE.DisplayRole, _ROLE.ToolTipRole}:
            return None
        a, b = self._names
        text = ("Name", "Change", f"A: {a}", f"B: {b}", "Difference")[section]
        return text if role == _ROLE.DisplayRole else plain_tooltip(text)

    @override
    def data(self, index: _Index, role: int = _ROLE.DisplayRole) -> object:
        number = self.row_of(index)
        if number is None:
            return self._group_data(self._groups[index.row()], index.column(), role)
        row, column = self._rows[number], index.column()
        if role == _ROLE.DisplayRole:
            return cut_text(_text(row, column), _MOST_CHARS)
        if role == _ROLE.ToolTipRole:
            path = row.a_path or row.b_path or "(root)"
            text = path if column == Column.NAME else _text(row, column)
            return plain_tooltip(cut_text(text, 4 * _MOST_CHARS))
        if role == _ROLE.ForegroundRole and column == Column.WHAT:
            return self._color(_INKS[row.mark])
        return self._described(row) if role == _ROLE.AccessibleTextRole and column == Column.NAME else None

    def _group_data(self, group: RowGroup, column: int, role: int) -> object:
        if role == _ROLE.DisplayRole and column == Column.NAME:
            return f"{group.title}   ({group.detail})"
        if role == _ROLE.ToolTipRole and column == Column.NAME:
            return plain_tooltip(group.title)
        return self._color("muted") if role == _ROLE.ForegroundRole else None

    def _color(self, ink: str) -> QColor:
        return self._theme.tokens.color(ink)

    @staticmethod
    def _described(row: DiffRow) -> str:
        return f"{row.a_path or row.b_path or 'the root'}, {MARKS[row.mark].lower()}: {row.detail}"


def _text(row: DiffRow, column: int) -> str:
    change = _REORDERED if row.what == ("order",) else f"{row.mark} {MARKS[row.mark]}"
    return (leaf_name(row), change, row.a_text, row.b_text, row.detail)[column]


# What both files say of the selected row, and by how much its numbers differ.

_ASK = "Compare numbers"


class FactsPanel(QScrollArea):
    """Shows a `Selection`."""

    measure_wanted = Signal()
    stop_wanted = Signal()

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self.setAccessibleName("Facts of the selected row")
        self._selection: Selection | None = None
        self._title = WrappedText("", "lead")
        self._detail = WrappedText()
        self._table = QGridLayout()
        self._table.setHorizontalSpacing(16)
        self._table.setVerticalSpacing(3)
        self._table.setColumnStretch(1, 1)
        self._table.setColumnStretch(2, 1)
        self._numbers = WrappedText("", "strong")
        self._failure = plain_label("", "bad", wrap=True, selectable=True)
        self._bar = ProgressBar("Progress of comparing numbers")
        self._measure = make_button(_ASK, self.measure_wanted, icon="tensor", theme=theme)
        self._stop = make_button("Cancel", self.stop_wanted)
        content = named(QWidget(), "scrolled")
        buttons = row((self._bar, 1), self._measure, self._stop, spacing=8)
        head = row((column(self._title, self._detail, spacing=2), 1), buttons, spacing=12)
        column(
            head,
            self._numbers,
            self._failure,
            self._table,
            1,
            spacing=6,
            margins=(14, 8, 14, 8),
            within=content,
        )
        frameless_scroll(self, content)
        self.show_selection(None)

    def show_selection(self, selection: Selection | None) -> None:
        is_same = _shown_of(selection) == _shown_of(self._selection)
        self._selection = selection
        shown = selection or Selection(row=0, title="", detail="", facts=())
        if not is_same:
            self._title.setText(shown.title)
            self._detail.setText(shown.detail)
            self._fill_table(shown)
        for part in (self._title, self._detail):
            part.setVisible(selection is not None)
        self._numbers.setText(f"Numbers: {shown.numbers}")
        self._numbers.setVisible(bool(shown.numbers))
        self._failure.setText(shown.failure)
        self._failure.setVisible(bool(shown.failure))
        runs = shown.measuring is not None
        self._measure.setVisible(shown.can_measure and not runs and not shown.numbers)
        self._bar.setVisible(runs)
        self._stop.setVisible(runs)
        self._bar.follow(shown.measuring)

    def _fill_table(self, selection: Selection) -> None:
        clear_layout(self._table)
        for place, title in enumerate(("", "A", "B") if selection.facts else ()):
            self._table.addWidget(plain_label(title, "section"), 0, place)
        for line, fact in enumerate(selection.facts, 1):
            mark = "\u2260 " if fact.differs else ""
            role = "strong" if fact.differs else ""
            self._table.addWidget(plain_label(f"{mark}{fact.label}", role or "muted"), line, 0, TOP)
            for place, text in enumerate((fact.a, fact.b), 1):
                cell = named(WrappedText(text, role), spoken=f"{fact.label} in {'AB'[place - 1]}")
                self._table.addWidget(cell, line, place)


def _shown_of(selection: Selection | None) -> tuple[object, ...] | None:
    """Return what is written of a selection, which takes longer than the progress of its numbers."""
    return None if selection is None else (selection.title, selection.detail, selection.facts)


_WIDTHS = {Column.NAME: 310, Column.WHAT: 96, Column.A: 280, Column.B: 280}
_MOST_UNFOLDED = 2_000
_COPIED_MS = 2500
_MOST_QUERY = 80
_HINT = "Select a row to see what both files say of it."
_CALM = "Nothing differs."


class CompareWindow(ComparingFrame):
    """Implements `CompareView`; `attach` connects it to its session."""

    file_wanted = Signal(object)  # a list of one path

    session: CompareSession | None
    shown: CompareScreen | None

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme)
        self._build_ready()
        self.add_actions(
            (
                ("&Swap A and B", "Ctrl+Shift+D", self.head.swap_wanted.emit),
                ("Copy as &text", "Ctrl+Shift+C", self.head.copy_wanted.emit),
                ("&Find", "Ctrl+F", self._on_find),
                ("Compare &numbers of the row", "Ctrl+N", self.facts.measure_wanted.emit),
            )
        )

    def attach(self, session: CompareSession) -> None:
        self.session = session
        self.head.kind_chosen.connect(lambda kind, chosen: session.choose_kind(kind, chosen=chosen))
        self.head.equal_shown.connect(lambda shown: session.show_equal(shown=shown))
        self.head.swap_wanted.connect(session.swap)
        self.head.search_wanted.connect(session.search)
        self.head.copy_wanted.connect(session.copy_text)
        self.facts.measure_wanted.connect(session.measure)
        self.facts.stop_wanted.connect(session.stop_measuring)
        for card, place in zip(self.head.cards, (0, 1), strict=True):
            card.open_wanted.connect(lambda place=place: self.file_wanted.emit([session.paths[place]]))

    # `CompareView`.

    def show_screen(self, screen: CompareScreen) -> None:
        """Show a screen; only what differs from the last one is updated."""
        old = self.shown
        if self.show_phase(screen, f"Comparing {screen.a.name} with {screen.b.name}"):
            self._show_ready(old if old is not None and old.phase == "ready" else None, screen)

    @override
    def take_text(self, text: str) -> None:
        super().take_text(text)
        self._status.showMessage("Copied the comparison", _COPIED_MS)

    def _show_ready(self, old: CompareScreen | None, screen: CompareScreen) -> None:
        self.head.show_changes(old, screen)
        if old is None or old.groups is not screen.groups or old.rows is not screen.rows:
            with blocked(self.tree.selectionModel()):
                self._model.show_screen(screen)
            for group in range(min(len(screen.groups), _MOST_UNFOLDED)):
                self.tree.setFirstColumnSpanned(group, QModelIndex(), True)
            if screen.shown <= _MOST_UNFOLDED:
                self.tree.expandAll()
            found = f"Nothing here holds \u201c{cut_text(screen.query, _MOST_QUERY)}\u201d."
            self._nothing.setText(found if screen.query.strip() else _CALM)
            self._list.setCurrentWidget(self.tree if screen.shown else self._calm)
        selected = None if screen.selection is None else screen.selection.row
        if selected != self._model.row_of(self.tree.currentIndex()):
            index = QModelIndex() if selected is None else self._model.index_of(selected)
            with blocked(self.tree.selectionModel()):
                self.tree.setCurrentIndex(index)
        self.facts.show_selection(screen.selection)
        self._show_facts(screen)
        self._status.show_status(("" if screen.selection else _HINT if screen.shown else "", screen.status))

    def _show_facts(self, screen: CompareScreen) -> None:
        """Show what is said of the selected row, which stays in sight; without one, the rows get the room."""
        was_hidden = self.facts.isHidden()
        self.facts.setVisible(screen.shown > 0 and screen.selection is not None)
        if was_hidden and not self.facts.isHidden():
            QTimer.singleShot(0, self.tree, self._show_current)

    def _show_current(self) -> None:
        self.tree.scrollTo(self.tree.currentIndex())

    def _build_ready(self) -> None:
        self.head = CompareHead(self._theme)
        self.facts = FactsPanel(self._theme)
        self._model = CompareModel(self._theme, self)
        self.tree = _tree(self._model)
        self.tree.selectionModel().currentChanged.connect(self._on_current_changed)
        self._calm = QWidget()
        self._nothing = plain_label(_CALM, "lead", wrap=True)
        self._nothing.setAlignment(CENTER)
        column(2, self._nothing, 3, within=self._calm)
        self._list = QStackedWidget()
        self._list.addWidget(self.tree)
        self._list.addWidget(self._calm)
        split = QSplitter(Qt.Orientation.Vertical)
        split.addWidget(self._list)
        split.addWidget(self.facts)
        split.setStretchFactor(0, 3)
        split.setStretchFactor(1, 1)
        split.setSizes([420, 190])
        split.setChildrenCollapsible(False)
        column(self.head, (split, 1), spacing=8, margins=(12, 10, 12, 6), within=self._ready)

    # What the user does.

    def _on_current_changed(self, current: QModelIndex, _: QModelIndex) -> None:
        if self.session is not None:
            self.session.select(self._model.row_of(current))

    def _on_find(self) -> None:
        self.head.search.setFocus()
        self.head.search.selectAll()

    @override
    def take_focus(self) -> None:
        super().take_focus()
        if self._stack.currentWidget() is self._ready:
            self.tree.setFocus()

    @override
    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        self.take_focus()

    @override
    def detach(self) -> None:
        session = self.session
        super().detach()
        if session is not None:
            self._model.show_screen(session.screen)


def _tree(model: CompareModel) -> QTreeView:
    tree = QTreeView()
    tree.setObjectName("comparison")
    tree.setAccessibleName("Differences")
    tree.setModel(model)
    tree.setUniformRowHeights(True)
    tree.setTextElideMode(Qt.TextElideMode.ElideMiddle)
    tree.setAllColumnsShowFocus(True)
    tree.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
    tree.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    tree.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
    tree.setAlternatingRowColors(False)
    tree.setIndentation(14)
    header = tree.header()
    header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
    header.setStretchLastSection(True)
    header.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names of epochs differ at their ends
    for place, width in _WIDTHS.items():
        header.resizeSection(place, width)
    return tree
