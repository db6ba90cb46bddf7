"""The findings page: what a pasted error means, what was found in the file, and how the GPUs are doing."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication, QTextCursor
from PySide6.QtWidgets import QApplication, QFrame, QLayout, QPlainTextEdit, QPushButton, QVBoxLayout, QWidget

from inspector.gui.theme.icons import set_icon
from inspector.gui.theme.theme import Theme, mono_font
from inspector.gui.widgets.boxes import LEFT, MIDDLE, NO_MARGINS, TOP, column, row
from inspector.gui.widgets.cards import ScrollPanel, add_empty_state, card_row
from inspector.gui.widgets.controls import CopyInset, code_field, confirm_copied, make_button
from inspector.gui.widgets.flow import FlowLayout
from inspector.gui.widgets.labels import (
    PathButton,
    WrappedText,
    blocked,
    clear_layout,
    describe,
    plain_label,
)
from inspector.gui.widgets.marks import SPOKEN_TONES, ToneGlyph
from inspector.report.tree import Tree
from inspector.session.screen import FindingRow, Screen
from inspector.units import cut_text, format_count

# One card of the findings page: what was found, why it matters, how to see the rows it is about, and the fix.

_MOST_PATCH_LINES = 24
_FIX_ICONS = {"rule": "arrow-right", "option": "copy", "style": "code", "recover": "export"}
_MORE, _LESS = "More", "Less"


def node_label(tree: Tree, node_id: int) -> str:
    names: list[str] = []
    while node_id > 0:
        node = tree.nodes[node_id]
        if node.kind != "bucket":
            names.append(node.name)
        node_id = node.parent
    return " / ".join(reversed(names))


class FindingCard(QFrame):
    """Shows a `FindingRow`: one button does what helps; what helps elsewhere stands behind another."""

    node_wanted = Signal(int)
    query_wanted = Signal(str)
    fix_wanted = Signal(object)
    open_wanted = Signal(object)  # a path in a Signal(str) would lose the bytes that are no UTF-8

    def __init__(self, theme: Theme, finding: FindingRow, tree: Tree | None) -> None:
        super().__init__()
        self._theme = theme
        self.setAccessibleName(f"{SPOKEN_TONES[finding.tone]}: {finding.title}")
        words = column(plain_label(finding.title, "strong", wrap=True, selectable=True), spacing=6)
        if finding.detail:
            words.addWidget(plain_label(finding.detail, "muted", wrap=True, selectable=True))
        if tree is not None and finding.nodes and not _is_search(finding):
            words.addWidget(self._build_link(finding.nodes[0], tree), 0, LEFT)
        foot, lines = FlowLayout(spacing=8), QWidget()
        for button in self._build_buttons(finding, lines):
            foot.addWidget(button)
        if foot.count():
            words.addLayout(foot)
        if finding.lines:
            shown = [self._build_line(caption, text) for caption, text in finding.lines]
            column(*shown, spacing=6, margins=NO_MARGINS, within=lines)
            words.addWidget(lines)
        for caption, text in finding.facts:
            words.addLayout(_build_fact(caption, text))
        if finding.steps:
            words.addWidget(self._build_steps(finding.steps))
        if finding.patch:
            words.addWidget(self._build_patch(finding.patch))
        card_row(self, (ToneGlyph(theme, 24, finding.tone), 0, TOP), (words, 1))

    def _build_buttons(self, finding: FindingRow, lines: QWidget) -> Iterator[QPushButton]:
        kind = "primary" if finding.tone == "bad" else ""
        if finding.opens:
            wanted = partial(self.open_wanted.emit, finding.opens)
            plain = "" if finding.is_note else "primary"
            yield make_button(finding.opening, wanted, kind=plain, icon="open", theme=self._theme)
        fix = finding.fix
        if fix is not None and finding.button:
            icon = "copy" if finding.copies else "export" if finding.exports else _FIX_ICONS[fix.kind]
            text = cut_text(finding.button, 48)
            button = make_button(text, kind=kind, icon=icon, theme=self._theme)
            button.clicked.connect(partial(self._on_fix, button, finding))
            describe(button, finding.copies or fix.label)
            yield button
        if finding.lines:
            spoken = f"Code for: {finding.title}"
            yield fold_button(self._theme, lines, (_MORE, _LESS), spoken=spoken)
        if _is_search(finding):
            words = f"Show the {format_count(finding.count, 'tensor')}"
            yield make_button(words, partial(self.query_wanted.emit, finding.query), kind="link")

    def _on_fix(self, button: QPushButton, finding: FindingRow) -> None:
        self.fix_wanted.emit(finding)
        if finding.copies:
            confirm_copied(button, self._theme)

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

    def _build_link(self, node_id: int, tree: Tree) -> QPushButton:
        path = node_label(tree, node_id)
        link = PathButton(path, partial(self.node_wanted.emit, node_id))
        link.setCursor(Qt.CursorShape.PointingHandCursor)
        link.setAccessibleName(f"Select {path}")
        return link


def _is_search(finding: FindingRow) -> bool:
    """Return whether a search shows the rows of a finding: a single one is selected."""
    return finding.count > 1 and bool(finding.query)


def _build_fact(caption: str, text: str) -> QLayout:
    return column(plain_label(caption, "section"), plain_label(text, wrap=True, selectable=True), spacing=1)


def fold_button(
    theme: Theme, part: QWidget, texts: tuple[str, str], *, spoken: str, is_open: bool = False
) -> QPushButton:
    """Make a button that shows and hides a part; its texts are for a folded and for an unfolded one."""
    button = make_button(texts[0], kind="quiet")
    button.setCheckable(True)
    button.setAccessibleName(spoken)

    def show(is_open: bool) -> None:  # noqa: FBT001 - a signal's argument
        part.setVisible(is_open)
        tell(is_open)

    def tell(is_open: bool) -> None:  # noqa: FBT001 - as above
        button.setText(texts[is_open])
        set_icon(button, "chevron-up" if is_open else "chevron-down", theme.tokens)

    button.setChecked(is_open)
    tell(is_open)
    if not is_open:
        part.hide()  # and what is open is not shown yet: it has no parent and would be a window
    button.toggled.connect(show)
    return button


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
    opened = Signal(bool)

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

    @property
    def last_stop(self) -> QWidget:
        """What Tab goes on from to what stands below."""
        return self._button if self._text.isHidden() else self._text

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
        self.opened.emit(is_open)

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
    """Shows the findings as cards, worst first, below the field for an error message; notes are folded."""

    node_wanted = Signal(int)
    query_wanted = Signal(str)
    fix_wanted = Signal(object)
    open_wanted = Signal(object)
    error_pasted = Signal(str)

    def __init__(self, theme: Theme) -> None:
        super().__init__(theme, "Findings")
        self._unfolded = False
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
        focused = QApplication.focusWidget()
        if focused is not None and self.isAncestorOf(focused) and not self._ask.isAncestorOf(focused):
            self._ask.last_stop.setFocus()  # or the first button of the window would have it
        clear_layout(self._list)
        self.fill(self._add_all(screen))

    def _add_all(self, screen: Screen) -> Iterator[None]:
        if screen.explanation is not None:
            self._add(self._list, screen.explanation, screen)
        ailing = [card for card in screen.doctor if not card.is_note]
        if ailing:
            self._add_doctor(screen, ailing)
        if screen.explanation is not None or ailing:
            self._add_heading("In this file")
        cards = [card for card in screen.findings if not card.is_note]
        for card in cards[:_MOST_CARDS]:
            self._add(self._list, card, screen)
            yield
        left = len(cards) - _MOST_CARDS
        if left > 0:
            self._list.addWidget(
                plain_label(f"{format_count(left, 'more finding')} of the same kinds.", "muted")
            )
        if not cards:
            self._add_nothing()
        self._add_notes(screen, is_open=not cards)
        self._list.addStretch(1)

    def _add_doctor(self, screen: Screen, ailing: list[FindingRow]) -> None:
        self._add_heading("GPUs on the target")
        for card in ailing:
            self._add(self._list, card, screen)

    def _add_notes(self, screen: Screen, *, is_open: bool) -> None:
        """Add what is good to know and asks for nothing, folded where something else does."""
        notes = [card for card in (*screen.findings, *screen.doctor) if card.is_note][:_MOST_CARDS]
        if not notes:
            return
        holder = QWidget()
        layout = column(spacing=12, margins=NO_MARGINS, within=holder)
        for card in notes:
            self._add(layout, card, screen)
        text = f"Good to know ({len(notes)})"
        button = fold_button(self.theme, holder, (text, text), spoken=text, is_open=is_open or self._unfolded)
        button.toggled.connect(self._on_notes)
        self._list.addWidget(button, 0, LEFT)
        self._list.addWidget(holder)

    def _on_notes(self, is_open: bool) -> None:  # noqa: FBT001 - a signal's argument
        self._unfolded = is_open

    def _add(self, layout: QVBoxLayout, row: FindingRow, screen: Screen) -> None:
        card = FindingCard(self.theme, row, screen.tree)
        card.node_wanted.connect(self.node_wanted)
        card.query_wanted.connect(self.query_wanted)
        card.fix_wanted.connect(self.fix_wanted)
        card.open_wanted.connect(self.open_wanted)
        layout.addWidget(card)

    def _add_heading(self, text: str) -> None:
        label = plain_label(text, "strong")
        label.setContentsMargins(2, 6, 0, 0)
        self._list.addWidget(label)

    def _add_nothing(self) -> None:
        self._list.addSpacing(24)
        text = "No problems were found in this file for this target."
        add_empty_state(self.theme, self._list, "check", "Nothing to report", text)
        self._list.addSpacing(24)
