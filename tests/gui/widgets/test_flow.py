from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QWidget

from inspector.gui.widgets.flow import FlowLayout


def test_what_has_no_room_goes_to_the_next_line(qtbot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    layout = FlowLayout(holder, spacing=10)
    parts = [QWidget() for _ in range(5)]
    for part in parts:
        part.setFixedSize(40, 20)
        layout.addWidget(part)
    assert layout.count() == 5
    assert layout.heightForWidth(100) == 80
    assert layout.heightForWidth(1000) == layout.heightForWidth(240) == 20
    assert layout.heightForWidth(10) == 140  # what is wider than the room has a line of its own
    holder.resize(150, 300)
    holder.show()
    assert [(part.x(), part.y()) for part in parts] == [(0, 0), (50, 0), (100, 0), (0, 30), (50, 30)]
    assert layout.minimumSize().width() == 40
    assert layout.sizeHint() == layout.minimumSize()
    assert layout.expandingDirections() == Qt.Orientation(0)
    assert layout.itemAt(9) is None
    assert layout.takeAt(9) is None
    taken = layout.takeAt(0)
    assert taken is not None
    assert taken.widget() is parts[0]


def test_what_is_lower_stands_in_the_middle_of_its_line(qtbot) -> None:
    holder = QWidget()
    qtbot.addWidget(holder)
    layout = FlowLayout(holder, spacing=10)
    parts = [QWidget() for _ in range(3)]
    for part, height in zip(parts, (40, 20, 20), strict=True):
        part.setFixedSize(40, height)
        layout.addWidget(part)
    holder.resize(100, 300)
    holder.show()
    assert [(part.x(), part.y()) for part in parts] == [(0, 0), (50, 10), (0, 50)]
