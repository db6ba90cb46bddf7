from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QBoxLayout, QPushButton

from inspector.gui.pages.overview import OverviewPanel
from inspector.gui.widgets.labels import DOTS
from inspector.records import replace
from inspector.report.overview import Overview, OverviewGroup, OverviewLine
from tests.gui import fakes
from tests.gui.looking import said

SCREEN = fakes.ready_screen()


@pytest.fixture
def panel(qtbot, theme) -> OverviewPanel:
    panel = OverviewPanel(theme)
    qtbot.addWidget(panel)
    panel.show_screen(SCREEN)
    return panel


def test_every_line_is_shown(panel):
    words = [word.replace("\u00a0", " ") for word in said(panel)]
    assert SCREEN.overview.title in words
    for group in SCREEN.overview.groups:
        assert group.title in words
        for line in group.lines:
            assert line.text in words
            assert line.caption in words or line.query
            assert not line.why or line.why in words


def test_a_click_searches_and_a_second_ends_that(panel, qtbot):
    buttons = {button.text(): button for button in panel.findChildren(QPushButton)}
    assert set(buttons) == {"Parameters", "Optimizer"}
    assert buttons["Parameters"].accessibleName() == "Parameters: search for role:parameter"
    with qtbot.waitSignal(panel.query_wanted) as wanted:
        qtbot.mouseClick(buttons["Parameters"], Qt.MouseButton.LeftButton)
    assert wanted.args == ["role:parameter"]
    panel.show_screen(replace(SCREEN, query="role:parameter"))
    assert buttons["Parameters"] in panel.findChildren(QPushButton)  # nothing was made anew
    with qtbot.waitSignal(panel.query_wanted) as wanted:
        qtbot.keyClick(buttons["Parameters"], Qt.Key.Key_Space)
    assert wanted.args == [""]


def test_links_have_room_for_larger_text(panel, theme, qtbot):
    def cut() -> list[str]:
        return [
            button.accessibleName()
            for button in panel.findChildren(QPushButton)
            if DOTS in button.text()
            or button.fontMetrics().height() > button.height()
            or button.fontMetrics().horizontalAdvance(button.text()) > button.maximumWidth()
        ]

    panel.show()
    try:
        theme.set_zoom(150)
        qtbot.waitUntil(lambda: not cut())
    finally:
        theme.set_zoom(100)


def test_two_columns_stand_side_by_side_where_there_is_room(panel, qtbot):
    panel.show()
    for width, direction in (
        (1000, QBoxLayout.Direction.LeftToRight),
        (420, QBoxLayout.Direction.TopToBottom),
    ):
        panel.resize(width, 600)
        qtbot.waitUntil(lambda direction=direction: panel._columns.direction() == direction)
        assert panel.horizontalScrollBar().maximum() == 0


def test_mark_up_is_text_and_nothing_long_widens_the_page(panel):
    evil = "<b>bold</b>" * 30
    shown = Overview(title=evil, groups=(OverviewGroup(evil, (OverviewLine(evil, evil, evil, "a"),)),))
    panel.show_screen(replace(SCREEN, overview=shown))
    assert said(panel).count(evil) >= 4
    assert panel.widget().minimumSizeHint().width() < 500
