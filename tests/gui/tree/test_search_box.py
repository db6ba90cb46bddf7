from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QCompleter, QLabel, QLineEdit, QToolButton

from inspector.gui.tree.search_box import SearchBox
from inspector.records import replace
from inspector.report.charts.bars import Bar, Chart, Segment
from tests.gui import fakes

PARTS = tuple(
    Segment(label=device, color=0, nbytes=1, query=f"device:{device}") for device in ("cuda:0", "cuda:1")
)
CHART = Chart(title="Memory by device", bars=(Bar(label="As saved", segments=PARTS, text=""),))
READY = replace(fakes.ready_screen(), charts=(CHART,))


@pytest.fixture
def box(qtbot, theme) -> SearchBox:
    box = SearchBox(theme)
    qtbot.addWidget(box)
    box.show()
    qtbot.waitExposed(box)
    return box


def line(box: SearchBox) -> QLineEdit:
    return box.findChild(QLineEdit)


def count(box: SearchBox) -> str:
    return next(label.text() for label in box.findChildren(QLabel))


def press(box: SearchBox, start: str) -> None:
    next(button for button in box.findChildren(QToolButton) if button.toolTip().startswith(start)).click()


def test_typing_searches_after_a_pause_and_once(box, qtbot):
    asked = []
    box.query_changed.connect(asked.append)
    qtbot.keyClicks(line(box), "conv")
    assert asked == []
    qtbot.waitUntil(lambda: asked == ["conv"])


def test_enter_searches_at_once_and_goes_on(box, qtbot):
    line(box).setText("conv")
    with qtbot.waitSignal(box.query_changed), qtbot.waitSignal(box.step_wanted) as step:
        qtbot.keyClick(line(box), Qt.Key.Key_Return)
    assert step.args == [1]
    with qtbot.waitSignal(box.step_wanted) as step, qtbot.assertNotEmitted(box.query_changed):
        qtbot.keyClick(line(box), Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert step.args == [-1]


def test_escape_ends_the_search(box, qtbot):
    line(box).setText("conv")
    box.flush()
    with qtbot.waitSignal(box.left), qtbot.waitSignal(box.query_changed) as asked:
        qtbot.keyClick(line(box), Qt.Key.Key_Escape)
    assert asked.args == [""]
    assert line(box).text() == ""


@pytest.mark.parametrize(
    ("matches", "place", "told"),
    [(0, None, "no match"), (1, None, "1"), (1204, None, "1,204"), (1204, 3, "4 of 1,204")],
)
def test_the_number_of_matches_is_told(box, matches, place, told):
    box.show_matches(matches, place)
    assert count(box) == told
    assert box.property("missed") == ("true" if matches == 0 else "false")


def test_without_a_search_there_is_nothing_to_press(box):
    box.show_matches(None, None)
    assert not any(button.isVisible() for button in box.findChildren(QToolButton))


def test_buttons_walk_filter_and_end(box, qtbot):
    box.show_matches(3, 0)
    with qtbot.waitSignal(box.step_wanted) as step:
        press(box, "Next")
    assert step.args == [1]
    with qtbot.waitSignal(box.step_wanted) as step:
        press(box, "Previous")
    assert step.args == [-1]
    assert box.only
    with qtbot.waitSignal(box.only_toggled) as toggled:
        press(box, "Show only")
    assert toggled.args == [False]
    with qtbot.waitSignal(box.left):
        press(box, "End")


def test_the_sessions_query_is_shown_but_never_over_what_is_being_typed(box, qtbot):
    with qtbot.assertNotEmitted(box.query_changed, wait=200):
        box.show_query("fc")
    assert line(box).text() == "fc"
    qtbot.keyClicks(line(box), "x")
    box.show_query("other")
    assert line(box).text() == "fcx"
    box.flush()


def test_it_takes_the_keyboard_with_everything_selected(box, qtbot):
    box.show_query("fc")
    box.begin()
    qtbot.waitUntil(lambda: box.property("active") == "true")
    assert line(box).selectedText() == "fc"
    assert box.minimumSizeHint().width() < box.sizeHint().width()


def test_the_word_at_the_cursor_is_completed_and_nothing_else(box, qtbot):
    box.show_screen(READY)
    field, popup = line(box), box.findChild(QCompleter).popup()
    field.setText("bias  size>1MB")
    field.setCursorPosition(5)
    qtbot.keyClicks(field, "dev")
    qtbot.waitUntil(popup.isVisible)
    assert not popup.currentIndex().isValid()  # Enter still walks the matches
    offered = [popup.model().index(row, 0).data() for row in range(popup.model().rowCount())]
    assert offered == ["device:cuda:0", "device:cuda:1", "device:"]
    asked = []
    box.query_changed.connect(asked.append)
    qtbot.keyClick(popup, Qt.Key.Key_Down)
    qtbot.keyClick(popup, Qt.Key.Key_Down)
    qtbot.keyClick(popup, Qt.Key.Key_Return)
    assert (field.text(), field.cursorPosition()) == ("bias device:cuda:1 size>1MB", 18)
    qtbot.waitUntil(lambda: asked == ["bias device:cuda:1 size>1MB"])
    qtbot.keyClicks(field, "0")
    assert not popup.isVisible()
