"""What every reader returns: the saved object, the pickles that loading runs, the storages, and the files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Literal, NamedTuple

from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.containers.programs import Program
from inspector.containers.source import Stamp
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.pickles.machine import Stream
from inspector.pickles.values import PersistentId, Value
from inspector.records import dataclass, field
from inspector.units import format_count, format_nbytes


class Part(NamedTuple):
    """One of the files that a checkpoint consists of: its path, and its size."""

    path: str
    nbytes: int
    format: str = ""
    """Its format, where it is a checkpoint of its own."""


class PickleRecord(NamedTuple):
    """One of several pickles of an archive that hold tensors."""

    name: str
    stream: Stream
    # what the keys of its storages begin with here, and not in the pickle itself: each pickle may count its
    # own
    prefix: str = ""


class CodeDevice(NamedTuple):
    """A device that code within the file names."""

    device: str
    place: str  # the record and the line, as in `code/__torch__/net.py:12`


Declared = Literal["parameter", "buffer", "other"]
"""What a file itself says that a tensor is for."""


class StoredBytes(NamedTuple):
    """The bytes of one storage."""

    part: int
    offset: int | None  # where they start in it; None when they are compressed
    nbytes: int


class Extent(NamedTuple):
    """The bytes of one storage or record."""

    offset: int  # where they start in what the source reads (for gzip: in its inside)
    stored_nbytes: int
    nbytes: int
    method: int  # as zip numbers them: 0 stored, 8 deflated
    crc: int  # CRC-32 of the inflated bytes; 0 where the file does not tell
    # how many inflated bytes stand before them, where a compressed file within the file holds them
    skip: int = 0
    # how many bytes each number has whose bytes are the other way round once inflated; 1 for none
    swap: int = 1


class OwnLoader(NamedTuple):
    """What loads a file that others of its format are not loaded by."""

    call: str  # as code that a path in parentheses follows
    names: tuple[str, ...]  # what that is asked for by name
    is_compiled: bool = False  # whether all that it loads is machine code
    made_for: str = ""  # what machine code that it runs was compiled for, as far as the file says


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """One checkpoint, taken apart."""

    path: str  # the file as it was named
    format: str  # the name of its format, see `formats.FORMATS`
    file_nbytes: int  # size of the file, or of all files where there are several
    root: Value  # the saved object: what its pickle makes, or what the reader of a format without one made
    stream: Stream | None = None  # the pickle of the saved object; None where the format has none, or several
    # the pickles that hold tensors, where there are several; the object's is among them
    pickles: tuple[PickleRecord, ...] = ()
    # all pickles that `torch.load` runs, and those that other readers run in their place, in the order in
    # which they are run. The object's is one of them.
    programs: tuple[Program, ...] = ()
    # what is known of each storage by key, in the order of first use. torch counts only the first of several
    # persistent ids.
    storage_ids: dict[str, StorageId]
    # the bytes of each storage by key; a storage that is missing has no entry
    stored: Mapping[str, StoredBytes]
    # the pickles of the objects in several files, each with the format of its file
    streams: tuple[tuple[Stream, str], ...] = ()
    data: bytes = b""  # what large values of those are still in
    # the files that the storages are in; none where that is the file at `path` alone
    parts: tuple[Part, ...] = ()
    versions: tuple[tuple[str, str], ...] = ()  # versions written in the file
    notes: tuple[Note, ...] = ()  # what there is to know about the file; verdicts rest on their kinds
    refusal: str = ""  # what torch's reader says to the container, exception and all; empty where it opens it
    refused: tuple[tuple[str, str], ...] = ()  # what it says to the record of a storage, as (key, words)
    # the storages whose bytes stand in chunks, maybe of several files, by key
    gathered: Mapping[str, Gathered] = field(default_factory=dict)
    # names that the file leaves out, each with the name that the same tensor is kept under
    tied: tuple[tuple[str, str], ...] = ()
    # what the file looked like before it was read; None for one that no path leads to
    stamp: Stamp | None = None
    # what tensors are for, by the `id` of the value, where the file says so; then its root is one model, and
    # the way to a tensor is its name. None where it does not.
    declared: Mapping[int, Declared] | None = None
    code_devices: tuple[CodeDevice, ...] = ()  # the devices that code in the file makes tensors on
    own_loader: OwnLoader | None = None  # None where that of the format loads it

    @property
    def objects(self) -> tuple[tuple[Stream, str], ...]:
        """The pickles of the saved objects, each with the format of its file."""
        own = () if self.stream is None else ((self.stream, self.format),)
        return (*own, *self.streams)

    @property
    def object_data(self) -> bytes:
        """What large values of the saved object are still in."""
        return self.data if self.stream is None else self.stream.data

    def pickle(self) -> Stream:
        """Return the pickle of the saved object, for work that changes it."""
        if self.stream is None:
            raise ContainerError("there is no pickle in this file", where=self.path)
        return self.stream


def first_storage_ids(
    nodes: Iterable[PersistentId], limits: Limits, forgotten: list[StorageId] | None = None
) -> dict[str, StorageId]:
    """Return the first persistent id of each storage, by key and in order; views have keys of their own.

    `forgotten` gets the later ids of storages that torch's zip reader does not remember by their key, since
    they have no address, or the key is no str: it reads the records again, as each id says.
    """
    found: dict[str, StorageId] = {}
    nodes = tuple(nodes)
    is_odd = forgotten is not None and any(map(_has_odd_key, nodes))
    for node in nodes:
        storage_id = parse_storage_id(node)
        if storage_id is None:
            continue
        first = found.setdefault(storage_id.key, storage_id)
        if first.dtype != storage_id.dtype and not _has_no_address(first):
            # torch hands out the first one's storage for both
            node.meaning = storage_id._replace(dtype=first.dtype, itemsize=first.itemsize)
        if forgotten is not None and first is not storage_id and (is_odd or _has_no_address(first)):
            forgotten.append(storage_id)
        if storage_id.view is not None:
            found.setdefault(storage_id.view[0], storage_id.viewed())
    if len(found) > limits.storages:
        raise ContainerError(
            f"the file has more than {limits.storages:,} storages",
            remedy="save its tensors in several files, or as safetensors",
        )
    return found


def _has_odd_key(node: PersistentId) -> bool:
    """Return whether a key is no str: torch reads the record of 0 again that it has read as that of "0"."""
    return not isinstance(node.pid, tuple) or any(type(key) is not str for key in node.pid[2:3])


def _has_no_address(one: StorageId) -> bool:
    return not one.numel or one.location == "meta"


def losses(storage_ids: Mapping[str, StorageId], stored: Mapping[str, StoredBytes]) -> list[Note]:
    """Return how much of a file is lost and how much is whole; nothing if nothing is lost."""
    if len(stored) >= len(storage_ids):
        return []
    real = {key: one for key, one in storage_ids.items() if one.view is None or one.view[0] != key}
    lost = [one for key, one in real.items() if key not in stored and one.numel]
    if not lost:
        return []
    lost_nbytes = sum(one.nbytes for one in lost)
    whole_nbytes = sum(place.nbytes for key, place in stored.items() if key in real)
    counts = format_count(len(lost), "storage"), f"{len(real):,}"
    return [Note(NoteKind.LOST_BYTES, (*counts, format_nbytes(lost_nbytes), format_nbytes(whole_nbytes)))]


class Chunk(NamedTuple):
    """One box of a tensor."""

    starts: tuple[int, ...]
    sizes: tuple[int, ...]
    part: int  # the file that it is in, as a number of the container's parts; -1 where it is in none
    offset: int  # where its first byte is in that file; of a packed one, where what it is packed in begins
    length: int
    packing: str = ""  # what it is packed in: a name of `gathered.UNPACKERS`; empty for plain bytes

    @property
    def numel(self) -> int:
        """How many elements it has."""
        return prod(self.sizes)


class Place(NamedTuple):
    """Where the elements of a chunk are."""

    offset: int
    strides: tuple[int, ...] | None = None  # its steps by dimension in elements; None where it is contiguous


class Gathered(NamedTuple):
    """A storage whose bytes are those of a contiguous tensor in chunks."""

    name: str
    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    chunks: tuple[Chunk, ...]

    @property
    def nbytes(self) -> int:
        """How many bytes the whole has."""
        return prod(self.shape) * self.itemsize


@dataclass(frozen=True, slots=True, kw_only=True)
class Extents:
    """A container with the places of its bytes."""

    container: Container
    whole: dict[str, Extent]
    lost: dict[str, str]  # why the others are not, by key, in a few words
    # the records of a zip that are no storages, by their full name; none of a legacy file
    records: dict[str, Extent]


NOTHING = Extent(0, 0, 0, 0, 0)
"""The bytes of a storage that has none."""


def plain_extents(
    container: Container,
    stored: Mapping[str, StoredBytes],
    find: Callable[[str], Extent | None] = lambda _key: None,
) -> Extents:
    """Find the bytes of storages that have no checksum; `find` those that are not stored as they are."""
    whole: dict[str, Extent] = {}
    lost: dict[str, str] = {}
    for key, storage in container.storage_ids.items():
        found = plain_extent(storage, stored.get(key), find)
        if isinstance(found, str):
            lost[key] = found
        else:
            whole[key] = found
    return Extents(container=container, whole=whole, lost=lost, records={})


def plain_extent(
    storage: StorageId, place: StoredBytes | None, find: Callable[[str], Extent | None] = lambda _key: None
) -> Extent | str:
    """Return the extent of a storage without a checksum, or why it has none."""
    if not storage.nbytes:
        return NOTHING
    if place is None:
        return "its bytes are not in the file"
    if place.nbytes != storage.nbytes:
        return wrong_size(storage, place.nbytes)
    if place.offset is None:
        return find(storage.key) or "it is compressed, and nothing here inflates it"
    return Extent(place.offset, place.nbytes, place.nbytes, 0, 0)


def wrong_size(storage: StorageId, nbytes: int) -> str:
    """Return that a storage has another size than its id says, as a clause."""
    return f"the file holds {nbytes:,} bytes of it, and it should have {storage.nbytes:,}"
