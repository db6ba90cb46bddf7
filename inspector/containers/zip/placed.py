"""Where storages are whose records are all alike: in columns, without an object for each.

A million of those would take a seventh of a gigabyte.
"""

from __future__ import annotations

from array import array
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import cast

from inspector.containers.container import StoredBytes
from inspector.containers.source import Source
from inspector.containers.zip.alike import Alike
from inspector.containers.zip.directory import REFUSED_FLAGS, STORED, payload_offsets
from inspector.overriding import override
from inspector.progress import Progress
from inspector.tuples import NamedTuple

_ASK_EACH = 4096


class Placed(Mapping[str, StoredBytes]):
    """The bytes of storages by key, in the order in which the keys are given."""

    def __init__(self, keys: Collection[str], alike: Alike, starts: Sequence[int]) -> None:
        """Take what was found.

        Args:
            keys: The keys of all storages.
            alike: Their records, and maybe others.
            starts: For each of those, where its bytes start; 0 where they are missing, or nobody's.
        """
        self._keys = keys
        self._alike = alike
        self._starts = starts

    @override
    def __getitem__(self, key: str) -> StoredBytes:
        row = self._alike.find(key)
        if row is None or not self._starts[row]:
            raise KeyError(key)
        return StoredBytes(0, self._starts[row], self._alike.sizes[row])

    @override
    def __iter__(self) -> Iterator[str]:
        return (key for key in self._keys if key in self)

    @override
    def __len__(self) -> int:
        return len(self._starts) - self._starts.count(0)


class Found(NamedTuple):
    """Storages that were found.

    Attributes:
        stored: Their places.
        lost: The keys of those that end behind the file, or whose header was overwritten.
        overlap: Whether any records overlap.
    """

    stored: Placed
    lost: tuple[str, ...]
    overlap: bool


def find_alike(source: Source, alike: Alike, keys: Collection[str], progress: Progress) -> Found | None:
    """Place storages that all have one of the records that are alike, in their order; else return None.

    Raises:
        ContainerError: The file cannot be read.
        CancelledError: The work was cancelled.
    """
    if alike.flags & REFUSED_FLAGS or alike.method != STORED:
        return None
    found = list(map(alike.find, keys))
    if None in found:
        return None
    rows = cast("list[int]", found)
    headers = [alike.offsets[row] for row in rows]
    if any(one > other for one, other in pairwise(headers)):
        return None
    starts = array("Q", bytes(8 * len(alike)))
    lost: list[str] = []
    reached, overlap, most, sizes = 0, False, source.nbytes, alike.sizes
    offsets = payload_offsets(source, headers)
    for number, (key, row, header, start) in enumerate(zip(keys, rows, headers, offsets, strict=True)):
        if number % _ASK_EACH == 0:
            progress.advance(min(_ASK_EACH, len(rows) - number))
        if start is None or start + sizes[row] > most:
            lost.append(key)
            continue
        overlap = overlap or header < reached
        reached = start + sizes[row]
        starts[row] = start
    return Found(Placed(keys, alike, starts), tuple(lost), overlap)
