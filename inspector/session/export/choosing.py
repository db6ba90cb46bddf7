"""What an export leaves out, chosen row by row: boxes of the tree on one side, patterns on the other.

The patterns are the only state. A box shows what they make of the rows below it, and clicking one changes
them: to as few as say the same, and without touching those that are about other rows.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, cast

from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.remap.forms import KEPT, NEVER, Patterns
from inspector.remap.rules import literal_pattern
from inspector.report.outline.nodes import GROUP
from inspector.report.tree import Tree
from inspector.session.document import Document
from inspector.session.export.page import NO_CHOICE, OUT, PARTLY, WRITTEN, Boxes

if TYPE_CHECKING:
    from inspector.report.outline.nodes import Nodes

_WORD = re.compile(r'"((?:[^"]|"")*)"?|\S+')
_MOST_BOUNDARIES = 64
_MOST_CHARS = 1 << 26
"""Of all beginnings of paths that are counted: names with many dots have more than fit into memory."""

KnownBy = Callable[[Tensor | ValueRow], tuple[str, ...]]


# --- patterns as text ---------------------------------------------------------------------------------------


def split_patterns(text: str) -> tuple[str, ...]:
    """Return the patterns of a line: spaces part them, and quotes hold spaces."""
    found = []
    for match in _WORD.finditer(text):
        quoted = match[1]
        found.append(match[0] if quoted is None else quoted.replace('""', '"'))
    return tuple(dict.fromkeys(pattern for pattern in found if pattern))


def join_patterns(patterns: Iterable[str]) -> str:
    """Return patterns as one line."""
    return " ".join(map(_as_word, patterns))


def _as_word(pattern: str) -> str:
    if pattern.startswith('"') or re.search(r"\s", pattern):
        return '"' + pattern.replace('"', '""') + '"'
    return pattern


# --- boxes --------------------------------------------------------------------------------------------------


def bound_rows(checkpoint: Checkpoint, tree: Tree) -> frozenset[int]:
    """Return the rows that cannot be left out alone: items of tuples without entries below."""
    tuples = frozenset(checkpoint.tuples)
    if not tuples:
        return frozenset()
    found = {node for node, row in _shown(checkpoint, tree) if _is_item(row.path, tuples)}
    above = [tree.nodes[node].parent for node in found]
    while above:
        id_ = above.pop()
        node = tree.nodes[id_]
        if id_ not in found and _is_item(node.path.rstrip("/"), tuples) and found.issuperset(node.children):
            found.add(id_)
            above.append(node.parent)
    return frozenset(found)


def _is_item(path: str, tuples: Collection[str]) -> bool:
    """Return whether a row is an item of a tuple."""
    return bool(path) and path.rpartition("/")[0] in tuples


def boxes_of(
    tree: Tree,
    fates: bytes,
    value_fates: bytes,
    progress: Progress | None = None,
    bound: frozenset[int] = frozenset(),
) -> Boxes:
    """Return the boxes for what becomes of each tensor and value.

    No row is made for it: there may be a million.
    """
    nodes = cast("Nodes", tree.nodes)  # what `build_tree` makes
    codes, parents, parts = nodes.places.codes, nodes.places.parents, _parts(nodes)
    kept, gone = [0] * len(codes), [0] * len(codes)
    states = bytearray(len(codes))
    for id_ in (progress or Progress()).over(range(len(codes) - 1, -1, -1)):
        if parts[id_]:
            states[id_] = NO_CHOICE
            continue
        code, parent = codes[id_], parents[id_]
        if code != GROUP:
            fate = fates[code] if code >= 0 else value_fates[~code]
            kept[id_], gone[id_] = int(fate == KEPT), int(fate not in (KEPT, NEVER))
        states[id_] = _state(kept[id_], gone[id_])
        if parent >= 0:
            kept[parent] += kept[id_]
            gone[parent] += gone[id_]
    return Boxes(tree=tree, states=bytes(states), bound=bound)


def _parts(nodes: Nodes) -> bytearray:
    """Return of each row whether it is a part of a tensor, see `_is_part`."""
    codes, parents, buckets = nodes.places.codes, nodes.places.parents, nodes.buckets
    found = bytearray(len(codes))
    for id_ in range(1, len(codes)):
        parent = parents[id_]
        found[id_] = found[parent] if parent in buckets else codes[parent] >= 0
    return found


def _state(kept: int, gone: int) -> int:
    if not kept and not gone:
        return NO_CHOICE
    if kept and gone:
        return PARTLY
    return WRITTEN if kept else OUT


# --- a click ------------------------------------------------------------------------------------------------


def choose(
    document: Document,
    known_by: KnownBy,
    patterns: Sequence[str],
    nodes: Iterable[int],
    *,
    written: bool,
    tuples: Collection[str] = (),
) -> tuple[str, ...]:
    """Return the patterns after the boxes of some rows were clicked.

    Args:
        nodes: The ids of the rows; each stands for all below it.
        written: Whether they are to be written now, or left out.
        tuples: Where tuples stand whose items stay unless all of them go.
    """
    chosen = _rows_below(document.tree, nodes)
    trial = Patterns(patterns, document.checkpoint)
    covered = _covered(document.checkpoint, document.tree, known_by, trial)
    kept = []
    for number, pattern in enumerate(trial.texts):
        mine = covered.get(number, set())
        if not mine or mine.isdisjoint(chosen):
            kept.append(pattern)
        elif written:
            kept += _narrowest(document, mine - chosen, tuples)
        elif not mine <= chosen:
            kept.append(pattern)
    if not written:
        kept += _narrowest(document, chosen, tuples)
    return tuple(dict.fromkeys(kept))


def _covered(
    checkpoint: Checkpoint, tree: Tree, known_by: KnownBy, patterns: Patterns
) -> dict[int, set[int]]:
    """Return which rows of the tree each pattern covers."""
    covered: dict[int, set[int]] = {}
    for node, row in _shown(checkpoint, tree):
        for number in patterns.find(*known_by(row)):
            covered.setdefault(number, set()).add(node)
    return covered


def _shown(checkpoint: Checkpoint, tree: Tree) -> Iterator[tuple[int, Tensor | ValueRow]]:
    """Yield the rows that can be chosen, each with its node; parts go with what they are parts of."""
    for node, tensor in zip(tree.tensor_nodes, checkpoint.tensors, strict=True):
        if node >= 0 and tensor.part_of is None:
            yield node, tensor
    for node, value in zip(tree.value_nodes, checkpoint.values, strict=True):
        if node >= 0:
            yield node, value


def _rows_below(tree: Tree, nodes: Iterable[int]) -> set[int]:
    """Return the tensors and values below some rows, and these themselves."""
    found: set[int] = set()
    todo = [node for node in nodes if not _is_part(tree, node)]
    while todo:
        id_ = todo.pop()
        node = tree.nodes[id_]
        if node.kind in ("tensor", "value"):
            found.add(id_)
        else:
            todo += node.children
    return found


def _is_part(tree: Tree, id_: int) -> bool:
    """Return whether a row is a part of a tensor, such as the indices of a sparse one."""
    parent = tree.nodes[id_].parent
    while parent >= 0 and tree.nodes[parent].kind == "bucket":
        parent = tree.nodes[parent].parent
    return parent >= 0 and tree.nodes[parent].kind == "tensor"


# --- as few patterns as possible ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Beginnings:
    """How many rows begin with each path, and with each dotted beginning of a name.

    Attributes:
        dotted: By a path that ends in the middle of a name, up to a dot.
    """

    paths: dict[str, int]
    dotted: dict[str, int]


def _narrowest(document: Document, chosen: set[int], tuples: Collection[str]) -> list[str]:
    """Return few patterns that cover these rows of the tree and no others; none of them names an item."""
    if not chosen:
        return []
    every = dict(_shown(document.checkpoint, document.tree))
    if len(chosen) == len(every):
        return ["**"]
    totals = _count([row.path for row in every.values()])
    here = _count([every[node].path for node in sorted(chosen)])
    found: dict[str, None] = {}
    for node in sorted(chosen):
        found[_outermost(every[node].path, totals, here, tuples)] = None
    return [pattern for pattern in found if pattern]


def _outermost(path: str, totals: _Beginnings, here: _Beginnings, tuples: Collection[str]) -> str:
    """Return the pattern of the outermost beginning that all rows with it share; empty for an item alone."""
    for end, is_path in _boundaries(path):
        beginning = path[:end]
        if is_path and _is_item(beginning, tuples):
            continue
        total = (totals.paths if is_path else totals.dotted).get(beginning)
        if total is None or total != (here.paths if is_path else here.dotted).get(beginning):
            continue
        if is_path:
            return literal_pattern(beginning)
        if total > 1:
            return f"{literal_pattern(beginning)}*"
    return "" if _is_item(path, tuples) else literal_pattern(path)


def _count(paths: Sequence[str]) -> _Beginnings:
    counted = _Beginnings(paths={}, dotted={})
    room = _MOST_CHARS
    for path in paths:
        for end, is_path in _boundaries(path):
            known = counted.paths if is_path else counted.dotted
            beginning = path[:end]
            if beginning not in known:
                room -= end
                if room < 0:
                    continue
            known[beginning] = known.get(beginning, 0) + 1
    return counted


def _boundaries(path: str) -> Iterator[tuple[int, bool]]:
    """Yield where a path can be cut, outermost first, and whether what is before is a path of its own."""
    count = 0
    for place, letter in enumerate(path):
        if letter == "/" or (letter == "." and place and path[place - 1] not in "/."):
            yield (place, True) if letter == "/" else (place + 1, False)
            count += 1
            if count == _MOST_BOUNDARIES:
                break
    yield len(path), True
