"""The findings, worst first: what was found, why it matters, and the rows it speaks of."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from inspector.gui.icons import Glyph
from inspector.gui.labels import named, plain_label, plain_tooltip
from inspector.gui.panels import ScrollPanel
from inspector.gui.theme import Theme
from inspector.report.tree import Tree
from inspector.session.screen import FindingRow, Screen
from inspector.units import cut_text

_MOST_CARDS = 200
_MOST_LINKS = 4
_SPOKEN = {"good": "Good", "bad": "Problem", "warning": "Warning", "neutral": "Note"}


def node_path(tree: Tree, node_id: int) -> str:
    """Give the names from the root down to a node, for people to read."""
    names: list[str] = []
    while node_id > 0:
        node = tree.nodes[node_id]
        if node.kind != "bucket":
            names.append(node.name)
        node_id = node.parent
    return " / ".join(reversed(names))


class FindingsPanel(ScrollPanel):
    """Shows the findings as cards; a click on a row's name selects it in the tree."""

    node_wanted = Signal(int)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Findings")

    def show_screen(self, screen: Screen) -> None:
        """Show the findings of a screen."""
        if not screen.findings:
            text = "No trouble was found in this file for this target."
            self.show_empty("check", "Nothing to report", text)
            return
        self.clear()
        for finding in screen.findings[:_MOST_CARDS]:
            self.cards.addWidget(self._build_card(finding, screen.tree))
        left = len(screen.findings) - _MOST_CARDS
        if left > 0:
            self.cards.addWidget(plain_label(f"{left:,} more findings of the same kinds.", "muted"))
        self.cards.addStretch(1)

    def _build_card(self, finding: FindingRow, tree: Tree | None) -> QFrame:
        card = named(QFrame(), spoken=f"{_SPOKEN[finding.tone]}: {finding.title}")
        card.setProperty("card", True)
        words = QVBoxLayout()
        words.setSpacing(4)
        words.addWidget(plain_label(finding.title, "strong", wrap=True, selectable=True))
        words.addWidget(plain_label(finding.detail, "muted", wrap=True, selectable=True))
        if tree is not None and finding.nodes:
            words.addWidget(self._build_links(finding, tree))
        words.addWidget(plain_label(finding.id, "small", selectable=True))
        row = QHBoxLayout(card)
        row.setContentsMargins(14, 12, 14, 12)
        row.setSpacing(12)
        fill = f"{finding.tone}_fill"
        glyph = Glyph(self.theme, f"tone-{finding.tone}", 24, ink="on_fill", fill=fill)
        row.addWidget(glyph, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        return card

    def _build_links(self, finding: FindingRow, tree: Tree) -> QWidget:
        holder = QWidget()
        column = QVBoxLayout(holder)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        for place, node_id in enumerate(finding.nodes):
            path = node_path(tree, node_id)
            link = QPushButton(_cut_middle(path).replace("&", "&&"))
            link.setProperty("kind", "link")
            link.setCursor(Qt.CursorShape.PointingHandCursor)
            link.setAccessibleName(f"Select {path}")
            link.setToolTip(plain_tooltip(path))
            link.clicked.connect(partial(self.node_wanted.emit, node_id))
            link.setVisible(place < _MOST_LINKS)
            column.addWidget(link, 0, Qt.AlignmentFlag.AlignLeft)
        if len(finding.nodes) > _MOST_LINKS:
            column.addWidget(self._build_more(holder, len(finding.nodes) - _MOST_LINKS))
        return holder

    def _build_more(self, holder: QWidget, count: int) -> QPushButton:
        more = QPushButton(f"Show {count} more")
        more.setProperty("kind", "link")

        def show_all() -> None:
            for link in holder.findChildren(QPushButton):
                link.setVisible(link is not more)

        more.clicked.connect(show_all)
        return more


def _cut_middle(path: str, most: int = 56) -> str:
    if len(path) <= most:
        return path
    return cut_text(path, most // 2) + path[-(most - most // 2) :]
