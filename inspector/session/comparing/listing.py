"""The rows of a comparison in the tree of the main window, with their figures and those of groups."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from inspector.diff.content import has_elements
from inspector.diff.records import ArrayPair, Diff, Numbers, Pair
from inspector.diff.series import counts_steps
from inspector.errors import CheckpointError
from inspector.model.tensors.dtypes import is_whole
from inspector.report.arrange import Arrangement, Group
from inspector.report.arrange import arrange as arrangement_of
from inspector.report.comparing.rows import SECTIONS, DiffRow
from inspector.report.comparing.words import LABELS
from inspector.report.tree import BUCKET_ROWS
from inspector.report.words.formats import ROOT
from inspector.units import cut_text, short_value

Found = Mapping[Pair | ArrayPair, Numbers | CheckpointError]
"""By how much pairs differ, or why that cannot be told."""
_RELATIVE = (
    "How long the difference is, in lengths of A: \u2016A \u2212 B\u2016 / \u2016A\u2016.\n"
    "Of a group, as if all its weights were one vector, without whole numbers and counts of steps.\n"
    "* leaves out elements that are NaN or infinite, or tensors that have no such figure."
)
CompareColumn = Literal["name", "what", "a", "b", "relative", "cosine", "largest"]
COLUMNS: dict[CompareColumn, tuple[str, str]] = {
    "name": ("Name", ""),
    "what": ("Change", ""),
    "relative": ("Relative", _RELATIVE),
    "cosine": ("Cosine", "Of A and B as vectors: 1 where they point the same way."),
    "largest": ("Largest step", "The largest difference of two elements."),
    "a": ("A", ""),
    "b": ("B", ""),
}
"""The titles of the columns, in their order, and what they mean."""
FIGURES: tuple[CompareColumn, ...] = ("relative", "cosine", "largest")
TOP = 0
_CODES = ("q", "bits")
"""Dtypes whose elements stand for other numbers: no length of theirs says anything."""
_MARK = "*"
_SAME = "the same"
_DIGITS = ".4g"
_MOST_NAME = 40
_ROUNDING = 1e-12


class Shape(NamedTuple):
    """All rows in their groups, by node; the first is the invisible root, and parents come before children.

    Attributes:
        ends: What stands behind the name of a group in paths: a slash or a dot.
        rows: The number of a row; -1 for a group.
        nodes: The node of each row.
    """

    names: list[str]
    ends: list[str]
    parents: list[int]
    below: list[list[int]]
    rows: list[int]
    nodes: list[int]

    def add(self, name: str, parent: int, row: int = -1, end: str = "") -> int:
        """Add a node below another."""
        node = len(self.names)
        for column, value in ((self.names, name), (self.ends, end)):
            column.append(value)
        self.parents.append(parent)
        self.below.append([])
        self.rows.append(row)
        if parent >= 0:
            self.below[parent].append(node)
        return node


def shape_of(diff: Diff, rows: Sequence[DiffRow]) -> Shape:
    """Put rows below what they stand in; what stands in no tree has a group apart."""
    shape = Shape([], [], [], [], [], [])
    shape.add("", -1)
    known: dict[tuple[int, str], int] = {}
    places = {"a": _Places(arrangement_of(diff.a), shape, known)}
    if any(row.leaf is not None and row.leaf[0] == "b" for row in rows):
        places["b"] = _Places(arrangement_of(diff.b), shape, known)
    for number, row in enumerate(rows):
        name, parent = row.a_path or row.b_path or ROOT, TOP
        if row.leaf is None:
            title = SECTIONS[row.section]
            parent = known.get((TOP, title), -1)
            if parent < 0:
                parent = known[TOP, title] = shape.add(title, TOP)
        else:
            side, leaf = row.leaf
            name, parent = places[side].of(leaf, name)
        shape.nodes.append(shape.add(name, parent, number))
    _join_chains(shape)
    return shape


class _Places:
    """Finds the node that a leaf of one file stands below, and its name there."""

    def __init__(self, arrangement: Arrangement, shape: Shape, known: dict[tuple[int, str], int]) -> None:
        self._arrangement, self._shape, self._known = arrangement, shape, known
        self._groups: dict[int, Group] = {}
        self._above: dict[int, Group] = {}
        self._nodes = {id(arrangement.root): TOP}
        stack = [arrangement.root]
        while stack:
            group = stack.pop()
            for below in group.below:
                if isinstance(below, Group):
                    self._above[id(below)] = group
                    stack.append(below)
                else:
                    self._groups[below] = group
        self._whole = {part: whole for whole, parts in arrangement.parts.items() for part in parts}

    def of(self, leaf: int, path: str) -> tuple[str, int]:
        """Return the name and the parent of a leaf; its path and the root if the tree leaves it out."""
        name, whole = self._arrangement.name_of(leaf), self._whole.get(leaf)
        if whole is not None:
            above, parent = self.of(whole, path)
            return f"{above}/{name}", parent
        group = self._groups.get(leaf)
        return (path, TOP) if group is None else (name, self._node(group))

    def _node(self, group: Group) -> int:
        chain = []
        while id(group) not in self._nodes:
            chain.append(group)
            group = self._above[id(group)]
        node = self._nodes[id(group)]
        for one in reversed(chain):
            key = node, one.name
            if key not in self._known:
                self._known[key] = self._shape.add(one.name, node, end=one.path[-1:])
            node = self._nodes[id(one)] = self._known[key]
        return node


def _join_chains(shape: Shape) -> None:
    """Make one row of groups that have nothing but one other group below, as the tree does."""
    for node in reversed(range(1, len(shape.names))):
        below = shape.below[node]
        if shape.rows[node] < 0 and len(below) == 1 and shape.rows[below[0]] < 0:
            (inner,) = below
            shape.names[node] = f"{shape.names[node]}{shape.ends[node]}{shape.names[inner]}"
            shape.ends[node] = shape.ends[inner]
            shape.below[node] = shape.below[inner]
            for child in shape.below[node]:
                shape.parents[child] = node


# By how much rows differ, and groups as if all their tensors were one vector.


class Figures(NamedTuple):
    """By how much a row or a group differs.

    Attributes:
        cosine: None where one of the two vectors is 0.
        largest: None where no two elements are finite.
        skipped: Elements that are NaN or infinite in one of the files, which the others leave out.
        apart: Tensors below a group that are not in its figures: those of one file alone have none, and
            counters that differ would hide all else.
        finite: Whether any two elements are.
    """

    norm_a: float
    norm_b: float
    distance: float
    cosine: float | None
    largest: float | None
    skipped: int = 0
    apart: int = 0
    finite: bool = True

    @property
    def relative(self) -> float | None:
        """The length of the difference in lengths of the first; infinite if only that is 0."""
        if not self.finite:
            return None
        if not self.norm_a:
            return math.inf if self.distance else 0.0
        return self.distance / self.norm_a

    def value(self, column: CompareColumn) -> float | None:
        """Return the figure of a column."""
        return {"relative": self.relative, "cosine": self.cosine}.get(str(column), self.largest)


def figures_of(diff: Diff, rows: Sequence[DiffRow], shape: Shape, found: Found) -> tuple[Figures | None, ...]:
    """Return the figures of all nodes, as far as they are found; None for those that have none.

    Whole numbers and counts of steps move by far more than any weight: they are in no group's figures, which
    say so where such a one differs.
    """
    figures: list[Figures | None] = [None] * len(shape.names)
    inside: list[list[Figures]] = [[] for _ in shape.names]
    apart = [0] * len(shape.names)
    for node in reversed(range(len(shape.names))):
        number, parent = shape.rows[node], shape.parents[node]
        if number >= 0:
            row = rows[number]
            one = figures[node] = row_figures(diff, row, found)
            if row.section not in {"tensor", "optimizer"}:
                continue
            if not is_weight(diff, row):
                apart[parent] += one is not None and bool(one.distance)
            else:
                inside[parent] += [one] if one is not None and one.finite else []
                apart[parent] += one is None or not one.finite
            continue
        if inside[node]:
            whole = figures[node] = joined(inside[node], apart[node])
            inside[max(parent, TOP)].append(whole)
        if parent >= 0:
            apart[parent] += apart[node]
    return tuple(figures)


def row_figures(diff: Diff, row: DiffRow, found: Found) -> Figures | None:
    """Return the figures of a row; None where there are none."""
    pair = row.pair or row.arrays
    numbers = None if pair is None else found.get(pair)
    if not isinstance(numbers, Numbers):
        return None
    if row.pair is not None:
        dtypes = diff.a.tensors[row.pair.a].dtype, diff.b.tensors[row.pair.b].dtype
        if any(dtype.startswith(_CODES) for dtype in dtypes):
            return None
    return Figures(
        numbers.norm_a,
        numbers.norm_b,
        numbers.distance,
        numbers.cosine,
        numbers.max_abs,
        numbers.skipped,
        finite=numbers.skipped < numbers.numel,
    )


def is_weight(diff: Diff, row: DiffRow) -> bool:
    """Return whether a row counts in the figures of its groups."""
    if row.leaf is None or row.leaf[1] < 0:
        return False
    side, leaf = row.leaf
    tensor = (diff.a if side == "a" else diff.b).tensors[leaf]
    return has_elements(tensor) and tensor.nbytes > 0 and not (is_whole(tensor.dtype) or counts_steps(tensor))


def joined(parts: Sequence[Figures], apart: int) -> Figures:
    """Return the figures of vectors as if they were one."""
    norm_a, norm_b = (
        math.hypot(*lengths) for lengths in zip(*((one[0], one[1]) for one in parts), strict=True)
    )
    cosine = None
    if norm_a and norm_b:
        shares = ((one.cosine or 0.0) * (one.norm_a / norm_a) * (one.norm_b / norm_b) for one in parts)
        cosine = max(-1.0, min(1.0, math.fsum(shares)))
    steps = [one.largest for one in parts if one.largest is not None]
    return Figures(
        norm_a,
        norm_b,
        math.hypot(*(one.distance for one in parts)),
        cosine,
        max(steps, default=None),
        sum(one.skipped for one in parts),
        apart,
    )


def figure_text(figures: Figures | None, column: CompareColumn) -> str:
    """Return what stands in the cell of a figure; a star says that something is left out."""
    if figures is None:
        return ""
    if not figures.finite:
        return "NaN" if column == "relative" else ""
    value = figures.value(column)
    if value is None:
        return "\u2013"
    mark = _MARK if figures.skipped or figures.apart else ""
    if value == math.inf:
        return f"\u221e{mark}"
    return f"{_cosine(value) if column == 'cosine' else format(value, _DIGITS)}{mark}"


def _cosine(value: float) -> str:
    """Return a cosine, which is 1 only where nothing is lost by saying so."""
    text = f"{value:.6f}"
    return f"1\u2212{1 - value:.0e}" if text == "1.000000" and 1 - value > _ROUNDING else text


def side_texts(row: DiffRow, found: Found) -> tuple[str, str]:
    """Return what a row is in both files: a single number itself, where that is known."""
    numbers = None if row.pair is None else found.get(row.pair)
    if not isinstance(numbers, Numbers) or numbers.numel != 1 or not numbers.differing:
        return row.a_text, _SAME if row.pair is not None and row.a_text == row.b_text else row.b_text
    whole = numbers.first_a, numbers.first_b
    short = short_value("float", whole[0]), short_value("float", whole[1])
    return short if short[0] != short[1] else whole


def figure_share(figures: Figures | None, column: CompareColumn, most: float) -> float:
    """Return how long the bar of a cell is, from 0 to 1; `most` is the largest figure that rows have."""
    value = None if figures is None else figures.value(column)
    if value is None:
        return 0.0
    if column == "cosine":
        return math.acos(value) / math.pi
    return min(value / most, 1.0) if most else float(value > 0)


def most_of(figures: Iterable[Figures | None], column: CompareColumn) -> float:
    """Return the largest finite figure of a column."""
    values = (one.value(column) for one in figures if one is not None)
    return max((value for value in values if value is not None and value < math.inf), default=0.0)


# What is listed of them, in which order.


class Order(NamedTuple):
    """The column that rows are sorted by within their groups; without one they stand as in the file."""

    column: CompareColumn = "name"
    descending: bool = False


class Listing(NamedTuple):
    """The nodes that are listed.

    Attributes:
        below: The children of each, in order.
        parents: The parents of those that stand elsewhere than in the shape: below a slice of a long list.
        slices: What slices of long lists are called; their nodes come after those of the shape.
        shown: How many rows there are.
    """

    below: dict[int, tuple[int, ...]]
    parents: dict[int, int]
    slices: dict[int, str]
    shown: int


def list_rows(
    rows: Sequence[DiffRow],
    shape: Shape,
    figures: Sequence[Figures | None],
    wanted: Callable[[DiffRow], bool],
    order: Order,
) -> Listing:
    """Return the rows that are wanted with the groups that they stand in, in order."""
    listed = bytearray(len(shape.names))
    shown = 0
    for number, row in enumerate(rows):
        if wanted(row):
            shown += 1
            node = shape.nodes[number]
            while node >= 0 and not listed[node]:
                listed[node] = 1
                node = shape.parents[node]
    found = Listing({}, {}, {}, shown)
    for node in range(len(shape.names)):
        if listed[node] and shape.below[node]:
            below = [child for child in shape.below[node] if listed[child]]
            _slice(found, node, _sorted(below, rows, shape, figures, order), shape)
    return found


def _slice(found: Listing, node: int, below: list[int], shape: Shape) -> None:
    """Show a long list in slices: Qt lays out all children of a row."""
    if len(below) <= 2 * BUCKET_ROWS:
        found.below[node] = tuple(below)
        return
    slices = []
    for start in range(0, len(below), BUCKET_ROWS):
        rows, number = below[start : start + BUCKET_ROWS], len(shape.names) + len(found.slices)
        first = cut_text(shape.names[rows[0]], _MOST_NAME)
        found.slices[number] = f"{start + 1:,} \u2026 {start + len(rows):,}   ({first} \u2026)"
        found.below[number] = tuple(rows)
        found.parents.update(dict.fromkeys(rows, number))
        found.parents[number] = node
        slices.append(number)
    found.below[node] = tuple(slices)


def _sorted(
    nodes: list[int],
    rows: Sequence[DiffRow],
    shape: Shape,
    figures: Sequence[Figures | None],
    order: Order,
) -> list[int]:
    column, descending = order
    if column == "name":
        return nodes[::-1] if descending else nodes

    def key(node: int) -> Any:  # noqa: ANN401 - numbers or texts, by the column
        one, row = figures[node], None if shape.rows[node] < 0 else rows[shape.rows[node]]
        if column in FIGURES:
            return None if one is None else one.value(column)
        if row is None:
            return None
        return what_text(row) if column == "what" else row.a_text if column == "a" else row.b_text

    keys = {node: key(node) for node in nodes}
    known = [node for node in nodes if keys[node] is not None]
    known.sort(key=keys.__getitem__, reverse=descending)
    return known + [node for node in nodes if keys[node] is None]


MARKS = {"+": "added", "-": "removed", "~": "changed", ">": "renamed", "=": "equal", "!": "code"}
"""What each mark is called: nothing is told by a color or a sign alone."""


def what_text(row: DiffRow) -> str:
    """Return what differs of a row in a few words."""
    if row.mark in {"~", ">"}:
        return f"{row.mark} {', '.join(LABELS[kind] for kind in row.what)}"
    return f"{row.mark} {MARKS[row.mark]}"
