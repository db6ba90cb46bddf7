"""The window that shows two checkpoints side by side; it decides nothing and copies a `CompareScreen`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import (
    QAbstractItemModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    QTimer,
    Signal,
)
from PySide6.QtGui import QPainter, QPen, QResizeEvent, QShowEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QCheckBox,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QHeaderView,
    QPushButton,
    QScrollArea,
    QSizePolicy,
    QSplitter,
    QStackedWidget,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeView,
    QWidget,
)

from inspector.gui.compare.frame import ComparingFrame
from inspector.gui.dialogs.export.box_panel import PatientLine
from inspector.gui.theme.theme import Theme
from inspector.gui.tree.delegate import ROW_HEIGHT
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
from inspector.gui.widgets.progress import ProgressBar, Rate
from inspector.overriding import override
from inspector.progress import Progress
from inspector.report.comparing.rows import DiffRow
from inspector.report.words.formats import ROOT
from inspector.session.comparing.listing import (
    COLUMNS,
    FIGURES,
    MARKS,
    CompareColumn,
    figure_share,
    figure_text,
    side_texts,
    what_text,
)
from inspector.session.comparing.screen import ComparedFile, CompareScreen, KindChoice, Selection
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.session.comparing.session import CompareSession

# The head of a comparison: both files, whether they are equal, and the kinds of difference to choose.

_SEARCH_WIDTH = 240
_NUMBERS = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_PAD, _BAR_WIDTH, _BAR_HEIGHT = 8, 36, 7


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
    measure_wanted = Signal()
    stop_wanted = Signal()

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
        self._rate = Rate()
        self._kinds = named(QWidget(), spoken="Kinds of difference")
        self._flow = FlowLayout(self._kinds)
        files = row((self.cards[0], 1), (swap, 0, MIDDLE), (self.cards[1], 1), spacing=8)
        self._banner = named(QFrame(), "banner")
        words = column(1, self._alerts, self._verdict, self._notes, 1, spacing=4)
        row(self._glyph, (words, 1), self._copy, spacing=12, margins=(12, 8, 8, 8), within=self._banner)
        choices = row((self._kinds, 1, MIDDLE), self._equal, self.search, spacing=12)
        column(
            files,
            self._banner,
            self._build_numbers(theme),
            choices,
            spacing=8,
            margins=(0, 0, 0, 0),
            within=self,
        )

    def _build_numbers(self, theme: Theme) -> QHBoxLayout:
        self._measured = ElidedLabel("", "")
        self._bar = ProgressBar("Progress of comparing numbers")
        self._bar.looked.connect(self._on_looked)
        self.measure = make_button("", self.measure_wanted, icon="tensor", theme=theme)
        self._stop = make_button("Cancel", self.stop_wanted)
        return row((self._measured, 2), (self._bar, 1), self._stop, self.measure, spacing=10)

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
        self._show_measuring(new)
        if old is None or old.kinds != new.kinds:
            self._show_kinds(new.kinds)
        if self.search.text() != new.query and not self.search.is_typed_in:
            self.search.setText(new.query)
        with blocked(self._equal):
            self._equal.setChecked(not new.only_differences)
        self._equal.setEnabled(not any(kind.chosen for kind in new.kinds))

    def _show_measuring(self, screen: CompareScreen) -> None:
        runs = screen.measuring is not None
        self._bar.setVisible(runs)
        self._stop.setVisible(runs)
        self.measure.setText(screen.can_measure)
        self.measure.setVisible(bool(screen.can_measure))
        self._measured.setText(screen.measured)
        self._measured.setVisible(bool(screen.measured) or runs)
        self._bar.follow(screen.measuring)

    def _on_looked(self, progress: Progress) -> None:
        label = f"{progress.label[:1].upper()}{progress.label[1:]}"
        self._measured.setText(f"{label}: {self._rate.describe(progress)}".removesuffix(": "))

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
_INKS = {"+": "good", "-": "bad", "~": "warning", ">": "accent", "=": "muted", "!": "bad"}
_COLUMNS: tuple[CompareColumn, ...] = tuple(COLUMNS)
_FIRST_DESCENDING = frozenset({"relative", "largest"})


class CompareModel(QAbstractItemModel):
    """Shows the listed nodes of a `CompareScreen`; the id of an index is its node."""

    def __init__(self, theme: Theme, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._screen: CompareScreen | None = None
        self._places: dict[int, dict[int, int]] = {}

    def show_screen(self, screen: CompareScreen) -> None:
        self.beginResetModel()
        self._screen, self._places = screen, {}
        self.endResetModel()

    def below(self, node: int) -> tuple[int, ...]:
        listing = None if self._screen is None else self._screen.listing
        return () if listing is None else listing.below.get(node, ())

    def row_of(self, index: _Index) -> int | None:
        """Return the number of the row at an index; None for a group."""
        shape = None if self._screen is None else self._screen.shape
        node = index.internalId() if index.isValid() else 0
        return None if shape is None or node >= len(shape.rows) or shape.rows[node] < 0 else shape.rows[node]

    def index_of(self, row: int) -> QModelIndex:
        shape = None if self._screen is None else self._screen.shape
        return QModelIndex() if shape is None else self.index_at(shape.nodes[row])

    def share(self, index: _Index) -> float:
        """Return how long the bar in a cell is, from 0 to 1."""
        column, screen, node = _COLUMNS[index.column()], self._screen, index.internalId()
        if column not in FIGURES or screen is None or node >= len(screen.figures):
            return 0.0
        return figure_share(screen.figures[node], column, screen.most[FIGURES.index(column)])

    def _above(self, node: int) -> int:
        screen = self._screen
        if screen is None or screen.listing is None or screen.shape is None:
            return 0
        known = screen.listing.parents.get(node)
        return screen.shape.parents[node] if known is None else known

    def index_at(self, node: int) -> QModelIndex:
        above = self._above(node)
        if above not in self._places:
            self._places[above] = {child: place for place, child in enumerate(self.below(above))}
        place = self._places[above].get(node)
        return QModelIndex() if place is None else self.createIndex(place, 0, node)

    @override
    def index(self, row: int, column: int, parent: _Index = _NOWHERE) -> QModelIndex:
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, self.below(parent.internalId() if parent.isValid() else 0)[row])

    @override
    def parent(self, index: _Index) -> QModelIndex:  # type: ignore[override]  # QObject has another parent()
        above = self._above(index.internalId()) if index.isValid() else 0
        return self.index_at(above) if above else QModelIndex()

    @override
    def rowCount(self, parent: _Index = _NOWHERE) -> int:
        if not parent.isValid():
            return len(self.below(0))
        return 0 if parent.column() else len(self.below(parent.internalId()))

    @override
    def columnCount(self, parent: _Index = _NOWHERE) -> int:
        return len(_COLUMNS)

    @override
    def headerData(self, section: int, orientation: Qt.Orientation, role: int = _ROLE.DisplayRole) -> object:
        name = _COLUMNS[section]
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role not in {_ROLE.DisplayRole, _ROLE.ToolTipRole} or self._screen is None:
            return None
        title, tooltip = COLUMNS[name]
        if name in {"a", "b"}:
            title = f"{title}: {(self._screen.a if name == 'a' else self._screen.b).name}"
        return title if role == _ROLE.DisplayRole else plain_tooltip(tooltip or title)

    @override
    def data(self, index: _Index, role: int = _ROLE.DisplayRole) -> object:
        number, name = self.row_of(index), _COLUMNS[index.column()]
        row = None if number is None or self._screen is None else self._screen.rows[number]
        if role == _ROLE.TextAlignmentRole:
            return _NUMBERS if name in FIGURES else None
        if role == _ROLE.ForegroundRole:
            ink = "muted" if row is None else _INKS[row.mark] if name == "what" else ""
            return self._theme.tokens.color(ink) if ink and (row is None or name == "what") else None
        if role == _ROLE.DisplayRole:
            return cut_text(self._text(index, row), _MOST_CHARS)
        if role == _ROLE.ToolTipRole:
            text = self._text(index, row)
            if row is not None and name in {"name", "what"}:
                text = (row.a_path or row.b_path or ROOT) if name == "name" else row.detail
            return plain_tooltip(cut_text(text, 4 * _MOST_CHARS))
        if role == _ROLE.AccessibleTextRole and name == "name" and row is not None:
            said = f"{row.a_path or row.b_path or 'the root'}, {MARKS[row.mark]}: {row.detail}"
            return f"{said}{self._said(index.internalId())}"
        return None

    def _said(self, node: int) -> str:
        cells = {name: self._figure(node, name) for name in FIGURES}
        return "".join(f", {COLUMNS[name][0].lower()} {text}" for name, text in cells.items() if text)

    def _figure(self, node: int, name: CompareColumn) -> str:
        figures = () if self._screen is None else self._screen.figures
        return figure_text(figures[node] if node < len(figures) else None, name)

    def _text(self, index: _Index, row: DiffRow | None) -> str:
        screen, node, name = self._screen, index.internalId(), _COLUMNS[index.column()]
        if screen is None or screen.shape is None or screen.listing is None:
            return ""
        if name in FIGURES:
            return self._figure(node, name)
        if name == "name":
            return screen.listing.slices[node] if node in screen.listing.slices else screen.shape.names[node]
        if row is None:
            return ""
        return what_text(row) if name == "what" else side_texts(row, screen.found)[name == "b"]


def bar_width(share: float, room: float, advance: float) -> float:
    """Return how long a bar is that covers no digit of the figure at its right."""
    return max(min(_BAR_WIDTH, room - advance - _PAD / 2), 0) * min(share, 1.0)


class CompareDelegate(QStyledItemDelegate):
    """Paints a figure behind a small bar of its size."""

    def __init__(self, theme: Theme, model: CompareModel, parent: QWidget) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = model

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: _Index) -> QSize:
        return QSize(48, max(ROW_HEIGHT, option.fontMetrics.height() + 8))

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: _Index) -> None:
        if _COLUMNS[index.column()] not in FIGURES:
            super().paint(painter, option, index)
            return
        panel = QStyle.PrimitiveElement.PE_PanelItemViewItem
        option.widget.style().drawPrimitive(panel, option, painter, option.widget)
        tokens, is_group = self._theme.tokens, self._model.row_of(index) is None
        area = QRectF(option.rect).adjusted(_PAD, 0, -_PAD, 0)
        text = str(index.data())
        share = self._model.share(index)
        width = bar_width(share, area.width(), option.fontMetrics.horizontalAdvance(text))
        painter.save()
        if width > 0:
            bar = QRectF(area.left(), area.center().y() - _BAR_HEIGHT / 2, max(width, 1.0), _BAR_HEIGHT)
            painter.fillRect(bar, tokens.color("border_strong" if is_group else "accent"))
        painter.setFont(option.font)
        painter.setPen(QPen(tokens.color("muted" if is_group else "text")))
        painter.drawText(area, _NUMBERS, text)
        painter.restore()


# What both files say of the selected row, and by how much its numbers differ.


class FactsPanel(QScrollArea):
    """Shows a `Selection`."""

    def __init__(self) -> None:
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
        content = named(QWidget(), "scrolled")
        parts = (self._title, self._detail, self._numbers, self._table, 1)
        column(*parts, spacing=6, margins=(14, 8, 14, 8), within=content)
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


_WIDTHS: dict[CompareColumn, int] = {"what": 116, "relative": 116, "cosine": 112, "largest": 116, "a": 200}
_NAME_SHARE = 0.28
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
                ("Compare &numbers", "Ctrl+N", self.head.measure_wanted.emit),
            )
        )

    def attach(self, session: CompareSession) -> None:
        self.session = session
        self.head.kind_chosen.connect(lambda kind, chosen: session.choose_kind(kind, chosen=chosen))
        self.head.equal_shown.connect(lambda shown: session.show_equal(shown=shown))
        self.head.swap_wanted.connect(session.swap)
        self.head.search_wanted.connect(session.search)
        self.head.copy_wanted.connect(session.copy_text)
        self.head.measure_wanted.connect(session.measure)
        self.head.stop_wanted.connect(session.stop_measuring)
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
        if old is None or old.listing is not screen.listing or old.rows is not screen.rows:
            self._show_rows(old, screen)
        selected = None if screen.selection is None else screen.selection.row
        if selected != self._model.row_of(self.tree.currentIndex()):
            index = QModelIndex() if selected is None else self._model.index_of(selected)
            with blocked(self.tree.selectionModel()):
                self.tree.setCurrentIndex(index)
        self.facts.show_selection(screen.selection)
        self._show_facts(screen)
        self._status.show_status(("" if screen.selection else _HINT if screen.shown else "", screen.status))

    def _show_rows(self, old: CompareScreen | None, screen: CompareScreen) -> None:
        """Show the listed rows; what was unfolded stays so where the rows are those of before."""
        is_same = old is not None and old.rows is screen.rows and old.shown == screen.shown
        place = self.tree.verticalScrollBar().value()
        unfolded = self._unfolded() if is_same else []
        with blocked(self.tree.selectionModel()):
            self._model.show_screen(screen)
        if screen.shown <= _MOST_UNFOLDED and not is_same:
            self.tree.expandAll()
        if screen.listing is not None and screen.listing.slices and screen.order.column != "name":
            self.tree.expand(self._model.index(0, 0))  # what differs most
        for node in unfolded:
            self.tree.expand(self._model.index_at(node))
        if is_same:
            self.tree.verticalScrollBar().setValue(place)
        with blocked(self.tree.header()):
            order = screen.order
            way = Qt.SortOrder.DescendingOrder if order.descending else Qt.SortOrder.AscendingOrder
            self.tree.header().setSortIndicator(_COLUMNS.index(order.column), way)
        found = f"Nothing here holds \u201c{cut_text(screen.query, _MOST_QUERY)}\u201d."
        self._nothing.setText(found if screen.query.strip() else _CALM)
        self._list.setCurrentWidget(self.tree if screen.shown else self._calm)

    def _unfolded(self) -> list[int]:
        """Return the nodes that are unfolded, those above before those below."""
        found, waiting = [], [0]
        while waiting:
            for node in self._model.below(waiting.pop()):
                if self._model.below(node) and self.tree.isExpanded(self._model.index_at(node)):
                    found.append(node)
                    waiting.append(node)
        return found

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
        self.facts = FactsPanel()
        self._model = CompareModel(self._theme, self)
        self.tree = CompareTree(self._model)
        self.tree.setItemDelegate(CompareDelegate(self._theme, self._model, self.tree))
        self.tree.selectionModel().currentChanged.connect(self._on_current_changed)
        self.tree.header().sectionClicked.connect(self._on_title)
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

    def _on_title(self, place: int) -> None:
        """Sort by a column, what differs most first; at the next click the other way round."""
        if self.session is not None and self.shown is not None:
            column, order = _COLUMNS[place], self.shown.order
            first = column in _FIRST_DESCENDING
            self.session.sort(column, descending=not order.descending if order.column == column else first)

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


class CompareTree(QTreeView):
    """The tree of a comparison; names have a share of its width, and B what is left."""

    def __init__(self, model: CompareModel) -> None:
        super().__init__()
        self.setObjectName("comparison")
        self.setAccessibleName("Differences")
        self.setModel(model)
        self.setUniformRowHeights(True)
        self.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        self.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setAlternatingRowColors(False)
        self.setIndentation(14)
        header = self.header()
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        header.setSectionsClickable(True)
        header.setSortIndicatorShown(True)
        header.setTextElideMode(Qt.TextElideMode.ElideMiddle)  # names of epochs differ at their ends
        for name, width in _WIDTHS.items():
            header.resizeSection(_COLUMNS.index(name), width)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        self.header().resizeSection(0, round(self.viewport().width() * _NAME_SHARE))
        super().resizeEvent(event)
