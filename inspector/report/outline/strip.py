"""The facts of what is selected, in two lines: the path, and what there is to know at a glance."""

from __future__ import annotations

from collections.abc import Sequence

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.records import dataclass
from inspector.remap.rules import literal_pattern
from inspector.report.arrange import NO_NAME
from inspector.report.colors import device_name, device_names
from inspector.report.damage import WORDS, damage_of
from inspector.report.details import Lookup, size_text
from inspector.report.outline.chosen import Total, total_of
from inspector.report.outline.node import Node, Tree
from inspector.report.outline.nodes import quantities_text
from inspector.units import cut_text, escape_text, format_count, format_nbytes, format_shape, unescaped_path

# The pattern of a row: what `--exclude` and `path:` rules take for its tensors and no others.

EVERYTHING = "**"


def pattern_of(node: Node) -> str:
    """Return the pattern that covers what a row shows; empty for a slice of a long list, which has none."""
    if node.kind == "bucket":
        return ""
    if node.kind == "group":
        return f"{literal_pattern(node.path)}{EVERYTHING}" if node.path else EVERYTHING
    is_key = bool(node.path) or node.name == NO_NAME  # else it is all that the file has
    return literal_pattern(node.path) if is_key else EVERYTHING


_MOST_PATH, _MOST_TEXT = 400, 160
_MOST_DEVICES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Strip:
    """The facts of the selected rows.

    Attributes:
        pattern: What is copied: the path as a pattern; empty where there is none.
    """

    title: str
    facts: tuple[str, ...]
    pattern: str = ""


def strip_of(checkpoint: Checkpoint, tree: Tree, lookup: Lookup, node_ids: Sequence[int]) -> Strip:
    """Return the facts of one row, or the sum of several."""
    if len(node_ids) > 1:
        total = total_of(tree, node_ids)
        return Strip(title=format_count(total.rows, "row"), facts=_total_facts(total))
    node = tree.nodes[node_ids[0]]
    title = escape_text(cut_text(unescaped_path(node.path.rstrip("/.")) or node.name, _MOST_PATH))
    if node.kind == "tensor":
        facts = _tensor_facts(checkpoint, node, lookup)
    elif node.kind == "value":
        facts = (node.type_text, cut_text(node.text, _MOST_TEXT))
    else:
        facts = _total_facts(total_of(tree, node_ids))
    shown = tuple(escape_text(fact) for fact in facts if fact)
    return Strip(title=title, facts=shown, pattern=pattern_of(node))


def _total_facts(total: Total) -> tuple[str, ...]:
    if not total.tensors:
        return ("no tensors",)
    return (
        format_count(total.tensors, "tensor"),
        quantities_text(total.parameters, total.integers),
        size_text(total.nbytes) if total.is_exact else f"at most {format_nbytes(total.nbytes)}",
        device_names(total.devices, _MOST_DEVICES),
    )


def _tensor_facts(checkpoint: Checkpoint, node: Node, lookup: Lookup) -> tuple[str, ...]:
    tensor = checkpoint.tensors[node.index]
    stride = "" if not tensor.stride else f"stride ({', '.join(map(str, tensor.stride))})"
    damage = damage_of(checkpoint).get(node.index)
    return (
        "" if damage is None else WORDS[damage].rstrip("."),
        device_name(tensor.device),
        tensor.dtype,
        format_shape(tensor.shape),
        size_text(node.nbytes),  # of a sparse one what its parts take, as its row says
        f"{tensor.slot} of {tensor.parameter or 'an unknown parameter'}" if tensor.slot is not None else "",
        _sharing(checkpoint, tensor, node.index, lookup),
        stride,
        tensor.layout if tensor.layout != "strided" else "",
        tensor.problem or "",
    )


def _sharing(checkpoint: Checkpoint, tensor: Tensor, index: int, lookup: Lookup) -> str:
    """Return the storage of a tensor and who else views it."""
    if tensor.storage is None:
        return ""
    key = f"storage {cut_text(tensor.storage, 24)}"
    viewers = lookup.viewers.get(tensor.storage, ())
    if len(viewers) <= 1:
        return key
    other = next(viewer for viewer in viewers[:2] if viewer != index)
    path = cut_text(unescaped_path(checkpoint.tensors[other].path), 60)
    more = f" and {len(viewers) - 2:,} more" if len(viewers) > 2 else ""
    return f"{key}, shared with {path}{more}"
