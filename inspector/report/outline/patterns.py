"""The pattern of a row: what `--exclude` and `path:` rules take for its tensors and no others."""

from __future__ import annotations

from inspector.remap.rules import literal_pattern
from inspector.report.arrange import NO_NAME
from inspector.report.outline.node import Node

EVERYTHING = "**"


def pattern_of(node: Node) -> str:
    """Return the pattern that covers what a row shows; empty for a slice of a long list, which has none."""
    if node.kind == "bucket":
        return ""
    if node.kind == "group":
        return f"{literal_pattern(node.path)}{EVERYTHING}" if node.path else EVERYTHING
    is_key = bool(node.path) or node.name == NO_NAME  # else it is all that the file has
    return literal_pattern(node.path) if is_key else EVERYTHING
