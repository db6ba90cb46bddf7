"""The findings page: what a pasted error means, what was found in the file, and how the GPUs are doing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QFrame, QLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from inspector.gui.theme.theme import Theme, mono_font
from inspector.gui.widgets.boxes import LEFT, MIDDLE, NO_MARGINS, TOP, column, row
from inspector.gui.widgets.cards import ScrollPanel, add_empty_state, card_row
from inspector.gui.widgets.controls import CopyInset, code_field, make_button
from inspector.gui.widgets.labels import (
    ElidedLabel,
    PathButton,
    WrappedText,
    blocked,
    clear_layout,
    describe,
    plain_label,
)
from inspector.gui.widgets.marks import SPOKEN_TONES, ToneGlyph
from inspector.model.findings import Fix
from inspector.report.tree import Tree
from inspector.session.screen import FindingRow, Screen
from inspector.units import cut_text, format_count

# One card of the findings page: what was found, why it matters, the rows it is about, and the fix.

_MOST_LINKS = 4
_MOST_PATCH_LINES = 24
_FIX_ICONS = {"rule": "arrow-right", "option": "copy", "style": "code", "recover": "export"}


def node_label(tree: Tree, node_id: int) -> str:
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


# The field for an error message that is explained for this file.

_PAUSE_MS = 250
_LINES = 6
_HINT = (
    "Paste a traceback, an error message, or the script that loads this file. "
    "It does not leave this computer."
)


class AskBox(QFrame):
    """A button that opens into a field for the text; the answer is a card below it."""

    asked = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__()
        self._told = ""
        self._button = make_button("Paste an error\u2026", self.begin, icon="paste", theme=theme)
        self._button.setToolTip(
            "Find out what an error message means for this file, or which line of a script fails "
            "(Ctrl+Shift+V)"
        )
        self._close = make_button("Clear", self._on_closed, kind="quiet")
        self._hint = plain_label("Got an error message, or a script that fails?", "muted", wrap=True)
        self._text = QPlainTextEdit()
        self._text.setAccessibleName("Error message or script")
        self._text.setPlaceholderText(_HINT)
        self._text.setFont(mono_font(theme.base_points * 0.95))
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.WidgetWidth)
        self._text.setTabChangesFocus(True)
        self._text.setFixedHeight(self._text.fontMetrics().lineSpacing() * _LINES + 20)
        self._text.textChanged.connect(self._on_changed)
        self._pause = QTimer(self, interval=_PAUSE_MS, singleShot=True)
        self._pause.timeout.connect(self._ask)
        head = row((self._hint, 1, MIDDLE), self._close, self._button, spacing=12)
        column(head, self._text, spacing=10, margins=NO_MARGINS, within=self)
        self._show_open(is_open=False)

    def begin(self) -> None:
        """Open the field, with the text on the clipboard in it if that looks like an error message."""
        self._show_open(is_open=True)
        self._text.setFocus(Qt.FocusReason.OtherFocusReason)
        found = QGuiApplication.clipboard().text()
        if not self._text.toPlainText() and ("Error" in found or "torch.load(" in found):
            self._text.setPlainText(found)
            self._text.moveCursor(QTextCursor.MoveOperation.End)  # a traceback ends with the error

    def show_text(self, text: str) -> None:
        told, self._told = self._told, text
        if text:
            self._show_open(is_open=True)
        elif told and told == self._text.toPlainText():  # withdrawn, and not by emptying the field
            self._show_open(is_open=False)
        if self._pause.isActive() or text == self._text.toPlainText():
            return  # the user is typing, and is answered after the pause
        with blocked(self._text):
            self._text.setPlainText(text)

    def _show_open(self, *, is_open: bool) -> None:
        self._text.setVisible(is_open)
        self._close.setVisible(is_open)
        self._button.setVisible(not is_open)

    def _on_changed(self) -> None:
        self._pause.start()

    def _ask(self) -> None:
        self.asked.emit(self._text.toPlainText())

    def _on_closed(self) -> None:
        self._pause.stop()
        with blocked(self._text):
            self._text.setPlainText("")
        self._show_open(is_open=False)
        self.asked.emit("")


_MOST_CARDS = 200


class FindingsPanel(ScrollPanel):
    """Shows the findings as cards, worst first, below the field for an error message."""

    node_wanted = Signal(int)
    fix_wanted = Signal(object)
    open_wanted = Signal(object)
    error_pasted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Findings")
        self._ask = AskBox(theme)
        self._ask.asked.connect(self.error_pasted)
        self._list = column(spacing=12)
        self.cards.addWidget(self._ask)
        self.cards.addLayout(self._list, 1)

    def begin_error(self) -> None:
        self._ask.begin()
        self.verticalScrollBar().setValue(0)

    def show_screen(self, screen: Screen) -> None:
        self._ask.show_text(screen.error_text)
        clear_layout(self._list)
        self.fill(self._add_all(screen))

    def _add_all(self, screen: Screen) -> Iterator[None]:
        if screen.explanation is not None:
            self._add(screen.explanation, screen)
        ails = any(card.tone in {"bad", "warning"} for card in screen.doctor)
        if ails:
            self._add_doctor(screen)
        if screen.explanation is not None or ails:
            self._add_heading("In this file")
        for card in screen.findings[:_MOST_CARDS]:
            self._add(card, screen)
            yield
        left = len(screen.findings) - _MOST_CARDS
        if left > 0:
            self._list.addWidget(
                plain_label(f"{format_count(left, 'more finding')} of the same kinds.", "muted")
            )
        if not screen.findings:
            self._add_nothing()
        if screen.doctor and not ails:
            self._add_doctor(screen)
        self._list.addStretch(1)

    def _add_doctor(self, screen: Screen) -> None:
        self._add_heading("GPUs on the target")
        for card in screen.doctor:
            self._add(card, screen)

    def _add(self, row: FindingRow, screen: Screen) -> None:
        card = FindingCard(self.theme, row, screen.tree)
        card.node_wanted.connect(self.node_wanted)
        card.fix_wanted.connect(self.fix_wanted)
        card.open_wanted.connect(self.open_wanted)
        self._list.addWidget(card)

    def _add_heading(self, text: str) -> None:
        label = plain_label(text, "strong")
        label.setContentsMargins(2, 6, 0, 0)
        self._list.addWidget(label)

    def _add_nothing(self) -> None:
        self._list.addSpacing(24)
        text = "No problems were found in this file for this target."
        add_empty_state(self.theme, self._list, "check", "Nothing to report", text)
