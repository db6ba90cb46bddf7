"""Labels for untrusted text: always plain, cut where they must be, complete in the tooltip."""

from __future__ import annotations

import math
import re
from bisect import bisect_left
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

from PySide6.QtCore import QEvent, QObject, QSignalBlocker, QSize, Qt
from PySide6.QtGui import (
    QFontMetrics,
    QFontMetricsF,
    QPainter,
    QPaintEvent,
    QResizeEvent,
    QTextLayout,
    QTextOption,
    QWheelEvent,
)
from PySide6.QtWidgets import (
    QFrame,
    QLabel,
    QLayout,
    QPushButton,
    QSizePolicy,
    QStatusBar,
    QTextEdit,
    QWidget,
)

from inspector.overriding import override

AnyWidget = TypeVar("AnyWidget", bound=QWidget)
_WRAPPED_WIDTH = 240
DOTS = "\u2026"
_LEAST_WIDTH = 40
_SHORT_TIP = 48
"""Qt would break even such a tooltip, to make it less wide."""
_STEP = re.compile(r"\.| / |/")
_SELECTABLE = Qt.TextInteractionFlag.TextSelectableByMouse | Qt.TextInteractionFlag.TextSelectableByKeyboard


@contextmanager
def blocked(*objects: QObject) -> Iterator[None]:
    blockers = [QSignalBlocker(thing) for thing in objects]
    try:
        yield
    finally:
        for blocker in blockers:
            blocker.unblock()


@contextmanager
def focus_kept(*widgets: QWidget) -> Iterator[None]:
    """Hand the keyboard on to the first of some widgets that is left, if the one that has it is hidden.

    Qt would hand it to what comes next in the window, which may be far away.
    """
    had_focus = any(widget.hasFocus() for widget in widgets)
    yield
    left = [widget for widget in widgets if not widget.isHidden()]
    if had_focus and left and not any(widget.hasFocus() for widget in left):
        left[0].setFocus()


def named(widget: AnyWidget, name: str = "", *, spoken: str = "") -> AnyWidget:
    if name:
        widget.setObjectName(name)
    if spoken:
        widget.setAccessibleName(spoken)
    return widget


def bare_text(text: str) -> str:
    """Return the text of an action as it is read: without the mark of its letter."""
    return text.replace("&&", "\0").replace("&", "").replace("\0", "&").rstrip("\u2026")


def sentence(text: str) -> str:
    """Return an error's text as a sentence: it is worded to stand within a line."""
    if not text:
        return ""
    return text[0].upper() + text[1:] + ("" if text[-1] in ".!?:" else ".")


def plain_tooltip(text: str) -> str:
    """Return a tooltip that shows the text as it is; Qt would read `<b>` in it as markup."""
    inert = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    space = "pre" if len(text) <= _SHORT_TIP else "pre-wrap"
    return f'<p style="white-space: {space}">{inert}</p>' if text else ""


def describe(widget: QWidget, text: str) -> None:
    """Set what is said of a widget in its tooltip, and to screen readers: they would be read the markup."""
    widget.setToolTip(plain_tooltip(text))
    widget.setAccessibleDescription(text)


def plain_label(text: str = "", role: str = "", *, wrap: bool = False, selectable: bool = False) -> QLabel:
    """Make a label of plain text; the style sheet knows its `role`."""
    label = QLabel()
    label.setTextFormat(Qt.TextFormat.PlainText)
    label.setText(text)
    label.setWordWrap(wrap)
    if wrap:
        label.setAlignment(Qt.AlignmentFlag.AlignTop | Qt.AlignmentFlag.AlignLeft)
    if role:
        label.setProperty("role", role)
    if selectable:
        label.setTextInteractionFlags(_SELECTABLE)
    return label


def set_state(widget: QWidget, name: str, value: str) -> None:
    if widget.property(name) == value:
        return
    widget.setProperty(name, value)
    if not widget.testAttribute(Qt.WidgetAttribute.WA_WState_Polished):
        return  # the sheet is applied when it is first shown
    for part in (widget, *widget.findChildren(QWidget)):
        part.style().unpolish(part)
        part.style().polish(part)


def clear_layout(layout: QLayout) -> None:
    while (item := layout.takeAt(0)) is not None:
        widget = item.widget()
        if widget is not None:
            widget.setParent(None)
            widget.deleteLater()


class WrappedText(QTextEdit):
    """Plain text that can be broken anywhere: paths, hashes and names without a space.

    A label breaks at spaces only, and zero-width spaces in it would be copied along.
    """

    def __init__(self, text: str = "", role: str = "") -> None:
        super().__init__()
        self.setReadOnly(True)
        self.setAcceptRichText(False)
        self.setProperty("role", role)
        self.setObjectName("wrappedText")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        self.setFocusPolicy(Qt.FocusPolicy.ClickFocus)
        self.setTabChangesFocus(True)
        self.setAcceptDrops(False)
        self.viewport().setAcceptDrops(False)
        self.document().setDocumentMargin(0)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Preferred)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.setText(text)

    @override
    def setText(self, text: str) -> None:
        self.setPlainText(text)
        self.updateGeometry()

    @override
    def heightForWidth(self, arg__1: int) -> int:
        height = 0.0
        for paragraph in self.toPlainText().split("\n"):
            layout = QTextLayout(paragraph, self.font())
            layout.setTextOption(QTextOption(self.document().defaultTextOption()))
            layout.beginLayout()
            while (line := layout.createLine()).isValid():
                line.setLineWidth(arg__1)
                height += line.height()
            layout.endLayout()
        return math.ceil(height) + 1

    @override
    def sizeHint(self) -> QSize:
        return QSize(_WRAPPED_WIDTH, self.heightForWidth(_WRAPPED_WIDTH))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(40, self.fontMetrics().lineSpacing())

    @override
    def wheelEvent(self, e: QWheelEvent) -> None:
        e.ignore()  # the page around it scrolls

    @override
    def changeEvent(self, e: QEvent) -> None:
        super().changeEvent(e)
        if e.type() in (QEvent.Type.FontChange, QEvent.Type.StyleChange):
            self.updateGeometry()


class ElidedLabel(QLabel):
    """One line of plain text that is elided to fit; the tooltip has all of it."""

    def __init__(
        self, text: str = "", role: str = "", mode: Qt.TextElideMode = Qt.TextElideMode.ElideRight
    ) -> None:
        super().__init__()
        self._mode = mode
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Fixed)
        if role:
            self.setProperty("role", role)
        self.setText(text)

    @override
    def setText(self, text: str) -> None:
        super().setText(text)
        self.setAccessibleName(text)
        self._refresh_tooltip()

    @override
    def sizeHint(self) -> QSize:
        """Return the size of the whole text; Qt's own is rounded down where pixels are halves of points."""
        hint = super().sizeHint()
        needed = math.ceil(QFontMetricsF(self.font()).horizontalAdvance(self.text()))
        return QSize(max(hint.width(), needed), hint.height())

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(24, super().minimumSizeHint().height())

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._refresh_tooltip()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        text = self.fontMetrics().elidedText(self.text(), self._mode, self.width())
        area, ink = self.contentsRect(), self.foregroundRole()
        self.style().drawItemText(
            painter, area, int(self.alignment()), self.palette(), self.isEnabled(), text, ink
        )
        painter.end()

    def _refresh_tooltip(self) -> None:
        cut = self.fontMetrics().horizontalAdvance(self.text()) > self.width()
        self.setToolTip(plain_tooltip(self.text()) if cut else "")
        self.setAccessibleDescription(self.text() if cut else "")  # or it would be the markup of the tooltip


def cut_path(path: str, metrics: QFontMetrics | QFontMetricsF, room: float) -> str:
    """Return a path cut to a width: without its first steps, since its last ones tell it from others.

    A single name loses its middle; its ends may be a number or a kind.
    """
    if metrics.horizontalAdvance(path) <= room:
        return path
    ends = [DOTS + path[step.start() if " " in step[0] else step.end() :] for step in _STEP.finditer(path)]
    place = _first_fitting(ends, metrics.horizontalAdvance, room)
    return metrics.elidedText(path, Qt.TextElideMode.ElideMiddle, int(room)) if place is None else ends[place]


def _first_fitting(texts: list[str], measure: Callable[[str], float], room: float) -> int | None:
    """Return the first of some texts that fits: each is shorter than the one before."""
    place = bisect_left(texts, True, key=lambda text: measure(text) <= room)
    return place if place < len(texts) else None


class PathButton(QPushButton):
    """A link with a path on it, cut as the room requires; all of it is in the tooltip."""

    def __init__(self, path: str, clicked: Callable[[], object]) -> None:
        super().__init__()
        self._path = ""
        self.setProperty("kind", "link")
        self.setMinimumWidth(_LEAST_WIDTH)
        self.show_path(path)
        self.clicked.connect(clicked)

    def show_path(self, path: str, more: str = "") -> None:
        """Show another path; `more` stands below it in the tooltip."""
        self._path = path
        describe(self, "\n".join(filter(None, (path, more))))
        self._cut()

    def _cut(self) -> None:
        room = self.width() - self._frame(super().sizeHint())
        text = _inert(cut_path(self._path, self.fontMetrics(), room))
        if text != self.text():
            self.setText(text)

    @override
    def sizeHint(self) -> QSize:
        hint = super().sizeHint()
        return QSize(self.fontMetrics().horizontalAdvance(self._path) + self._frame(hint), hint.height())

    def _frame(self, hint: QSize) -> int:
        return hint.width() - self.fontMetrics().horizontalAdvance(self.text().replace("&&", "&"))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._cut()


def _inert(text: str) -> str:
    return text.replace("&", "&&")


class StatusLine(QStatusBar):
    """Shows the status of a screen; its first text is the one that may be elided, and may be clicked."""

    def __init__(self, clicked: Callable[[], object] | None = None, hint: str = "") -> None:
        super().__init__()
        self._hint = hint
        self._path: ElidedLabel | PathButton
        if clicked is None:
            self._path = ElidedLabel("", mode=Qt.TextElideMode.ElideMiddle)
        else:
            self._path = named(PathButton("", clicked), spoken=bare_text(hint))
            self._path.setProperty("kind", "path")
        self._facts = plain_label("")
        self.undo = QPushButton("Changed in place: undo")
        self.undo.setProperty("kind", "link")
        describe(self.undo, "Restore the file as it was, bit for bit, from the record beside it")
        self.undo.hide()
        self.setSizeGripEnabled(False)
        self.setContentsMargins(12, 0, 12, 0)
        self.addWidget(self._path, 1)
        self.addPermanentWidget(self.undo)
        self.addPermanentWidget(self._facts)

    def show_status(self, status: tuple[str, ...]) -> None:
        first = status[0] if status else ""
        if isinstance(self._path, PathButton):
            self._path.setVisible(bool(first))
            self._path.show_path(first, self._hint)
        else:
            self._path.setText(first)
        self._facts.setText("   \u00b7   ".join(status[1:]))
