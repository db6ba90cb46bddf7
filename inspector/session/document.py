"""One opened file, and the questions that are asked of it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, cast

from inspector.containers.collector import collector_paused, keep_from_collector
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.model.totals import DeviceTotal, device_totals
from inspector.progress import Progress
from inspector.records import dataclass, field
from inspector.remap.files import record_path
from inspector.report.colors import device_colors
from inspector.report.tree import Tree, build_tree
from inspector.report.words.formats import names_devices

# What the tree does not need is imported when it is asked for, which is after the tree was painted.

_MANY_TENSORS = 20_000
_MOST_ANSWERS = 8
_UNKNOWN: Any = object()
Answer = TypeVar("Answer")


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class Document:
    """An opened checkpoint with all that depends on no target and no map.

    Documents compare by identity, since comparing all rows would be slow.

    Attributes:
        can_undo: Whether the file was changed in place, and an undo record stands beside it.
        remembered: What was worked out of it for the screen, by part and inputs; it ends with the document.
    """

    checkpoint: Checkpoint
    totals: tuple[DeviceTotal, ...]
    tree: Tree
    open_seconds: float
    can_undo: bool = False
    remembered: dict[str, dict[object, Any]] = field(default_factory=dict)

    def recall(self, what: str, by: tuple[object, ...], make: Callable[[], Answer]) -> Answer:
        """Return an answer that is worked out once, as long as it is one of the last few to `what`.

        It must not refer to the document itself, or neither would ever be let go.
        """
        known = self.remembered.setdefault(what, {})
        answer: Answer | None = known.get(by, _UNKNOWN)
        if answer is _UNKNOWN:
            answer = known[by] = make()
            for old in list(known)[:-_MOST_ANSWERS]:  # a worker may do the same
                known.pop(old, None)
        return cast("Answer", answer)


def open_document(path: str, progress: Progress) -> Document:
    """Open a file and prepare all of it that can be prepared away from the GUI thread."""
    started = time.perf_counter()
    with collector_paused():
        checkpoint = open_checkpoint(path, progress=progress, beside=True)
        progress.start("arranging")
        totals = device_totals(checkpoint)
        names_devices(checkpoint)  # asked for again when the tree is shown
        tree = build_tree(checkpoint, device_colors(total.device for total in totals))
        document = Document(
            checkpoint=checkpoint,
            totals=totals,
            tree=tree,
            open_seconds=time.perf_counter() - started,
            can_undo=os.path.lexists(record_path(Path(path))),
        )
    if len(checkpoint.tensors) >= _MANY_TENSORS:
        keep_from_collector(document)
    return document


def path_of_node(document: Document, node: int) -> str:
    """Return the path of a tree node as `--exclude` and `path:` rules take it: a pattern of its rows."""
    from inspector.report.outline.strip import pattern_of  # noqa: PLC0415 - when it is asked for

    return pattern_of(document.tree.nodes[node])


def expression_of_node(document: Document, node: int) -> str:
    """Return a Python expression that reaches a tensor in the loaded checkpoint; empty for other nodes."""
    from inspector.report.details import python_expression  # noqa: PLC0415 - when it is asked for

    row = document.tree.nodes[node]
    return python_expression(document.checkpoint.tensors[row.index]) if row.kind == "tensor" else ""
