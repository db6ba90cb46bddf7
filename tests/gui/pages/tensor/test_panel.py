"""The tensor page: what it shows, and what it asks for."""

from __future__ import annotations

import struct
from typing import Any

import pytest
from PySide6.QtCore import QPointF, Qt
from PySide6.QtGui import QGuiApplication, QImage
from PySide6.QtWidgets import QAbstractScrollArea, QFileDialog, QWidget

from inspector.gui.charts.values import HeatMap, Histogram, color_table
from inspector.gui.pages.tensor.panel import TensorPanel
from inspector.gui.widgets.labels import WrappedText
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.details import FactGroup
from inspector.session.values.page import CellBlock, Picture, ScanPage, ScanRow, SliceChoice, ValuesPage
from tests.gui import fakes
from tests.gui.looking import area_of, said, words_in
from tests.unit.report.words.test_values import statistics

SCREEN = fakes.ready_screen()
PICTURE = Picture(
    shape=(4, 6),
    seen=(4, 6),
    steps=(2, 2),
    rows=2,
    columns=3,
    cells=struct.pack("<6f", -1, 0, 1, 2, float("nan"), 0.5),
    levels=bytes([0, 127, 200, 254, 255, 160]),
    limit=2.0,
)
PAGE = ValuesPage(
    row=3,
    title="model/weight",
    facts="96 B to read",
    lines=(("Mean", "0.5"), ("NaN", "1, first at [0, 1]")),
    statistics=statistics(),
    summary="2 bins from 0 to 2.",
    shape=(4, 6, 2),
    choice=SliceChoice(row=0, column=1, index=(0, 0, 1)),
    picture=PICTURE,
    picture_note="Yellow is NaN.",
    forms=((".npy", "NumPy array"), (".safetensors", "safetensors")),
)
CHOICE = SliceChoice(row=0, column=1, index=(0, 0, 1))


@pytest.fixture
def panel(qtbot, theme):
    panel = TensorPanel(theme)
    qtbot.addWidget(panel)
    panel.resize(520, 900)
    return panel


def shown(panel: TensorPanel, **changes: Any) -> TensorPanel:
    panel.show_screen(replace(SCREEN, values=replace(PAGE, **changes)))
    return panel


def test_figures_are_shown_and_read_aloud(panel, qtbot) -> None:
    shown(panel)
    words = said(panel)
    for text in ("model/weight", "Mean", "0.5", "1, first at [0, 1]", "2 bins from 0 to 2."):
        assert text in words
    assert panel.summary.histogram.accessibleDescription().startswith("2 bins from 0 to 2. ")
    said_of_map = panel.elements.heat_map.accessibleDescription()
    assert said_of_map.startswith("4 rows, 6 columns; colors from -2 to 0 to 2. Yellow is NaN.")
    assert panel.summary.compute.isHidden()
    assert not panel.is_drawn
    panel.show()
    qtbot.waitUntil(lambda: panel.is_drawn)
    panel.switch.setCurrentIndex(1)
    assert (panel.elements.isVisible(), panel.summary.isVisible()) == (True, False)
    qtbot.waitUntil(lambda: panel.is_drawn)


def test_nothing_selected_and_no_values_are_said(panel) -> None:
    panel.show_screen(SCREEN)
    assert "Select a row in the tree to see its facts and values." in said(panel)
    assert panel.head.isHidden()
    shown(panel, refusal="It was saved from the meta device.", statistics=None, choice=None, picture=None)
    assert panel.summary.message.text() == "It was saved from the meta device."
    assert panel.summary.compute.isHidden()


def test_what_is_asked_for_is_told(panel, qtbot) -> None:
    shown(panel, statistics=None, lines=())
    with qtbot.waitSignal(panel.summary.compute_wanted):
        panel.summary.compute.click()
    shown(panel, has_rank=True)
    with qtbot.waitSignal(panel.summary.rank_wanted):
        panel.summary.rank.click()
    shown(panel, statistics=None, progress=Progress("reading values"))
    assert not panel.is_drawn
    with qtbot.waitSignal(panel.summary.cancel_wanted):
        panel.summary.cancel.click()
    with qtbot.waitSignal(panel.save_wanted):
        panel.save.click()


def test_a_button_that_is_hidden_scrolls_nothing(panel, qtbot) -> None:
    """Qt hands the focus of it on to what comes next, and scrolls there."""
    panel.resize(400, 300)
    panel.show()
    facts = tuple(FactGroup(title=f"{number}", facts=(("a", "b"),) * 9) for number in range(3))
    asked = replace(PAGE, statistics=None, lines=())
    panel.show_screen(replace(SCREEN, values=asked, tensor=facts))
    bar = panel.summary.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.maximum() > panel.height())
    panel.activateWindow()
    qtbot.waitUntil(panel.isActiveWindow)
    panel.summary.compute.setFocus()
    qtbot.waitUntil(panel.summary.compute.hasFocus)
    bar.setValue(0)
    panel.show_screen(replace(SCREEN, values=replace(asked, progress=Progress("reading")), tensor=facts))
    assert (bar.value(), panel.summary.compute.isHidden()) == (0, True)


def test_what_becomes_of_a_saved_tensor_is_told_beside_both_parts(panel, qtbot) -> None:
    panel.show()
    shown(panel)
    assert not panel.told.isVisible()
    shown(panel, is_saving=True, saved="Saving \u2026")
    with qtbot.waitSignal(panel.save_cancelled):
        panel.stop.click()
    panel.switch.setCurrentIndex(1)
    shown(panel, saved="Saved as /tmp/a.npy.")
    assert (panel.told.isVisible(), panel.stop.isVisible()) == (True, False)


def test_it_is_told_whether_it_is_looked_at(panel, qtbot) -> None:
    with qtbot.waitSignal(panel.watched) as shown_:
        panel.show()
    with qtbot.waitSignal(panel.watched) as hidden:
        panel.hide()
    assert (shown_.args, hidden.args) == ([True], [False])


def test_a_bar_is_read_by_key_and_mouse(panel, qtbot) -> None:
    shown(panel)
    panel.show()
    view = panel.summary.histogram
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.accessibleName() == "Histogram. 0 to below 1: 1"
    qtbot.keyClick(view, Qt.Key.Key_Right)
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.accessibleName() == "Histogram. 1 to below 3: 2"
    panel.summary.logarithmic.setChecked(True)
    view.grab()
    panel.summary.kind.setCurrentIndex(1)
    panel.summary.kind.activated.emit(1)
    assert view.accessibleName() == "Histogram"
    qtbot.keyClick(view, Qt.Key.Key_Left)
    assert view.accessibleName() == "Histogram. 2^1 to below 2^2: 1"
    qtbot.mouseMove(view, view.center_of(0))
    qtbot.waitUntil(lambda: view.accessibleName().startswith("Histogram. 2^0 to below 2^1"))
    qtbot.keyClick(view, Qt.Key.Key_A)
    view.grab()


def test_nothing_to_draw_is_no_error(panel) -> None:
    nothing = replace(statistics(), edges=(), counts=(), octaves=())
    for page in (replace(PAGE, statistics=nothing), replace(PAGE, picture=replace(PICTURE, rows=0))):
        panel.show_screen(replace(SCREEN, values=page))
        panel.show()
        for chart in (panel.summary.histogram, panel.elements.heat_map):
            chart.plot()
            chart.grab()
    assert not panel.elements.heat_map.drawing.count


def test_the_axes_of_a_histogram_have_round_numbers() -> None:
    found = replace(
        statistics(), edges=(-1.7e308, 0.0, 1.7e308), counts=(7, 2500), octaves=(1,) * 30, exponent=-3
    )
    values = Histogram(found, "")
    assert [text for _, text in values._places(0, 2, 400)] == ["-1.7e+308", "1.7e+308"]
    assert [text for _, text in values._heights(0, 2600, 150)] == ["0", "1,000", "2,000"]
    octaves = Histogram(found, "", octaves=True)
    assert [text for _, text in octaves._places(0, 30, 300)] == ["2^-3", "2^7", "2^17", "2^27"]
    powers = Histogram(found, "", logarithmic=True)
    assert [text for _, text in powers._heights(0, 3.7, 150)] == ["1", "10", "100", "1,000"]


def test_a_picture_has_the_colors_of_its_levels(panel, theme) -> None:
    shown(panel)
    panel.switch.setCurrentIndex(1)
    panel.show()
    colors = color_table(is_dark=theme.tokens.dark)
    assert len(colors) == 256
    panel.elements.heat_map.plot()
    image = panel.elements.heat_map.grab().toImage()
    drawn = [image.pixelColor(panel.elements.heat_map.center_of(part)).name() for part in range(6)]
    assert drawn == [colors[level].name() for level in PICTURE.levels]
    shown(panel, picture=None)
    assert panel.elements.heat_map.isHidden()


@pytest.mark.parametrize(("rows", "columns"), [(1, 300), (300, 1), (2, 2), (200, 100)])
def test_a_strip_of_cells_is_seen_too(panel, rows, columns) -> None:
    size = rows * columns
    shape = {"shape": (rows, columns), "seen": (rows, columns), "steps": (1, 1)}
    picture = replace(PICTURE, rows=rows, columns=columns, cells=bytes(4 * size), levels=bytes(size), **shape)
    shown(panel, picture=picture)
    panel.switch.setCurrentIndex(1)
    panel.show()
    view = panel.elements.heat_map
    whole = area_of(view, 0).united(area_of(view, size - 1))
    assert min(whole.width(), whole.height()) >= 23
    assert view.rect().contains(whole)
    ticks = HeatMap(picture, CHOICE, "", (400, 260))._ticks(1, 56, 0, columns, 400)
    assert ticks[0] == (0.5, "0")
    assert all(place < columns for place, _ in ticks)


def test_a_cell_is_read_by_key(panel, qtbot) -> None:
    shown(panel)
    panel.switch.setCurrentIndex(1)
    panel.show()
    view = panel.elements.heat_map
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.accessibleName() == "Heat map. [0:2, 0:2, 1] = -1, the farthest from zero there"
    qtbot.keyClick(view, Qt.Key.Key_Right)
    qtbot.keyClick(view, Qt.Key.Key_Down)
    assert view.accessibleName() == "Heat map. [2:4, 2:4, 1] = nan, the farthest from zero there"
    qtbot.keyClick(view, Qt.Key.Key_B)
    view.grab()
    qtbot.mouseMove(view, view.center_of(4))
    qtbot.waitUntil(lambda: view.accessibleName().startswith("Heat map. [2:4, 2:4, 1] = nan"))
    qtbot.keyClick(view, Qt.Key.Key_Return)
    at = panel.elements.table.currentIndex()
    assert (at.row(), at.column()) == (2, 2)
    shown(panel, picture=replace(PICTURE, steps=(1, 1), shape=(2, 3), seen=(2, 3)))
    qtbot.keyClick(view, Qt.Key.Key_Right)
    assert view.accessibleName() == "Heat map. [0, 0, 1] = -1"


def test_charts_are_saved_as_pictures(panel, monkeypatch, tmp_path) -> None:
    shown(panel)
    panel.show()
    for button, name in ((panel.summary.save_histogram, "histogram"), (panel.elements.save_picture, "heat")):
        actions = {action.text(): action for action in button.menu().actions()}
        assert not [text for text in actions if "CSV" in text]
        for kind in ("png", "svg"):
            path = tmp_path / f"{name}.{kind}"
            monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_, path=path: (str(path), ""))
            actions[f"Save as {kind.upper()}\u2026"].trigger()
        assert QImage(str(tmp_path / f"{name}.png")).width() > 900
        assert "of model/weight" in (tmp_path / f"{name}.svg").read_text("utf-8")


def test_dimensions_and_indices_are_chosen(panel, qtbot) -> None:
    shown(panel)
    bar = panel.elements.slice_bar
    with qtbot.waitSignal(panel.elements.slice_wanted) as chosen:
        bar._row.activated.emit(1)
    assert chosen.args == [SliceChoice(row=1, column=0, index=(0, 0, 1))]
    with qtbot.waitSignal(panel.elements.slice_wanted) as chosen:
        bar._column.activated.emit(2)
    assert chosen.args == [SliceChoice(row=0, column=2, index=(0, 0, 1))]
    with qtbot.waitSignal(panel.elements.slice_wanted) as chosen:
        bar._indices[2][1].setValue(0)
    assert chosen.args == [SliceChoice(row=0, column=1, index=(0, 0, 0))]
    shown(panel, shape=(5,), choice=SliceChoice(row=0, column=None, index=(0,)))
    assert bar.isHidden()
    shown(panel)
    assert [holder.isHidden() for holder, _ in bar._indices] == [True, True, False]


def test_only_cells_in_sight_are_read_and_copied(panel, qtbot) -> None:
    shown(panel)
    panel.switch.setCurrentIndex(1)
    panel.show()
    table = panel.elements.table
    table.selectAll()
    assert not table.copy()
    with qtbot.waitSignal(panel.elements.cells_wanted) as wanted:
        table.cells.data(table.cells.index(0, 0))
    assert wanted.args == [0, 0, 32, 16, 0]
    texts = tuple(tuple(f"{row}.{column}" for column in range(6)) for row in range(4))
    shown(panel, cells=CellBlock(row=0, column=0, digits=0, texts=texts))
    assert table.cells.data(table.cells.index(3, 5)) == "3.5"
    qtbot.keyClick(table, Qt.Key.Key_C, Qt.KeyboardModifier.ControlModifier)
    assert QGuiApplication.clipboard().text().splitlines()[0] == "0.0\t0.1\t0.2\t0.3\t0.4\t0.5"
    table.clearSelection()
    assert not table.copy()
    panel.elements.digits.setCurrentIndex(1)
    panel.elements.digits.activated.emit(1)
    table.cells.add(CellBlock(row=0, column=0, digits=0, texts=texts))
    with qtbot.waitSignal(panel.elements.cells_wanted) as wanted:
        assert table.cells.data(table.cells.index(0, 0)) == "\u2026"
    assert wanted.args[-1] == 3


def test_a_scan_is_followed_and_its_rows_are_links(panel, qtbot) -> None:
    with qtbot.waitSignal(panel.summary.scan.scan_wanted):
        panel.summary.scan._scan.click()
    progress = Progress("reading values")
    progress.total = 100
    shown(panel, scan=ScanPage(progress=progress))
    with qtbot.waitSignal(panel.summary.scan.cancel_wanted):
        panel.summary.scan._cancel.click()
    row = ScanRow(path="a/<b>bad</b>", node=7, words="NaN: 1, first at [0]")
    page = ScanPage(
        sentence="2 tensors read: 1 with NaN.", is_odd=True, rows=(row,), more=3, note="Huge is \u2026"
    )
    shown(panel, scan=page)
    words = said(panel)
    for text in ("2 tensors read: 1 with NaN.", "NaN: 1, first at [0]", "and 3 more: stats --scan lists all"):
        assert text in words
    link = panel.summary.scan._rows.itemAt(0).widget().findChildren(type(panel.save))[0]
    assert link.text() == "a/<b>bad</b>"
    with qtbot.waitSignal(panel.summary.scan.node_chosen) as chosen:
        link.click()
    assert chosen.args == [7]


def test_the_elements_stay_in_sight_from_tensor_to_tensor(panel) -> None:
    shown(panel)
    panel.show()
    panel.switch.setCurrentIndex(1)
    shown(panel, row=None, choice=None, picture=None)  # a group between them has none
    assert panel.summary.isVisible()
    shown(panel, row=4, choice=None, picture=None, refusal="no")
    assert (panel.switch.currentIndex(), panel.switch.isTabEnabled(1)) == (0, False)
    shown(panel, row=5)
    assert (panel.switch.currentIndex(), panel.elements.isVisible()) == (1, True)


def test_a_heat_map_leaves_the_table_its_room(panel) -> None:
    shown(panel)
    panel.switch.setCurrentIndex(1)
    panel.show()
    for height, has_map in ((900, True), (330, False), (600, True)):
        panel.resize(400, height)
        panel.grab()
        assert panel.elements.heat_map.isVisible() == has_map, height
        assert panel.elements.table.height() >= (80 if has_map else 50)
    assert panel.elements.heat_map.height() < 300


def test_no_area_scrolls_within_another(panel) -> None:
    shown(panel)
    inner: QWidget | None = panel.elements.table.parentWidget()
    while inner is not None:
        assert not isinstance(inner, QAbstractScrollArea)
        inner = inner.parentWidget()
    within = panel.summary.widget().findChildren(QAbstractScrollArea)
    popups = [area for area in within if area.window() is not panel.window()]
    assert all(isinstance(area, WrappedText) for area in within if area not in popups)


def test_only_what_applies_can_be_pressed(panel, qtbot) -> None:
    shown(panel)
    with qtbot.waitSignal(panel.code_wanted):
        panel.code.click()
    panel.confirm_copied()
    assert panel.code.text() == "Copied"
    shown(panel, forms=(), no_forms="Not this one.", no_code="Loading this file is not safe.")
    assert [(one.isEnabled(), one.accessibleDescription()) for one in (panel.save, panel.code)] == [
        (False, "Not this one."),
        (False, "Loading this file is not safe."),
    ]


def test_the_values_are_scrolled_to_where_their_page_is_asked_for(panel, qtbot) -> None:
    panel.resize(400, 300)
    panel.show()
    panel.show_part("values")
    shown(panel, statistics=None, progress=Progress("reading values"))
    facts = tuple(FactGroup(title=f"{number}", facts=(("a", "b"),) * 9) for number in range(3))
    panel.show_screen(replace(SCREEN, values=PAGE, tensor=facts))
    bar = panel.summary.verticalScrollBar()
    qtbot.waitUntil(lambda: bar.value() == panel.summary.head.y() > 0)
    bar.triggerAction(bar.SliderAction.SliderToMinimum)
    longest = bar.maximum()
    panel.show_screen(replace(SCREEN, values=PAGE, tensor=facts * 2))
    qtbot.waitUntil(lambda: bar.maximum() > longest)
    assert bar.value() == 0  # the user has scrolled


def test_a_color_bar_has_the_ends_that_the_colors_reach() -> None:
    def ends(levels: list[int]) -> list[str]:
        picture = replace(PICTURE, levels=bytes(levels))
        return [text for _, text in HeatMap(picture, CHOICE, "", (400, 260))._scale()]

    assert ends([0, 127, 200, 254, 255, 160]) == ["2", "0", "-2"]
    assert ends([127, 130, 255]) == ["2", "0"]
    assert ends([127, 90]) == ["0", "-2"]
    assert ends([127, 127]) == ["0"]
    assert ends([]) == ["0"]


def test_the_color_bar_stands_beside_the_heat_map(panel) -> None:
    shown(panel)
    panel.switch.setCurrentIndex(1)
    panel.show()
    view = panel.elements.heat_map
    assert {"2", "0", "-2"} <= set(words_in(view))
    cells, image = area_of(view, 0).united(area_of(view, 5)), view.grab().toImage()
    top, bottom = (image.pixelColor(cells.right() + 18, y) for y in (cells.top() + 3, cells.bottom() - 3))
    assert top.red() - top.blue() > 80
    assert bottom.blue() - bottom.red() > 80
    view.plot().zoom(0.5, QPointF(20, 20))
    assert {"2", "0", "-2"} <= set(words_in(view))
