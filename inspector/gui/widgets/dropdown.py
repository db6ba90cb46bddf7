"""What opens below a button and closes again at Escape or a click elsewhere: a panel, a menu of devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, QRect, Qt, Signal
from PySide6.QtGui import QHideEvent, QMouseEvent
from PySide6.QtWidgets import QAbstractButton, QFrame, QMenu, QScrollArea, QWidget

from inspector.gui.widgets.boxes import NO_MARGINS, column
from inspector.gui.widgets.cards import frameless_scroll
from inspector.gui.widgets.labels import named, set_state
from inspector.overriding import override

if TYPE_CHECKING:
    from inspector.session.controller import Session

_GAP = 4
_SIDE = 10
_FRAME = 2


class Dropdown(QFrame):
    """Shows a content below a button that is pressed while it is open."""

    about_to_show = Signal()

    def __init__(self, button: QAbstractButton, spoken: str, *, width: int) -> None:
        super().__init__(button, Qt.WindowType.Popup)
        self._button = button
        self._content: QWidget | None = None
        self._width = width
        self.setObjectName("dropdown")
        self.setAccessibleName(spoken)
        self.setWindowTitle(spoken)
        button.clicked.connect(self._on_clicked)

    def fill(self, content: QWidget) -> None:
        """Take the content; it is only made when the panel is opened for the first time."""
        self._content = named(content, "scrolled")
        scroll = frameless_scroll(QScrollArea(), content)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        column(scroll, margins=NO_MARGINS, within=self)

    def open(self) -> None:
        set_state(self._button, "open", "true")
        self.about_to_show.emit()
        self.ensurePolished()
        area = self._button.screen().availableGeometry()
        window = self._button.window()
        width = min(self._width, window.width() - 2 * _SIDE, area.width())
        below = self._button.mapToGlobal(QPoint(0, self._button.height() + _GAP))
        left = window.mapToGlobal(QPoint(0, 0)).x()
        place = max(left + _SIDE, min(below.x(), left + window.width() - width - _SIDE))
        height = min(self._height_for(width), max(area.bottom() - below.y(), area.height() // 3))
        self.setGeometry(QRect(place, below.y(), width, height))
        self.show()
        next(iter(_focusable(self)), self).setFocus(Qt.FocusReason.PopupFocusReason)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        over = QRect(self._button.mapToGlobal(QPoint(0, 0)), self._button.size())
        # The press that closes the panel must not open it again.
        self.setAttribute(
            Qt.WidgetAttribute.WA_NoMouseReplay, over.contains(event.globalPosition().toPoint())
        )
        super().mousePressEvent(event)

    @override
    def hideEvent(self, event: QHideEvent) -> None:
        super().hideEvent(event)
        set_state(self._button, "open", "false")

    def _height_for(self, width: int) -> int:
        inner = width - _FRAME
        layout = self._content.layout() if self._content is not None else None
        if layout is not None and layout.hasHeightForWidth():
            return layout.totalHeightForWidth(inner) + _FRAME
        return self.sizeHint().height()

    def _on_clicked(self) -> None:
        if self.isVisible():
            self.hide()
        else:
            self.open()


def _focusable(root: QWidget) -> list[QWidget]:
    found = [
        each
        for each in root.findChildren(QWidget)
        if each.focusPolicy() & Qt.FocusPolicy.TabFocus and each.isVisibleTo(root) and each.isEnabled()
    ]
    return sorted(
        found, key=lambda each: (each.mapTo(root, QPoint(0, 0)).y(), each.mapTo(root, QPoint(0, 0)).x())
    )


class MapMenu(QMenu):
    """Where all tensors can be sent at once, or why nowhere."""

    all_chosen = Signal(str)
    as_saved_wanted = Signal()
    suggested_wanted = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__("Map &all to", parent)

    def connect_to(self, session: Session) -> None:
        self.all_chosen.connect(session.map_all)
        self.as_saved_wanted.connect(session.map_as_saved)
        self.suggested_wanted.connect(session.map_as_suggested)

    def show_choices(self, choices: tuple[str, ...], why: str) -> None:
        """Show the devices; without any, why there are none."""
        self.clear()
        for choice in choices:
            self.addAction(choice.replace("&", "&&")).triggered.connect(
                lambda _=False, to=choice: self.all_chosen.emit(to)
            )
        if not choices:
            self.addAction(why.replace("&", "&&")).setEnabled(False)
            return
        self.addSeparator()
        self.addAction("Where each was &saved").triggered.connect(self.as_saved_wanted)
        self.addAction("As s&uggested for the machine").triggered.connect(self.suggested_wanted)
