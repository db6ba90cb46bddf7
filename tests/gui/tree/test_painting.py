from __future__ import annotations

from PySide6.QtWidgets import QWidget

from inspector.gui.tree import painting
from inspector.gui.tree.painting import PaintWaiter
from inspector.overriding import override


class Painted(QWidget):
    def __init__(self, told: list[str]) -> None:
        super().__init__()
        self._told = told

    @override
    def paintEvent(self, event) -> None:
        self._told.append("painted")


def test_what_waits_is_called_once_and_right_after_the_next_paint(qtbot, monkeypatch):
    monkeypatch.setattr(painting, "_UNPAINTED_MS", 1 << 30)
    told: list[str] = []
    widget = Painted(told)
    qtbot.addWidget(widget)
    waiter = PaintWaiter(widget)
    widget.show()
    qtbot.waitExposed(widget)
    told.clear()
    waiter.call(lambda: told.append("first"))
    waiter.call(lambda: told.append("second"))
    assert told == []
    qtbot.waitUntil(lambda: "second" in told)
    assert told == ["painted", "first", "second"]
    widget.repaint()
    qtbot.wait(1)
    assert told == ["painted", "first", "second", "painted"]


def test_what_nobody_sees_keeps_nothing_waiting(qtbot):
    told: list[str] = []
    widget = Painted(told)
    qtbot.addWidget(widget)
    waiter = PaintWaiter(widget)
    waiter.call(lambda: told.append("called"))
    qtbot.waitUntil(lambda: told == ["called"])
    waiter.call(lambda: told.append("forgotten"))
    waiter.forget()
    qtbot.wait(1)
    assert told == ["called"]
