"""What can be pressed, chosen from and read: buttons, drop-down lists, fields of code, notices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from PySide6.QtCore import QSize, Qt, QTimer, SignalInstance
from PySide6.QtGui import QGuiApplication, QPaintEvent, QWheelEvent
from PySide6.QtWidgets import (
    QComboBox,
    QFrame,
    QHBoxLayout,
    QListView,
    QMessageBox,
    QPlainTextEdit,
    QPushButton,
    QSpinBox,
    QStyle,
    QStyleOptionComboBox,
    QStylePainter,
    QTabBar,
    QToolButton,
    QWidget,
)

from inspector.gui.theme.icons import name_icon, set_icon
from inspector.gui.theme.theme import Theme, mono_font
from inspector.gui.widgets.boxes import TOP, row
from inspector.gui.widgets.labels import named
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.session.screen import FailurePage

COPIED_MS = 1600
_ICON_GAP = 6
_NUMBER_LEFT = 8
Slot = Callable[[], object] | SignalInstance


def make_button(
    text: str,
    clicked: Slot | None = None,
    *,
    kind: str = "",
    icon: str = "",
    ink: str = "",
    theme: Theme | None = None,
) -> QPushButton:
    """Make a button; its kind (primary, quiet, link, row) is what the style sheet calls it.

    Without a theme its icon is only named: one that is hidden at first draws it when it is shown.
    """
    button = QPushButton(text.replace("&", "&&"))
    button.setProperty("kind", kind)
    if icon:
        ink = ink or ("on_accent" if kind == "primary" else "muted")
        name_icon(button, icon, ink) if theme is None else set_icon(button, icon, theme.tokens, ink)
    if clicked is not None:
        button.clicked.connect(clicked)
    return button


def icon_button(theme: Theme, icon: str, words: str, clicked: Slot) -> QToolButton:
    """Make a button that is only an icon; its words are in the tooltip."""
    button = named(QToolButton(), spoken=words)
    button.setToolTip(words)
    button.setProperty("kind", "icon")
    set_icon(button, icon, theme.tokens)
    button.clicked.connect(clicked)
    return button


def number_field(spoken: str, least: int, most: int) -> QSpinBox:
    """Make a field of a number; its margin is set here, since Qt ignores that of a style sheet."""
    field = named(QSpinBox(), spoken=spoken)
    field.setRange(least, most)
    field.lineEdit().setTextMargins(_NUMBER_LEFT, 0, 0, 0)
    return field


def button_row(*buttons: QPushButton) -> QHBoxLayout:
    """Lay the buttons of a dialog out at the right; Enter presses the one that has the focus."""
    for button in buttons:
        button.setAutoDefault(True)
    return row(1, *buttons, spacing=8)


def confirm_copied(button: QPushButton, theme: Theme) -> None:
    if button.property("told"):
        return
    text, icon = button.text(), button.property("icon_name")
    ink = button.property("icon_ink")
    button.setProperty("told", True)
    button.setMinimumWidth(button.width())
    button.setText("Copied")
    if icon:
        set_icon(button, "check", theme.tokens, "good")

    def restore() -> None:
        button.setProperty("told", False)
        button.setText(text)
        if icon:
            set_icon(button, icon, theme.tokens, ink)
        button.setMinimumWidth(0)

    QTimer.singleShot(COPIED_MS, button, restore)


class Switch(QTabBar):
    """A few views of one page, side by side; the arrow keys go from one to the next."""

    def __init__(self, names: Sequence[str], *, spoken: str) -> None:
        super().__init__()
        self.setAccessibleName(spoken)
        self.setProperty("kind", "switch")
        self.setDrawBase(False)
        self.setExpanding(False)
        self.setUsesScrollButtons(False)
        for name in names:
            self.addTab(name)


class CopyInset(QFrame):
    """A sunken line with a text that a button copies, and perhaps a caption before it."""

    def __init__(
        self, theme: Theme, shown: QWidget, text: Callable[[], str], words: str, spacing: int = 8
    ) -> None:
        super().__init__()
        self._text = text
        self.setObjectName("inset")
        copy = icon_button(theme, "copy", words, self._on_copy)
        self.row = row((shown, 1), (copy, 0, TOP), spacing=spacing, margins=(12, 8, 8, 8), within=self)

    def _on_copy(self) -> None:
        QGuiApplication.clipboard().setText(self._text())


class CalmComboBox(QComboBox):
    """A drop-down list that the mouse wheel does not change while the page scrolls under it."""

    def __init__(self, *, least: int | None = None) -> None:
        """Make an empty list; `least` is the width to which it may shrink, if not that of its texts."""
        super().__init__()
        self._least = least
        self.setView(QListView())  # the style's own popup ignores the style sheet
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    @override
    def minimumSizeHint(self) -> QSize:
        hint = super().minimumSizeHint()
        return hint if self._least is None else QSize(min(self._least, hint.width()), hint.height())

    @override
    def paintEvent(self, e: QPaintEvent) -> None:
        """Paint the list with its text elided: with a style sheet, Qt cuts it in the middle of a letter."""
        painter, option = QStylePainter(self), QStyleOptionComboBox()
        self.initStyleOption(option)
        field = QStyle.SubControl.SC_ComboBoxEditField
        room = self.style().subControlRect(QStyle.ComplexControl.CC_ComboBox, option, field, self).width()
        if not option.currentIcon.isNull():
            room -= self.iconSize().width() + _ICON_GAP
        elide = Qt.TextElideMode.ElideRight
        option.currentText = self.fontMetrics().elidedText(option.currentText, elide, room)
        painter.drawComplexControl(QStyle.ComplexControl.CC_ComboBox, option)
        painter.drawControl(QStyle.ControlElement.CE_ComboBoxLabel, option)
        painter.end()

    @override
    def wheelEvent(self, e: QWheelEvent) -> None:
        if self.hasFocus():
            super().wheelEvent(e)
        else:
            e.ignore()


def code_field(theme: Theme, spoken: str, scale: float = 1.0) -> QPlainTextEdit:
    """Make a field that shows code or a traceback, without wrapping its lines."""
    field = named(QPlainTextEdit(), spoken=spoken)
    field.setReadOnly(True)
    field.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
    field.setFont(mono_font(theme.base_points * scale))
    field.setTabChangesFocus(True)
    field.setAcceptDrops(False)  # the window takes what is dropped
    field.viewport().setAcceptDrops(False)
    return field


def show_notice(parent: QWidget, failure: FailurePage) -> QMessageBox:
    box = QMessageBox(parent)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.Warning)
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setWindowTitle(failure.title)
    box.setText(f"{failure.title}: {failure.what}")
    box.setInformativeText("\n".join(text for text in (failure.runs, failure.where, failure.remedy) if text))
    box.open()
    return box
