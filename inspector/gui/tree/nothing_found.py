"""What stands over the tree when a search finds nothing: the word that is no good, and a way out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QFrame

from inspector.gui.widgets.boxes import column, row
from inspector.gui.widgets.controls import make_button
from inspector.gui.widgets.labels import describe, named, plain_label
from inspector.units import cut_text

if TYPE_CHECKING:
    from inspector.session.screen import SearchPage

_WIDTH = 440
_MOST_QUERY = 30


class NothingFound(QFrame):
    """A card with the reason, and buttons for the query that was meant and for none."""

    query_wanted = Signal(str)
    end_wanted = Signal()

    def __init__(self) -> None:
        super().__init__()
        named(self, "nothingFound", spoken="Nothing found")
        self._instead = ""
        self._why = plain_label("", wrap=True, selectable=True)
        self._search = make_button("Search", self._on_search, kind="primary")
        self._end = make_button("Clear", self.end_wanted.emit)
        describe(self._end, "End the search and show all rows again")
        title = plain_label("Nothing found", "strong")
        buttons = row(self._search, self._end, 1, spacing=8)
        self._box = column(title, self._why, buttons, spacing=8, margins=(16, 14, 16, 14), within=self)
        self.fit(_WIDTH)
        self.hide()

    def show_search(self, page: SearchPage | None) -> None:
        """Show why a search found nothing, or nothing."""
        self.setVisible(page is not None and bool(page.why))
        if page is None:
            return
        self._why.setText(page.why)
        self.setAccessibleDescription(page.why)
        self._instead = page.instead
        self._search.setText(f"Search {cut_text(page.instead, _MOST_QUERY)}".replace("&", "&&"))
        self._search.setVisible(bool(page.instead))
        self.fit(self.width())

    def fit(self, width: int) -> None:
        """Take a width, and the height that the reason needs in it."""
        width = min(width, _WIDTH)
        self._box.activate()
        height = max(self._box.totalHeightForWidth(width), self._box.totalSizeHint().height())
        self.setFixedSize(width, height)

    def _on_search(self) -> None:
        self.query_wanted.emit(self._instead)
