"""How many bytes of a file belong to each row of its tree: what the map of modules draws as areas.

A storage counts once, with the first tensor that views it, so that areas add up to what the file stores or
should store: what is missing is hatched. Rows below a row have the ids behind it, without a gap, so all sums
are differences of running sums: a million rows take two arrays, and asking for any of them costs the same.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from operator import itemgetter
from typing import Literal

from inspector.model.checkpoint import ROLES, Checkpoint, Tensor
from inspector.model.roles.devices import device_order
from inspector.records import dataclass
from inspector.report.colors import NEUTRAL, device_name
from inspector.report.outline.nodes import sums
from inspector.report.tree import Tree
from inspector.units import cut_text, escape_text

Property = Literal["device", "dtype", "role"]
"""What a map can be colored by."""
PROPERTIES: tuple[Property, ...] = ("device", "dtype", "role")
_TELLING: tuple[Property, ...] = ("device", "role", "dtype")
_ONE_COLOR = 0.99
"""A map is of one color where that has this share of it."""
OTHERS = "others"
_MOST_KINDS = 32
"""More than any picture can tell apart; a hostile file may name a hundred thousand devices."""
_MOST_LABEL = 40


@dataclass(frozen=True, slots=True, eq=False)
class Areas:
    """The bytes of the rows of a tree; two are equal only if they are the same.

    Attributes:
        sums: By row, the bytes that belong to all rows before it; one more than there are rows.
        counts: By row, how many tensors before it are the first to view a storage that has bytes.
        owners: The row of each tensor that bytes belong to, in their order.
        loose_nbytes: What is stored, and belongs to no row.
    """

    checkpoint: Checkpoint
    tree: Tree
    sums: Sequence[int]
    counts: Sequence[int]
    owners: array[int]
    owning: array[int]
    loose_nbytes: int

    def end(self, node: int) -> int:
        """Return the id behind the last row below a row."""
        nodes = self.tree.nodes
        while children := nodes[node].children:
            node = children[-1]
        return node + 1

    def nbytes(self, node: int) -> int:
        """Return the bytes of a row and all rows below it; the root has the loose ones too."""
        loose = self.loose_nbytes if node == 0 else 0
        return self.sums[self.end(node)] - self.sums[node] + loose

    def own_nbytes(self, node: int) -> int:
        """Return the bytes of a row without those below it."""
        return self.sums[node + 1] - self.sums[node]

    def tensors(self, node: int) -> int:
        """Return how many tensors of a row and below it have bytes."""
        return self.counts[self.end(node)] - self.counts[node]

    def below(self, node: int) -> Iterator[tuple[int, int]]:
        """Yield each row right below a row that has bytes, with them."""
        sums, children = self.sums, self.tree.nodes[node].children
        if children:
            ends = [*children[1:], self.end(children[-1])]  # a row ends where the next one begins
            for child, end in zip(children, ends, strict=True):
                if nbytes := sums[end] - sums[child]:
                    yield child, nbytes


def measure(checkpoint: Checkpoint, tree: Tree) -> Areas:
    """Add up the bytes of the rows of a tree."""
    due = {row.key: max(row.nbytes, row.expected_nbytes or 0) for row in checkpoint.storages}
    unseen = {key: nbytes for key, nbytes in due.items() if nbytes > 0}
    owners, own, owned = [], [0] * len(tree.nodes), bytearray(len(tree.nodes))
    for index, (row, node) in enumerate(zip(checkpoint.tensors, tree.tensor_nodes, strict=True)):
        if node >= 0 and row.storage is not None and row.storage in unseen:
            own[node], owned[node] = unseen.pop(row.storage), 1
            owners.append((node, index))
    loose = sum(row.nbytes for row in checkpoint.storages if row.key in unseen and not row.missing)
    owners.sort(key=itemgetter(0))
    rows, indices = array("q", [node for node, _ in owners]), array("q", [index for _, index in owners])
    return Areas(checkpoint, tree, sums(own), sums(owned), rows, indices, loose)


@dataclass(frozen=True, slots=True)
class Kind:
    """Tensors with something in common, such as their device.

    Attributes:
        value: What tensors have in common, as in the file; None for all that are not told apart.
        color: The index of its color, see `bars.Segment.color`.
    """

    label: str
    value: str | None
    color: int
    nbytes: int


@dataclass(frozen=True, slots=True, eq=False)
class Coloring:
    """What a map is colored by; two are equal only if they are the same.

    Attributes:
        kinds: What they have in common there, in the order of the legend.
        rows: By kind, the rows that bytes of it belong to, in their order.
        sums: By kind, the bytes of all such rows before each, and at the end of all.
        owned: All rows that bytes belong to, in their order.
    """

    by: Property
    kinds: tuple[Kind, ...]
    rows: tuple[array[int], ...]
    sums: tuple[Sequence[int], ...]
    owned: array[int]
    kind_of: bytes

    def parts(self, start: int, end: int) -> tuple[int, ...]:
        """Return the bytes of each kind among the rows from one to another."""
        if end == start + 1:  # most cells are one tensor
            return self._part_of(start)
        found = []
        for rows, before in zip(self.rows, self.sums, strict=True):
            found.append(before[bisect_left(rows, end)] - before[bisect_left(rows, start)])
        return tuple(found)

    def _part_of(self, node: int) -> tuple[int, ...]:
        found = [0] * len(self.kinds)
        place = bisect_left(self.owned, node)
        if place < len(self.owned) and self.owned[place] == node:
            kind = self.kind_of[place]
            at = bisect_left(self.rows[kind], node)
            found[kind] = self.sums[kind][at + 1] - self.sums[kind][at]
        return tuple(found)


def color_by(areas: Areas, by: Property) -> Coloring:
    """Divide the bytes of a file by a property of the tensors that they belong to."""
    of, tensors = _VALUES[by], areas.checkpoint.tensors
    values, totals = [of(tensors[index]) for index in areas.owning], _totals(areas, by)
    order = _in_order(totals, by)
    places = {value: place for place, value in enumerate(order)}
    rows = tuple(array("q") for _ in range(len(order) + (len(totals) > len(order))))
    kind_of = bytearray()
    for value, node in zip(values, areas.owners, strict=True):
        kind = places.get(value, len(order))
        kind_of.append(kind)
        rows[kind].append(node)
    summed = tuple(sums(list(map(areas.own_nbytes, nodes))) for nodes in rows)
    kinds = [
        Kind(_label(by, value), value, _color(by, value, place, areas), summed[place][-1])
        for place, value in enumerate(order)
    ]
    if len(rows) > len(kinds):
        kinds.append(Kind(OTHERS, None, NEUTRAL, summed[-1][-1]))
    return Coloring(by, tuple(kinds), rows, summed, areas.owners, bytes(kind_of))


def telling_property(areas: Areas) -> Property:
    """Return what a map is best colored by: the device, or the first by which it has more than one color."""
    return next((by for by in _TELLING if _share_of_most(areas, by) < _ONE_COLOR), "role")


def _share_of_most(areas: Areas, by: Property) -> float:
    totals = _totals(areas, by)
    return max(totals.values(), default=0) / (totals.total() or 1)


def _totals(areas: Areas, by: Property) -> Counter[str]:
    of, tensors, totals = _VALUES[by], areas.checkpoint.tensors, Counter[str]()
    for index, node in zip(areas.owning, areas.owners, strict=True):
        totals[of(tensors[index])] += areas.own_nbytes(node)
    return totals


def _in_order(totals: Counter[str], by: Property) -> list[str]:
    """Return the values that are told apart, in the order of the legend."""
    ranked = [value for value, _ in totals.most_common(_MOST_KINDS)]
    kept = ranked if len(totals) <= _MOST_KINDS else ranked[:-1]
    return sorted(kept, key=device_order) if by == "device" else kept


def _label(by: Property, value: str) -> str:
    return device_name(value) if by == "device" else escape_text(cut_text(value, _MOST_LABEL))


def _color(by: Property, value: str, place: int, areas: Areas) -> int:
    """Return a color that a device or a role has in every picture; dtypes take theirs by size."""
    if by == "device":
        return areas.tree.colors.get(value, NEUTRAL)
    return list(ROLES).index(value) if by == "role" else place  # type: ignore[arg-type]  # it is a role


_VALUES: dict[Property, Callable[[Tensor], str]] = {
    "device": lambda tensor: tensor.device,
    "dtype": lambda tensor: tensor.dtype,
    "role": lambda tensor: tensor.role,
}
