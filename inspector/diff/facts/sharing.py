"""Tensors that share their memory in one of two files and have memory of their own in the other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Literal

from inspector.diff.records import Pair, Sharing
from inspector.model.checkpoint import Tensor

_Place = tuple[str, int]


def compare_sharing(a: Sequence[Tensor], b: Sequence[Tensor], pairs: Iterable[Pair]) -> tuple[Sharing, ...]:
    """Return the tensors that one file alone ties together, by their places in the first."""
    with_bytes = [
        (pair, _place(a[pair.a]), _place(b[pair.b]))
        for pair in pairs
        if _has_bytes(a[pair.a]) and _has_bytes(b[pair.b])
    ]
    return (*_tied(a, with_bytes, "a"), *_tied(a, with_bytes, "b"))


def _tied(
    rows: Sequence[Tensor], found: list[tuple[Pair, _Place, _Place]], only_in: Literal["a", "b"]
) -> list[Sharing]:
    groups: dict[_Place, list[tuple[Pair, _Place]]] = defaultdict(list)
    for pair, one, other in found:
        here, there = (one, other) if only_in == "a" else (other, one)
        groups[here].append((pair, there))
    return [
        Sharing(tuple(dict.fromkeys(rows[pair.a].path for pair, _ in group)), only_in)
        for group in groups.values()
        if len({there for _, there in group}) > 1
    ]


def _has_bytes(row: Tensor) -> bool:
    return row.storage is not None and row.nbytes > 0 and row.layout != "storage"


def _place(row: Tensor) -> _Place:
    return row.storage or "", row.storage_offset or 0
