from __future__ import annotations

from PySide6.QtWidgets import QWidget

from inspector.gui.widgets.boxes import NO_MARGINS, column
from inspector.gui.widgets.cards import WholeArea
from inspector.gui.widgets.labels import plain_label


def test_no_bar_stays_where_all_has_room_without_it(qtbot):
    """Beside a bar texts wrap sooner, and would need it for that."""
    words = plain_label("word " * 60, wrap=True)
    page = QWidget()
    column(words, margins=NO_MARGINS, within=page)
    area = WholeArea(page)
    qtbot.addWidget(area)
    area.show()
    width = next(
        width
        for width in range(200, 400)
        if area.heightForWidth(width - area.verticalScrollBar().sizeHint().width())
        > area.heightForWidth(width)
    )
    whole = area.heightForWidth(width)
    for height, bar in ((whole - 1, True), (whole, False)):
        area.resize(width, height)
        qtbot.waitUntil(lambda bar=bar: area.verticalScrollBar().isVisible() is bar)
    words.setText("word " * 200)
    qtbot.waitUntil(area.verticalScrollBar().isVisible)
