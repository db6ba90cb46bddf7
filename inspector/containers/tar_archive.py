"""The tar container of torch 0.1: the object's pickle, then tensors and storages in members of their own.

What wrote it is gone; what reads it is `legacy_load` in torch's `torch/serialization.py`.
`storages` is a pickled count, then for each storage a pickle (key, location tag, class), the number of
elements (int64) and the elements, then a pickled list of views (key, key of the viewed, offset, size).
`tensors` is a count, then a pickle (key, storage key, class), the number of dimensions (int32, padded to 8
bytes), sizes, strides and offset (int64 each). In `pickle`, a persistent id is the key of either as a text.

The object is given as newer files have it, each tensor rebuilt from a storage, so what reads a container
need not know of this one.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from inspector.containers.container import Container, StoredBytes, first_storage_ids
from inspector.containers.legacy import NUMEL, place_views, system_facts
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.source import Source
from inspector.containers.tar_members import INFO, NEEDED, OBJECT, STORAGES, TENSORS, Member, read_members
from inspector.errors import BrokenOffError, ContainerError, DamagedError, PickleError, UnsupportedFormatError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.machine import Machine, Stream, growing_machine, read_pickle
from inspector.pickles.values import Call, Global, PersistentId, Value
from inspector.progress import Progress
from inspector.records import dataclass, replace

# --- what stands in a member --------------------------------------------------------------------------------


FETCH = "fetch or copy it again"
_FIRST_READ_NBYTES = 1 << 9
_NDIM = struct.Struct("<i4x")
_MOST_DIMENSIONS = 64


class Cursor:
    """Reads what stands in a member, one thing behind the other."""

    def __init__(self, source: Source, member: Member, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._member = member
        self._limits = limits
        self._progress = progress
        self.pos = member.payload
        self.streams: list[Stream] = []

    def breathe(self) -> None:
        """Count one thing more; the time and the number of pickles are bounded."""
        self._progress.advance(1)
        limits = self._limits
        if len(self.streams) > limits.storages or time.thread_time() > limits.ends_s:
            raise ContainerError("the tar file holds too much to read", where=f"byte {self.pos:,}")

    def pickle(self) -> Stream:
        """Read a pickle."""
        start = self.pos
        machine = growing_machine(
            lambda nbytes: self._source.read_upto(start, max(min(nbytes, self._member.end - start), 0)),
            name=f"{self._member.name} at byte {start:,}",
            limits=self._limits,
            progress=self._progress,
            first_nbytes=_FIRST_READ_NBYTES,
        )
        try:
            stream = self._source.programs.run(machine, self._member.name)
        except BrokenOffError as error:
            if self._source.reaches(self._member.end):
                raise
            raise self._short() from error
        self.pos = start + stream.end
        self.streams.append(stream)
        return stream

    def count(self) -> int:
        """Read a pickled number of things."""
        count = self.pickle().root
        if type(count) is not int or not 0 <= count <= self._member.nbytes:
            raise malformed(f"the number of {self._member.name}", self._member.payload)
        return count

    def take(self, nbytes: int) -> bytes:
        """Read so many bytes."""
        start = self.pos
        self.skip(nbytes)
        return self._source.read(start, nbytes)

    def skip(self, nbytes: int) -> None:
        """Pass over so many bytes, which must be there."""
        if self.pos + nbytes > self._member.end:
            raise malformed(f"the length of {self._member.name}", self.pos)
        self.pos += nbytes
        if not self._source.reaches(self.pos):
            raise self._short()

    def geometry(self) -> tuple[int, tuple[int, ...], tuple[int, ...]]:
        """Read the offset, sizes and strides of a tensor."""
        start = self.pos
        (ndim,) = _NDIM.unpack(self.take(_NDIM.size))
        if not 0 <= ndim <= _MOST_DIMENSIONS:
            raise malformed("the shape of a tensor", start)
        numbers = struct.unpack(f"<{2 * ndim + 1}q", self.take(8 * (2 * ndim + 1)))
        return numbers[-1], numbers[:ndim], numbers[ndim:-1]

    def _short(self) -> DamagedError:
        return DamagedError(
            f"the file is cut off within its {self._member.name}, and what is behind has no name",
            where=f"byte {self._source.nbytes:,}",
            remedy=FETCH,
        )


def malformed(what: str, pos: int) -> ContainerError:
    """Return the error for something that is not as torch 0.1 wrote it."""
    return ContainerError(f"{what} in the tar file is malformed", where=f"byte {pos:,}")


# --- the archive --------------------------------------------------------------------------------------------


_MOST_INFO_NBYTES = 1 << 16
_REBUILD = Global("torch._utils", "_rebuild_tensor")


class StorageRecord(NamedTuple):
    """One storage in the member of that name."""

    key: int
    location: str
    cls: Value
    numel: int
    nbytes: int
    start: int  # where its pickle starts in the file
    end: int  # where that ends
    payload: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TarLayout:
    """What the members hold."""

    members: dict[str, Member]
    storages: tuple[StorageRecord, ...]
    # views of them, as (key, key of the viewed, offset, size), in elements
    views: tuple[tuple[int, int, int, int], ...]


def read_tar(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a tar checkpoint apart."""
    layout = read_layout(source, limits, progress)
    reader = _Reader(source, layout.members, limits, progress)
    nodes = _storage_nodes(layout)
    known: dict[int, Value] = {**nodes, **reader.tensors(nodes)}
    info, stream = reader.info(), reader.object(known)
    parsed = tuple(nodes.values())
    storage_ids = first_storage_ids(parsed, limits)
    records = {str(record.key): record for record in layout.storages}
    stored = {
        key: StoredBytes(0, records[key].payload, storage.nbytes)
        for key, storage in storage_ids.items()
        if key in records
    }
    stored |= place_views(parsed, storage_ids, stored)
    return Container(
        path=source.path,
        format="tar",
        file_nbytes=source.file_nbytes,
        root=stream.root,
        stream=replace(stream, persistent_ids=parsed),
        programs=source.programs.all(),
        storage_ids=storage_ids,
        stored=stored,
        versions=info,
    )


def relocate(container: Container, locations: dict[str, str]) -> Container:
    """Return a container with other location tags, by storage key; the one given must not be used again."""
    nodes = container.pickle().persistent_ids
    for node in nodes:
        storage = parse_storage_id(node)
        if storage is not None and storage.key in locations and isinstance(node.pid, tuple):
            node.pid = (*node.pid[:3], locations[storage.key], *node.pid[4:])
            node.meaning = node
    ids = first_storage_ids(nodes, DEFAULT_LIMITS)
    return replace(container, storage_ids=ids)


# --- storages -----------------------------------------------------------------------------------------------


def read_layout(source: Source, limits: Limits, progress: Progress) -> TarLayout:
    """Find the members, and the storages in theirs."""
    members = read_members(source)
    if not members.keys() >= set(NEEDED):
        raise _cut_off(source, members)
    cursor = Cursor(source, members[STORAGES], limits, progress)
    count = cursor.count()
    progress.start("finding storages", count, is_counted=True)
    storages = []
    for _ in range(count):
        cursor.breathe()
        start = cursor.pos
        key, location, cls = _storage_fields(cursor.pickle(), start)
        end = cursor.pos
        (numel,) = NUMEL.unpack(cursor.take(NUMEL.size))
        storage = parse_storage_id(PersistentId(("storage", cls, str(key), location, numel)))
        if storage is None:
            raise malformed("a storage", start)
        storages.append(StorageRecord(key, location, cls, numel, storage.nbytes, start, end, cursor.pos))
        cursor.skip(storage.nbytes)
    views = tuple(_views(cursor.pickle(), cursor.pos, limits))
    return TarLayout(members=members, storages=tuple(storages), views=views)


def _cut_off(source: Source, names: Iterable[str]) -> DamagedError:
    lost = next(name for name in NEEDED if name not in names)
    return DamagedError(
        f"the tar file is cut off: it has no member {lost}, as all of torch 0.1 have",
        where=source.path,
        remedy=FETCH,
    )


def _storage_fields(stream: Stream, start: int) -> tuple[int, str, Value]:
    root = stream.root
    if type(root) is tuple and len(root) == 2 and type(root[0]) is int:
        raise UnsupportedFormatError(
            "this tar file is from before torch 0.1.7, and no torch reads it any more",
            where=f"byte {start:,}",
            remedy="save it again with the torch that wrote it",
        )
    if type(root) is not tuple or len(root) != 3:
        raise malformed("a storage", start)
    key, location, cls = root
    if type(key) is not int or key.bit_length() > 64 or not isinstance(location, str):
        raise malformed("a storage", start)
    return key, str(location), cls


def _node(record: StorageRecord, view: tuple[str, int, int] | None = None) -> PersistentId:
    return PersistentId(("storage", record.cls, str(record.key), record.location, record.numel, view))


def _views(stream: Stream, pos: int, limits: Limits) -> Iterator[tuple[int, int, int, int]]:
    root = stream.root
    if not isinstance(root, list) or len(root) > limits.storages:
        raise malformed("the list of views", pos)
    for row in root:
        match row:
            case int(key), int(viewed), int(offset), int(size):
                yield key, viewed, offset, size
            case _:
                raise malformed("the list of views", pos)


def _storage_nodes(layout: TarLayout) -> dict[int, PersistentId]:
    records = {record.key: record for record in layout.storages}
    nodes = {}
    for key, viewed, offset, size in layout.views:
        if viewed not in records:
            raise malformed("a view", layout.members[STORAGES].end)
        nodes[key] = _node(records[viewed], (str(key), offset, size))
    # What is viewed comes behind, as in legacy files: if nothing else uses it, it goes where its views go.
    return nodes | {key: _node(record) for key, record in records.items()}


# --- the other members --------------------------------------------------------------------------------------


class _Reader:
    def __init__(
        self, source: Source, members: dict[str, Member], limits: Limits, progress: Progress
    ) -> None:
        self._source = source
        self._members = members
        self._limits = limits
        self._progress = progress

    def tensors(self, storages: dict[int, PersistentId]) -> dict[int, Call]:
        """Read the tensors, each as the call that newer files make it with."""
        cursor = self._cursor(TENSORS)
        count = cursor.count()
        self._progress.start("finding tensors", count, is_counted=True)
        found = {}
        for _ in range(count):
            cursor.breathe()
            start = cursor.pos
            root = cursor.pickle().root
            if type(root) is not tuple or len(root) != 3:
                raise malformed("a tensor", start)
            key, storage, _ = root
            if type(key) is not int or type(storage) is not int or storage not in storages:
                raise malformed("a tensor", start)
            found[key] = Call(_REBUILD, (storages[storage], *cursor.geometry()), "reduce")
        return found

    def info(self) -> tuple[tuple[str, str], ...]:
        """Read what the file says of the machine that wrote it; torch does not."""
        member = self._members.get(INFO)
        if member is None:
            return ()
        data = self._source.read_upto(member.payload, min(member.nbytes, _MOST_INFO_NBYTES))
        try:
            return system_facts(read_pickle(data, limits=self._limits, progress=self._progress).root)
        except PickleError:  # nobody needs it
            return ()

    def object(self, known: dict[int, Value]) -> Stream:
        """Read the object, with tensors and storages in the place of their keys."""

        def resolve(node: PersistentId) -> Value:
            pid = node.pid
            if type(pid) is tuple and pid:  # a class, its source file and its source
                return pid[0]
            key = (
                int(pid)
                if isinstance(pid, str) and pid.isascii() and pid.isdigit() and len(pid) < 20
                else None
            )
            return known.get(key, node) if key is not None else node

        member = self._members[OBJECT]
        machine = Machine(
            self._source.read_upto(member.payload, min(member.nbytes, self._limits.pickle_nbytes)),
            name=OBJECT,
            limits=self._limits,
            progress=self._progress,
            resolve=resolve,
        )
        return self._source.programs.run(machine, OBJECT, "object")

    def _cursor(self, name: str) -> Cursor:
        return Cursor(self._source, self._members[name], self._limits, self._progress)
