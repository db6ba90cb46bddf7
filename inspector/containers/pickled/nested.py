"""Files of torch within a pickle: the bytes that `torch.storage._load_from_bytes` is called with.

`pickle.dump` of a tensor writes its storage as a whole file of `torch.save` (`_StorageBase.__reduce__` in
torch's `torch/storage.py`), so there is one for each tensor. Its storages get keys of their own here: the
number of the file, a colon, and their key in it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from inspector.containers.container import Extent
from inspector.containers.legacy import open_legacy
from inspector.containers.notes import Note
from inspector.containers.persistent_ids import StorageId, prefix_key, prefixed
from inspector.containers.pickled.machine import Place
from inspector.containers.raw.codings import PLAIN, coded
from inspector.containers.raw.within import Within
from inspector.containers.source import Source
from inspector.containers.zip.archive import find_records, read_torchzip
from inspector.containers.zip.directory import STORED
from inspector.limits import Limits
from inspector.pickles.machine import Stream
from inspector.pickles.oddities import Oddity, StreamFault
from inspector.pickles.state import MOST_ODDITIES
from inspector.pickles.values import Call, Global, Value
from inspector.progress import Progress
from inspector.records import replace

_ZIP = b"PK\x03\x04"
LOST = -1000
"""The method of bytes that are packed and spelled as a text: nobody writes that, and nothing reads it."""


class Nested(NamedTuple):
    """One file within a pickle.

    Attributes:
        number: Its number, counted from 0.
        place: Where its bytes stand.
        nbytes: How many they are.
        root: The value that it holds.
        storage_ids: Its storages, by the keys that they have in the whole.
        stored: Where their bytes are in what the source reads, by key.
    """

    number: int
    place: Place
    nbytes: int
    root: Value
    storage_ids: dict[str, StorageId]
    stored: dict[str, Extent]


class NestedFiles:
    """Reads the files within one source; each place once, whatever refers to it."""

    def __init__(self, source: Source, limits: Limits, progress: Progress) -> None:
        """Prepare to read files within `source`."""
        self.found: list[Nested] = []
        self.notes: tuple[Note, ...] = ()
        self.programs = Folded()
        self._source = source
        self._limits = limits
        self._progress = progress
        self._by_place: dict[Place, Nested] = {}

    def read(self, place: Place, nbytes: int) -> Nested:
        """Read the file at a place, of so many bytes once its spelling is undone."""
        known = self._by_place.get(place)
        if known is not None:
            return known
        inside = Within(self._source, place.offset, nbytes, place.nbytes, place.spelling)
        found = self._read_any(inside, place)
        self._by_place[place] = found
        self.found.append(found)
        return found

    def _read_any(self, inside: Within, place: Place) -> Nested:
        try:
            if inside.read_upto(0, len(_ZIP)) == _ZIP:
                container = read_torchzip(inside, self._limits, self._progress)
                find = find_records(inside)
                extents = {key: find(key) for key in container.stored}
                stored = {key: one for key, one in extents.items() if one is not None}
            else:
                container, places = open_legacy(inside, self._limits, self._progress)
                stored = {
                    key: Extent(one.offset or 0, one.nbytes, one.nbytes, STORED, 0)
                    for key, one in places.stored.items()
                }
        finally:
            self.programs.add(stream for _, stream in inside.programs.streams())
        self.notes += container.notes
        return self._finish(inside, place, container.pickle(), container.storage_ids, stored)

    def _finish(
        self,
        inside: Within,
        place: Place,
        stream: Stream,
        storage_ids: Mapping[str, StorageId],
        stored: Mapping[str, Extent],
    ) -> Nested:
        number = len(self.found)
        prefix = f"{number}:"
        for node in stream.persistent_ids:
            prefix_key(node, prefix)
        return Nested(
            number,
            place,
            inside.nbytes,
            stream.root,
            {prefix + key: prefixed(one, prefix) for key, one in storage_ids.items()},
            {prefix + key: _outer(inside, place, one) for key, one in stored.items()},
        )


def _outer(inside: Within, place: Place, extent: Extent) -> Extent:
    """Return where the bytes of a storage are in the outer source."""
    start = inside.stored_at(extent.offset)
    if place.spelling == PLAIN:
        return extent._replace(offset=start)
    method = coded(place.spelling) if extent.method == STORED else LOST
    return Extent(start, place.offset + place.nbytes - start, extent.nbytes, method, extent.crc)


class Folded:
    """The programs of many small files as one, since nobody asks for each by itself."""

    def __init__(self) -> None:
        self._first: Stream | None = None
        self._globals: dict[str, Global] = {}
        self._calls: list[Call] = []
        self._oddities: list[Oddity] = []
        self._faults: set[StreamFault] = set()
        self._firsts: dict[int, tuple[int, int]] = {}

    def add(self, streams: Iterable[Stream]) -> None:
        """Add what some streams do."""
        for stream in streams:
            self._first = self._first or stream
            for node in stream.globals:
                known = self._globals.setdefault(node.dotted, node)
                if known is not node:
                    known.count += node.count
            self._calls += stream.calls
            self._oddities += stream.oddities[: MOST_ODDITIES - len(self._oddities)]
            self._faults |= stream.faults
            self._firsts = {**stream.firsts, **self._firsts}

    def stream(self) -> Stream | None:
        """Return what all of them do; None where there is none."""
        if self._first is None:
            return None
        return replace(
            self._first,
            root=None,
            data=b"",
            globals=tuple(self._globals.values()),
            persistent_ids=(),
            calls=tuple(self._calls),
            faults=frozenset(self._faults),
            opcodes=frozenset(self._firsts),
            firsts=self._firsts,
            oddities=tuple(self._oddities),
        )
