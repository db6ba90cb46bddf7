"""What a person takes along from a node of the tree: its path, and the Python expression that reaches it."""

from __future__ import annotations

from inspector.report.details import python_expression
from inspector.session.document import Document


def path_of_node(document: Document, node: int) -> str:
    """Give the path of a tree node as the command line writes it; a group's is its name in the tree."""
    row = document.tree.nodes[node]
    if row.kind == "tensor":
        return document.checkpoint.tensors[row.index].path
    if row.kind == "value":
        return document.checkpoint.values[row.index].path
    steps = []
    while row.parent >= 0:
        steps.append(row.name)
        row = document.tree.nodes[row.parent]
    return "/".join(reversed(steps))


def expression_of_node(document: Document, node: int) -> str:
    """Give a Python expression that reaches a tensor in the loaded checkpoint; empty for other nodes."""
    row = document.tree.nodes[node]
    return python_expression(document.checkpoint.tensors[row.index]) if row.kind == "tensor" else ""
