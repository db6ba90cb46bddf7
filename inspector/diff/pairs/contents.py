"""Tensors that stand in the other file under a name that nothing explains, found by their bytes.

Only tensors of one dtype and shape are asked for, and most are read at their beginning alone. What many
tensors have (zeros, ones, a number alone) proves nothing, and neither do bytes that two rows of a file have.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator
from typing import NamedTuple

from inspector.diff.content.elements import Elements, elements_of, has_elements, read_elements
from inspector.diff.pairs.paths import Left
from inspector.diff.side import Side
from inspector.errors import CancelledError, CheckpointError
from inspector.model.checkpoint import Tensor
from inspector.progress import Progress

_HEAD_NBYTES = 1 << 14
_Kind = tuple[str, tuple[int, ...], str]


class _Row(NamedTuple):
    side: Side
    number: int
    elements: Elements


def pair_contents(a: Side, b: Side, left: Left, progress: Progress) -> list[tuple[int, int]]:
    """Pair rows of equal bytes, where only one row of each file has those."""
    kinds_a, kinds_b = _by_kind(a, left.a), _by_kind(b, left.b)
    found: list[tuple[int, int]] = []
    for kind, rows in kinds_a.items():
        others = kinds_b.get(kind)
        if others:
            found += _pair_kind(rows, others, progress)
    found.sort()
    return found


def _by_kind(side: Side, numbers: list[int]) -> dict[_Kind, list[_Row]]:
    found: dict[_Kind, list[_Row]] = defaultdict(list)
    for number in numbers:
        row = side.checkpoint.tensors[number]
        elements = _elements(row)
        if elements is not None:
            found[row.dtype, row.shape, row.layout].append(_Row(side, number, elements))
    return found


def _elements(row: Tensor) -> Elements | None:
    if not has_elements(row):
        return None
    try:
        elements = elements_of(row)
    except CheckpointError:
        return None
    return elements if elements.view.numel > 1 else None


def _pair_kind(rows: list[_Row], others: list[_Row], progress: Progress) -> Iterator[tuple[int, int]]:
    """Yield the pairs of one dtype and shape: those of one beginning are read to their end."""
    heads, other_heads = _group(rows, _HEAD_NBYTES, progress), _group(others, _HEAD_NBYTES, progress)
    for head, group in heads.items():
        others_there = other_heads.get(head)
        if not others_there:
            continue
        whole, other_whole = _group(group, None, progress), _group(others_there, None, progress)
        for digest, same in whole.items():
            partners = other_whole.get(digest, [])
            if len(same) == len(partners) == 1:
                yield same[0].number, partners[0].number


def _group(rows: list[_Row], most: int | None, progress: Progress) -> dict[bytes, list[_Row]]:
    found: dict[bytes, list[_Row]] = defaultdict(list)
    for row in rows:
        digest = _digest(row, most, progress)
        if digest is not None:
            found[digest].append(row)
    return found


def _digest(row: _Row, most: int | None, progress: Progress) -> bytes | None:
    """Return the digest of a row's elements, or of the first of them; None of what proves nothing."""
    found = hashlib.blake2b(digest_size=16)
    is_constant = most is None
    first = b""
    try:
        for block in _read(row, most, progress):
            found.update(block)
            first = first or block[: row.elements.itemsize]
            is_constant = is_constant and block == first * (len(block) // len(first))
    except CancelledError:
        raise
    except CheckpointError:
        return None
    return None if is_constant else found.digest()


def _read(row: _Row, most: int | None, progress: Progress) -> Iterator[bytes]:
    """Yield the bytes of a row's elements, or the first of them."""
    elements = row.elements
    if most is not None and elements.is_plain:
        most -= most % elements.itemsize
        head = min(most // elements.itemsize, elements.view.numel)
        elements = elements._replace(view=elements.view._replace(shape=(head,), stride=(1,)))
    left = elements.nbytes if most is None else most
    for block in read_elements(row.side, elements, progress):
        yield block[:left]
        left -= len(block)
        if left <= 0:
            return
