"""What pages are made of: areas that scroll, cards, lines with an icon, and the empty state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, QSize, Qt
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QFrame, QLabel, QScrollArea, QSizePolicy, QVBoxLayout, QWidget

from inspector.gui.tasks import Turns
from inspector.gui.theme.icons import Glyph
from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import CENTER, NO_MARGINS, TOP, Part, column, row
from inspector.gui.widgets.labels import clear_layout, named, plain_label
from inspector.overriding import override

Scroll = TypeVar("Scroll", bound=QScrollArea)
_FIRST_CARDS = 6
"""About as many as are in sight; they are there at once."""
_CARDS_A_TURN = 3
_LEAST_AREA = 120


def frameless_scroll(area: Scroll, content: QWidget) -> Scroll:
    area.setFrameShape(QFrame.Shape.NoFrame)
    area.setWidgetResizable(True)
    area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
    area.setWidget(content)
    return area


class WholeArea(QScrollArea):
    """Scrolls only where there is no room for all of it: it asks for as much as its content does."""

    def __init__(self, content: QWidget) -> None:
        super().__init__()
        self._content = content
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # what is in it takes it, and is scrolled to
        frameless_scroll(self, named(content, "scrolled"))
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)

    @override
    def resizeEvent(self, arg__1: QResizeEvent) -> None:
        self._judge_room()
        super().resizeEvent(arg__1)

    @override
    def eventFilter(self, arg__1: QObject, arg__2: QEvent) -> bool:
        if arg__2.type() == QEvent.Type.LayoutRequest:
            self._judge_room()
        return super().eventFilter(arg__1, arg__2)

    def _judge_room(self) -> None:
        """Have no bar where all has room without one: texts wrap beside a bar, and would need it for that."""
        fits = self.heightForWidth(self.width()) <= self.height()
        policies = Qt.ScrollBarPolicy
        self.setVerticalScrollBarPolicy(policies.ScrollBarAlwaysOff if fits else policies.ScrollBarAsNeeded)

    @override
    def sizeHint(self) -> QSize:
        return self._content.sizeHint().expandedTo(self.minimumSizeHint())

    @override
    def minimumSizeHint(self) -> QSize:
        bar = self.verticalScrollBar().sizeHint().width()  # it would cover what is at the right
        return QSize(self._content.minimumSizeHint().width() + bar, _LEAST_AREA)

    @override
    def heightForWidth(self, arg__1: int) -> int:
        layout = self._content.layout()
        return -1 if layout is None else layout.totalHeightForWidth(arg__1)


class ScrollPanel(QScrollArea):
    """A page whose cards stand one above the other and scroll when there are too many."""

    def __init__(self, theme: Theme, name: str) -> None:
        super().__init__()
        self.theme = theme
        self.setAccessibleName(name)
        self._holder = named(QWidget(), "scrolled")
        self.cards = column(spacing=12, margins=(16, 16, 16, 16), within=self._holder)
        frameless_scroll(self, self._holder)
        self._turns = Turns(self)

    @property
    def is_drawn(self) -> bool:
        return not self._turns.is_busy

    def fill(self, cards: Iterable[object]) -> None:
        """Add the cards that an iterator makes: a page of them now, the others in slices."""
        self._turns.begin(self._slices(iter(cards)))

    def _slices(self, cards: Iterator[object]) -> Iterator[None]:
        holder = self._holder
        holder.setMinimumHeight(holder.height() if self.verticalScrollBar().value() else 0)  # stay there
        for place, _ in enumerate(cards, 1):
            if place >= _FIRST_CARDS and place % _CARDS_A_TURN == 0:
                yield
        holder.setMinimumHeight(0)

    def clear(self) -> None:
        self._turns.stop()
        clear_layout(self.cards)

    def show_empty(self, icon: str, title: str, text: str) -> None:
        self.clear()
        self.cards.addStretch(2)
        add_empty_state(self.theme, self.cards, icon, title, text)
        self.cards.addStretch(3)


def add_empty_state(theme: Theme, cards: QVBoxLayout, icon: str, title: str, text: str) -> None:
    cards.addWidget(Glyph(theme, icon, 40), 0, CENTER)
    for words, role in ((title, "strong"), (text, "muted")):
        cards.addWidget(centered_label(words, role))


def centered_label(text: str, role: str) -> QLabel:
    label = plain_label(text, role, wrap=True)
    label.setAlignment(CENTER)
    return label


def card_row(card: QFrame, *parts: Part) -> None:
    card.setProperty("card", True)
    row(*parts, spacing=12, margins=(14, 12, 14, 12), within=card)


def fill_lines(theme: Theme, layout: QVBoxLayout, lines: tuple[str, ...], icon: str, ink: str) -> None:
    """Fill a layout with sentences, an icon before each."""
    clear_layout(layout)
    for line in lines:
        holder, glyph = QWidget(), Glyph(theme, icon, 18, ink=ink)
        words = plain_label(line, wrap=True, selectable=True)
        row((glyph, 0, TOP), (words, 1), spacing=8, margins=NO_MARGINS, within=holder)
        layout.addWidget(holder)
        holder.setVisible(layout.parentWidget() is not None)  # now: a dialog is about to take its size


def page_column(page: QWidget, spacing: int = 8) -> QVBoxLayout:
    return column(spacing=spacing, margins=NO_MARGINS, within=page)
