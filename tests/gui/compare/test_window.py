"""The window of a comparison with its real session: by keyboard alone, and as a screen reader has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from PySide6.QtCore import QModelIndex, Qt
from PySide6.QtGui import QAccessible, QGuiApplication
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QPushButton, QToolButton, QWidget

from inspector.gui.compare.window import CompareWindow, bar_width
from inspector.gui.theme.theme import Theme
from inspector.progress import Progress
from inspector.session.comparing.listing import COLUMNS
from inspector.session.comparing.session import CompareSession
from tests.builders import pickles as p
from tests.builders.states import Raw, T, save_zip
from tests.gui.looking import colors_in
from tests.unit.diff.test_compare import V, W
from tests.unit.session.documents import AtOnce

A = {"m": {"l.w": T(W, device="cuda:0"), "l.v": T(V)}, "lr": 0.1, "old": T([1.0, 2.0])}
B = {"m": {"l.w": T(V), "l.v": T(V)}, "lr": 0.2, "new": T([3.0])}


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def window(qtbot, theme, runner, tmp_path):
    paths = [save_zip(tmp_path / f"{name}.pt", state) for name, state in (("a", A), ("b", B))]
    window = CompareWindow(theme)
    window.attach(CompareSession(window, runner, *paths))
    qtbot.addWidget(window)
    window.show()
    window.activateWindow()
    window.session.compare()
    yield window
    window.detach()


PLACES = {name: place for place, name in enumerate(COLUMNS)}


def texts(window: CompareWindow, parent: QModelIndex | None = None) -> list[list[str]]:
    """The cells of all that is listed, from top to bottom, without empty ones at the end."""
    model, found = window.tree.model(), []
    parent = parent or QModelIndex()
    for row in range(model.rowCount(parent)):
        cells = [str(model.index(row, place, parent).data()) for place in PLACES.values()]
        while not cells[-1]:
            cells.pop()
        found += [cells, *texts(window, model.index(row, 0, parent))]
    return found


def test_both_files_stand_side_by_side(window, tmp_path) -> None:
    assert window.windowTitle() == "a.pt \u2194 b.pt - Checkpoint Inspector"
    assert texts(window) == [
        ["m/l", "", "0.5601", "0.915767", "4"],  # with the one that is equal
        [
            *("w", "~ device, values", "1.461", "0.968864", "4"),
            *("float32 4, 16 B, cuda:0", "float32 4, 16 B, cpu"),
        ],
        ["old", "- removed", "", "", "", "float32 2, 8 B, cpu"],
        ["new", "+ added", "", "", "", "", "float32 1, 4 B, cpu"],
        ["lr", "~ value", "", "", "", "0.1", "0.2"],
    ]
    header = [window.tree.model().headerData(place, Qt.Orientation.Horizontal) for place in PLACES.values()]
    assert header == ["Name", "Change", "Relative", "Cosine", "Largest step", "A: a.pt", "B: b.pt"]
    assert window.tree.model().headerData(0, Qt.Orientation.Vertical) is None


def test_the_model_is_sound(window, qtmodeltester) -> None:
    model = window.tree.model()
    qtmodeltester.check(model)
    group = model.index(0, 0)
    place = model.index(0, 0, group)
    assert "m/l.w" in place.data(Qt.ItemDataRole.ToolTipRole)
    tooltips = {
        name: place.siblingAtColumn(PLACES[name]).data(Qt.ItemDataRole.ToolTipRole) for name in ("a", "what")
    }
    assert "cuda:0" in tooltips["a"]
    assert "values differ" in tooltips["what"]
    spoken = place.data(Qt.ItemDataRole.AccessibleTextRole)
    assert spoken.startswith("m/l.w, changed: device cuda:0 \u2192 cpu; values differ, relative ")
    assert group.data(Qt.ItemDataRole.ToolTipRole)
    assert group.data(Qt.ItemDataRole.AccessibleTextRole) is None
    what = place.siblingAtColumn(PLACES["what"])
    assert what.data(Qt.ItemDataRole.ForegroundRole) is not None
    assert not model.index(7, 0).isValid()


def test_a_figure_has_a_bar_in_proportion(window, theme) -> None:
    model = window.tree.model()
    place = model.index(0, PLACES["relative"], model.index(0, 0))
    assert model.share(place) == 1.0
    assert model.share(place.siblingAtColumn(0)) == 0.0
    inks = colors_in(window.tree.grab().toImage())
    assert {theme.tokens.color(ink).name() for ink in ("accent", "border_strong")} <= inks


@pytest.mark.parametrize(("advance", "length"), [(30, 36), (78, 18), (200, 0)])
def test_a_bar_covers_no_digit(advance, length) -> None:
    """The figure of a counter, such as 8.008e+04, leaves no room for a whole bar."""
    assert bar_width(1.0, 100, advance) == length


def test_a_click_on_a_title_sorts_and_keeps_what_is_unfolded(window) -> None:
    window.session.show_equal(shown=True)
    header, model = window.tree.header(), window.tree.model()
    window.tree.collapse(model.index(0, 0))
    header.sectionClicked.emit(PLACES["largest"])
    assert window.shown.order == ("largest", True)
    assert (header.sortIndicatorSection(), header.sortIndicatorOrder()) == (
        PLACES["largest"],
        Qt.SortOrder.DescendingOrder,
    )
    assert not window.tree.isExpanded(model.index(0, 0))
    window.tree.expand(model.index(0, 0))
    header.sectionClicked.emit(PLACES["largest"])
    assert window.shown.order == ("largest", False)
    assert window.tree.isExpanded(model.index(0, 0))
    header.sectionClicked.emit(PLACES["cosine"])
    assert window.shown.order == ("cosine", False)  # the least alike first


def reached(window: CompareWindow) -> list[QWidget]:
    """All that Tab comes to, from the tree on."""
    order: list[QWidget] = [window.tree]
    while len(order) < 40:
        QTest.keyClick(QApplication.focusWidget(), Qt.Key.Key_Tab)
        if QApplication.focusWidget() in order:
            break
        order.append(QApplication.focusWidget())
    return [widget for widget in order if isinstance(widget, QPushButton | QToolButton | QCheckBox)]


def press(widget: QWidget, key: Qt.Key = Qt.Key.Key_Space) -> None:
    widget.setFocus()
    QTest.keyClick(widget, key)


def test_what_both_say_takes_room_only_when_a_row_is_selected(window, qtbot) -> None:
    assert window.facts.isHidden()
    assert any(label.text().startswith("Select a row") for label in window.statusBar().findChildren(QLabel))
    last = window.tree.model().index(window.tree.model().rowCount() - 1, 0)
    window.tree.setCurrentIndex(last)
    assert not window.facts.isHidden()
    qtbot.waitUntil(lambda: window.tree.viewport().rect().contains(window.tree.visualRect(last)))


def test_comparing_with_the_keyboard_alone(window, qtbot) -> None:
    """Look at a row and its numbers, narrow the list, copy the text."""
    qtbot.waitUntil(window.tree.hasFocus)
    while window.shown.selection is None:
        QTest.keyClick(window.tree, Qt.Key.Key_Down)
    assert window.shown.selection.title == "m/l.w"
    by_name = {widget.accessibleName() or widget.text(): widget for widget in reached(window)}
    assert {"Copy as text", "List equal tensors too", "Compare B with A"} <= set(by_name)
    assert window.shown.selection.numbers.startswith("4 of 4 elements differ")
    chip = by_name["Only other values: 1"]
    press(chip)
    assert texts(window) == [["lr", "~ value", "", "", "", "0.1", "0.2"]]
    press(chip)
    press(by_name["List equal tensors too"])
    same = ["float32 4, 16 B, cpu", "the same"]
    assert ["v", "= equal", "0", "1.000000", "0", *same] in texts(window)
    both = Qt.KeyboardModifier.ControlModifier | Qt.KeyboardModifier.ShiftModifier
    QTest.keyClick(window, Qt.Key.Key_C, both)
    assert "Different: " in QGuiApplication.clipboard().text()
    QTest.keyClick(window, Qt.Key.Key_D, both)
    assert window.windowTitle().startswith("b.pt \u2194 a.pt")
    QTest.keyClick(window, Qt.Key.Key_F5)
    assert window.shown.phase == "ready"


def test_rows_are_searched_for_with_the_keyboard(window, qtbot) -> None:
    QTest.keyClick(window, Qt.Key.Key_F, Qt.KeyboardModifier.ControlModifier)
    field = window.head.search
    assert field.hasFocus()
    QTest.keyClicks(field, "lr")
    QTest.keyClick(field, Qt.Key.Key_Return)
    assert [row[0] for row in texts(window)] == ["lr"]
    QTest.keyClicks(field, " qqq")
    qtbot.waitUntil(lambda: window.shown.shown == 0)
    (said,) = [label.text() for label in window.findChildren(QLabel) if "Nothing" in label.text()]
    assert said == "Nothing here holds \u201clr qqq\u201d."
    assert "Different" in window.shown.verdict
    field.clear()
    field.asked.emit("")
    assert len(texts(window)) > 2


def test_a_screen_reader_finds_every_control_by_its_name(window) -> None:
    window.session.select(0)
    seen = set()
    pending = [QAccessible.queryAccessibleInterface(window)]
    while pending:
        node = pending.pop()
        children = (
            [node.child(place) for place in range(node.childCount())] if node.childCount() < 200 else []
        )
        pending += [child for child in children if child is not None]
        if node.role() in {QAccessible.Role.Button, QAccessible.Role.CheckBox, QAccessible.Role.Tree}:
            widget = node.object()
            if widget is not None and not widget.objectName().startswith("qt_") and widget.isVisible():
                assert node.text(QAccessible.Text.Name), widget
        seen.add(node.text(QAccessible.Text.Name))
    for wanted in (
        "Differences",
        "Facts of the selected row",
        "Kinds of difference",
        "Device in A",
        "Device in B",
    ):
        assert wanted in seen
    assert any(name.startswith("Warning: Different") for name in seen)
    assert any(name.startswith("File A: a.pt, zip") for name in seen)


def test_work_shows_its_progress_and_can_be_cancelled(window, runner, qtbot) -> None:
    runner.waits = True
    window.session.compare()
    runner.go_on()
    assert window.head._bar.isVisible()
    window.shown.measuring.total, window.shown.measuring.done = 10, 5
    qtbot.waitUntil(lambda: window.head._bar.value() == 500)
    assert "5 B of 10 B" in window.head._measured.text()
    window.head._stop.click()
    assert not window.head._bar.isVisible()
    assert window.head.measure.isVisible()
    QTest.keyClick(window, Qt.Key.Key_N, Qt.KeyboardModifier.ControlModifier)
    assert window.head._bar.isVisible()
    window.session.compare()
    assert window._stack.currentWidget() is window._opening
    window.shown.progress.label = "comparing tensors"
    qtbot.waitUntil(lambda: window._label.text() == "comparing tensors")
    with qtbot.waitSignal(window.closed):
        window._cancel.click()


def test_a_file_that_does_not_open_is_told_with_what_to_do(window, tmp_path) -> None:
    (tmp_path / "b.pt").write_bytes(b"<!DOCTYPE html><html></html>")
    window.session.compare()
    assert window._stack.currentWidget() is window._failed
    assert window._title.text() == "These files could not be compared" or "HTML" in window._title.text()
    assert str(tmp_path / "b.pt") in f"{window._where.toPlainText()}{window._what.toPlainText()}"
    save_zip(tmp_path / "b.pt", A)
    window._again.click()
    assert window._list.currentWidget() is window._calm
    assert window.shown.verdict.startswith("Equal")
    assert not window.facts.isVisible()


def test_danger_is_said_first_and_files_can_be_opened(window, tmp_path, qtbot) -> None:
    save_zip(tmp_path / "b.pt", {**B, "x": Raw(p.call("os.system", p.text("id")))})
    window.session.compare()
    assert window.head._alerts.itemAt(0).widget().text().startswith("DANGEROUS")
    with qtbot.waitSignal(window.file_wanted) as told:
        window.head.cards[1]._open.click()
    assert told.args == [[str(tmp_path / "b.pt")]]


def test_nothing_listens_before_there_is_a_session(qtbot, theme: Theme) -> None:
    window = CompareWindow(theme)
    qtbot.addWidget(window)
    window._on_again()
    window.detach()
    window.facts.show_selection(None)
    assert window.shown is None
    assert Progress().done == 0


def test_very_many_rows_stay_folded(window, monkeypatch) -> None:
    monkeypatch.setattr("inspector.gui.compare.window._MOST_UNFOLDED", 1)
    window.session.show_equal(shown=True)
    assert not window.tree.isExpanded(window.tree.model().index(0, 0))


def test_paths_are_those_of_the_files(window, tmp_path: Path) -> None:
    assert window.session.paths == (str(tmp_path / "a.pt"), str(tmp_path / "b.pt"))


def test_headers_name_the_files_to_their_ends(window) -> None:
    model, horizontal = window.tree.model(), Qt.Orientation.Horizontal
    assert model.headerData(PLACES["a"], horizontal) == "A: a.pt"
    assert "B: b.pt" in model.headerData(PLACES["b"], horizontal, Qt.ItemDataRole.ToolTipRole)
    assert "lengths of A" in model.headerData(PLACES["relative"], horizontal, Qt.ItemDataRole.ToolTipRole)
    assert model.headerData(PLACES["a"], Qt.Orientation.Vertical) is None
    assert window.tree.header().textElideMode() == Qt.TextElideMode.ElideMiddle


def test_containers_are_listed_and_each_is_shown_by_its_own_place(qtbot, theme, runner, tmp_path) -> None:
    """The same change at two places is two facts: the second has to be shown as well."""
    states = (
        {"l": [T(W)], "m": [T(V)], "o": {"x": 1, "y": 2}},
        {"l": (T(W),), "m": (T(V),), "o": {"y": 2, "x": 1}},
    )
    paths = [save_zip(tmp_path / f"{name}.pt", state) for name, state in zip("ab", states, strict=True)]
    window = CompareWindow(theme)
    window.attach(CompareSession(window, runner, *paths))
    qtbot.addWidget(window)
    window.show()
    window.session.compare()
    assert texts(window) == [
        ["Containers"],
        ["l", "~ container", "", "", "", "list", "tuple"],
        ["m", "~ container", "", "", "", "list", "tuple"],
        ["o", "~ order of keys", "", "", "", "x, y", "y, x"],
    ]
    shown = []
    for number, row in enumerate(window.session.screen.rows):
        if row.section == "container":
            window.session.select(number)
            facts = window.session.screen.selection.facts
            shown.append((window.facts._title.toPlainText(), facts[0].label))
    assert shown == [("l", "Type"), ("m", "Type"), ("o", "Keys")]
    window.detach()
