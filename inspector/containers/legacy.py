"""The legacy container: five pickles, then the storages one after another.

Written by `_legacy_save` in torch's `torch/serialization.py`: magic number, protocol version, system
information, the object, the sorted storage keys; then for each key its number of elements (int64, little
endian) and its elements. Nothing says where a pickle ends but the pickle itself.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from inspector.containers.base import Find, Format
from inspector.containers.container import (
    Container,
    Extent,
    Extents,
    StoredBytes,
    first_storage_ids,
    losses,
    plain_extents,
)
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.containers.source import NearReader, Source
from inspector.errors import BrokenOffError, ContainerError, DamagedError, PickleError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override
from inspector.pickles.machine import Stream, growing_machine, read_pickle
from inspector.pickles.oddities import Oddity, OddityKind
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value
from inspector.progress import Progress
from inspector.records import dataclass, replace

MAGIC = 0x1950A86A20F9469CFC6C
PROTOCOL_VERSION = 1001
LEGACY_STREAMS = 5
"""How many pickles stand in front of the storages."""
OBJECT = "object"
NUMEL = struct.Struct("<q")
_FIRST_READ_NBYTES = 1 << 16
_MOST_FACTS = 16
_TAIL_NBYTES = 8
_HEAD_NBYTES = 64

# The first pickle of a legacy file, an integer, as each protocol writes it: in a frame from 4 on.
_MAGIC = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."
_BEGINNINGS = (
    b"\x80\x02" + _MAGIC,
    b"\x80\x03" + _MAGIC,
    b"\x80\x04\x95\x0d\0\0\0\0\0\0\0" + _MAGIC,
    b"\x80\x05\x95\x0d\0\0\0\0\0\0\0" + _MAGIC,
    b"L119547037146038801333356L\n.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LegacyLayout:
    """Where the parts of a legacy stream are, in bytes from the start of the file."""

    object_stream: Stream
    object_start: int
    object_end: int
    keys: tuple[str, ...]
    data_start: int
    versions: tuple[tuple[str, str], ...]


class Places(NamedTuple):
    """Where the storages are."""

    # where the bytes of each are in what the source reads (for gzip: in its inside), by key
    stored: dict[str, StoredBytes]
    before_damage: frozenset[str]  # those behind whose bytes something else stands than the next storage
    end: int


def open_legacy(source: Source, limits: Limits, progress: Progress) -> tuple[Container, Places]:
    """Take a legacy checkpoint apart, and give the places of its storages, too."""
    layout = read_layout(source, limits, progress)
    storage_ids = first_storage_ids(layout.object_stream.persistent_ids, limits)
    places = _find_storages(source, layout, storage_ids, progress)
    stored = places.stored
    if source.gzipped:
        stored = {key: StoredBytes(0, None, place.nbytes) for key, place in stored.items()}
    container = Container(
        path=source.path,
        format="legacy",
        file_nbytes=source.file_nbytes,
        root=layout.object_stream.root,
        stream=layout.object_stream,
        programs=source.programs.all(),
        storage_ids=storage_ids,
        stored=stored,
        versions=layout.versions,
        notes=tuple(_notes(source, layout, storage_ids, stored, places.end)),
    )
    return container, places


def makes_magic(source: Source) -> bool:
    """Return whether a file begins as a legacy file does, in whatever way its magic number is written.

    A number that is made up while loading, by a call or out of a module, may be the right one: then the
    second pickle tells.
    """
    first = _peek(source, 0)
    if first is None or not _may_be(first.root, MAGIC):
        return False
    if isinstance(first.root, int):
        return True
    second = _peek(source, first.end)
    return second is not None and _may_be(second.root, PROTOCOL_VERSION)


def _peek(source: Source, start: int) -> Stream | None:
    data = source.read_upto(start, _FIRST_READ_NBYTES)
    try:
        return read_pickle(data, limits=Limits(opcodes=_FIRST_READ_NBYTES, values=_FIRST_READ_NBYTES))
    except PickleError:
        return None


def _may_be(root: Value, wanted: int) -> bool:
    """Return whether a value may equal a number for Python: it is that, or nobody knows what it is."""
    if isinstance(root, int | float):
        return root == wanted
    return isinstance(root, Call | Global)


def read_layout(source: Source, limits: Limits, progress: Progress) -> LegacyLayout:
    """Read the five pickles."""
    magic = _read_stream(source, 0, "magic number", limits, progress)
    if not _may_be(magic.root, MAGIC):
        raise ContainerError("the magic number of a legacy checkpoint is wrong", where="byte 0")
    version = _read_needed(source, magic.end, "protocol version", limits, progress)
    if not _may_be(version.root, PROTOCOL_VERSION):
        raise ContainerError(
            "the protocol version of a legacy checkpoint is wrong", where=f"byte {magic.end:,}"
        )
    info_start = magic.end + version.end
    info = _read_needed(source, info_start, "system information", limits, progress)
    object_start = info_start + info.end
    stream = _read_needed(source, object_start, OBJECT, limits, progress)
    keys_start = object_start + stream.end
    keys, data_start = _read_keys(source, keys_start, limits, progress)
    if not isinstance(magic.root, int) or not isinstance(version.root, int):
        oddity = Oddity(OddityKind.COMPUTED_HEADER, 0)
        stream = replace(stream, oddities=(*stream.oddities, oddity))
    return LegacyLayout(
        object_stream=stream,
        object_start=object_start,
        object_end=keys_start,
        keys=keys,
        data_start=data_start,
        versions=system_facts(info.root) or (("protocol_version", str(PROTOCOL_VERSION)),),
    )


def _read_stream(source: Source, start: int, name: str, limits: Limits, progress: Progress) -> Stream:
    machine = growing_machine(
        lambda nbytes: source.read_upto(start, nbytes),
        name=f"{name} at byte {start:,}",
        limits=limits,
        progress=progress,
    )
    return source.programs.run(machine, name, "object" if name == OBJECT else "part")


def _read_needed(source: Source, start: int, name: str, limits: Limits, progress: Progress) -> Stream:
    """Read a pickle without which nothing has a name."""
    try:
        return _read_stream(source, start, name, limits, progress)
    except BrokenOffError as error:
        raise DamagedError(
            "the file is cut off inside the description of its tensors, which comes first",
            where=error.where,
            remedy="fetch or copy it again; nothing that is left has a name",
        ) from error


def _read_keys(source: Source, start: int, limits: Limits, progress: Progress) -> tuple[tuple[str, ...], int]:
    """Read the keys, and say where the storages begin; a file that is cut off here has no storages."""
    try:
        keys = _read_stream(source, start, "storage keys", limits, progress)
    except BrokenOffError:
        return (), start
    return _key_texts(keys.root, start, limits), start + keys.end


def _key_texts(root: Value, start: int, limits: Limits) -> tuple[str, ...]:
    where = f"byte {start:,}"
    listed = _listed(root)
    if listed is None or len(listed) > limits.records:
        raise ContainerError("the list of storage keys is malformed", where=where)
    keys = tuple(key for key in listed if isinstance(key, str))
    if len(keys) < len(listed):
        raise ContainerError("the list of storage keys is malformed", where=where)
    return keys


def _listed(root: Value) -> Sequence[Value] | None:
    """Return what going through the keys gives, which need not be a list; None for what is no collection."""
    if isinstance(root, Dict):
        return [key for key, _ in root.pairs]
    if isinstance(root, Set):
        return root.items
    return root if isinstance(root, list | tuple | str) else None


def system_facts(info: Value) -> tuple[tuple[str, str], ...]:
    """Return what a file says of the machine that wrote it, as far as it is short."""
    pairs = info.pairs[:_MOST_FACTS] if isinstance(info, Dict) else []
    return tuple((key, str(value)) for key, value in pairs if isinstance(key, str) and _is_short(value))


def _is_short(value: Value) -> bool:
    return isinstance(value, bool | int) and value.bit_length() <= 64


def _find_storages(
    source: Source, layout: LegacyLayout, storage_ids: dict[str, StorageId], progress: Progress
) -> Places:
    progress.start("finding storages", len(layout.keys), is_counted=True)
    stored: dict[str, StoredBytes] = {}
    before_damage: set[str] = set()
    filled = ""
    near = NearReader(source)
    pos = layout.data_start
    for number, key in enumerate(layout.keys):
        progress.advance(1)
        storage_id = storage_ids.get(key)
        try:
            count = _count_at(near, pos)
            if storage_id is None or count is None:
                break
            start, nbytes = pos + NUMEL.size, count * storage_id.itemsize
            if count != storage_id.numel and _is_damaged(near, layout, storage_ids, number, pos):
                pos = start + storage_id.nbytes
                before_damage.add(filled)
                continue
            if nbytes < 0 or not source.reaches(start + nbytes):
                break
        except DamagedError:  # of gzip: what was unpacked until there is good
            break
        stored[key] = StoredBytes(0, start, nbytes)
        filled = key if nbytes else filled
        pos = start + nbytes
    views = place_views(layout.object_stream.persistent_ids, storage_ids, stored)
    return Places(stored | views, frozenset(before_damage), pos)


def _count_at(near: NearReader, pos: int) -> int | None:
    at = near.seek(pos, NUMEL.size)
    return NUMEL.unpack_from(near.window, at)[0] if at + NUMEL.size <= len(near.window) else None


def _is_damaged(
    near: NearReader, layout: LegacyLayout, storage_ids: dict[str, StorageId], number: int, pos: int
) -> bool:
    """Return whether a count is wrong that the pickle contradicts, and not the pickle.

    Zeros stand where a download or a disk left a hole. Anything else is damage if the next storage is where
    the pickle says; then all behind it can be read.
    """
    storage_id = storage_ids[layout.keys[number]]
    if _count_at(near, pos) == 0:
        return True
    following = storage_ids.get(layout.keys[number + 1]) if number + 1 < len(layout.keys) else None
    behind = pos + NUMEL.size + storage_id.nbytes
    return following is not None and following.numel > 0 and _count_at(near, behind) == following.numel


def place_views(
    nodes: Iterable[PersistentId], storage_ids: dict[str, StorageId], stored: dict[str, StoredBytes]
) -> dict[str, StoredBytes]:
    """Place views, which torch 0.x wrote into persistent ids, within the storages that they view."""
    views: dict[str, StoredBytes] = {}
    if not any(storage_id.view for storage_id in storage_ids.values()):
        return views
    for storage_id in filter(None, map(parse_storage_id, nodes)):
        root = stored.get(storage_id.key)
        if storage_id.view is None or root is None:
            continue
        key, offset, size = storage_id.view
        start, nbytes = offset * storage_id.itemsize, size * storage_id.itemsize
        if start + nbytes <= root.nbytes:
            views.setdefault(key, StoredBytes(0, (root.offset or 0) + start, nbytes))
    return views


def _notes(
    source: Source,
    layout: LegacyLayout,
    storage_ids: dict[str, StorageId],
    stored: dict[str, StoredBytes],
    end: int,
) -> Iterator[Note]:
    if source.gzipped:
        yield Note(NoteKind.GZIP, (source.packing,))
    if layout.data_start == layout.object_end:
        yield Note(NoteKind.NO_KEYS)
    if len(set(layout.keys)) < len(layout.keys) or any(key not in storage_ids for key in layout.keys):
        yield Note(NoteKind.ODD_KEYS)
    lost = losses(storage_ids, stored)
    yield from lost
    if not lost and not source.gzipped and end < source.nbytes:
        yield Note(NoteKind.TRAILING_BYTES, (f"{source.nbytes - end:,}",))


def legacy_extents(source: Source, limits: Limits, progress: Progress) -> Extents:
    """Find the storages of a legacy file, also within gzip."""
    container, places = open_legacy(source, limits, progress)
    found = plain_extents(container, places.stored)
    for key in places.before_damage & found.whole.keys():
        if _ends_in_zeros(source, found.whole[key]):
            del found.whole[key]
            found.lost[key] = "zeros stand at its end and behind it, where the next tensor should be"
    return found


def _ends_in_zeros(source: Source, extent: Extent) -> bool:
    """Return whether a hole behind some bytes may begin in them; no checksum tells where it does."""
    nbytes = min(_TAIL_NBYTES, extent.nbytes)
    return not source.read(extent.offset + extent.nbytes - nbytes, nbytes).strip(b"\0")


class Legacy(Format):
    """The format of torch.save before 1.6."""

    name = "legacy"
    what = "a legacy checkpoint"
    is_read_through_gzip = True
    torch_loads = True
    is_stream = True
    era = "the format of torch before 1.6"
    becomes = "legacy"

    @override
    def matches(self, source: Source) -> bool:
        return source.read_upto(0, _HEAD_NBYTES).startswith(_BEGINNINGS) or makes_magic(source)

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return open_legacy(source, limits, progress)[0]

    @override
    def finder(self, source: Source) -> Find:
        """Return what finds a storage within gzip."""
        stored = open_legacy(source, DEFAULT_LIMITS, Progress())[1].stored if source.gzipped else {}

        def find(key: str) -> Extent | None:
            place = stored.get(key)
            return None if place is None else Extent(place.offset or 0, place.nbytes, place.nbytes, 0, 0)

        return find

    @override
    def extents(self, source: Source, limits: Limits, progress: Progress) -> Extents:
        return legacy_extents(source, limits, progress)
