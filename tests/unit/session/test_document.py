from __future__ import annotations

import gc

import pytest

from inspector.errors import CancelledError, ContainerError
from inspector.progress import Progress
from inspector.resources import demo_path
from inspector.session.document import expression_of_node, open_document, path_of_node
from tests.unit.report.rows import checkpoint, tensor, value
from tests.unit.session.documents import document_of


def test_opening_prepares_all_that_no_target_changes() -> None:
    document = open_document(str(demo_path()), Progress())
    assert len(document.tree.tensor_nodes) == len(document.checkpoint.tensors) == 283
    assert [total.device for total in document.totals] == ["cuda:0", "cuda:1", "cpu"]
    assert document.tree.colors == {"cuda:0": 0, "cuda:1": 1, "cpu": -1}
    assert 0 < document.open_seconds < 60
    assert gc.isenabled()


def test_what_cannot_be_read_leaves_as_an_error(tmp_path) -> None:
    with pytest.raises(ContainerError):
        open_document(str(tmp_path / "missing.pt"), Progress())


def test_opening_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        open_document(str(demo_path()), progress)
    assert gc.isenabled()


def test_every_node_has_a_path_and_a_tensor_an_expression() -> None:
    document = document_of(checkpoint(tensor("model", "a.weight", storage="0"), value("epoch", "3/4")))
    nodes = range(len(document.tree.nodes))
    paths = {path_of_node(document, node) for node in nodes}
    assert paths == {"**", "model/a.**", "model/a.weight", "epoch/**", "epoch/3~14"}
    expressions = {node: expression_of_node(document, node) for node in nodes}
    (weight,) = document.tree.tensor_nodes
    assert {node: text for node, text in expressions.items() if text} == {
        weight: "checkpoint['model']['a.weight']"
    }


def test_a_large_document_is_kept_from_the_collector_while_it_is_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("inspector.session.document._MANY_TENSORS", 100)
    gc.unfreeze()
    document = open_document(str(demo_path()), Progress())
    assert gc.get_freeze_count() > len(document.checkpoint.tensors)
    del document
    assert gc.get_freeze_count() == 0
