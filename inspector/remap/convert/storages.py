"""Which storages a form writes, and which bytes of each: all, or only those that something views.

Storages are numbered in the order of their first use, as `torch.save` does. Of a storage that is cut out, the
ranges that tensors view stand one behind the other, so that tensors which overlapped still do.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from inspector.containers.container import Container
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.errors import ExportError
from inspector.model.tensors.dtypes import ITEMSIZES, PLAIN_ITEMSIZES
from inspector.model.tensors.views import NoTensorError, dtype_of, strided
from inspector.pickles.values import Call, PersistentId, Value
from inspector.records import dataclass, field
from inspector.remap.objects.views import UNTYPED, StorageName, as_written, storage_class, view_of

_ALIGNMENT = 16  # a multiple of every item size, for bytes that tensors of several types may view
_DTYPE_OF_V3 = 6  # its place among the arguments

Range = tuple[int, int]
"""First byte within a stored storage, and the one behind the last."""


class Piece(NamedTuple):
    """One storage to write.

    Attributes:
        source: Its key in the source.
        name: What the pickle says of it.
        ranges: Which bytes of the source's storage it is made of, in order.
        is_whole: Whether these are all of them.
        dtype: torch's name of its element type; `uint8` for untyped storages.
        nbytes: Its size.
    """

    source: str
    name: StorageName
    ranges: tuple[Range, ...]
    is_whole: bool
    dtype: str
    nbytes: int


class Cut(NamedTuple):
    """What is kept of a storage.

    Attributes:
        ranges: The bytes kept, in order and apart from one another.
        starts: Where each begins in what is left.
    """

    ranges: tuple[Range, ...]
    starts: tuple[int, ...]

    def place(self, pos: int) -> int:
        """Return where a byte stands now, or a place near it if it is not kept, as that of an empty view."""
        number = max(bisect_right(self.ranges, (pos, 1 << 64)) - 1, 0)
        first, last = self.ranges[number]
        return self.starts[number] + min(max(pos, first), last) - first


def cut_out(spans: Sequence[Range], nbytes: int, alignment: int) -> Cut:
    """Keep the spans of a storage and no more than it takes to keep elements aligned."""
    ranges: list[Range] = []
    for start, end in sorted(spans):
        first = start // alignment * alignment
        last = min(-(-end // alignment) * alignment, nbytes)
        if ranges and first <= ranges[-1][1]:
            ranges[-1] = (ranges[-1][0], max(ranges[-1][1], last))
        elif last > first:
            ranges.append((first, last))
    starts, reached = [], 0
    for start, end in ranges:
        starts.append(reached)
        reached += end - start
    return Cut(tuple(ranges) or ((0, 0),), tuple(starts) or (0,))


@dataclass(slots=True, eq=False)
class Storages:
    """Names the storages that a pickle uses while it is written; a `Naming` without the entries.

    Attributes:
        container: The source.
        location_of: Gives the new location tag by a storage's key and its present tag.
        owner_of: Names a tensor that views a storage, for messages.
        cuts: What is kept of each storage, by key; storages that are not among them are kept whole.
        dtypes: Storages of other element types from now on, by the present type.
        pieces: What has been named so far, by key.
    """

    container: Container
    location_of: Callable[[str, str], str]
    owner_of: Callable[[str], str]
    cuts: Mapping[str, Cut] = field(default_factory=dict)
    dtypes: Mapping[str, str] = field(default_factory=dict)
    pieces: dict[str, Piece] = field(default_factory=dict)

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Return what is written for a storage's persistent id; None for an id of something else."""
        own = parse_storage_id(node)
        if own is None:
            return None
        piece = self.pieces.get(own.key)
        if piece is None:
            storage = as_written(self.container.storage_ids.get(own.key, own))
            piece = self.pieces[own.key] = self._piece(storage)
        return piece.name

    def move_view(self, call: Call) -> int | None:
        """Return the offset of a view in the storage it will have."""
        node, offset = view_of(call), call.args[1] if isinstance(call.args, tuple) else None
        own = None if node is None else parse_storage_id(node)
        if own is None or not isinstance(offset, int):
            return None
        offset += 0 if own.view is None else own.view[1]
        cut = self.cuts.get(own.key)
        if cut is None:
            return offset
        itemsize = PLAIN_ITEMSIZES[_dtype(call, own)]  # nothing else is cut
        return cut.place(offset * itemsize) // itemsize

    def _piece(self, storage: StorageId) -> Piece:
        stored = self.container.stored.get(storage.key)
        if stored is None and storage.numel:
            raise ExportError(
                "the bytes of a tensor are missing",
                where=self.owner_of(storage.key),
                remedy="recover the rest, or leave it out with --exclude",
            )
        nbytes = 0 if stored is None else stored.nbytes
        cut = self.cuts.get(storage.key)
        ranges = ((0, nbytes),) if cut is None else cut.ranges
        kept = _total(ranges)
        dtype = storage.dtype if storage.untyped else self.dtypes.get(storage.dtype, storage.dtype)
        numel = storage.numel if cut is None else kept // (1 if storage.untyped else storage.itemsize)
        name = StorageName(
            storage_class(None if storage.untyped else dtype),
            str(len(self.pieces)),
            self.location_of(storage.key, storage.location),
            numel,
        )
        size = kept if dtype == storage.dtype else numel * ITEMSIZES[dtype]
        return Piece(storage.key, name, ranges, kept == nbytes, dtype, size)


@dataclass(slots=True, eq=False)
class Viewed:
    """Notes what is viewed of each storage, while a pickle is written for nothing else.

    Attributes:
        container: The source.
        spans: The bytes viewed of each storage.
        wholes: Storages that something holds as such, so that all of them counts.
    """

    container: Container
    spans: defaultdict[str, list[Range]] = field(default_factory=lambda: defaultdict(list))
    wholes: set[str] = field(default_factory=set)
    _views: set[int] = field(default_factory=set)

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Note a storage; one that no view was noted for just before is held whole."""
        own = parse_storage_id(node)
        if own is None:
            return None
        if id(node) in self._views:
            self._views.discard(id(node))
        else:
            self.wholes.add(own.key)
        return StorageName(UNTYPED, "", "", 0)

    def move_view(self, call: Call) -> int | None:
        """Note a view."""
        node = view_of(call)
        own = None if node is None else parse_storage_id(node)
        span = None if own is None else _span(call, self.container.storage_ids.get(own.key, own), own)
        if own is not None and span is not None:
            self.spans[own.key].append(span)
            self._views.add(id(node))
        return None

    def cuts(self) -> dict[str, Cut]:
        """Return what to keep of each storage that is larger than what is viewed of it."""
        found = {}
        for key, spans in self.spans.items():
            stored, storage = self.container.stored.get(key), self.container.storage_ids[key]
            if key not in self.wholes and stored is not None:
                alignment = _ALIGNMENT if storage.untyped else storage.itemsize
                cut = cut_out(spans, stored.nbytes, alignment)
                if _total(cut.ranges) < stored.nbytes:
                    found[key] = cut
        return found


def _total(ranges: Sequence[Range]) -> int:
    return sum(end - start for start, end in ranges)


def _arguments(call: Call) -> tuple[Value, ...]:
    return call.args if isinstance(call.args, tuple) else ()


def _dtype(call: Call, storage: StorageId) -> str:
    """Return the element type of a view: its own, which only the third generation has, or its storage's."""
    args = _arguments(call)
    try:
        return dtype_of(args[_DTYPE_OF_V3])
    except (IndexError, NoTensorError):
        return storage.dtype


def _span(call: Call, storage: StorageId, own: StorageId) -> Range | None:
    """Return the bytes that a view spans within its storage; None where that cannot be told."""
    dtype = _dtype(call, storage)
    if dtype not in PLAIN_ITEMSIZES:
        return None
    try:
        facts = strided(storage, dtype, _arguments(call)[1:4], requires_grad=False)
    except NoTensorError:
        return None
    skipped = 0 if own.view is None else own.view[1] * storage.itemsize
    return None if facts.problem else (facts.span[0] + skipped, facts.span[1] + skipped)
