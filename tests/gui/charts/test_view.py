"""The widget of all charts: when it is made, how it is moved over, looked at more closely, and saved."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PySide6.QtCore import QPoint, QPointF, QRectF, Qt
from PySide6.QtGui import QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QToolTip

from inspector.gui.charts.drawing import Drawing, index_ticks, round_step, value_ticks
from inspector.gui.charts.view import ChartView
from inspector.overriding import override
from tests.gui.looking import area_of, colors_in


class Three(Drawing):
    """Three bars, of which the last can be searched for."""

    name, description, count, zooms = "Three", "1, 2, 3.", 3, "xy"

    @override
    def draw(self, plot, tokens):
        plot.set_axis(
            "bottom", lambda low, high, _: [(place, str(place)) for place in index_ticks(low, high, 9)]
        )
        plot.set_range((0, 3), (0, 3))
        plot.add_bars([self.area(part) for part in range(3)], [tokens.device(part) for part in range(3)])

    @override
    def area(self, part):
        return QRectF(part, 0, 1, part + 1)

    @override
    def words(self, part):
        return f"<b>{part + 1}</b>"

    @override
    def query(self, part):
        return "third" if part == 2 else ""


@pytest.fixture
def view(qtbot, theme) -> ChartView:
    view = ChartView(theme, Three())
    view.show_drawing(Three())
    qtbot.addWidget(view)
    view.resize(330, 200)
    view.show()
    qtbot.waitExposed(view)
    qtbot.waitUntil(lambda: view.is_drawn)
    return view


def turn(view: ChartView, steps: int, keys=Qt.KeyboardModifier.ControlModifier) -> QWheelEvent:
    place, none = QPointF(view.rect().center()), Qt.MouseButton.NoButton
    event = QWheelEvent(
        place, place, QPoint(), QPoint(0, steps), none, keys, Qt.ScrollPhase.NoScrollPhase, False
    )
    view.wheelEvent(event)
    return event


def test_it_stands_with_its_name_before_it_can_be_drawn(qtbot, theme):
    view = ChartView(theme)
    qtbot.addWidget(view)
    assert view.is_drawn  # there is nothing to draw
    view.show_drawing(Three())
    assert (view.accessibleName(), view.is_drawn) == ("Three", False)
    assert view.accessibleDescription().startswith("1, 2, 3. Ctrl and the wheel zoom")
    QTest.mouseMove(view, QPoint(5, 5))
    view.show()
    view.grab()
    qtbot.waitUntil(lambda: view.is_drawn)


def test_the_pointer_and_the_keys_read_the_parts(view, qtbot):
    qtbot.mouseMove(view, view.center_of(1))
    qtbot.waitUntil(lambda: view.accessibleName() == "Three. <b>2</b>")
    assert "&lt;b&gt;2" in QToolTip.text()  # what a file says is text
    qtbot.mouseMove(view, QPoint(20, 10))
    qtbot.waitUntil(lambda: view.accessibleName() == "Three")
    for key, words in ((Qt.Key.Key_Left, "3"), (Qt.Key.Key_Up, "2"), (Qt.Key.Key_Right, "3")):
        qtbot.keyClick(view, key)
        assert view.accessibleName() == f"Three. <b>{words}</b>"
    with qtbot.waitSignal(view.query_wanted) as wanted:
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert wanted.args == ["third"]
    view.clearFocus()
    assert view.accessibleName() == "Three"


def test_what_is_read_is_outlined_in_the_ink_of_the_theme(view, qtbot, theme):
    bare = view.grab().toImage()
    qtbot.keyClick(view, Qt.Key.Key_Right)
    for mode in ("light", "dark", "contrast-dark"):
        theme.set_mode(mode)
        found, edge = view.grab().toImage(), area_of(view, 0)
        assert found != bare
        around = range(edge.top() - 2, edge.top() + 3)
        inks = {found.pixelColor(edge.center().x(), y).name() for y in around}
        assert theme.tokens.colors["text"] in inks
        assert {theme.tokens.device(part).name() for part in range(3)} <= colors_in(found)


def test_wheel_drag_and_keys_look_closer_and_a_double_click_ends_it(view, qtbot):
    def width() -> int:
        return area_of(view, 0).width()

    whole = width()
    turn(view, 240)
    assert width() > whole
    middle = view.rect().center()
    before = area_of(view, 1).left()
    qtbot.mousePress(view, Qt.MouseButton.LeftButton, pos=middle)
    qtbot.mouseMove(view, middle + QPoint(20, 0))
    qtbot.mouseRelease(view, Qt.MouseButton.LeftButton, pos=middle + QPoint(20, 0))
    assert area_of(view, 1).left() - before == pytest.approx(20, abs=2)
    qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=middle)
    assert width() == whole
    qtbot.keyClick(view, Qt.Key.Key_Plus)
    closer = width()
    qtbot.keyClick(view, Qt.Key.Key_Minus)
    qtbot.keyClick(view, Qt.Key.Key_Minus)  # never more than all of it
    assert closer > whole == width()
    qtbot.keyClick(view, Qt.Key.Key_Plus)
    qtbot.keyClick(view, Qt.Key.Key_0)
    assert width() == whole


def test_it_is_never_larger_than_its_frame(view):
    for size in ((200, 100), (500, 300)):
        view.resize(*size)
        assert view.rect().contains(view.childrenRect())


def test_without_the_key_the_wheel_is_left_to_the_page(view):
    before = area_of(view, 0)
    assert not turn(view, 240, Qt.KeyboardModifier.NoModifier).isAccepted()
    assert area_of(view, 0) == before


def test_the_numbers_of_an_axis_follow_the_zoom():
    assert [round_step(length, most) for length, most in ((1000, 4), (999, 4), (3, 5))] == [500, 500, 1]
    assert index_ticks(0, 10, 5) == [0, 2, 4, 6, 8, 10]
    assert index_ticks(2.5, 4.5, 5) == [3, 4]
    assert index_ticks(3, 2, 5) == [3][1:]


@pytest.mark.parametrize(
    ("low", "high", "texts"),
    [
        (-0.328125, 0.570312, ["-0.2", "0", "0.2", "0.4"]),
        (0, 8, ["0", "2", "4", "6", "8"]),
        (-(2**62), 2**62, [f"{number * 10**18:,}" for number in (-4, -2, 0, 2, 4)]),
        (1.0, 1.0 + 2e-9, ["1", "1"]),
        (-1.7e308, 1.7e308, ["-1.7e+308", "1.7e+308"]),
        (0.0, 1e-323, ["0", "9.88131e-324"]),
    ],
)
def test_an_axis_has_round_numbers(low, high, texts) -> None:
    ticks = value_ticks(low, high, 6)
    assert [text for _, text in ticks] == texts
    assert all(0 <= share <= 1 for share, _ in ticks)


CLASSES = """
import sys
from PySide6 import QtCore, QtGui, QtWidgets
from inspector.gui.app import make_app
from inspector.gui.charts import view
from inspector.gui.theme.theme import Theme

app = make_app()
missing = []

def run(work, progress, on_done):
    for module in (QtCore, QtGui, QtWidgets):
        missing.extend(name for name in dir(module) if name not in vars(module))
    print(len(turns), missing)
    app.quit()

view._LOADING._runner.run = run
turns = []
count = QtCore.QTimer(interval=0)
count.timeout.connect(lambda: turns.append(1))
count.start()
chart = view.ChartView(Theme(app, "light"))
view._LOADING.add(chart)
app.exec()
"""


def test_a_thread_makes_no_class_of_pyside():
    """Two threads that make them at one time end the program, now and then."""
    done = subprocess.run(
        [sys.executable, "-P", "-c", CLASSES], capture_output=True, text=True, check=True, timeout=100
    )
    turns, missing = done.stdout.split(maxsplit=1)
    assert missing == "[]\n"
    assert int(turns) > 20  # the window goes on meanwhile
