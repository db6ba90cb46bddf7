"""The pattern of a row: what `--exclude` and `path:` rules take for its tensors and no others."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.remap.rules import literal_pattern
from inspector.report.outline.node import Tree

EVERYTHING = "**"


def pattern_of(checkpoint: Checkpoint, tree: Tree, id_: int) -> str:
    """Return the pattern that covers what a row shows; empty for a slice of a long list, which has none."""
    node = tree.nodes[id_]
    if node.kind == "bucket":
        return ""
    if node.kind == "group":
        return literal_pattern(node.path) + EVERYTHING
    return literal_pattern(path_of(checkpoint, tree, id_)) or EVERYTHING


def path_of(checkpoint: Checkpoint, tree: Tree, id_: int) -> str:
    """Return the path of a row as `show` prints it; a group's ends in the `/` or `.` that follows there."""
    node = tree.nodes[id_]
    if node.kind == "tensor":
        return checkpoint.tensors[node.index].path
    return checkpoint.values[node.index].path if node.kind == "value" else node.path
