from __future__ import annotations

from inspector.session.nodes import expression_of_node, path_of_node
from tests.unit.report.rows import checkpoint, tensor, value
from tests.unit.session.documents import document_of

DOCUMENT = document_of(checkpoint(tensor("model", "a.weight", storage="0"), value("epoch", "3")))


def test_every_kind_of_node_has_a_path() -> None:
    paths = {path_of_node(DOCUMENT, node) for node in range(1, len(DOCUMENT.tree.nodes))}
    assert {"model/a.weight", "epoch", "model"} <= paths
    assert path_of_node(DOCUMENT, 0) == ""


def test_only_a_tensor_has_an_expression() -> None:
    node = DOCUMENT.tree.tensor_nodes[0]
    assert expression_of_node(DOCUMENT, node) == "checkpoint['model']['a.weight']"
    assert expression_of_node(DOCUMENT, 0) == ""
