from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QMenu

from inspector.gui import menus as module
from inspector.gui.tree.model import Column
from inspector.records import replace
from inspector.report.outline.flat import FlatRows, Order
from inspector.session.values.page import ValuesPage
from tests.gui import fakes
from tests.gui.asked import AskedSession
from tests.gui.tree.test_model import find

READY = replace(fakes.ready_screen(), map_choices=("cpu", "cuda:0"))


@pytest.fixture
def window(make_window):
    window = make_window(READY)
    window.session = AskedSession()
    return window


def menu_at(window, *names: str) -> QMenu:
    window.tree.show_selected(find(READY.tree, *names))
    return module.build_tree_menu(window.actions_by_name, window._theme, window.tree, window._commands)


def entry(menu: QMenu, text: str):
    return next(action for action in menu.actions() if text in action.text().replace("&", ""))


def texts(menu: QMenu) -> list[str]:
    return [action.text().replace("&", "") for action in menu.actions() if not action.isSeparator()]


def test_a_tensor_offers_its_searches_its_map_and_json(window) -> None:
    node, session = find(READY.tree, "model", "fc", "bias"), window.session
    menu = menu_at(window, "model", "fc", "bias")
    assert texts(menu) == [
        "Copy path",
        "Copy as Python expression",
        "Copy rows",
        "Copy as JSON",
        "Look at its values",
        "Show in the map of modules",
        "Show tensors that share its storage",
        "Filter by cuda:1",
        "Leave out of the export\u2026",
        "Map to a device",
        "Collapse all",
    ]
    session.nodes_json.return_value = "{}"
    entry(menu, "JSON").trigger()
    session.nodes_json.assert_called_once_with((node,))
    entry(menu, "share").trigger()
    session.search_sharing.assert_called_once_with(node)
    entry(menu, "Filter").trigger()
    session.search_device.assert_called_once_with(node)
    entry(menu, "Leave out").trigger()
    session.begin_export_without.assert_called_once_with((node,))
    below = entry(menu, "Map").menu()
    assert texts(below) == ["cpu", "cuda:0"]
    below.actions()[1].trigger()
    session.map_branches.assert_called_once_with((node,), "cuda:0")
    for text, page in (("values", "tensor"), ("map of modules", "memory")):
        entry(menu, text).trigger()
        session.select.assert_called_with(node)
        assert window.workspace.pages.current_id == page


def test_a_value_and_a_group_offer_less(window) -> None:
    assert "Show tensors that share its storage" not in texts(menu_at(window, "model", "fc"))
    assert "Filter by cuda:1" in texts(menu_at(window, "model", "fc"))
    assert texts(menu_at(window, "epoch")) == [
        "Copy path",
        "Copy rows",
        "Copy as JSON",
        "Leave out of the export\u2026",
        "Collapse all",
    ]


def test_too_many_rows_are_not_mapped_one_by_one(window, monkeypatch) -> None:
    monkeypatch.setattr(module, "MOST_MAPPED", 1)
    window.tree.selectAll()
    menu = module.build_tree_menu(window.actions_by_name, window._theme, window.tree, window._commands)
    assert not entry(menu, "Map").menu().isEnabled()


def test_letters_and_markup_in_a_device_are_shown_as_they_are(window) -> None:
    node = READY.tree.nodes[find(READY.tree, "model", "fc", "bias")]
    old, node.devices = node.devices, (("a&b\u202e", 1),)
    try:
        assert any(
            "a&&b\\u202e" in action.text() for action in menu_at(window, "model", "fc", "bias").actions()
        )
    finally:
        node.devices = old


def test_each_letter_selects_one_entry(window) -> None:
    menu = menu_at(window, "model", "fc", "bias")
    letters = [
        text[text.index("&") + 1].lower() for action in menu.actions() if "&" in (text := action.text())
    ]
    assert len(letters) == len(set(letters))


def test_a_list_is_asked_for_in_the_order_of_the_tree_and_given_back(window) -> None:
    window.tree.header().setSortIndicator(Column.SIZE, Qt.SortOrder.DescendingOrder)
    window.actions_by_name["flat"].trigger()
    window.session.list_flat.assert_called_once_with(Order(Column.SIZE, descending=True))
    window.show_screen(replace(READY, flat=FlatRows((3,), 1)))
    window.actions_by_name["flat"].trigger()
    window.session.list_flat.assert_called_with(None)


def test_one_walks_the_matches_as_they_stand(window) -> None:
    """From match to match in the tree, from a row between them to the next, and in the order of a list."""

    def reached(screen, step: int) -> int:
        window.show_screen(screen)
        window.actions_by_name["find_next" if step > 0 else "find_previous"].trigger()
        return window.session.select.call_args.args[0]

    found = replace(READY, matches=(4, 7, 9))
    wanted = {None: (4, 9), 4: (7, 9), 9: (4, 7), 5: (7, 4), 12: (4, 9)}
    for selected, steps in wanted.items():
        screen = replace(found, selected=selected)
        assert tuple(reached(screen, step) for step in (1, -1)) == steps, selected
    listed = replace(found, flat=FlatRows((9, 4, 7), 3))
    for selected, steps in {9: (4, 7), 4: (7, 9), None: (9, 7)}.items():
        screen = replace(listed, selected=selected)
        assert tuple(reached(screen, step) for step in (1, -1)) == steps, selected


def test_back_and_forward_are_the_sessions(window) -> None:
    window.show_screen(replace(READY, can_go=(True, True)))
    window.actions_by_name["back"].trigger()
    window.actions_by_name["forward"].trigger()
    assert [call.args for call in window.session.go.call_args_list] == [(-1,), (1,)]


def test_what_stays_folded_is_told_and_a_slice_has_no_path(window, monkeypatch) -> None:
    monkeypatch.setattr("inspector.gui.tree.view._MOST_ROWS", 5)
    window.tree.collapse_all_rows()
    window.tree.selectionModel().clear()
    window.actions_by_name["expand"].trigger()
    assert "left folded: too many rows; first: " in window.statusBar().currentMessage()
    window.session.node_path.return_value = ""
    window.tree.show_selected(find(READY.tree, "model"))
    window.actions_by_name["copy_path"].trigger()
    assert window.statusBar().currentMessage() == "A slice of a long list has no path"


def test_an_item_of_a_tuple_says_why_it_cannot_be_left_out(window) -> None:
    window.session.can_leave_out.return_value = False
    without = entry(menu_at(window, "model", "fc", "bias"), "Leave out")
    assert not without.isEnabled()
    assert "tuple" in without.text()


def test_a_tensor_is_saved_and_its_code_copied(window, monkeypatch, qapp) -> None:
    node, session = find(READY.tree, "model", "fc", "bias"), window.session
    values = ValuesPage(
        row=0,
        title="model/fc.bias",
        forms=((".npy", "NumPy array"), (".safetensors", "safetensors")),
    )
    screen = replace(READY, selected=node, values=values, path="/data/best.pth")
    window.shown = screen
    asked = []
    for answer, saved in (
        (("/tmp/a.npy", ""), "/tmp/a.npy"),
        (("/tmp/a.b", "safetensors (*.safetensors)"), "/tmp/a.b.safetensors"),
        (("/tmp/a", ""), "/tmp/a.npy"),
    ):
        monkeypatch.setattr(
            QFileDialog, "getSaveFileName", lambda *what, one=answer: asked.append(what) or one
        )
        entry(menu_at(window, "model", "fc", "bias"), "Save as").trigger()
        session.save_values.assert_called_with(saved)
        assert window.workspace.pages.current_id == "tensor"
    assert asked[0][2:] == ("/data/model.fc.bias.npy", "NumPy array (*.npy);;safetensors (*.safetensors)")
    session.save_values.reset_mock()
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: ("", ""))
    entry(menu_at(window, "model", "fc", "bias"), "Save as").trigger()
    session.save_values.assert_not_called()
    session.tensor_code.return_value = "tensor = 1"
    entry(menu_at(window, "model", "fc", "bias"), "Copy code").trigger()
    session.tensor_code.assert_called_once_with(node)
    assert qapp.clipboard().text() == "tensor = 1"
    window.shown = replace(screen, values=replace(values, forms=(), no_code="It is a part of another."))
    menu = menu_at(window, "model", "fc", "bias")
    assert [entry(menu, text).isEnabled() for text in ("Save as", "Copy code")] == [False, False]
