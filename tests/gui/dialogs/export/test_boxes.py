"""The boxes of the export dialog over a real session: the demo checkpoint."""

from __future__ import annotations

import shutil
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QAbstractItemModel, QModelIndex, QPoint, QRect, QSize, Qt
from PySide6.QtTest import QAbstractItemModelTester
from PySide6.QtWidgets import QApplication, QCheckBox, QLabel, QLineEdit, QPushButton, QTreeView, QWidget

from inspector.gui.dialogs.export import box_panel
from inspector.gui.dialogs.export import box_panel as box_model
from inspector.gui.dialogs.export.box_panel import BoxModel
from inspector.gui.dialogs.export.dialog import ExportDialog
from inspector.gui.widgets.cards import WholeArea
from inspector.records import replace
from inspector.resources import demo_path
from inspector.session.controller import Session
from inspector.session.export.page import Boxes
from tests.gui.clipping import clipped
from tests.unit.session.documents import AtOnce, a_view, saved_on


@pytest.fixture
def session(tmp_path) -> Session:
    view = a_view()
    session = Session(view, AtOnce())
    session.set_target("cpu")
    session.open(str(shutil.copy(demo_path(), tmp_path / "demo.pth")))
    session.begin_export()
    return session


@pytest.fixture
def dialog(qtbot, theme, session) -> ExportDialog:
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = ExportDialog(theme, parent)
    dialog.parent_kept_alive = parent
    dialog.connect_to(session)
    session._desk.view.show_screen.side_effect = lambda screen: dialog.show_page(screen.export)
    dialog.show_page(session.screen.export)
    return dialog


def tree_of(dialog: ExportDialog) -> QTreeView:
    return dialog.findChild(QTreeView)


def index_of(model: QAbstractItemModel, name: str) -> QModelIndex:
    indexes = (model.index(row, 0) for row in range(model.rowCount()))
    return next(index for index in indexes if index.data() == name)


def line(dialog: ExportDialog, spoken: str) -> QLineEdit:
    return next(each for each in dialog.findChildren(QLineEdit) if each.accessibleName() == spoken)


def button(dialog: ExportDialog, text: str) -> QPushButton:
    return next(each for each in dialog.findChildren(QPushButton) if each.isVisible() and text in each.text())


def checks(dialog: ExportDialog) -> dict[str, object]:
    model = tree_of(dialog).model()
    found = (model.index(row, 0) for row in range(model.rowCount()))
    return {index.data(): Qt.CheckState(index.data(Qt.ItemDataRole.CheckStateRole)).name for index in found}


def test_a_box_is_unchecked_with_the_space_bar_and_the_line_and_the_total_follow(dialog, qtbot):
    tree = tree_of(dialog)
    model = tree.model()
    tree.setFocus()
    tree.setCurrentIndex(index_of(model, "optimizer"))
    qtbot.keyClick(tree, Qt.Key.Key_Space)
    assert checks(dialog)["optimizer"] == "Unchecked"
    assert line(dialog, "Patterns of what is left out").text() == "optimizer"
    assert "Leaves out 141 tensors, 355 KB." in words(dialog)
    child = model.index(0, 0, index_of(model, "model"))
    qtbot.keyClick(tree, Qt.Key.Key_Space)
    model.setData(child, Qt.CheckState.Unchecked.value, Qt.ItemDataRole.CheckStateRole)
    assert checks(dialog) | {"optimizer": "Checked", "model": "PartiallyChecked"} == checks(dialog)
    assert "model, written in part" in index_of(model, "model").data(Qt.ItemDataRole.AccessibleTextRole)


def words(dialog: ExportDialog) -> str:
    return "\n".join(label.text() for label in dialog.findChildren(QLabel) if label.isVisible())


def test_the_typed_patterns_and_the_boxes_are_one_plan(dialog, qtbot):
    typed = line(dialog, "Patterns of what is left out")
    typed.setFocus()
    qtbot.keyClicks(typed, "**/exp_avg* typo")
    assert not button(dialog, "Export").isEnabled()  # what was typed is not in the plan yet
    qtbot.keyClick(typed, Qt.Key.Key_Return)
    assert dialog.isVisible()
    assert checks(dialog)["optimizer"] == "PartiallyChecked"
    assert "Nothing in the file matches typo." in words(dialog)
    assert typed.property("missed") == "true"
    assert not button(dialog, "Export").isEnabled()
    typed.setText("**")
    qtbot.keyClick(typed, Qt.Key.Key_Return)
    assert "No tensors are left to export." in words(dialog)
    assert not button(dialog, "Export").isEnabled()
    typed.clear()
    qtbot.keyClick(typed, Qt.Key.Key_Enter)
    assert button(dialog, "Export").isEnabled()
    assert set(checks(dialog).values()) == {"Checked"}
    qtbot.keyClick(typed, Qt.Key.Key_Return)  # the same once more changes nothing
    assert button(dialog, "Export").isEnabled()


def test_a_search_lists_rows_and_one_box_is_for_all_of_them(dialog, session, qtbot, monkeypatch):
    monkeypatch.setattr(box_model, "MOST_LISTED", 10)
    monkeypatch.setattr(box_panel, "MOST_LISTED", 10)
    search, model = line(dialog, "Search the rows"), tree_of(dialog).model()
    every = next(each for each in dialog.findChildren(QCheckBox) if "found" in each.text())
    assert not every.isVisible()
    qtbot.keyClicks(search, "role:ema")
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert (model.rowCount(), every.text()) == (10, "All 47 that were found; the first 10 are listed")
    assert model.index(0, 0).data().startswith("ema / ")
    assert not model.index(0, 0).parent().isValid()
    every.click()
    assert session.screen.export.draft.wish.exclude == "ema"
    assert every.checkState() == Qt.CheckState.Unchecked
    model.setData(model.index(3, 0), 2, Qt.ItemDataRole.CheckStateRole)
    assert every.checkState() == Qt.CheckState.PartiallyChecked
    every.click()
    assert session.screen.export.draft.wish.exclude == ""
    for text, said in (("zzz", "Nothing was found"), ("best_accuracy", "The one that was found")):
        search.setText(text)
        qtbot.keyClick(search, Qt.Key.Key_Return)
        assert (every.text(), every.isEnabled()) == (said, text != "zzz")
    search.clear()
    qtbot.keyClick(search, Qt.Key.Key_Return)
    assert not every.isVisible()
    assert model.rowCount() > 5


def test_rows_that_the_form_does_not_hold_cannot_be_clicked(dialog, session):
    session.change_export(session.screen.export.draft.wish.__class__(kind="weights"))
    model = tree_of(dialog).model()
    optimizer, weights = index_of(model, "optimizer"), index_of(model, "model")
    assert not optimizer.flags() & Qt.ItemFlag.ItemIsEnabled
    assert weights.flags() & Qt.ItemFlag.ItemIsUserCheckable
    assert "not in this export" in optimizer.data(Qt.ItemDataRole.ToolTipRole)


def test_thousands_of_patterns_are_not_typed_over(dialog, session, monkeypatch):
    monkeypatch.setattr(box_panel, "_MOST_TYPED", 4)
    typed = line(dialog, "Patterns of what is left out")
    session.choose_rows((1,), written=False)
    assert typed.isReadOnly()
    assert typed.text().endswith("(chosen row by row)")
    session.choose_rows((1,), written=True)
    assert (typed.isReadOnly(), typed.text()) == (False, "")


def test_enter_on_cancel_cancels_and_tab_goes_through_the_dialog_in_order(dialog, session, qtbot):
    asked = []
    dialog.export_wanted.connect(lambda *wanted: asked.append(wanted))
    order, first = [], QApplication.focusWidget()
    qtbot.waitUntil(dialog.isActiveWindow)
    while QApplication.focusWidget() is not first or not order:
        order.append(QApplication.focusWidget().accessibleName() or QApplication.focusWidget().text())
        dialog.focusNextChild()
    assert order[1:] + order[:1] == [
        "What is written",
        "How the copy is checked",
        "Destination",
        "Browse\u2026",
        "Search the rows",
        "What is written",
        "Patterns of what is left out",
        "Cancel",
        "Export",
    ]
    cancel = button(dialog, "Cancel")
    cancel.setFocus()
    qtbot.keyClick(cancel, Qt.Key.Key_Return)
    assert asked == []
    assert session.screen.export is None
    assert dialog.isHidden()


def test_the_model_keeps_the_rules_of_qt(qtbot):
    document = saved_on("cpu", "cuda:0", "cuda:1")
    states = bytes([2] * len(document.tree.nodes))
    model = BoxModel()
    tester = QAbstractItemModelTester(model, QAbstractItemModelTester.FailureReportingMode.Fatal)
    assert (model.rowCount(), model.index(0, 0).isValid(), model.data(QModelIndex())) == (0, False, None)
    model.show_boxes(Boxes(tree=document.tree, states=states), None)
    group = model.index(0, 0)
    leaf = model.index(0, 0, group)
    assert leaf.parent() == group
    assert (model.rowCount(model.index(0, 1)), model.headerData(0, Qt.Orientation.Horizontal)) == (0, "Name")
    assert model.index(0, 1).data() == "3 tensors, 12.0 KB"
    assert not model.setData(group, 0, Qt.ItemDataRole.EditRole)
    model.show_boxes(Boxes(tree=document.tree, states=states), (3, 4))
    assert model.found == (3, 4)
    model.show_boxes(None, None)
    assert tester is not None


@pytest.mark.parametrize("size", [(800, 480), (640, 400), (900, 900), (1280, 900)])
def test_the_dialog_fits_on_small_screens(qtbot, theme, session, monkeypatch, size):
    screen = SimpleNamespace(availableSize=lambda: QSize(*size))
    monkeypatch.setattr(ExportDialog, "screen", lambda _dialog: screen)
    parent = QWidget()
    qtbot.addWidget(parent)
    dialog = ExportDialog(theme, parent)
    dialog.show_page(session.screen.export)
    qtbot.waitExposed(dialog)
    assert (dialog.width() <= size[0], dialog.height() <= size[1]) == (True, True)
    assert clipped(dialog) == []
    tree, place = tree_of(dialog), line(dialog, "Destination")
    is_beside = tree.mapTo(dialog, QPoint()).x() > place.mapTo(dialog, QPoint()).x() + place.width()
    assert is_beside == (size[0] >= 932)
    area = dialog.findChild(WholeArea)
    assert area.horizontalScrollBar().maximum() == 0
    export = button(dialog, "Export")
    assert dialog.rect().contains(QRect(export.mapTo(dialog, QPoint()), export.size()))


def test_items_of_tuples_keep_their_box_and_say_why(qtbot):
    document = saved_on("cpu", "cuda:0")
    leaf = document.tree.tensor_nodes[0]
    model = BoxModel()
    boxes = Boxes(tree=document.tree, states=bytes([2] * 9), bound=frozenset({leaf}))
    model.show_boxes(boxes, (leaf, document.tree.tensor_nodes[1]))
    bound, free = model.index(0, 0), model.index(1, 0)
    assert not bound.flags() & Qt.ItemFlag.ItemIsUserCheckable
    assert free.flags() & Qt.ItemFlag.ItemIsUserCheckable
    for role in (Qt.ItemDataRole.ToolTipRole, Qt.ItemDataRole.AccessibleTextRole):
        assert "tuple" in bound.data(role)
        assert "tuple" not in free.data(role)


def test_the_dialog_grows_with_what_it_says(dialog, session, qtbot, monkeypatch):
    screen = SimpleNamespace(availableSize=lambda: QSize(1280, 800))
    monkeypatch.setattr(ExportDialog, "screen", lambda _dialog: screen)
    qtbot.waitExposed(dialog)
    area = dialog.findChild(WholeArea)
    for kind in ("in-place", "safetensors", "copy", "safetensors"):
        session.change_export(replace(session.screen.export.draft.wish, kind=kind))
        qtbot.wait(10)
        assert area.verticalScrollBar().maximum() == 0
        assert (
            area.minimumWidth()
            == 0
            < area.minimumSizeHint().width() - area.widget().minimumSizeHint().width()
        )
        assert button(dialog, "Change" if kind == "in-place" else "Export").property("kind") == "primary"
    session.set_target("2xcuda")  # nothing to change
    session.change_export(replace(session.screen.export.draft.wish, kind="copy"))
    assert not button(dialog, "Export").property("kind")
