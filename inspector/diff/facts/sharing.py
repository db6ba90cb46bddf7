"""Tensors that share their memory in one of two files and have memory of their own in the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple

from inspector.diff.records import Pair, Sharing
from inspector.model.checkpoint import Tensor
from inspector.model.tensors.dtypes import PLAIN_ITEMSIZES
from inspector.model.tensors.row_blocks import View

_Place = tuple[str, int]
_Found = tuple[Pair, _Place, _Place]


class _Run(NamedTuple):
    """The bytes of a storage that a tensor sees, from the first to the last, and whether it sees them all."""

    storage: str
    start: int
    end: int
    is_dense: bool

    def overlaps(self, other: _Run) -> bool:
        """Return whether they have a byte in common."""
        return self.storage == other.storage and self.start < other.end and other.start < self.end


def compare_sharing(a: Sequence[Tensor], b: Sequence[Tensor], pairs: Iterable[Pair]) -> tuple[Sharing, ...]:
    """Return the tensors that one file alone ties together, by their places in the first."""
    with_bytes: list[_Found] = [
        (pair, _place(a[pair.a]), _place(b[pair.b]))
        for pair in pairs
        if _has_bytes(a[pair.a]) and _has_bytes(b[pair.b])
    ]
    return (
        *_tied(a, with_bytes, "a"),
        *_tied(a, with_bytes, "b"),
        *_overlapping(a, b, with_bytes, "a"),
        *_overlapping(a, b, with_bytes, "b"),
    )


def _tied(rows: Sequence[Tensor], found: list[_Found], only_in: Literal["a", "b"]) -> list[Sharing]:
    groups: dict[_Place, list[tuple[Pair, _Place]]] = defaultdict(list)
    for pair, one, other in found:
        here, there = (one, other) if only_in == "a" else (other, one)
        groups[here].append((pair, there))
    return [
        Sharing(tuple(dict.fromkeys(rows[pair.a].path for pair, _ in group)), only_in)
        for group in groups.values()
        if len({there for _, there in group}) > 1
    ]


def _overlapping(
    a: Sequence[Tensor], b: Sequence[Tensor], found: list[_Found], only_in: Literal["a", "b"]
) -> list[Sharing]:
    """Return tensors that overlap and begin at other places of their storage, in one file alone."""
    storages: dict[str, list[Pair]] = defaultdict(list)
    places: set[_Place] = set()
    for pair, one, other in found:  # a place is looked at once: what stands there is the same memory
        place = one if only_in == "a" else other
        if place not in places:
            places.add(place)
            storages[place[0]].append(pair)
    tied = []
    for pairs in storages.values():
        if pairs[1:]:
            runs = [(_run(a[pair.a]), _run(b[pair.b]), pair) for pair in pairs]
            turned = runs if only_in == "a" else [(there, here, pair) for here, there, pair in runs]
            tied += [Sharing((a[one].path, a[other].path), only_in) for one, other in _crossing(turned)]
    return tied


def _crossing(runs: list[tuple[_Run, _Run, Pair]]) -> Iterator[tuple[int, int]]:
    """Yield neighbors that overlap here and not there; with gaps, two can stand between each other."""
    runs = sorted((one for one in runs if one[0].is_dense), key=lambda one: one[0].start)
    for before, after in pairwise(runs):
        if after[0].overlaps(before[0]) and not after[1].overlaps(before[1]):
            yield before[2].a, after[2].a


def _run(row: Tensor) -> _Run:
    size = PLAIN_ITEMSIZES.get(row.dtype, 1)
    start = (row.storage_offset or 0) * size
    seen = row.nbytes if row.stride is None else View(row.shape, row.stride, 0).reach * size
    return _Run(row.storage or "", start, start + seen, seen == row.nbytes)


def _has_bytes(row: Tensor) -> bool:
    return row.storage is not None and row.nbytes > 0 and row.layout != "storage"


def _place(row: Tensor) -> _Place:
    return row.storage or "", row.storage_offset or 0
