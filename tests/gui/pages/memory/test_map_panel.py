from __future__ import annotations

from functools import partial

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QFontMetricsF, QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QPushButton, QToolTip

from inspector.gui.pages.memory.map_panel import MapPart
from inspector.gui.pages.memory.treemap_paint import TreemapPainter, snapped
from inspector.records import replace
from inspector.report.charts.modules import ModuleMap
from inspector.session.screen import Screen
from tests.gui import fakes
from tests.gui.looking import button, said
from tests.unit.report.charts.maps import map_of, node_of, sized
from tests.unit.report.rows import checkpoint, storage, tensor

FILE = sized(
    {"conv.w": 4 * 10**6, "conv.bias": 3 * 10**6, "head.w": 10**6}
    | {f"tiny.{n}": 40 for n in range(7)}
    | {"t": 40}
)


def screen_of(page: ModuleMap, **fields: object) -> Screen:
    return replace(fakes.empty_screen(), phase="ready", module_map=page, tree=page.areas.tree, **fields)


@pytest.fixture
def panel(qtbot, theme) -> MapPart:
    panel = MapPart(theme)
    qtbot.addWidget(panel)
    panel.resize(560, 500)
    panel.asked = []
    for name in ("coloring_wanted", "root_wanted", "node_chosen", "query_wanted"):
        getattr(panel, name).connect(partial(lambda kind, value: panel.asked.append((kind, value)), name))
    panel.show()
    qtbot.waitExposed(panel)
    return panel


def middle(panel: MapPart, node: int, what: str = "row") -> QPoint:
    cells = panel.view.picture.cells
    return snapped(next(cell.box for cell in cells if (cell.node, cell.what) == (node, what))).center()


def test_a_map_that_is_not_measured_yet_is_not_drawn(panel):
    panel.show_screen(replace(fakes.ready_screen(), module_map=None))
    assert not panel.is_drawn


def test_cells_have_the_colors_of_their_devices(panel, theme):
    page = map_of(FILE)
    panel.show_screen(screen_of(page))
    assert panel.is_drawn
    image = panel.view.grab().toImage()

    def color(*names: str) -> str:
        place = middle(panel, node_of(page.areas, "model", *names))
        return image.pixelColor(place).name()

    assert color("conv", "w") == color("head", "w") == theme.tokens.device(0).name()
    assert color("conv", "bias") == theme.tokens.device(-1).name()
    assert "8.0 MB in 11 tensors" in said(panel)


def test_what_is_missing_is_hatched(panel, theme):
    rows = (tensor("m", "here", storage="0"), tensor("m", "gone", storage="1", device="cuda:0"))
    page = map_of(checkpoint(*rows, storage("0"), storage("1", "cuda:0", missing=True)))
    panel.show_screen(screen_of(page))
    image = panel.view.grab().toImage()

    def colors(name: str) -> set[str]:
        place = middle(panel, node_of(page.areas, "m", name))
        return {image.pixelColor(place.x() + x, place.y()).name() for x in range(40)}

    assert colors("here") == {theme.tokens.device(-1).name()}
    assert len(colors("gone")) > 1
    assert "16 B in 1 storage is missing from the file, and hatched." in said(panel)


def test_a_mixed_group_shows_its_parts_in_proportion(panel, theme):
    rows = []
    for number in range(400):  # too many to be told apart in so small a place
        rows += [tensor("m", f"{number}", storage=str(number), device=f"cuda:{number % 4 // 3}")]
        rows += [storage(str(number), nbytes=100)]
    page = map_of(checkpoint(*rows))
    panel.show_screen(screen_of(page))
    panel.view.setFixedSize(100, 60)
    assert len(panel.view.picture.cells) == 1
    image = panel.view.grab().toImage()
    row = [image.pixelColor(x, 50).name() for x in range(99)]
    assert row.count(theme.tokens.device(0).name()) == pytest.approx(75, abs=2)
    assert row.count(theme.tokens.device(1).name()) == pytest.approx(25, abs=2)


def test_a_search_dims_what_does_not_match(panel, theme):
    page = map_of(FILE)
    bias = node_of(page.areas, "model", "conv", "bias")
    model, weight = node_of(page.areas, "model"), node_of(page.areas, "model", "conv", "w")
    tiny = node_of(page.areas, "model", "tiny", "3")

    def colors(*matches: int) -> list[str]:
        panel.show_screen(screen_of(page, matches=tuple(sorted(matches))))
        image = panel.view.grab().toImage()
        rest = snapped(next(cell.box for cell in panel.view.picture.cells if cell.what == "rest"))
        places = (middle(panel, bias), middle(panel, weight), QPoint(rest.right() - 4, rest.center().y()))
        return [image.pixelColor(place).name() for place in places]

    full = [theme.tokens.device(-1).name(), theme.tokens.device(0).name()]
    for matches, bright in (((bias,), (0,)), ((weight, bias), (0, 1)), ((tiny,), ()), ((model,), ())):
        found = colors(*matches)
        assert [index for index in (0, 1) if found[index] == full[index]] == list(bright), matches


def test_smaller_rows_match_by_what_has_no_cell_of_its_own(panel):
    page = map_of(FILE)
    panel.show_screen(screen_of(page, matches=()))
    painter = TreemapPainter(page, panel._theme.tokens, [], panel.font())
    cells = panel.view.picture.cells
    rest = next(cell for cell in cells if cell.what == "rest")
    areas = page.areas
    shown, hidden = node_of(areas, "model", "conv", "w"), node_of(areas, "model", "tiny", "2")
    assert not painter._is_match(rest, [shown])
    assert not painter._is_match(rest, [rest.node])
    assert painter._is_match(rest, [hidden])
    assert painter._is_match(rest._replace(what="own"), [rest.node])
    assert not painter._is_match(rest._replace(what="own"), [hidden])
    assert not painter._is_match(rest._replace(what="loose", node=0), [0, 1, 2])


def test_no_two_tiles_read_alike_and_mean_different_rows(panel, monkeypatch):
    """Names that differ nowhere but where they are cut are not written at all."""
    names = [f"longlonglong{number}longlonglong" for number in range(4)] + ["exp_avg", "exp_avg_sq"] * 2
    panel.show_screen(screen_of(map_of(sized({f"{at}.{name}": 10**6 for at, name in enumerate(names)}))))
    drawn = []
    monkeypatch.setattr(TreemapPainter, "_paint_label", lambda _self, _painter, label: drawn.append(label))
    cut, advance = 0, QFontMetricsF(panel.view.small_font()).horizontalAdvance
    for width in range(160, 800, 40):
        drawn.clear()
        panel.view.resize(width, 300)
        panel.view.grab()
        names = {label.text: {other.name for other in drawn if other.text == label.text} for label in drawn}
        assert all(len(meant) == 1 for meant in names.values()), (width, names)
        assert all(advance(label.text) <= label.room.width() for label in drawn), width
        cut += sum("\u2026" in text for text in names)
    assert cut


def test_smaller_rows_can_be_entered_and_left(panel, qtbot):
    page = map_of(sized({"big": 10**9} | {f"s{n}": (n + 50) * 1000 for n in range(30)}))
    root = node_of(page.areas, "model")
    page = map_of(page.areas.checkpoint, root=root)
    panel.show_screen(screen_of(page))
    view = panel.view
    before = view.picture
    place = middle(panel, root, "rest")
    qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=place)
    assert {cell.what for cell in view.picture.cells} == {"row"}
    assert len(view.picture.cells) == 30
    assert "30 smaller tensors" in said(panel)
    panel.show_screen(screen_of(page, selected=view.picture.cells[0].node))
    assert len(view.picture.cells) == 30
    button(panel, "model").click()
    assert view.picture == before
    qtbot.mouseDClick(view, Qt.MouseButton.LeftButton, pos=place)
    qtbot.keyClick(view, Qt.Key.Key_Backspace)
    assert view.picture == before
    assert ("root_wanted", 0) not in panel.asked
    qtbot.keyClick(view, Qt.Key.Key_Backspace)
    assert panel.asked[-1] == ("root_wanted", 0)


def test_a_click_selects_and_a_double_click_shows_more(panel, qtbot):
    page = map_of(FILE)
    panel.show_screen(screen_of(page))
    areas = page.areas
    weight, conv = node_of(areas, "model", "conv", "w"), node_of(areas, "model", "conv")
    qtbot.mouseClick(panel.view, Qt.MouseButton.LeftButton, pos=middle(panel, weight))
    assert panel.asked == [("node_chosen", weight)]
    qtbot.mouseDClick(panel.view, Qt.MouseButton.LeftButton, pos=middle(panel, weight))
    assert panel.asked[-1] == ("root_wanted", conv)
    panel.asked.clear()
    panel.show_screen(screen_of(map_of(FILE, root=conv)))
    assert "7.0 MB in 2 tensors" in said(panel)
    qtbot.mouseDClick(panel.view, Qt.MouseButton.LeftButton, pos=middle(panel, weight))
    assert [kind for kind, _ in panel.asked] == []  # there is nothing more below
    qtbot.mouseClick(panel.view, Qt.MouseButton.BackButton, pos=QPoint(5, 5))
    assert panel.asked == [("root_wanted", node_of(areas, "model"))]


def test_smaller_rows_lead_to_their_group(panel, qtbot):
    page = map_of(FILE)
    panel.show_screen(screen_of(page))
    rest = next(cell for cell in panel.view.picture.cells if cell.what == "rest")
    panel.view._go_into(rest)
    assert panel.asked == [("root_wanted", node_of(page.areas, "model"))]


def test_the_keys_do_all_that_the_pointer_does(panel, qtbot):
    page = map_of(FILE)
    areas = page.areas
    weight = node_of(areas, "model", "conv", "w")
    panel.show_screen(screen_of(page))
    view = panel.view
    view.setFocus()
    press = partial(QTest.keyClick, view)
    press(Qt.Key.Key_Return)
    assert panel.asked == []  # no cell is current
    press(Qt.Key.Key_Down)
    assert panel.asked == [("node_chosen", weight)]  # the largest
    assert view.accessibleDescription().startswith("model/conv.w, 4.0 MB")
    press(Qt.Key.Key_End)
    press(Qt.Key.Key_Home)
    assert panel.asked[-1] == ("node_chosen", weight)
    before = view.cursor_cell
    for key in (Qt.Key.Key_Right, Qt.Key.Key_Down, Qt.Key.Key_Left, Qt.Key.Key_Up):
        press(key)
    assert {value for kind, value in panel.asked if kind == "node_chosen"} > {weight}
    press(Qt.Key.Key_Home)
    assert view.cursor_cell == before
    press(Qt.Key.Key_Return)
    assert panel.asked[-1] == ("root_wanted", node_of(areas, "model", "conv"))
    panel.asked.clear()
    press(Qt.Key.Key_Backspace)
    assert panel.asked == []  # the whole file is shown


def test_the_way_out_by_key(panel):
    page = map_of(FILE)
    panel.show_screen(screen_of(map_of(FILE, root=node_of(page.areas, "model", "conv"))))
    QTest.keyClick(panel.view, Qt.Key.Key_Backspace)
    assert panel.asked == [("root_wanted", node_of(page.areas, "model"))]
    QTest.keyClick(panel.view, Qt.Key.Key_A)
    panel.view.setFixedSize(0, 0)
    QTest.keyClick(panel.view, Qt.Key.Key_Left)
    assert len(panel.asked) == 1


def test_the_keys_begin_at_the_selected_row(panel):
    page = map_of(FILE)
    bias = node_of(page.areas, "model", "conv", "bias")
    panel.show_screen(screen_of(page, selected=bias))
    panel.view.setFocus()
    QTest.keyClick(panel.view, Qt.Key.Key_Left)
    assert panel.asked == [("node_chosen", bias)]


def test_the_selected_row_is_outlined(panel, theme):
    page = map_of(FILE)
    areas = page.areas
    panel.show_screen(screen_of(page))
    panel.grab()  # which gives the map its size
    for names in (("conv", "bias"), ("conv",), ("head", "w")):
        node = node_of(areas, "model", *names)
        panel.show_screen(screen_of(page, selected=None))
        bare = panel.view.grab().toImage()
        panel.show_screen(screen_of(page, selected=node))
        marked = panel.view.grab().toImage()
        area = panel.view._selected_place(page)
        corner = area.topLeft() + QPoint(1, 1)
        assert bare != marked, names
        assert marked.pixelColor(corner).name() == theme.tokens.colors["text"], names
    for node in (0, None, 10**6):
        panel.show_screen(screen_of(page, selected=node))
        assert panel.view._selected_place(page) is None


def test_what_is_pointed_at_is_said(panel, qtbot):
    page = map_of(FILE)
    panel.show_screen(screen_of(page))
    place = middle(panel, node_of(page.areas, "model", "head", "w"))
    panel.view.event(QHelpEvent(QEvent.Type.ToolTip, place, panel.view.mapToGlobal(place)))
    assert "model/head.w\n1.0 MB (1,000,000 bytes), 12.5% of the file" in QToolTip.text()
    panel.view._hover(panel.view._cell_at(QPointF(place)))
    assert any(text.startswith("model/head.w \u00b7 1.0 MB") for text in said(panel))
    panel.view.grab()
    panel.view._hover(None)
    assert panel._pointed.text() == "8.0 MB in 11 tensors"
    panel.view.event(QHelpEvent(QEvent.Type.ToolTip, QPoint(-5, -5), QPoint(0, 0)))


def test_the_legend_filters_and_shows_what_is_filtered(panel, qtbot):
    page = map_of(FILE)
    panel.show_screen(screen_of(page))
    legend = button(panel, "cuda:0")
    assert legend.text() == "cuda:0  5.0 MB  63%"
    legend.click()
    assert panel.asked == [("query_wanted", "device:cuda:0")]
    panel.show_screen(screen_of(page, query="device:cuda:0"))
    assert button(panel, "cuda:0") is legend
    assert legend.isChecked()
    assert not button(panel, "cpu").isChecked()
    legend.click()
    assert panel.asked[-1] == ("query_wanted", "")


def test_colors_by_dtype_and_role(panel, qtbot):
    panel.show_screen(screen_of(map_of(FILE, by="role")))
    assert button(panel, "parameter").text() == "parameter  8.0 MB  100%"
    panel._by.activated.emit(1)
    assert panel.asked == [("coloring_wanted", "dtype")]


def test_many_kinds_are_short_and_the_last_are_one(panel):
    rows = []
    for number in range(30):
        rows += [tensor("m", f"{number}", storage=str(number), device=f"cuda:{number}")]
        rows += [storage(str(number), nbytes=1000)]
    panel.show_screen(screen_of(map_of(checkpoint(*rows))))
    assert button(panel, "cuda:3").text() == "cuda:3  3%"
    assert button(panel, "cuda:3").accessibleName() == "cuda:3  1.0 KB  3%"
    assert "12 more, 12.0 KB" in said(panel)


def test_the_way_back_is_short(panel):
    rows = []
    for number, name in enumerate(("t", "a/t", "a/b/t", "a/b/c/t", "a/b/c/d/t", "a/b/c/d/e/t")):
        rows += [tensor(*name.split("/"), storage=str(number)), storage(str(number), nbytes=500)]
    file = checkpoint(*rows)
    page = map_of(file)
    e = node_of(page.areas, "a", "b", "c", "d", "e")
    panel.show_screen(screen_of(map_of(file, root=e)))
    crumbs = [each for each in panel.findChildren(QPushButton) if each.property("kind") == "crumb"]
    texts = [each.text() for each in crumbs]
    assert texts == ["Whole file", "\u2026", "d"]
    panel.grab()
    assert all(each.width() >= each.sizeHint().width() for each in crumbs)
    button(panel, "d").click()
    button(panel, "\u2026").click()
    areas = page.areas
    assert panel.asked == [
        ("root_wanted", node_of(areas, "a", "b", "c", "d")),
        ("root_wanted", node_of(areas, "a", "b", "c")),
    ]


def test_the_map_follows_the_theme_and_the_size(panel, theme):
    page = map_of(FILE)
    panel.show_screen(screen_of(page))
    panel.view.grab()
    theme.set_mode("dark")
    weight = node_of(page.areas, "model", "conv", "w")
    image = panel.view.grab().toImage()
    assert image.pixelColor(middle(panel, weight)).name() == theme.tokens.device(0).name()
    panel.resize(900, 700)
    assert sum(cell.box.area for cell in panel.view.picture.cells) == pytest.approx(
        panel.view.width() * panel.view.height()
    )


def test_a_map_without_bytes_is_empty(panel):
    panel.show_screen(screen_of(map_of(checkpoint(tensor("m", device="meta")))))
    assert panel.view.picture.cells == ()
    panel.view.grab()


def test_one_tensor_fills_the_map(panel, qtbot):
    panel.show_screen(screen_of(map_of(checkpoint(tensor("w", storage="0"), storage("0")))))
    assert len(panel.view.picture.cells) == 1
    panel.view.grab()
    qtbot.mouseDClick(panel.view, Qt.MouseButton.LeftButton, pos=QPoint(50, 50))
    assert all(kind == "node_chosen" for kind, _ in panel.asked)


def test_bytes_of_nobody_cannot_be_chosen(panel, qtbot):
    panel.show_screen(screen_of(map_of(checkpoint(tensor("a", storage="0"), storage("0"), storage("1")))))
    loose = middle(panel, 0, "loose")
    qtbot.mouseClick(panel.view, Qt.MouseButton.LeftButton, pos=loose)
    qtbot.mouseDClick(panel.view, Qt.MouseButton.LeftButton, pos=loose)
    assert panel.asked == []


def test_the_map_is_a_table_for_keys_and_screen_readers(panel, qtbot):
    page = map_of(FILE)
    model = node_of(page.areas, "model")
    panel.show_screen(screen_of(map_of(FILE, root=model)))
    panel.view.setFocus()
    button_, table = panel._as_table, panel.table
    assert button_.accessibleName() == "Show the map as a table"
    button_.click()
    assert (table.isVisible(), panel.view.isVisible(), table.hasFocus()) == (True, False, True)
    names = [table.model().index(row, 0).data() for row in range(table.model().rowCount())]
    assert names == ["conv", "head", "tiny", "t"]
    panel.asked.clear()
    QTest.keyClick(table, Qt.Key.Key_Return)
    QTest.keyClick(table, Qt.Key.Key_Down)
    conv, head = (node_of(page.areas, "model", name) for name in ("conv", "head"))
    assert panel.asked == [("root_wanted", conv), ("node_chosen", head)]
    QTest.keyClick(table, Qt.Key.Key_Backspace)
    assert panel.asked[-1] == ("root_wanted", 0)
    panel.asked.clear()
    last = node_of(page.areas, "model", "t")
    panel.show_screen(screen_of(map_of(FILE, root=model), selected=last))
    assert (table.currentIndex().row(), panel.asked) == (3, [])  # shown, and not chosen
    table.doubleClicked.emit(table.model().index(3, 0))
    assert panel.asked == []  # nothing is in it
    assert table.model().index(0, 1).data(Qt.ItemDataRole.AccessibleTextRole) == "Size: 7.0 MB"
    panel.show_screen(screen_of(page))
    QTest.keyClick(table, Qt.Key.Key_Backspace)
    assert panel.asked == []
    button_.click()
    assert panel.view.isVisible()


def test_markup_in_the_name_of_a_module_is_shown_as_it_is(panel):
    """A tooltip of Qt that is rich text would load the picture, from another machine too."""
    name = '<img src="//host/a.png"><b>w'
    file = sized({name: 4 * 10**6, "conv.w": 10**6})
    panel.show_screen(screen_of(map_of(file, root=node_of(map_of(file).areas, "model"))))
    panel._as_table.click()
    model = panel.table.model()
    tips = [model.index(row, 0).data(Qt.ItemDataRole.ToolTipRole) for row in range(model.rowCount())]
    assert any("&lt;img" in tip for tip in tips)
    assert not any("<img" in tip or "<b>" in tip for tip in tips)
