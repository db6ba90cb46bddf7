from __future__ import annotations

from collections.abc import Callable

import pytest
from PySide6.QtCore import QByteArray, QItemSelectionModel, QMimeData, QPoint, QPointF, Qt
from PySide6.QtGui import QDropEvent, QImage
from PySide6.QtWidgets import QApplication, QMenu

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.gui.tree import model
from inspector.gui.tree import view as folding
from inspector.gui.tree.delegate import least_width
from inspector.gui.tree.model import Column
from inspector.gui.tree.view import TensorTreeView
from inspector.records import replace
from inspector.report.query import parse_query
from inspector.report.tree import Tree
from tests.gui import fakes
from tests.gui.tree.test_model import find
from tests.work import count_steps, growth


@pytest.fixture
def tree() -> Tree:
    return fakes.make_tree(fakes.training_leaves(), fakes.COLOURS)


@pytest.fixture
def view(qtbot, theme, tree) -> TensorTreeView:
    view = TensorTreeView(theme)
    qtbot.addWidget(view)
    view.resize(720, 480)
    view.show_tree(tree)
    view.show()
    qtbot.waitExposed(view)
    return view


def rows_in_sight(view: TensorTreeView) -> list[str]:
    names, index = [], view.model().index(0, 0)
    while index.isValid():
        names.append(index.data())
        index = view.indexBelow(index)
    return names


def select(view: TensorTreeView, *nodes: int) -> None:
    view.selectionModel().clear()
    flags = QItemSelectionModel.SelectionFlag.Select | QItemSelectionModel.SelectionFlag.Rows
    for node in nodes:
        view.selectionModel().select(view.model().index_of(node), flags)
    view.selectionModel().setCurrentIndex(view.model().index_of(nodes[-1]), flags)


def test_a_fresh_tree_shows_its_top_level(view, tree):
    assert rows_in_sight(view) == [tree.nodes[child].name for child in tree.nodes[0].children]
    assert len(rows_in_sight(view)) > 1


@pytest.mark.parametrize(("below", "is_open"), [(2, True), (500, True), (501, False)])
def test_a_row_alone_at_the_top_is_unfolded_with_those_below_it(qtbot, theme, below, is_open):
    """Nothing but one folded row would look empty; Qt lays out some hundred rows at once."""
    leaves = [
        fakes.Leaf(names=("run", "model", f"stage{number}", "weight"), device="cpu", shape=(2,))
        for number in range(below)
    ]
    view = TensorTreeView(theme)
    qtbot.addWidget(view)
    view.show_tree(fakes.make_tree(leaves, fakes.COLOURS))
    assert len(rows_in_sight(view)) == (2 + below if is_open else 2)


def test_choosing_a_row_tells_its_node(view, tree, qtbot):
    weight = find(tree, "model", "conv1")
    view.expand(view.model().index_of(find(tree, "model")))
    with qtbot.waitSignal(view.node_chosen) as chosen:
        qtbot.mouseClick(
            view.viewport(),
            Qt.MouseButton.LeftButton,
            pos=view.visualRect(view.model().index_of(weight)).center(),
        )
    assert chosen.args == [weight]
    with qtbot.waitSignal(view.node_activated) as activated:
        qtbot.keyClick(view, Qt.Key.Key_Return)
    assert activated.args == [weight]


def test_showing_a_selection_is_no_choice_of_the_user(view, tree, qtbot):
    deep = find(tree, "optimizer", "state", "fc.bias", "exp_avg")
    with qtbot.assertNotEmitted(view.node_chosen):
        view.show_selected(deep)
    assert view.current_node() == deep
    assert view.visualRect(view.currentIndex()).intersects(view.viewport().rect())
    with qtbot.assertNotEmitted(view.node_chosen):
        view.show_selected(None)
    assert view.current_node() is None


def test_taking_the_keyboard_chooses_nothing(view, qtbot):
    with qtbot.assertNotEmitted(view.node_chosen):
        view.setFocus()


def test_only_the_matches_are_shown_and_everything_comes_back(view, tree):
    before = rows_in_sight(view)
    chosen = find(tree, "model", "layer2", "1", "conv1")
    view.show_selected(chosen)
    matches = tuple(node for node in range(1, len(tree.nodes)) if tree.nodes[node].name == "conv1")
    view.show_matches(matches, only=True)
    names = rows_in_sight(view)
    assert "conv1" in names
    assert "fc" not in names
    assert view.current_node() == chosen
    view.show_matches(matches, only=False)
    assert "fc" in rows_in_sight(view)
    view.show_matches(None, only=True)
    assert [name for name in before if name not in rows_in_sight(view)] == []


def test_rows_are_copied_with_a_title_as_they_stand(view, tree):
    conv, bias = find(tree, "model", "conv1"), find(tree, "model", "bn1")
    view.columns.build_menu().actions()[Column.TYPE - 1].trigger()
    view.header().moveSection(Column.SIZE, 1)
    select(view, bias, conv)
    assert view.rows_as_tsv().splitlines() == [
        "Name\tSize\tDevice\tShape\tValue",
        "conv1\t37.6 KB\tcuda:0\t\t",
        "bn1\t512 B\tcuda:0\t\t",
    ]


def test_no_copied_row_is_a_formula(view, tree, monkeypatch):
    select(view, find(tree, "model", "conv1"))
    monkeypatch.setattr(type(view._rows), "text", lambda *_: "=HYPERLINK(1)\t2")
    _, row = view.rows_as_tsv().splitlines()
    assert set(row.split("\t")) == {"'=HYPERLINK(1) 2"}


def test_expanding_is_limited_and_collapsing_is_not(view, tree, monkeypatch):
    view.collapse_all_rows()
    assert len(rows_in_sight(view)) == len(tree.nodes[0].children)
    select(view, find(tree, "model"))
    view.expand_below()
    assert rows_in_sight(view).count("weight") == 27
    assert "exp_avg" not in rows_in_sight(view)
    view.selectionModel().clear()
    view.expand_below()
    assert "exp_avg" in rows_in_sight(view)
    view.collapse_all_rows()
    monkeypatch.setattr("inspector.gui.tree.view._MOST_ROWS", 20)
    view.expand_below()
    assert len(rows_in_sight(view)) < 30


def test_what_the_user_unfolds_is_remembered_through_a_search(view, tree):
    layer = find(tree, "model", "layer3")
    view.expand(view.model().index_of(layer))
    view.collapse(view.model().index_of(find(tree, "optimizer")))
    before = rows_in_sight(view)
    view.show_matches((find(tree, "model", "fc"),), only=True)
    view.show_matches(None, only=True)
    assert rows_in_sight(view) == before


def test_typing_goes_to_the_next_row_that_begins_so(view, tree, qtbot, monkeypatch):
    monkeypatch.setattr(QApplication, "keyboardInputInterval", lambda: 100_000)  # however busy the machine is
    view.show_selected(find(tree, "model"))
    view.expand(view.currentIndex())
    qtbot.keyClicks(view, "layer")
    assert view.currentIndex().data() == "layer1"
    view._since_typed.invalidate()
    qtbot.keyClicks(view, "l")
    assert view.currentIndex().data() == "layer2"
    view._since_typed.invalidate()
    qtbot.keyClicks(view, "epo")
    assert view.currentIndex().data() == "epoch"
    view._since_typed.invalidate()
    qtbot.keyClicks(view, "zz")
    assert view.currentIndex().data() == "epoch"


def test_sorting_by_the_header(view, qtbot):
    view.header().setSortIndicator(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert rows_in_sight(view)[0] == "optimizer"
    view.header().setSortIndicator(-1, Qt.SortOrder.AscendingOrder)
    assert rows_in_sight(view)[0] == "epoch"


def test_columns_can_be_hidden(view, qtbot):
    menu = view.columns.build_menu()
    assert [action.text() for action in menu.actions()] == ["Device", "Shape", "Type", "Size", "Value"]
    menu.actions()[1].trigger()
    assert view.isColumnHidden(Column.SHAPE)
    menu.actions()[1].trigger()
    assert not view.isColumnHidden(Column.SHAPE)
    view.header().customContextMenuRequested.emit(view.rect().center())
    popup = view.findChildren(QMenu)[-1]
    qtbot.waitUntil(popup.isVisible)
    popup.close()


def test_names_get_the_room_that_is_left_and_never_too_little(view, qtbot):
    view.resize(900, 480)
    others = sum(view.columnWidth(column) for column in list(Column)[1:])
    assert view.columnWidth(Column.NAME) == view.viewport().width() - others
    view.setColumnHidden(Column.SHAPE, True)
    qtbot.waitUntil(lambda: view.columnWidth(Column.NAME) > view.viewport().width() - others)
    view.header().resizeSection(Column.DEVICE, 60)
    others = sum(view.columnWidth(column) for column in list(Column)[1:])
    assert view.columnWidth(Column.NAME) == view.viewport().width() - others
    view.resize(300, 300)
    assert view.columnWidth(Column.NAME) == 180


def test_a_name_that_the_user_made_wider_stays_so_until_its_handle_is_double_clicked(view):
    view.header().resizeSection(Column.NAME, 500)
    view.resize(640, 480)
    assert view.columnWidth(Column.NAME) == 500
    view.header().sectionHandleDoubleClicked.emit(Column.SIZE)
    assert view.columnWidth(Column.NAME) == 500
    view.resize(400, 480)
    view.header().sectionHandleDoubleClicked.emit(Column.NAME)
    assert view.columnWidth(Column.NAME) == 180
    view.header().resizeSection(Column.NAME, 400)
    view.columns.restore(view.header().saveState())
    assert view.columnWidth(Column.NAME) == 180


def test_the_width_of_names_that_the_user_chose_survives_a_restart(view, qtbot, theme, tree):
    def restarted(state: QByteArray) -> TensorTreeView:
        again = TensorTreeView(theme)
        qtbot.addWidget(again)
        again.resize(900, 480)
        again.columns.restore(QByteArray(state.data()))
        again.show_tree(tree)
        again.show()
        return again

    fitted = restarted(view.columns.state())
    assert fitted.columnWidth(Column.NAME) > 180  # takes the room that there is
    view.header().resizeSection(Column.NAME, 333)
    view.header().resizeSection(Column.SIZE, 99)
    again = restarted(view.columns.state())
    assert (again.columnWidth(Column.NAME), again.columnWidth(Column.SIZE)) == (333, 99)
    assert restarted(again.columns.state()).columnWidth(Column.NAME) == 333
    again.header().sectionHandleDoubleClicked.emit(Column.NAME)
    assert restarted(again.columns.state()).columnWidth(Column.NAME) < 333


def test_a_file_without_values_needs_no_column_for_them(view, tree):
    assert not view.isColumnHidden(Column.VALUE)
    bare = fakes.make_tree([fakes.Leaf(names=("a",), device="cpu", shape=(2,))], {})
    view.show_tree(bare)
    assert view.isColumnHidden(Column.VALUE)
    view.show_tree(tree)
    assert not view.isColumnHidden(Column.VALUE)
    view.columns.build_menu().actions()[-1].trigger()
    view.show_tree(tree)
    assert view.isColumnHidden(Column.VALUE)


def test_a_format_without_devices_needs_no_column_for_them(view, tree):
    view.show_tree(replace(tree, colors={NO_DEVICE: -1}))
    assert view.isColumnHidden(Column.DEVICE)
    view.columns.build_menu().actions()[0].trigger()  # wanted all the same
    view.show_tree(replace(tree, colors={NO_DEVICE: -1}))
    assert not view.isColumnHidden(Column.DEVICE)


def test_a_file_on_devices_shows_them_after_one_without(view, tree):
    view.show_tree(replace(tree, colors={NO_DEVICE: -1}))
    view.show_tree(tree)
    assert not view.isColumnHidden(Column.DEVICE)


def arrow(view: TensorTreeView, node: int) -> QPoint:
    cell = view.visualRect(view.model().index_of(node))
    return view._delegate.arrow_of(cell, view.model().level(node)).center()


def test_an_arrow_folds_and_a_double_click_only_folds(view, tree, qtbot):
    folder, leaf = find(tree, "model", "layer1"), find(tree, "epoch")
    index, left = view.model().index_of(folder), Qt.MouseButton.LeftButton
    view.expand(view.model().index_of(find(tree, "model")))
    with qtbot.assertNotEmitted(view.node_activated), qtbot.assertNotEmitted(view.node_chosen):
        qtbot.mouseClick(view.viewport(), left, pos=arrow(view, folder))
        assert view.isExpanded(index)
        qtbot.mouseDClick(view.viewport(), left, pos=arrow(view, folder))
        assert not view.isExpanded(index)
    with qtbot.assertNotEmitted(view.node_activated):
        name = view.visualRect(index).center()
        qtbot.mousePress(view.viewport(), left, pos=name)
        qtbot.mouseDClick(view.viewport(), left, pos=name)
        assert view.isExpanded(index)
        qtbot.mouseDClick(view.viewport(), left, pos=view.visualRect(view.model().index_of(leaf)).center())
        qtbot.mouseClick(view.viewport(), left, pos=arrow(view, leaf))
    assert view.current_node() == leaf


def test_names_at_forty_levels_are_never_empty(view, theme):
    """Each row in sight has room for its name, however deep, and deeper rows stand further to the right."""
    leaves, way = [], ()
    for level in range(40):
        leaves.append(fakes.Leaf(names=(*way, "norm"), device="cpu", shape=(2,)))
        way = (*way, f"block{level}")
    view.show_tree(fakes.make_tree([*leaves, fakes.Leaf(names=(*way, "end"), device="cpu", shape=(2,))], {}))
    view.resize(480, 480)
    view.expand_below()
    steps = set()
    for value in (0, view.verticalScrollBar().maximum() // 2, view.verticalScrollBar().maximum()):
        view.verticalScrollBar().setValue(value)
        view.viewport().grab()
        steps.add(view._delegate.step)
        index, rows, indents = view.indexAt(QPoint(2, 2)), 0, set()
        while index.isValid() and view.visualRect(index).top() < view.viewport().height():
            cell = view.visualRect(index)
            place = view._delegate.arrow_of(cell, view.model().level(index.internalId()))
            assert cell.right() - place.right() >= 95
            indents.add(place.left())
            index, rows = view.indexBelow(index), rows + 1
        assert rows > 10
        assert len(indents) > 5
    assert steps == {6}  # which is the least, and the same wherever one scrolls to


def test_indents_take_their_room_from_values_and_types_first(view):
    leaves = [fakes.Leaf(names=("a", "b", "c", "d", "e", "f", "g", "w"), device="cpu", shape=(2, 3))]
    view.resize(560, 300)
    view.show_tree(fakes.make_tree([fakes.Leaf(names=("a", "w"), device="cpu", shape=(2, 3))], {}))
    view.show_scalars({0: "0.125"})
    flat = [view.columnWidth(column) for column in Column]
    view.show_tree(fakes.make_tree(leaves, {}))
    view.show_scalars({0: "0.125"})
    deep = [view.columnWidth(column) for column in Column]
    assert view._delegate.step >= 6
    assert deep[Column.NAME] >= least_width(7)
    assert deep[Column.SIZE] == flat[Column.SIZE]
    assert deep[Column.VALUE] == 48
    view.collapse_all_rows()
    assert [view.columnWidth(column) for column in Column] == deep  # what is folded may be unfolded again


def test_what_is_left_folded_is_told(view, tree, monkeypatch):
    view.selectionModel().clear()
    assert view.expand_below() == []
    view.collapse_all_rows()
    monkeypatch.setattr("inspector.gui.tree.view._MOST_ROWS", 20)
    left = view.expand_below()
    assert left
    assert all(not view.isExpanded(view.model().index_of(node)) for node in left)
    assert left == sorted(left)
    assert view.name_of(find(tree, "model", "layer1")) == "model.layer1"


def test_all_rows_are_selected_and_copied_in_no_more_work_than_rows(view):
    def prepare(branches: int) -> Callable[[], object]:
        leaf = fakes.Leaf
        names = [(f"b{place}", name) for place in range(branches) for name in ("weight", "bias")]
        view.show_tree(fakes.make_tree([leaf(names=way, device="cpu", shape=(1,)) for way in names], {}))
        view.expand_below()

        def work() -> None:
            view.selectAll()
            assert view.rows_as_tsv().count("\n") == 3 * branches

        return work

    assert growth(prepare, 30, 120) < 1.3


def test_several_rows_are_told_at_once(view, tree, qtbot):
    with qtbot.waitSignal(view.rows_chosen) as chosen:
        view.selectAll()
    assert list(chosen.args[0]) == view.selected_nodes()
    assert len(chosen.args[0]) == len(rows_in_sight(view))
    view.collapse(view.model().index_of(find(tree, "model")))
    with qtbot.waitSignal(view.rows_chosen) as chosen:
        view.show_selected(find(tree, "optimizer"))
    assert chosen.args == [()]


def test_a_drop_is_left_to_the_window(view):
    assert not view.acceptDrops()
    assert not view.viewport().acceptDrops()
    event = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        QMimeData(),
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    view.dropEvent(event)
    assert not event.isAccepted()


def test_a_devices_color_is_on_its_rows(view, theme, tree):
    image: QImage = view.viewport().grab().toImage()
    wanted = {theme.tokens.device(0).name(), theme.tokens.device(1).name()}
    seen = {
        image.pixelColor(x, y).name()
        for x in range(200, min(image.width(), 480), 2)
        for y in range(0, image.height(), 2)
    }
    assert wanted <= seen


def test_no_tree_is_an_empty_one(view):
    view.show_tree(None)
    assert rows_in_sight(view) == []
    assert view.rows_as_tsv() == "Name\tDevice\tShape\tType\tSize\tValue"


def large_tree(tensors: int, rows: int = 1_000) -> Tree:
    """A tree as a large file has it: buckets of a thousand; ids are numbered from top to bottom."""
    leaf, nodes = fakes.make_node, [fakes.make_node()]
    for bucket in range(tensors // 1_000):
        id_ = len(nodes)
        nodes[0].children.append(id_)
        below = list(range(id_ + 1, id_ + 1 + rows))
        name = {"kind": "bucket", "name": str(bucket), "tensors": rows, "children": below}
        nodes.append(leaf(parent=0, row=bucket, **name))
        nodes += [leaf(parent=id_, row=row, name=str(bucket * 1_000 + row)) for row in range(rows)]
    return Tree(nodes=tuple(nodes), tensor_nodes=(), value_nodes=(), colors={})


@pytest.mark.wide
def test_a_large_tree_is_no_more_work_than_what_is_seen_of_it(view, monkeypatch):
    """`benchmarks/window_gaps.py` has the seconds; a million rows behave as these do.

    A tree of a file knows where its branches end; those that are made here are told it before.
    """
    small, large = large_tree(20_000), large_tree(40_000)
    shapes = {id(tree.nodes): model.Shape(tree.nodes) for tree in (small, large)}
    monkeypatch.setattr(model, "Shape", lambda nodes: shapes[id(nodes)])

    def use(tree: Tree) -> int:
        def work() -> None:
            view.show_tree(tree)
            view.grab()
            view.show_selected(len(tree.nodes) - 1)
            view.expand_below()
            view.keyboardSearch("nothing begins so")

        return count_steps(work)

    use(small)
    assert use(large) < 1.2 * use(small)


def test_what_matches_in_a_large_tree_is_shown_in_proportion(view):
    def prepare(rows: int) -> Callable[[], object]:
        tree = large_tree(rows)
        view.show_tree(tree)
        matches = tuple(range(5, len(tree.nodes), 10))
        return lambda: view.show_matches(matches, only=True)

    assert growth(prepare, 2_000, 8_000) < 1.2


@pytest.mark.wide
def test_filtering_a_large_tree_is_no_more_work_than_what_is_seen_of_it(view):
    """What the main thread does between two events; what is searched is done elsewhere."""

    def steps(rows: int) -> int:
        tree = large_tree(rows)
        view.show_tree(tree)
        matches = tuple(range(5, len(tree.nodes), 500))

        def work() -> None:
            view.show_matches(matches, parse_query("0"), only=True)
            assert view.model().rowCount() == rows // 1_000
            view.viewport().grab()
            view.show_matches(None, only=True)

        return count_steps(work)

    steps(2_000)
    assert steps(64_000) < 2 * steps(16_000)


def test_what_was_unfolded_is_so_again_after_a_list_and_a_search_in_it(view, tree):
    view.collapse_all_rows()
    for names in (("model",), ("model", "layer3")):
        view.expand(view.model().index_of(find(tree, *names)))
    before = rows_in_sight(view)
    listed = tree.tensor_nodes
    view.show_flat(listed, len(listed))
    assert rows_in_sight(view)[0] == tree.nodes[listed[0]].path
    found = (find(tree, "model", "fc", "weight"),)
    view.show_matches(found, only=True)
    view.show_flat(found, 1)
    view.show_flat(None)
    assert rows_in_sight(view) == ["model", "fc", "weight"]
    view.show_flat(found, 1)
    view.show_matches(None, only=True)
    view.show_flat(None)
    assert rows_in_sight(view) == before
    view.header().setSortIndicator(Column.SIZE, Qt.SortOrder.DescendingOrder)
    assert view.order == (Column.SIZE, True)


def test_a_scan_shows_a_histogram_for_each_tensor(view, tree):
    bare = fakes.make_tree([fakes.Leaf(names=("a",), device="cpu", shape=(2,))], {"cpu": -1})
    view.resize(700, 200)
    view.show_tree(bare)
    assert view.isColumnHidden(Column.VALUE)
    view.show_sparks(((0, 8, 0, 4),))
    assert not view.isColumnHidden(Column.VALUE)
    cell = view.visualRect(view.model().index_of(bare.tensor_nodes[0]).siblingAtColumn(Column.VALUE))
    picture = view.viewport().grab(cell).toImage()

    def height(place: int) -> int:
        column = 10 + 4 * place + 1  # the padding of a cell, and the width of a bar
        ground = picture.pixelColor(column, 0)
        return sum(picture.pixelColor(column, y) != ground for y in range(picture.height()))

    found = [height(place) for place in range(4)]
    assert found[0] == found[2] == 0
    assert found[1] > 1.5 * found[3] > 0
    view.show_tree(tree)
    assert view._delegate.sparks == ()


def test_a_tensor_of_one_element_shows_its_value(view, tree):
    node = find(tree, "model", "conv1", "weight")
    model = view.model()
    assert model.text(node, Column.VALUE) == ""
    view.show_scalars({tree.nodes[node].index: "20.0"})
    assert model.text(node, Column.VALUE) == "20.0"
    view.show_flat((node,), 1)
    assert view.model().text(node, Column.VALUE) == "20.0"
    view.show_scalars({tree.nodes[node].index: "5.813959432e-06"})
    assert view.model().text(node, Column.VALUE) == "5.81396e-06"
    view.show_tree(tree)
    assert view.model().text(node, Column.VALUE) == ""


def test_the_first_of_very_many_matches_is_in_sight(view, tree, monkeypatch):
    monkeypatch.setattr(folding, "_MATCH_ROWS", 1)
    matches = tuple(node for node in sorted(tree.tensor_nodes) if node >= 0)
    view.show_matches(matches, parse_query("w"), only=True)
    assert tree.nodes[matches[0]].name in rows_in_sight(view)
    folded = len(rows_in_sight(view))
    view.show_flat(matches)
    view.show_flat(None)
    assert len(rows_in_sight(view)) == folded
    view.show_matches((), parse_query("nothing"), only=True)
    assert not rows_in_sight(view)


def test_a_click_on_the_row_that_the_focus_made_current_chooses_it(view, qtbot):
    view.clearFocus()
    view.setFocus(Qt.FocusReason.OtherFocusReason)
    first = view.model().index(0, 0)
    qtbot.waitUntil(lambda: view.currentIndex() == first)
    with qtbot.waitSignal(view.node_chosen) as chosen:
        qtbot.mouseClick(view.viewport(), Qt.MouseButton.LeftButton, pos=view.visualRect(first).center())
    assert chosen.args == [view._rows.node_id(first)]
