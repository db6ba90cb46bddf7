"""Rows that something is wrong with are marked, in color, in shape and in words."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from inspector.gui.tree.model import Column
from inspector.gui.tree.view import TensorTreeView
from inspector.progress import Progress
from inspector.session.operations import Job
from inspector.session.present.compose import compose
from inspector.session.state import State
from inspector.session.values.kinds import SCAN
from inspector.session.values.showing import row_marks
from inspector.values.statistics import Oddity, Scan, Scanned
from tests.unit.report.rows import checkpoint, storage, tensor
from tests.unit.session.documents import document_of

FILE = checkpoint(
    tensor("m", "a.w", storage="0"),
    tensor("m", "a.b", storage="1"),
    tensor("m", "c.w", storage="1"),
    storage("0", missing=True),
    storage("1"),
)
DOCUMENT = document_of(FILE)


@pytest.fixture
def view(qtbot, theme) -> TensorTreeView:
    view = TensorTreeView(theme)
    qtbot.addWidget(view)
    view.resize(720, 480)
    view.show_tree(DOCUMENT.tree)
    view.expandAll()
    view.show()
    qtbot.waitExposed(view)
    return view


def rows(view: TensorTreeView) -> list[tuple[str, str]]:
    """The rows with what stands in the column of values."""
    found, index = [], view.model().index(0, 0)
    while index.isValid():
        found.append((index.data(), index.siblingAtColumn(Column.VALUE).data()))
        index = view.indexBelow(index)
    return found


def red_pixels(view: TensorTreeView, theme) -> list[str]:
    """The rows that are painted with the color of what is bad in their names."""
    red, found = theme.tokens.color("bad_fill").rgb(), []
    index = view.model().index(0, 0)
    image = view.viewport().grab().toImage()
    while index.isValid():
        place = view.visualRect(index)
        spots = ((x, y) for x in range(place.left(), place.right()) for y in (place.center().y() + 4,))
        if any(image.pixelColor(x, y).rgb() == red for x, y in spots):
            found.append(index.data())
        index = view.indexBelow(index)
    return found


def test_damaged_rows_and_modules_are_marked(view, theme):
    assert view.isColumnHidden(Column.VALUE)
    assert red_pixels(view, theme) == []
    view.show_marks(DOCUMENT.tree.marks)
    assert not view.isColumnHidden(Column.VALUE)
    marked = [("m", "1 missing"), ("a", "1 missing"), ("w", "missing")]
    assert rows(view) == [*marked, ("b", ""), ("c", ""), ("w", "")]
    assert red_pixels(view, theme) == ["m", "a", "w"]
    index = view.model().index_of(DOCUMENT.tree.tensor_nodes[0])
    assert index.data(Qt.ItemDataRole.AccessibleTextRole) == "Name: w, missing"
    assert "missing" in index.data(Qt.ItemDataRole.ToolTipRole)
    assert index.siblingAtColumn(Column.VALUE).data() == "missing"


def test_a_scan_marks_rows_and_takes_the_green_away():
    sound = document_of(checkpoint(tensor("a", storage="0"), tensor("b", storage="0"), storage("0")))
    spoiled = Scanned(row=1, statistics=None, oddities=(Oddity.NAN,))
    scan = Scan(tensors=(Scanned(row=0, statistics=None), spoiled), nbytes=0)
    state = State(phase="ready", path="/a.pt", document=sound)
    before = compose(state)
    after = compose(
        state.with_job(Job(kind=SCAN, about="/a.pt", progress=Progress(), status="done", result=scan))
    )
    assert (before.banner.tone, after.banner.tone) == ("good", "warning")
    assert not before.row_marks
    assert after.row_marks.words == {sound.tree.tensor_nodes[1]: "NaN"}
    infinite = Scanned(row=0, statistics=None, oddities=(Oddity.INF,))
    both = row_marks(DOCUMENT, Scan(tensors=(infinite, spoiled), nbytes=0))
    nodes = DOCUMENT.tree.tensor_nodes
    assert both.words == {nodes[0]: "missing", nodes[1]: "NaN"}  # what is not there has no numbers
