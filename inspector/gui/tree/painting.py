"""What waits for the first paint of the tree."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QWidget

from inspector.overriding import override

_UNPAINTED_MS = 250  # what nobody sees is not painted


class PaintWaiter(QObject):
    """Calls what waits for the next paint of a widget, right after it."""

    def __init__(self, widget: QWidget) -> None:
        super().__init__(widget)
        self._widget = widget
        self._waiting: list[Callable[[], None]] = []

    def call(self, act: Callable[[], None]) -> None:
        """Call something once, after the next paint, or soon if there is none."""
        if not self._waiting:
            self._widget.installEventFilter(self)
        self._waiting.append(act)
        self._widget.update()
        QTimer.singleShot(_UNPAINTED_MS if self._widget.isVisible() else 0, self, self._go_on)

    def forget(self) -> None:
        self._waiting.clear()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() == QEvent.Type.Paint:
            QTimer.singleShot(0, self, self._on_painted)
        return False

    def _on_painted(self) -> None:
        """Wait for one more turn of the event loop: what else came with the paint is done first."""
        QTimer.singleShot(0, self, self._go_on)

    def _go_on(self) -> None:
        self._widget.removeEventFilter(self)
        waiting, self._waiting = self._waiting, []
        for act in waiting:
            act()
