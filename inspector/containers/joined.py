"""Several checkpoints as one: the shards of a model, or the files that a trainer left in a folder.

The storages of part 2 are known under keys of their own, such as `2:17`, so that equal keys of two parts
stay apart; what is noted of a part carries its name. Values are changed where they are: what was joined must
not be used alone again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from inspector.containers.container import Container, Gathered, Part, PickleRecord, StoredBytes
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, prefix_key, prefixed
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import Stream
from inspector.pickles.values import Blob, Call, Dict, PersistentId, Set, StoredTensor, Value
from inspector.records import replace

_LONGS = frozenset(CODES[name] for name in ("INT", "LONG", "LONG4"))
_MOST_FILES = 256
_CONTAINERS = frozenset({list, tuple, Dict, Set, Call, PersistentId})


class Member(NamedTuple):
    """One part of the whole."""

    name: str
    container: Container


def join(path: str, form: str, members: Iterable[Member], root: Value, limits: Limits) -> Container:
    """Return the members as one container."""
    data = bytearray()
    storage_ids: dict[str, StorageId] = {}
    stored: dict[str, StoredBytes] = {}
    gathered: dict[str, Gathered] = {}
    whole = Container(
        path=path,
        format=form,
        file_nbytes=0,
        root=root,
        storage_ids=storage_ids,
        stored=stored,
        gathered=gathered,
    )
    for name, container in members:
        first = len(whole.parts)
        prefix = f"{first}:"
        if _rename(container, first, len(data), limits):
            data += container.object_data
        parts = container.parts or (Part(container.path, container.file_nbytes, container.format),)
        notes = (note.within(name) for note in container.notes if note.kind is not NoteKind.PART_OF)
        storage_ids |= {prefix + key: prefixed(one, prefix) for key, one in container.storage_ids.items()}
        stored |= {
            prefix + key: place._replace(part=first + place.part) for key, place in container.stored.items()
        }
        gathered |= {prefix + key: _shifted(one, first) for key, one in container.gathered.items()}
        whole = replace(
            whole,
            file_nbytes=whole.file_nbytes + sum(part.nbytes for part in parts),
            parts=whole.parts + parts,
            streams=(*whole.streams, *((replace(one, data=b""), form) for one, form in container.objects)),
            notes=(*whole.notes, *notes),
            refused=(*whole.refused, *((prefix + key, words) for key, words in container.refused)),
            tied=whole.tied + container.tied,
            versions=_merged(whole.versions, container.versions, name),
            refusal=whole.refusal or container.refusal,
        )
    return replace(whole, data=bytes(data))


def _shifted(gathered: Gathered, first: int) -> Gathered:
    chunks = (chunk._replace(part=chunk.part + first if chunk.part >= 0 else -1) for chunk in gathered.chunks)
    return gathered._replace(chunks=tuple(chunks))


def _merged(
    known: tuple[tuple[str, str], ...], more: tuple[tuple[str, str], ...], name: str
) -> tuple[tuple[str, str], ...]:
    texts = dict(known)
    new = tuple((what, text) for what, text in more if what not in texts)
    others = tuple((f"{what} of {name}", text) for what, text in more if texts.get(what, text) != text)
    return (*known, *new, *others)


# --- its values ---------------------------------------------------------------------------------------------


def _rename(container: Container, first: int, start: int, limits: Limits) -> bool:
    """Write the keys of the whole, and where large values stand in its data; return whether there are any."""
    prefix = f"{first}:"
    stream = container.stream
    for one, _ in container.objects:
        for node in one.persistent_ids:
            prefix_key(node, prefix)
    if stream is not None and not _may_leave(stream, limits):
        return False
    look = limits.counted().look
    seen: set[int] = set()
    has_blobs = False
    for value in _values(container.root, look):
        if id(value) in seen:
            continue
        if isinstance(value, StoredTensor):
            seen.add(id(value))
            value.key = prefix + value.key
        elif isinstance(value, Blob):
            seen.add(id(value))
            value.offset += start
            has_blobs = True
    return has_blobs


def _may_leave(stream: Stream, limits: Limits) -> bool:
    """Return whether a pickle is long enough for a value that is left where it is, see `Limits`."""
    has_long = not stream.opcodes.isdisjoint(_LONGS)
    return stream.end >= limits.text_nbytes or (has_long and stream.end >= limits.long_nbytes)


class InnerFiles:
    """What files within one archive hold together, under keys with the name of their record before them."""

    def __init__(self, limits: Limits) -> None:
        self.storage_ids: dict[str, StorageId] = {}
        self.stored: dict[str, StoredBytes] = {}
        self.pickles: list[PickleRecord] = []
        self.notes: list[Note] = []
        self.large = bytearray()  # the data of pickles that left large values in it
        self._limits = limits
        self._left = _MOST_FILES

    def count_file(self) -> None:
        """Count a file of torch.save that is to be read, and bound how many there are."""
        self._left -= 1
        if self._left < 0:
            raise ContainerError(f"the archive holds more than {_MOST_FILES:,} files of torch.save")

    def take(self, name: str, container: Container, start: int | None) -> None:
        """Take over what a file holds whose bytes begin at `start`; None where they are compressed."""
        stream, prefix = container.pickle(), f"{name}:"
        for node in stream.persistent_ids:
            prefix_key(node, prefix)
        for key, one in container.storage_ids.items():
            self.add_storage(prefix + key, prefixed(one, prefix))
        for key, place in container.stored.items():
            is_plain = start is not None and place.offset is not None
            offset = (start or 0) + (place.offset or 0) if is_plain else None
            self.stored[prefix + key] = place._replace(offset=offset)
        self.add_pickle(PickleRecord(name, stream, prefix))

    def add_storage(self, key: str, storage_id: StorageId) -> None:
        """Add a storage, and bound how many there are."""
        self.storage_ids[key] = storage_id
        if len(self.storage_ids) > self._limits.storages:
            raise ContainerError(f"the file has more than {self._limits.storages:,} storages")

    def add_pickle(self, record: PickleRecord) -> None:
        """Add a pickle, and keep its data where it left large values in it."""
        stream = record.stream
        if shift_large_values(stream.root, stream, len(self.large), self._limits):
            self.large += stream.data
        self.pickles.append(record)


def shift_large_values(root: Value, stream: Stream, start: int, limits: Limits) -> bool:
    """Have large values find themselves in the data of several pickles; return whether there are any."""
    if not _may_leave(stream, limits):
        return False
    seen: set[int] = set()
    for value in _values(root, limits.counted().look):
        if isinstance(value, Blob) and id(value) not in seen:
            seen.add(id(value))
            value.offset += start
    return bool(seen)


def _values(root: Value, look: Callable[[int], None]) -> Iterator[Value]:
    seen: dict[int, Value] = {}
    stack: list[Value] = [root]
    while stack:
        value = stack.pop()
        yield value
        if type(value) in _CONTAINERS and id(value) not in seen:
            seen[id(value)] = value
            parts = _parts_of(value)
            look(len(parts))
            stack.extend(parts)


def _parts_of(value: Value) -> Sequence[Value]:
    if isinstance(value, Dict):
        return [part for pair in value.pairs for part in pair]
    if isinstance(value, Set):
        return value.items
    if isinstance(value, PersistentId):
        return (value.pid,)
    if isinstance(value, Call):
        pairs = [part for pair in value.pairs or () for part in pair]
        return [value.func, value.args, value.kwargs, value.state, *(value.items or ()), *pairs]
    return value if isinstance(value, list | tuple) else ()
