from __future__ import annotations

import json
import shlex

import pytest

from inspector.cli import main
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.report.outline.flat import Column, Order
from inspector.session.controller import Session
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.unit.session.documents import document_of

ROWS = checkpoint(
    tensor("m", "a.weight", device="cuda:0", storage="0"),
    tensor("m", "a.bias", device="cuda:1", storage="1"),
    tensor("m", "b.weight", device="cuda:0", storage="0"),
    tensor("empty", device="meta"),
    value("epoch", text="3"),
    storage("0", "cuda:0", tensors=2),
    storage("1", "cuda:1"),
)


@pytest.fixture
def rows(session, monkeypatch) -> Session:
    monkeypatch.setattr("inspector.session.jobs.open.open_document", lambda *_: document_of(ROWS))
    session.open("/rows.pth")
    return session


def node(session: Session, path: str) -> int:
    return next(id_ for id_, row in enumerate(session.screen.tree.nodes) if row.path == path)


def test_one_goes_back_and_forward_through_what_was_selected(rows) -> None:
    weight, bias, epoch = (node(rows, path) for path in ("m/a.weight", "m/a.bias", "epoch"))
    assert rows.screen.can_go == (False, False)
    for chosen in (weight, weight, bias, None, epoch):
        rows.select(chosen)
    rows.go(-1)
    assert (rows.screen.selected, rows.screen.can_go) == (bias, (True, True))
    rows.go(-1)
    rows.go(-1)
    assert (rows.screen.selected, rows.screen.can_go) == (weight, (False, True))
    rows.go(1)
    assert rows.screen.selected == bias
    rows.select(weight)
    assert rows.screen.can_go == (True, False)
    rows.go(1)
    assert rows.screen.selected == weight
    rows.open("/b.pth")
    assert rows.screen.can_go == (False, False)


@pytest.mark.wide
def test_only_the_last_selections_are_remembered(rows) -> None:
    for place in range(500):
        rows.select(1 + place % 2)
    nodes, place = rows._state.visited
    assert (len(nodes), place) == (200, 199)


def test_several_rows_show_their_sum_until_one_is_selected(rows, view) -> None:
    weight, tied = node(rows, "m/a.weight"), node(rows, "m/b.weight")
    rows.select(weight)
    rows.pick((weight, tied))
    assert rows.screen.strip.title == "2 rows"
    assert rows.screen.strip.facts[0] == "2 tensors"
    shown = view.show_screen.call_count
    rows.pick((weight, tied))
    assert view.show_screen.call_count == shown
    rows.select(tied)
    assert rows.screen.strip.title == "m/b.weight"
    rows.select(None)
    assert rows.screen.strip is None


def test_rows_are_listed_flat_and_sorted_also_what_a_search_found(rows) -> None:
    assert rows.screen.flat is None
    rows.list_flat(Order(Column.NAME))
    paths = [rows.screen.tree.nodes[id_].path for id_ in rows.screen.flat.nodes]
    assert paths == ["empty", "m/a.bias", "m/a.weight", "m/b.weight"]
    rows.search("weight")
    assert rows.screen.flat.total == 2
    rows.list_flat(None)
    assert rows.screen.flat is None


def test_searches_that_begin_at_a_row(rows) -> None:
    weight, tied, group = (node(rows, path) for path in ("m/a.weight", "m/b.weight", "m/a."))
    rows.search_sharing(weight)
    assert rows.screen.matches == (weight, tied)
    rows.search("")
    for without in (node(rows, "empty"), node(rows, "epoch"), group):
        rows.search_sharing(without)
        assert rows.screen.query == ""
    rows.search_device(node(rows, "m/a.bias"))
    assert rows.screen.matches == (node(rows, "m/a.bias"),)
    rows.search_device(node(rows, "m/b."))
    assert rows.screen.query == 'device:"cuda:0"'
    rows.search_device(node(rows, "epoch"))
    assert rows.screen.query == 'device:"cuda:0"'


def test_branches_are_mapped_by_their_patterns(rows) -> None:
    rows.set_target("2xcuda")
    rows.map_branches((node(rows, "m/a."), node(rows, "m/b.")), "cpu")
    assert [(row.pattern, row.to) for row in rows.screen.branches] == [("m/b.**", "cpu"), ("m/a.**", "cpu")]


def test_the_command_of_a_map_writes_what_the_map_says(real, copy) -> None:
    """Shown with its rules for branches, and run as it is shown."""
    branch = node(real, "model/head.")
    real.set_target("2xcuda")
    real.map_all("cuda:0")
    real.map_branches((branch,), "cuda:1")
    said = real.map_command()
    words = shlex.split(said)
    assert words[:5] == ["checkpoint-inspector", "remap", str(copy), "-o", f"{copy.parent}/demo.cuda.pth"]
    assert words[5:7] == ["--map", "path:model/head.**@cuda:1"]
    assert main(words[1:]) == 0
    devices = {tensor.path: tensor.device for tensor in open_checkpoint(words[4]).tensors}
    assert {path for path, device in devices.items() if device == "cuda:1"} == {
        "model/head.weight",
        "model/head.bias",
    }
    assert set(devices.values()) == {"cuda:0", "cuda:1", "cpu"}  # what Adam keeps on the CPU stays there
    real.map_as_saved()
    real.remove_branch("model/head.**")
    assert real.map_command() == ""


def test_rows_as_json(rows) -> None:
    one = json.loads(rows.nodes_json((node(rows, "m/a.weight"),)))
    assert (one["path"], one["device"], one["shape"]) == ("m/a.weight", "cuda:0", [4])
    several = json.loads(rows.nodes_json((node(rows, "m/"), node(rows, "epoch"))))
    assert several == [
        {"path": "m/", "tensors": 3, "parameters": 8, "nbytes": 32, "devices": {"cuda:0": 16, "cuda:1": 16}},
        {"path": "epoch", "type": "int", "text": "3"},
    ]


def test_without_a_file_a_row_is_nothing(session, view) -> None:
    session.select(1)
    session.pick((1, 2))
    session.go(-1)
    session.search("x")
    session.list_flat(Order())
    session.search_sharing(1)
    session.search_device(1)
    session.map_branches((1,), "cpu")
    assert session.nodes_json((1,)) == ""
    assert view.method_calls == []


def test_a_copy_cannot_be_without_a_single_item_of_a_tuple(session, monkeypatch) -> None:
    assert not session.can_leave_out((1,))
    rows = checkpoint(tensor("pair", 0, storage="0"), tensor("w", storage="0"), storage("0", "cpu"))
    shown = [document_of(rows), document_of(replace(rows, tuples=("pair",)))]
    monkeypatch.setattr("inspector.session.jobs.open.open_document", lambda *_: shown[0])
    session.open("/rows.pth")
    item, whole = node(session, "pair/0"), node(session, "w")
    assert session.can_leave_out((item,))
    del shown[0]
    session.reload()
    assert not session.can_leave_out((item,))
    assert session.can_leave_out((item, whole))
