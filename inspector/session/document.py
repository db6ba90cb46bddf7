"""One opened file, and the questions that are asked of it."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

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
from inspector.session.cache import remembered

if TYPE_CHECKING:
    from inspector.safety.verdict import SafetyVerdict
    from inspector.target.profile import Profile
    from inspector.target.simulate import DefaultLoad

# What the tree does not need is imported when it is asked for, which is after the tree was painted.

_MANY_TENSORS = 20_000


@dataclass(frozen=True, slots=True, weakref_slot=True, kw_only=True, eq=False)
class Document:
    """An opened checkpoint with all that depends on no target and no map.

    Documents compare by identity, since comparing all rows would be slow.

    Attributes:
        can_undo: Whether the file was changed in place, and an undo record stands beside it.
        remembered: What is remembered of it elsewhere, which ends with it.
    """

    checkpoint: Checkpoint
    totals: tuple[DeviceTotal, ...]
    tree: Tree
    open_seconds: float
    can_undo: bool = False
    remembered: list[object] = field(default_factory=list)

    @property
    def safety(self) -> SafetyVerdict:
        """The verdict on its pickle."""
        return _safety(self)


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


@remembered
def _safety(document: Document) -> SafetyVerdict:
    from inspector.safety.verdict import judge  # noqa: PLC0415 - after the tree

    return judge(document.checkpoint)


@remembered
def load_of(document: Document, target: Profile) -> DefaultLoad:
    """Return what loading does on a machine, worked out once for all parts of the screen."""
    from inspector.target.simulate import judge_load  # noqa: PLC0415 - after the tree

    return judge_load(document.checkpoint, target, document.safety)


def path_of_node(document: Document, node: int) -> str:
    """Return the path of a tree node as `--exclude` and `path:` rules take it: a pattern of its rows."""
    from inspector.report.outline.strip import pattern_of  # noqa: PLC0415 - when it is asked for

    return pattern_of(document.tree.nodes[node])


def expression_of_node(document: Document, node: int) -> str:
    """Return a Python expression that reaches a tensor in the loaded checkpoint; empty for other nodes."""
    from inspector.report.details import python_expression  # noqa: PLC0415 - when it is asked for

    row = document.tree.nodes[node]
    return python_expression(document.checkpoint.tensors[row.index]) if row.kind == "tensor" else ""
