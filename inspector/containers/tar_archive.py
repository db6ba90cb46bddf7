"""The tar container of torch 0.1: the object's pickle, then tensors and storages in members of their own.

What wrote it is gone; what reads it is `legacy_load` in torch's `torch/serialization.py`.
`storages` is a pickled count, then for each storage a pickle (key, location tag, class), the number of
elements (int64) and the elements, then a pickled list of views (key, key of the viewed, offset, size).
`tensors` is a count, then a pickle (key, storage key, class), the number of dimensions (int32, padded to 8
bytes), sizes, strides and offset (int64 each). In `pickle`, a persistent id is the key of either as a text.
The object is given as newer files have it, each tensor rebuilt from a storage, so what reads a container
need not know of this one.

A header is whatever `tarfile` takes for one, which is what `torch.load` asks: without the magic word, with a
signed checksum, with numbers in base 256, behind extended headers and long names. So `tarfile` itself lists
the members; it only reads headers, here from a file that gives none of absurd length. torch 0.1 wrote the
format with it in its PAX form (POSIX.1-2001): an extended header with the file's time stands in front of
nearly every member.
"""

from __future__ import annotations

import posixpath
import re
import struct
import tarfile
import time
from collections.abc import Iterable, Iterator
from typing import IO, Any, NamedTuple, cast

from inspector.containers.container import Container, StoredBytes, first_storage_ids
from inspector.containers.legacy import NUMEL, place_views, system_facts
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.source import Source
from inspector.errors import (
    BrokenOffError,
    CheckpointError,
    ContainerError,
    DamagedError,
    PickleError,
    UnsupportedFormatError,
)
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.machine import Machine, Stream, growing_machine, read_pickle
from inspector.pickles.values import Call, Global, PersistentId, Value
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.units import cut_text, escape_text

INFO, OBJECT, TENSORS, STORAGES = "sys_info", "pickle", "tensors", "storages"
NEEDED = (OBJECT, TENSORS, STORAGES)
BLOCK_NBYTES = 512
_SIZE, _CHECKSUM, _KIND = slice(124, 136), slice(148, 156), slice(156, 157)
_EXTENDED, _GLOBAL = b"xgX", b"g"
_BINARY = 0x80  # a size that is no octal number: GNU's way, which Python's tarfile writes, too
_MOST_MEMBERS = 100_000
_MOST_EXTENDED_NBYTES = 1 << 20
_MOST_KEY = 256
_MANY_DIGITS = re.compile(rb"\d{100}")
_FIELD = re.compile(rb"(\d+) ([^=]{1,%d})" % (_MOST_KEY + 1))
_MOST_NAME = 60
_ODD = "save the file again with the program that wrote it"
# What `tarfile` raises besides its own errors where a header tells nonsense; torch.load ends with it.
_NONSENSE = (ValueError, LookupError, ArithmeticError, OSError, RecursionError, TypeError)


class Member(NamedTuple):
    """One file of the archive."""

    name: str
    start: int  # where its first header stands: the extended one where it has one
    header: int  # where its own header stands
    payload: int
    nbytes: int

    @property
    def end(self) -> int:
        """Where its contents end."""
        return self.payload + self.nbytes


class _Headers:
    """What `tarfile` sees of a file: its bytes, in pieces of bounded length.

    Python before 3.11.10 reads an extended header in a time that grows with the square of a row of digits, or
    of the fields that share a key (CVE-2024-6232). So headers that have either are refused before it does.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._pos = 0
        self._kind = b""  # of the header that was read just now
        self._left = _MOST_EXTENDED_NBYTES

    def read(self, nbytes: int) -> bytes:
        """Read as files do; no header is as long as what is refused here."""
        kind, pos, self._kind = self._kind, self._pos, b""
        # One block for each member is nothing, but what is said for all of them is copied for each.
        self._left -= nbytes if kind == _GLOBAL else max(nbytes - BLOCK_NBYTES, 0)
        if self._left < 0:
            raise _odd(f"an extended header of {nbytes:,} bytes", pos)
        data = self._source.read_upto(pos, nbytes)
        self._pos += len(data)
        if not kind:
            self._kind = data[_KIND] if data[_KIND] in _EXTENDED else b""
        else:
            _refuse_slow(data, pos)
        return data

    def seek(self, pos: int) -> int:
        """Go to a place, none of which is in front of the file, see `_Info`."""
        self._pos = pos
        return pos

    def tell(self) -> int:
        """Return the place."""
        return self._pos


class _Info(tarfile.TarInfo):
    """A header whose size is a size: some Pythons end the archive at a negative one, others go backwards."""

    def _block(self, count: int) -> int:
        """Return how many bytes so many take in the archive, for `tarfile`, which asks it of each header."""
        if count < 0:
            raise _odd(f"a member of {count:,} bytes", self.offset)
        return padded(count)


def _refuse_slow(data: bytes, pos: int) -> None:
    if _MANY_DIGITS.search(data):
        raise _odd("a number of 100 digits", pos)
    start = 0
    while found := _FIELD.match(data, start):
        if len(found[2]) > _MOST_KEY:
            raise _odd("a long key in an extended header", pos)
        start += int(found[1]) or len(data)


def is_tar(source: Source) -> bool:
    """Return whether Python's `tarfile` opens a file, at which `torch.load` reads it as a tar archive."""
    try:
        _open(source)
    except tarfile.TarError:
        return False
    except (CheckpointError, *_NONSENSE):
        return True  # torch.load ends there, and reads nothing else
    return True


def list_members(source: Source) -> Iterator[tarfile.TarInfo]:
    """List all members of an archive, up to where `tarfile` gives up."""
    try:
        opened = _open(source)
        for _ in range(_MOST_MEMBERS):
            info = opened.next()
            if info is None:
                return
            cast("Any", opened).members.clear()  # it would keep all of them
            yield info
    except tarfile.TarError:
        return  # the archive is cut off there, or none at all
    except _NONSENSE as error:
        raise _odd(f"a header that cannot be read ({escape_text(str(error))})", 0) from error
    raise ContainerError(f"the tar archive has more than {_MOST_MEMBERS:,} members", where=source.path)


def read_members(source: Source) -> dict[str, Member]:
    """Return the regular files of an archive by their names."""
    found: dict[str, Member] = {}
    met: set[str] = set()
    for info in list_members(source):
        name, is_needed = info.name, info.name in NEEDED
        if is_needed and name in met:
            raise _odd(f"two members named {_shown(name)}", info.offset)
        if is_needed:
            met.add(name)
            _check_kind(info)
        if is_file(info):
            found[name] = Member(
                name, info.offset, info.offset_data - BLOCK_NBYTES, info.offset_data, info.size
            )
    return found


def is_file(info: tarfile.TarInfo) -> bool:
    """Return whether a member has contents of its own, in one piece."""
    return (info.isreg() or info.type not in tarfile.SUPPORTED_TYPES) and not info.sparse and info.size >= 0


def _check_kind(info: tarfile.TarInfo) -> None:
    if info.issym() or info.islnk():
        target = posixpath.normpath(info.linkname)
        leads = "another file of the computer" if _climbs(info, target) else "another member"
        raise _odd(
            f"a link to {_shown(info.linkname)} in place of {info.name}, so that loading reads {leads}",
            info.offset,
        )
    if not is_file(info):
        raise _odd(f"no plain file named {info.name}", info.offset)


def _climbs(info: tarfile.TarInfo, target: str) -> bool:
    """Return whether a link is made on disk, or leads out of the folder that torch unpacks into."""
    is_unpacked = info.name != OBJECT
    return (is_unpacked and info.issym()) or target.startswith(("/", ".."))


def _open(source: Source) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast("IO[bytes]", _Headers(source)), mode="r:", tarinfo=_Info)


def _shown(name: str) -> str:
    return escape_text(cut_text(name, _MOST_NAME))


def padded(nbytes: int) -> int:
    """Return how many bytes so many records take in an archive."""
    return -(-nbytes // BLOCK_NBYTES) * BLOCK_NBYTES


def _sum(block: bytes) -> int:
    """Return the checksum of a header: the sum of its bytes, with blanks in the place of the checksum."""
    return sum(block) - sum(block[_CHECKSUM]) + 8 * ord(" ")


def _parse_extended(data: bytes, start: int) -> list[tuple[str, str]]:
    """Read the fields of an extended header, each `LENGTH KEY=VALUE` and a line break, LENGTH in bytes."""
    fields = []
    pos = 0
    while pos < len(data) and data[pos]:  # zeros fill the block
        digits, _, _ = data[pos : pos + len(str(_MOST_EXTENDED_NBYTES))].partition(b" ")
        end = pos + (int(digits) if digits.isdigit() else 0)
        field = data[pos + len(digits) + 1 : max(end - 1, 0)]
        key, equals, value = field.decode("utf-8", "surrogateescape").partition("=")
        if not key or not equals or data[end - 1 : end] != b"\n":
            raise _odd("an extended header that cannot be read", start)
        fields.append((key, value))
        pos = end
    return fields


def _odd(what: str, pos: int) -> ContainerError:
    return ContainerError(
        f"the tar archive has {what}, which torch never wrote", where=f"byte {pos:,}", remedy=_ODD
    )


# --- writing ------------------------------------------------------------------------------------------------


def resized_headers(source: Source, member: Member, nbytes: int) -> bytes:
    """Return the headers of a member, extended one included, with another size."""
    own = _with_size(source.read(member.header, BLOCK_NBYTES), nbytes)
    if member.start == member.header:
        return own
    block = source.read(member.start, BLOCK_NBYTES)
    start = member.start + BLOCK_NBYTES
    told = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape").size
    if block[_KIND] != b"x" or start + padded(told) != member.header:
        raise _odd("several headers for one member", member.start)
    fields = _parse_extended(source.read(start, told), start)
    if any(key.startswith("GNU.sparse") for key, _ in fields):  # it is stored in pieces
        raise _odd("an extended header that cannot be read", start)
    data = b"".join(_field(key, str(nbytes) if key == "size" else value) for key, value in fields)
    return _with_size(block, len(data)) + data + bytes(padded(len(data)) - len(data)) + own


def _field(key: str, value: str) -> bytes:
    """Write a field of an extended header; its length counts its own digits."""
    rest = f" {key}={value}\n".encode("utf-8", "surrogateescape")
    nbytes = len(rest) + 1
    while nbytes != len(rest) + len(str(nbytes)):
        nbytes = len(rest) + len(str(nbytes))
    return str(nbytes).encode() + rest


def _with_size(block: bytes, nbytes: int) -> bytes:
    is_octal = nbytes < 8**11
    size = b"%011o\0" % nbytes if is_octal else bytes([_BINARY]) + nbytes.to_bytes(11, "big")
    new = block[: _SIZE.start] + size + block[_SIZE.stop :]
    return new[: _CHECKSUM.start] + b"%06o\0 " % _sum(new) + new[_CHECKSUM.stop :]


# --- what stands in a member --------------------------------------------------------------------------------


_FETCH = "fetch or copy it again"
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
            remedy=_FETCH,
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
        remedy=_FETCH,
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
