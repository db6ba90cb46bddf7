"""The charts and the tree of one window: what is chosen here is marked there."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from inspector.gui.charts.view import ChartView
from inspector.gui.main_window import MainWindow
from inspector.gui.pages.memory.map_panel import MapPart
from inspector.gui.pages.memory.treemap_paint import snapped
from inspector.gui.settings import Settings
from inspector.resources import demo_path
from inspector.session.controller import Session
from tests.gui.looking import button
from tests.unit.session.documents import AtOnce


@pytest.fixture
def window(qtbot, theme) -> MainWindow:
    window = MainWindow(theme, Settings(fresh=True))
    qtbot.addWidget(window)
    window.attach(Session(window, AtOnce()))
    window.show()
    qtbot.waitExposed(window)
    window.session.open(str(demo_path()))
    qtbot.waitUntil(lambda: not window.shown.is_checking)
    return window


def test_the_map_and_the_tree_are_linked_both_ways(window, qtbot):
    window.workspace.pages.open_page("map")
    panel = window.workspace.pages.page("map").map
    assert isinstance(panel, MapPart)
    view = panel.view
    qtbot.waitUntil(lambda: bool(view.picture.cells))
    cell = max((one for one in view.picture.cells if one.what == "row"), key=lambda one: one.nbytes)
    qtbot.mouseClick(view, Qt.MouseButton.LeftButton, pos=snapped(cell.box).center())
    assert window.tree.current_node() == cell.node
    assert view._selected_place(panel._page) == snapped(cell.box)

    nodes = window.shown.tree.nodes
    others = (one for one in view.picture.cells if one.what == "row" and one.node != cell.node)
    other = next(one for one in others if nodes[one.node].parent)
    window.session.select(other.node)
    assert view._selected_place(panel._page) == snapped(other.box)

    # A row outside of what the map shows brings the map to it.
    window.session.show_map(nodes[other.node].parent)
    assert len(panel._page.crumbs) > 1
    window.session.select(cell.node)
    assert view._selected_place(panel._page) is not None


def test_a_click_on_the_legend_filters_the_tree(window, qtbot):
    window.workspace.pages.open_page("map")
    panel = window.workspace.pages.page("map").map
    button(panel, "cuda:1").click()
    assert window.search._line.text() == "device:cuda:1"
    tensors = {window.shown.tree.nodes[node].device_text for node in window.shown.matches}
    assert tensors == {"cuda:1"}
    button(panel, "cuda:1").click()
    assert window.shown.matches is None


def test_a_click_on_a_bar_filters_and_a_row_is_marked(window, qtbot):
    window.workspace.pages.open_page("memory")
    page = window.workspace.pages.page("memory")
    bars = page.findChild(ChartView)
    part = next(one for one in range(bars.drawing.count) if bars.drawing.words(one).startswith("cuda:1"))
    qtbot.mouseClick(bars, Qt.MouseButton.LeftButton, pos=bars.center_of(part))
    assert window.shown.query == "device:cuda:1"
    bare = bars.grab().toImage()
    window.session.select(window.shown.matches[0])
    assert "device:cuda:1" in window.shown.marks
    assert bars.grab().toImage() != bare
