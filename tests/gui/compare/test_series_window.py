"""The window of a series with its real session."""

from __future__ import annotations

import math

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QFileDialog, QToolButton

from inspector.gui.charts.lines import Lines, spread, value_range
from inspector.gui.compare.series_window import SeriesWindow
from inspector.records import replace
from inspector.session.comparing.series import SeriesSession
from tests.builders.states import T, save_zip
from tests.gui.looking import colors_in, words_in
from tests.unit.session.documents import AtOnce


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def window(qtbot, theme, runner, tmp_path):
    for epoch, number in enumerate((1.0, 4.0, math.nan, 2.0)):
        save_zip(tmp_path / f"e{epoch}.pt", {"far.w": T([number, 1.0]), "near.w": T([2.0, 2.0])})
    save_zip(tmp_path / "e4.pt", {"near.w": T([2.0, 2.0])})
    window = SeriesWindow(theme)
    window.attach(SeriesSession(window, runner, (str(tmp_path),)))
    qtbot.addWidget(window)
    window.show()
    window.session.compare()
    yield window
    window.detach()


def cells(window: SeriesWindow) -> dict[str, list[str]]:
    table = window.table
    return {
        table.verticalHeaderItem(row).text(): [
            table.item(row, column).text() for column in range(table.columnCount())
        ]
        for row in range(table.rowCount())
    }


def test_lines_and_table_have_the_same_figures(window, theme) -> None:
    assert window.windowTitle().endswith("Series - Checkpoint Inspector")
    found = cells(window)
    assert list(found) == ["all of it", "far", "near"]
    assert found["far"] == ["1.41421", "4.12311", "1*", "2.23607", "\u2013"]
    assert window._note.isVisible()
    chart = window.chart
    assert "far from 1.414 to 2.236" in chart.accessibleDescription()
    chart.plot()
    inks = colors_in(chart.grab().toImage())
    assert {theme.tokens.device(number).name() for number in (0, 1)} <= inks


def test_the_points_are_read_by_key_and_pointer(window, qtbot) -> None:
    chart = window.chart
    chart.grab()
    qtbot.keyClick(chart, Qt.Key.Key_Right)
    assert chart.accessibleName() == "Chart of the series. far, number in the name 0, e0.pt: 1.41421"
    qtbot.keyClick(chart, Qt.Key.Key_Right)
    assert chart.accessibleName().endswith("far, number in the name 1, e1.pt: 4.12311")
    qtbot.keyClick(chart, Qt.Key.Key_Down)
    assert chart.accessibleName().endswith("near, number in the name 1, e1.pt: 2.82843")
    qtbot.keyClick(chart, Qt.Key.Key_Up)
    assert chart.accessibleName().endswith("far, number in the name 1, e1.pt: 4.12311")
    qtbot.mouseMove(chart, chart.center_of(0))
    qtbot.waitUntil(lambda: chart.accessibleName().endswith("far, number in the name 0, e0.pt: 1.41421"))


def test_lines_without_a_figure_are_left_out(window) -> None:
    line = replace(window.shown.lines[0], values=(None,) * 5)
    for lines in ((line,), (line, window.shown.lines[1])):
        drawn = tuple(range(len(lines)))
        window.chart.show_drawing(Lines(replace(window.shown, lines=lines, drawn=drawn)))
        window.chart.grab()
        window.chart.plot()
    assert words_in(window.chart) == ["far"]


def test_the_lines_are_saved_with_their_names(window, monkeypatch, tmp_path) -> None:
    button = next(one for one in window.findChildren(QToolButton) if one.menu() is not None)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "lines.svg"), ""))
    next(action for action in button.menu().actions() if "SVG" in action.text()).trigger()
    svg = (tmp_path / "lines.svg").read_text("utf-8")
    for text in ("Norm of a series", "far", "near", "Number in the name"):
        assert text in svg
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(tmp_path / "lines.csv"), ""))
    next(action for action in button.menu().actions() if "Save as CSV" in action.text()).trigger()
    assert (
        (tmp_path / "lines.csv").read_text("utf-8").startswith("Number in the name,File,all of it,far,near")
    )


def points_of(window: SeriesWindow) -> list[tuple[float, float]]:
    drawing = window.chart.drawing
    return [(drawing.area(part).x(), drawing.area(part).y()) for part in range(drawing.count)]


def test_points_stand_at_their_epochs_and_by_their_logarithms(window, tmp_path) -> None:
    for place, (epoch, size) in enumerate(((1, 1.0), (2, 0.0), (10, 100.0), (40, 1000.0))):
        save_zip(tmp_path / f"e{place}.pt", {"far.w": T([size]), "epoch": epoch})
    (tmp_path / "e4.pt").unlink()
    window.session.compare()
    assert points_of(window) == [(1, 1), (2, 0), (10, 100), (40, 1000)]
    assert window.table.horizontalHeaderItem(2).text() == "10: e2.pt"
    window.log.click()
    assert points_of(window) == [(1, 0), (10, 2), (40, 3)]
    assert window.chart.drawing.words(1) == "far, epoch 10, e2.pt: 100"
    assert "no logarithm" in window._note.text()
    window.chart.plot()
    ticks = [text for _, text in window.chart.drawing._value_ticks(0.0, 3.0, 400.0)]
    assert ticks == ["1", "10", "100", "1000"]
    assert [text for _, text in window.chart.drawing._file_ticks(0.0, 42.0, 200.0)] == ["1", "10", "40"]
    near = window.chart.drawing._value_ticks(0.0, 0.5, 400.0)
    assert near[0] == (0.0, "1")
    assert all(place == pytest.approx(math.log10(float(text))) for place, text in near)


def test_names_stay_when_their_lines_end_elsewhere(window) -> None:
    window.chart.plot().zoom(0.1, window.chart.plot().room.bottomLeft())
    assert words_in(window.chart).count("far") == 1


def test_the_figure_and_the_lines_are_chosen_by_keyboard(window, qtbot) -> None:
    window.field.setFocus()
    QTest.keyClick(window.field, Qt.Key.Key_Down)
    assert window.shown.field == "step"
    assert cells(window)["far"][:2] == ["\u2013", "3"]
    window.table.setFocus()
    window.table.setCurrentCell(2, 0)
    assert window.shown.drawn == (2,)
    QTest.keyClick(window.table, Qt.Key.Key_Up)
    assert window.shown.drawn == (1,)
    window._copy.click()
    assert QGuiApplication.clipboard().text().startswith("5 checkpoints")
    for widget in (window.field, window.table, window.chart):
        assert widget.accessibleName()


def test_reading_shows_progress_and_failing_says_why(window, runner, qtbot, tmp_path) -> None:
    runner.waits = True
    QTest.keyClick(window, Qt.Key.Key_F5)
    assert window.shown.phase == "opening"
    window.shown.progress.label = "comparing"
    qtbot.waitUntil(lambda: window._label.text() == "comparing")
    for place in range(4):
        (tmp_path / f"e{place}.pt").write_bytes(b"nothing")
    runner.go_on()
    assert window._title.text()
    assert "e0.pt" in f"{window._what.toPlainText()}{window._where.toPlainText()}"
    window._again.click()
    with qtbot.waitSignal(window.closed):
        window.close()


def test_an_axis_has_a_length(window, theme) -> None:
    assert value_range([2.0, 4.0]) == (0.0, 4.0)
    assert value_range([90.0, 100.0]) == (90.0, 100.0)
    assert value_range([5.0]) == (2.5, 7.5)
    assert value_range([0.0]) == (-0.5, 0.5)
    theme.set_mode("dark")
    theme.set_mode("light")
    window.detach()
    window._on_field(0)
    window._on_again()


def test_names_stand_in_the_order_of_their_lines_and_apart() -> None:
    assert spread([10.0, 50.0], 16, 8, 100) == [10.0, 50.0]
    assert spread([10.0, 11.0, 12.0, 80.0], 16, 8, 100) == [10.0, 26.0, 42.0, 80.0]
    assert spread([0.0, 98.0, 99.0], 16, 8, 100) == [8, 84, 100]
    assert spread([], 16, 8, 100) == []
