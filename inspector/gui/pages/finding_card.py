"""One card of the findings page: what was found, why it matters, the rows it is about, and the fix."""

from __future__ import annotations

from functools import partial

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLayout, QPushButton, QVBoxLayout, QWidget

from inspector.gui.theme.theme import Theme
from inspector.gui.widgets.boxes import LEFT, NO_MARGINS, TOP, column, row
from inspector.gui.widgets.cards import card_row
from inspector.gui.widgets.controls import CopyInset, code_field, make_button
from inspector.gui.widgets.labels import ElidedLabel, PathButton, WrappedText, describe, plain_label
from inspector.gui.widgets.marks import SPOKEN_TONES, ToneGlyph
from inspector.report.tree import Tree
from inspector.session.screen import FindingRow, Fix
from inspector.units import cut_text

_MOST_LINKS = 4
_MOST_PATCH_LINES = 24
_FIX_ICONS = {"rule": "arrow-right", "option": "copy", "style": "code", "recover": "export"}


def node_label(tree: Tree, node_id: int) -> str:
    """Return the names from the root down to a node, as a label."""
    names: list[str] = []
    while node_id > 0:
        node = tree.nodes[node_id]
        if node.kind != "bucket":
            names.append(node.name)
        node_id = node.parent
    return " / ".join(reversed(names))


class FindingCard(QFrame):
    """Shows a `FindingRow`; a click on a row's name selects it in the tree."""

    node_wanted = Signal(int)
    fix_wanted = Signal(object)
    open_wanted = Signal(object)  # a path in a Signal(str) would lose the bytes that are no UTF-8

    def __init__(self, theme: Theme, finding: FindingRow, tree: Tree | None) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName(f"{SPOKEN_TONES[finding.tone]}: {finding.title}")
        words = column(plain_label(finding.title, "strong", wrap=True, selectable=True), spacing=6)
        if finding.detail:
            words.addWidget(plain_label(finding.detail, "muted", wrap=True, selectable=True))
        for caption, text in finding.facts:
            words.addLayout(_build_fact(caption, text))
        if finding.steps:
            words.addWidget(self._build_steps(finding.steps))
        for caption, text in finding.lines:
            words.addLayout(self._build_line(caption, text))
        if finding.patch:
            words.addWidget(self._build_patch(finding.patch))
        if tree is not None and finding.nodes:
            words.addWidget(self._build_links(finding, tree))
        words.addLayout(self._build_foot(finding))
        card_row(self, (ToneGlyph(theme, 24, finding.tone), 0, TOP), (words, 1))

    def _build_foot(self, finding: FindingRow) -> QLayout:
        foot = row((ElidedLabel(finding.id, "small"), 1), spacing=8)
        if finding.opens:
            wanted = partial(self.open_wanted.emit, finding.opens)
            foot.addWidget(make_button("Open the whole checkpoint", wanted, icon="open", theme=self._theme))
        if finding.fix is not None:
            foot.addWidget(self._build_fix(finding.fix))
        return foot

    def _build_fix(self, fix: Fix) -> QPushButton:
        text = fix.label
        if fix.option is not None:
            text = f"Copy {fix.option[0]}={fix.option[1]}"
        wanted = partial(self.fix_wanted.emit, fix)
        button = make_button(cut_text(text, 48), wanted, icon=_FIX_ICONS[fix.kind], theme=self._theme)
        describe(button, fix.label)
        return button

    def _build_steps(self, steps: tuple[str, ...]) -> QFrame:
        text = "\n".join(steps)
        shown = WrappedText(text)
        shown.setAccessibleName("What to do")
        return CopyInset(self._theme, shown, lambda: text, "Copy these steps")

    def _build_patch(self, patch: str) -> QFrame:
        shown = code_field(self._theme, "Patch", 0.95)
        shown.setObjectName("patch")
        shown.setPlainText(patch.rstrip("\n"))
        lines = min(shown.document().blockCount(), _MOST_PATCH_LINES) + 1  # one for the scroll bar
        shown.setFixedHeight(lines * shown.fontMetrics().lineSpacing() + 24)
        return CopyInset(self._theme, shown, lambda: patch, "Copy the patch")

    def _build_line(self, caption: str, text: str) -> QLayout:
        shown = WrappedText(text)
        shown.setAccessibleName(caption.rstrip(":"))
        inset = CopyInset(self._theme, shown, lambda: text, "Copy this line")
        return column(plain_label(caption, "small", wrap=True), inset, spacing=2)

    def _build_links(self, finding: FindingRow, tree: Tree) -> QWidget:
        holder = QWidget()
        links = column(spacing=0, margins=NO_MARGINS, within=holder)
        for place, node_id in enumerate(finding.nodes):
            path = node_label(tree, node_id)
            link = PathButton(path, partial(self.node_wanted.emit, node_id))
            link.setCursor(Qt.CursorShape.PointingHandCursor)
            link.setAccessibleName(f"Select {path}")
            link.setVisible(place < _MOST_LINKS)
            links.addWidget(link, 0, LEFT)
        if len(finding.nodes) > _MOST_LINKS:
            links.addWidget(_build_more(holder, links, len(finding.nodes), finding.count))
        return holder


def _build_fact(caption: str, text: str) -> QLayout:
    return column(plain_label(caption, "section"), plain_label(text, wrap=True, selectable=True), spacing=1)


def _build_more(holder: QWidget, links: QVBoxLayout, listed: int, count: int) -> QPushButton:
    """Make the button that shows the other links, and says how many; of how many, if it does not show all."""
    hidden, others = listed - _MOST_LINKS, max(count, listed) - _MOST_LINKS
    share = f"{hidden}" if hidden == others else f"{hidden} of {others:,}"
    more = make_button(f"Show {share} more", kind="link")

    def show_all() -> None:
        for link in holder.findChildren(QPushButton):
            link.setVisible(link is not more)
        if others > hidden:
            links.addWidget(plain_label(f"The first {listed} of {count:,}", "small"))

    more.clicked.connect(show_all)
    return more
