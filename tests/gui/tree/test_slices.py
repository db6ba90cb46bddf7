"""Thousands of rows: what is done between two turns of the event loop is bounded, whatever is asked for."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt, QTimer

from inspector.gui.tree.model import Column
from inspector.gui.tree.view import ROWS_A_TURN, TensorTreeView
from tests.gui.tree.test_view import large_tree, rows_in_sight
from tests.work import count_steps

BUCKETS = 4
MOST_STEPS = 100_000
"""About 10 ms; without slices each of the tests takes more than twice as many."""


@pytest.fixture
def view(qtbot, theme) -> TensorTreeView:
    view = TensorTreeView(theme)
    qtbot.addWidget(view)
    view.resize(600, 300)
    view.show_tree(large_tree(BUCKETS * 1_000))
    view.show()
    qtbot.waitExposed(view)
    return view


def turns(qtbot, view: TensorTreeView, begin) -> list[int]:
    """Return the steps of each turn of the event loop, from an action on until nothing is left to do."""
    steps = [count_steps(begin)]
    while view._folds.is_busy or view._copying.is_busy:
        worker = view._folds if view._folds.is_busy else view._copying
        steps.append(count_steps(getattr(worker, "_turns", worker)._step))
    steps.append(count_steps(view.viewport().grab))
    return steps


def test_everything_is_unfolded_in_slices(qtbot, view):
    steps = turns(qtbot, view, view.expand_below)
    assert len(rows_in_sight(view)) == BUCKETS * 1_001
    assert len(steps) >= BUCKETS
    assert max(steps) < MOST_STEPS
    assert view.updatesEnabled()


def test_the_event_loop_unfolds_the_rest(qtbot, view):
    seen = []
    ticks = QTimer(view, interval=0)
    ticks.timeout.connect(lambda: seen.append(view._folds.is_busy))
    ticks.start()
    view.expand_below()
    qtbot.waitUntil(lambda: not view._folds.is_busy)
    assert len(rows_in_sight(view)) == BUCKETS * 1_001
    assert True in seen  # the loop turned meanwhile


def test_what_is_folded_meanwhile_stays_so(qtbot, view):
    view.expand_below()
    view.collapse_all_rows()
    qtbot.wait(5)
    assert len(rows_in_sight(view)) == BUCKETS
    assert view.updatesEnabled()


def test_a_sorted_tree_is_unfolded_as_before_and_the_same_rows_are_selected(qtbot, view):
    view.expand_below()
    view._folds._turns.finish()
    view.selectAll()
    picked, current = view.selected_nodes(), view.model().below(1)[700]
    view.show_selected(current)
    view.selectAll()
    header = view.header()
    steps = turns(qtbot, view, lambda: header.setSortIndicator(Column.NAME, Qt.SortOrder.DescendingOrder))
    names = rows_in_sight(view)
    assert names[:3] == [str(BUCKETS - 1), str(BUCKETS * 1_000 - 1), str(BUCKETS * 1_000 - 2)]
    assert len(names) == BUCKETS * 1_001
    assert view.current_node() == current
    assert sorted(view.selected_nodes()) == sorted(picked)
    assert view.selected_nodes() != picked
    assert max(steps) < MOST_STEPS


def test_what_ends_the_unfolding_of_a_sorted_tree_keeps_the_selected_row(qtbot, view):
    def sort() -> None:
        view.expand_below()
        view._folds._turns.finish()
        view.show_selected(current)
        order = Qt.SortOrder.AscendingOrder if view.order.descending else Qt.SortOrder.DescendingOrder
        view.header().setSortIndicator(Column.NAME, order)
        assert view._sorting.is_busy

    current = view.model().below(0)[1]
    for end in (view.collapse_all_rows, lambda: view.show_matches((current,), only=True)):
        sort()
        end()
        assert view.current_node() == current
        assert not view._sorting.is_busy
        view.show_matches(None, only=True)
    sort()
    view.show_tree(large_tree(1_000))
    view.expand_below()
    view._folds._turns.finish()
    assert view.current_node() is None


def test_few_unfolded_rows_are_sorted_at_once(qtbot, view):
    view.show_tree(large_tree(2_000, rows=3))
    view.expandAll()
    view.header().setSortIndicator(Column.NAME, Qt.SortOrder.DescendingOrder)
    assert not view._folds.is_busy
    assert rows_in_sight(view) == ["1", "1002", "1001", "1000", "0", "2", "1", "0"]


def test_rows_are_copied_in_slices(qtbot, view):
    copied = []
    view.rows_copied.connect(copied.append)
    view.expand_below()
    view._folds._turns.finish()
    view.selectAll()
    steps = turns(qtbot, view, view.copy_rows)
    assert len(steps) > BUCKETS
    assert max(steps) < MOST_STEPS
    assert copied == [view.rows_as_tsv()]
    assert copied[0].count("\n") == BUCKETS * 1_001


def test_a_long_list_is_shown_sorted_and_selected_without_a_look_at_each_row(view):
    nodes = tuple(node for node in range(len(view.model().tree.nodes)) if node % 1_001 > 1)
    view.show_selected(nodes[-1])
    assert count_steps(lambda: view.show_flat(nodes, len(nodes))) < MOST_STEPS / 5
    assert view.current_node() == nodes[-1]
    assert count_steps(lambda: view.show_flat(nodes[::-1], len(nodes))) < MOST_STEPS / 5
    assert view.model().rowCount() == len(nodes)
    assert count_steps(view.selectAll) < 1_000
    assert view.selected_nodes() == list(nodes[::-1])


def test_a_search_that_finds_rows_in_each_branch_looks_at_few_of_them(view):
    tree = large_tree(40 * 1_000)
    view.show_tree(tree)
    matches = tuple(range(1, len(tree.nodes)))
    assert count_steps(lambda: view.show_matches(matches, only=True)) < MOST_STEPS
    assert ROWS_A_TURN < 1_000
