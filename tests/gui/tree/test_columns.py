"""How wide the columns are: texts in sight are whole where there is room, and counts are always whole."""

from __future__ import annotations

import pytest

from inspector.gui.tree.columns import WIDTHS, share, squeezed
from inspector.gui.tree.model import Column
from inspector.gui.tree.view import TensorTreeView
from inspector.report.damage import NO_MARKS, Marks
from tests.gui import fakes


def test_counts_are_never_cut_and_other_columns_take_what_is_spare():
    needs = {Column.DEVICE: 100, Column.SHAPE: 150, Column.TYPE: 140, Column.SIZE: 80, Column.VALUE: 300}
    narrow = share(needs, 0)
    assert narrow == {**WIDTHS, Column.DEVICE: 100, Column.TYPE: 140}
    some = share(needs, sum(narrow.values()) + 40)
    assert some == {**narrow, Column.SHAPE: 150, Column.VALUE: 86}
    assert share(needs, 2000)[Column.VALUE] == 260
    assert share({Column.TYPE: 900}, 0) == {Column.TYPE: 150}


@pytest.fixture
def shown(qtbot, theme):
    def show(leaves, values, width=724):
        view = TensorTreeView(theme)
        qtbot.addWidget(view)
        view.resize(width, 480)
        view.show_tree(fakes.make_tree(leaves, values))
        view.show()
        return view

    return show


def cut(view: TensorTreeView) -> list[str]:
    """Return the texts that their columns are too narrow for."""
    delegate, nodes = view._delegate, view._model.tree.nodes
    return [
        f"{column.name}: {view._model.text(node, column)}"
        for node in range(1, len(nodes))
        for column, need in delegate.needs_of([node]).items()
        if view._model.text(node, column) and not view.isColumnHidden(column)
        if need > view.columnWidth(column)
    ]


def test_no_text_is_cut_where_another_column_has_room(shown):
    leaves = [fakes.Leaf(names=(f"w{i}",), device="cpu", shape=(256, 128, 33, 3)) for i in range(4)]
    view = shown(leaves, {("betas",): (0.9, 0.999, 1e-8), ("name",): "a text of some length"})
    assert cut(view) == []
    narrow = shown(leaves, {("betas",): (0.9, 0.999, 1e-8)}, width=300)
    assert any(text.startswith("SHAPE") for text in cut(narrow))  # that this would have found it
    assert not any(text.startswith(("TYPE", "SIZE")) for text in cut(narrow))


def test_values_and_types_leave_before_sizes_are_out_of_sight(shown):
    leaves = [fakes.Leaf(names=(f"w{i}",), device="cuda:0", shape=(256, 128, 3, 3)) for i in range(4)]
    view = shown(leaves, {})
    view.show_scalars({0: "0.125"})

    def gone(width: int) -> list[str]:
        view.resize(width, 480)
        columns = [column for column in Column if not view.isColumnHidden(column)]
        assert sum(map(view.columnWidth, columns)) <= view.viewport().width()
        return [column.name for column in Column if column not in columns]

    assert [gone(width) for width in (724, 520, 450, 724)] == [[], ["VALUE"], ["TYPE", "VALUE"], []]
    view.show_marks(Marks({1: "missing"}))
    assert gone(520) == ["TYPE"]  # what is wrong with a row stands among the values
    view.show_marks(NO_MARKS)
    view.resize(450, 480)
    view.columns.build_menu().actions()[Column.TYPE - 1].trigger()
    assert not view.isColumnHidden(Column.TYPE)
    state = view.columns.state()
    again = shown(leaves, {}, width=450)
    again.columns.restore(state)
    assert not again.isColumnHidden(Column.TYPE)  # whose user wanted it


def test_what_is_wrong_with_a_row_is_not_cut(shown):
    leaves = [fakes.Leaf(names=("a", f"w{i}"), device="cuda:0", shape=(256, 128, 3, 3)) for i in range(9)]
    view = shown(leaves, {})
    view.show_marks(Marks(dict.fromkeys(range(2, 9), "impossible")))
    assert view._model.text(1, Column.VALUE) == "7 impossible"
    assert cut(view) == []


def test_short_names_leave_room_for_long_values(shown):
    """What a value would run says more than the space behind a name of one letter."""
    views = [shown([fakes.Leaf(names=(name,), device="cpu", shape=())], {}) for name in ("x", "x" * 60)]
    for view in views:
        view.show_scalars({0: "posix.system('touch /opt/any/file/of/yours')"})
    short, long = (view.columnWidth(Column.VALUE) for view in views)
    assert short >= long + 80
    assert all(view.columnWidth(Column.NAME) >= 120 for view in views)


def test_columns_that_the_user_sized_stay_until_their_handle_is_double_clicked(shown):
    leaves = [fakes.Leaf(names=("w",), device="cpu", shape=(256, 128, 33, 3))]
    view = shown(leaves, {})
    fitted = view.columnWidth(Column.SHAPE)
    view.header().resizeSection(Column.SHAPE, 60)
    view.resize(900, 480)
    assert view.columnWidth(Column.SHAPE) == 60
    view.resizeColumnToContents(Column.SHAPE)  # which Qt does first
    view.header().sectionHandleDoubleClicked.emit(Column.SHAPE)
    assert view.columnWidth(Column.SHAPE) == fitted


def test_a_column_that_is_hidden_and_shown_again_is_fitted_as_before(shown):
    view = shown([fakes.Leaf(names=("w",), device="cpu", shape=(256, 128, 33, 3))], {})
    widths = [view.columnWidth(column) for column in Column]
    action = view.columns.build_menu().actions()[Column.SHAPE - 1]
    action.trigger()
    assert view.columnWidth(Column.NAME) > widths[Column.NAME]
    action.trigger()
    assert [view.columnWidth(column) for column in Column] == widths


def test_shapes_are_cut_only_where_that_shows_all_columns():
    widths = {Column.DEVICE: 150, Column.SHAPE: 120, Column.TYPE: 100, Column.SIZE: 80, Column.VALUE: 76}
    assert squeezed(widths, 0) == widths
    assert squeezed(widths, 40) == {**widths, Column.VALUE: 48, Column.TYPE: 88}
    assert squeezed(widths, 90) == {
        **widths,
        Column.VALUE: 48,
        Column.TYPE: 76,
        Column.SHAPE: 88,
        Column.DEVICE: 144,
    }
    assert squeezed(widths, 900) == {**widths, Column.VALUE: 48, Column.TYPE: 76}
