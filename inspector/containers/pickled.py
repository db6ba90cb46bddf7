"""Plain pickles: what `pickle.dump`, cloudpickle, dill and joblib write.

The object is read where it stands. A tensor is written as a whole file of torch (`_StorageBase.__reduce__` in
torch's `torch/storage.py`), so there is one for each: its storages get keys of their own, the number of the
file, a colon, and their key in it. Arrays that torch could hold are tensors without a device, whose bytes
stay where they are. A file may hold several pickles one behind the other, one for each `dump`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import takewhile
from typing import NamedTuple

from inspector.containers.base import Find, Format
from inspector.containers.codings import PLAIN, Within, coded
from inspector.containers.container import Container, Extent, StoredBytes, first_storage_ids, losses
from inspector.containers.legacy import open_legacy
from inspector.containers.lookalikes import is_part
from inspector.containers.notes import Note, NoteKind
from inspector.containers.numpy_types import (
    DILL_ARRAY,
    FROM_BUFFERS,
    RECONSTRUCTS,
    WRAPPER,
    Array,
    created,
    from_buffer,
    reconstructed,
    wrapped,
)
from inspector.containers.persistent_ids import NO_DEVICE, StorageId, prefix_key, prefixed
from inspector.containers.pickle_source import ENCODE, Hooks, PastEndError, Place, PlainMachine
from inspector.containers.programs import within_bounds
from inspector.containers.source import Source
from inspector.containers.unread import OPENER, OPENERS, read_nested, read_programs
from inspector.containers.zip.archive import read_torchzip
from inspector.containers.zip.directory import LOCAL_SIGNATURE, STORED
from inspector.containers.zip.records import finder_of, records_of
from inspector.errors import BrokenOffError, CancelledError, CheckpointError, ContainerError, PickleError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.overriding import override
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.oddities import Oddity, StreamFault
from inspector.pickles.state import MOST_ODDITIES, BrokenStreamError, State
from inspector.pickles.values import Blob, Call, Dict, Global, Set, StoredTensor, Value
from inspector.progress import Progress
from inspector.records import dataclass, replace

_LOOK_NBYTES = 1 << 14
# What picklers begin an object with: a mark, an empty container, a name.
_FIRST = frozenset(CODES[name] for name in ("MARK", "EMPTY_DICT", "EMPTY_LIST", "EMPTY_TUPLE", "GLOBAL"))


def begins_undeclared(source: Source) -> bool:
    """Return whether a pickle begins a file that holds a container or an object, as far as one can see.

    Texts may begin like pickles, but no text remembers values in the memo.
    """
    data = source.read_upto(0, _LOOK_NBYTES)
    if not data or data[0] not in _FIRST:
        return False
    machine = Machine(data, name="a pickle", limits=Limits(opcodes=_LOOK_NBYTES, values=_LOOK_NBYTES))
    state = machine.state
    try:
        root = machine.run().root
    except BrokenOffError:
        return bool(state.memo)
    except PickleError:
        return False
    return bool(state.memo) and isinstance(root, Dict | list | tuple | Set | Call)


# --- what is left of a pickle that breaks off ---------------------------------------------------------------


_MAPPINGS = frozenset({"collections.OrderedDict", "collections.defaultdict", "builtins.dict"})
_MOST_PENDING = 8


def folded(state: State) -> Value:
    """Return what an interrupted machine had made: what is complete, in the containers that it was for."""
    items = state.stack
    for below in reversed(state.marked):
        items = _filled(below, items)
    root = items[0] if items else None
    if len(items) > 1:
        _filled(items[:1], items[1:])
    return root


def _filled(below: list[Value], items: list[Value]) -> list[Value]:
    """Put what stands above a mark into the container below it, as far as it is complete."""
    target = below[-1] if below else None
    items = _complete(items)
    pairs = list(takewhile(_has_key, zip(items[::2], items[1::2], strict=False)))
    if isinstance(target, Dict):
        target.pairs.extend(pairs)
    elif isinstance(target, list):
        target.extend(items)
    elif isinstance(target, Call) and target.name in _MAPPINGS:
        target.pairs = [*(target.pairs or ()), *pairs]
    elif isinstance(target, Call | Global):
        return below[:-1]  # what was to be called, or completed
    return below


def _has_key(pair: tuple[Value, Value]) -> bool:
    """Return whether what stands in a key's place may be one, and is not a container that waits for more."""
    return isinstance(pair[0], str | int | float | bytes | tuple | None)


def _complete(items: list[Value]) -> list[Value]:
    """Return the items before the one that was being made when the stream broke off.

    Its function stands among the last, or the object itself, if its state was still to come.
    """
    for number in range(max(len(items) - _MOST_PENDING, 0), len(items)):
        item = items[number]
        is_made = isinstance(item, Call) and (item.kind == "newobj" or item.name in RECONSTRUCTS)
        if isinstance(item, Global) or (is_made and number == len(items) - 1):
            return items[:number]
    return items


def is_filled(root: Value) -> bool:
    """Return whether something is left of a pickle."""
    if isinstance(root, Dict | Call):
        return bool(root.pairs)
    return isinstance(root, list) and bool(root)


# --- files within -------------------------------------------------------------------------------------------


LOST = -1000
"""The method of bytes that are packed and spelled as a text: nobody writes that, and nothing reads it."""


class Nested(NamedTuple):
    """One file within a pickle."""

    number: int
    place: Place
    nbytes: int
    root: Value
    storage_ids: dict[str, StorageId]
    stored: dict[str, Extent]  # where their bytes are in what the source reads, by key


class NestedFiles:
    """Reads the files within one source; each place once, whatever refers to it."""

    def __init__(self, source: Source, limits: Limits, progress: Progress) -> None:
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
            if inside.read_upto(0, 4) == LOCAL_SIGNATURE:
                container = read_torchzip(inside, self._limits, self._progress)
                find = finder_of(inside, records_of(inside))
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


# --- the file -----------------------------------------------------------------------------------------------


OBJECT = "pickle"
_ENCODE = ".".join(ENCODE)
_ARRAYS = {DILL_ARRAY: created, **dict.fromkeys(FROM_BUFFERS, from_buffer)}
_BYTES = frozenset({"builtins.bytes", "builtins.bytearray"})
_LATIN_1 = ("latin1", "latin-1")
_STEP_NBYTES = 1 << 20
_MOST_STREAMS = 10_000
_MOST_DEPTH = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Pickled:
    """A plain pickle, taken apart."""

    container: Container
    extents: dict[str, Extent]
    files: NestedFiles
    ends: tuple[int, ...]
    frames: tuple[tuple[int, int], ...]  # where the lengths of their frames stand, and those lengths


def open_pickled(source: Source, limits: Limits, progress: Progress) -> Pickled:
    """Take a plain pickle apart, and say where everything in it stands."""
    return _Reader(source, limits.started(progress.advance), progress).run()


class _Reader:
    def __init__(self, source: Source, limits: Limits, progress: Progress) -> None:
        self._source = source
        self._limits = limits
        self._progress = progress
        self._files = NestedFiles(source, limits, progress)
        self._storage_ids: dict[str, StorageId] = {}
        self._extents: dict[str, Extent] = {}
        self._notes: list[Note] = []
        self._frames: list[tuple[int, int]] = []
        self._is_joblib = False
        self._is_unread = False
        self._depth = 0

    def run(self) -> Pickled:
        source = self._source
        roots: list[Value] = []
        ends: list[int] = []
        start = 0
        while not ends or (len(ends) < _MOST_STREAMS and source.reaches(start + 1)):
            machine = self._machine(start)
            try:
                stream = source.programs.run(machine, OBJECT, "object")
            except PickleError as error:
                roots += self._left_of(machine, error, is_first=not ends)
                break
            for key, one in first_storage_ids(stream.persistent_ids, self._limits).items():
                self._add_storage(key, one, None)
            roots.append(stream.root)
            start += stream.end
            ends.append(start)
        if len(roots) > 1:
            self._notes.append(Note(NoteKind.SEVERAL_PICKLES, (f"{len(roots):,}",)))
        nested = self._files.programs.stream()
        if nested is not None:
            source.programs.add(nested, f"{OBJECT} > bytes", "nested")
        return Pickled(
            container=self._container(roots[0] if len(roots) == 1 else roots),
            extents=self._extents,
            files=self._files,
            ends=tuple(ends),
            frames=tuple(self._frames),
        )

    def _machine(self, start: int) -> PlainMachine:
        hooks = Hooks(self._reduced, self._built)
        machine = PlainMachine(self._source, start, limits=self._limits, progress=self._progress, hooks=hooks)
        machine.frames = self._frames
        return machine

    def _left_of(self, machine: PlainMachine, error: PickleError, *, is_first: bool) -> list[Value]:
        root = folded(machine.state)
        if is_first and (not isinstance(error, BrokenOffError) or not is_filled(root)):
            raise error
        if isinstance(error, BrokenOffError) and is_filled(root):
            self._notes.append(Note(NoteKind.CUT_PICKLE))
            if not self._is_unread:
                self._source.programs.note_ended(OBJECT)
            return [root]
        left = f"{max(self._source.nbytes - machine.start, 0):,}"
        self._notes.append(Note(NoteKind.BEHIND_PICKLE, (left,)))
        return []

    def _container(self, root: Value) -> Container:
        source = self._source
        programs = source.programs.all()
        notes = [*self._files.notes, *self._notes]
        if source.gzipped:
            notes.append(Note(NoteKind.GZIP, (source.packing,)))
        stored = {key: self._stored(one) for key, one in self._extents.items() if one.method != LOST}
        notes += losses(self._storage_ids, stored)
        return Container(
            path=source.path,
            format="joblib" if self._is_joblib else "pickle",
            file_nbytes=source.file_nbytes,
            root=root,
            stream=next(one.stream for one in programs if one.kind == "object"),
            programs=programs,
            storage_ids=self._storage_ids,
            stored=stored,
            notes=tuple(notes),
        )

    def _stored(self, extent: Extent) -> StoredBytes:
        is_plain = extent.method == STORED and not self._source.gzipped
        return StoredBytes(0, extent.offset if is_plain else None, extent.nbytes)

    # --- what stands for something else ---------------------------------------------------------------------

    def _reduced(self, machine: PlainMachine, call: Call, _at: int) -> None:
        """Put what loading makes of some calls in their place: the file within, the array."""
        name = call.name
        if name == OPENER:
            self._open(machine, call)
        elif name in OPENERS:
            self._read_programs(machine, call)
        elif name in _ARRAYS:
            tensor = self._tensor(machine, _ARRAYS[name](call))
            if tensor is not None:
                machine.state.stack[-1] = tensor

    def _built(self, machine: PlainMachine, call: Call, at: int) -> int | None:
        name = call.name
        if name in RECONSTRUCTS:
            tensor = self._tensor(machine, reconstructed(call))
            if tensor is not None:
                machine.replace(call, tensor)
            return None
        return self._skip_array(machine, call, at) if name == WRAPPER else None

    def _open(self, machine: PlainMachine, call: Call) -> None:
        """Open the file that a call makes a tensor's storage of; one that cannot be read stays a call."""
        programs = self._source.programs
        programs.opened.append(call)
        place = self._place(machine, call.arguments[0]) if call.arguments else None
        if place is None:
            self._note_unread()
            return
        try:
            found = self._files.read(*place)
        except CancelledError:
            raise
        except CheckpointError:
            self._note_unread()
            return
        for key, one in found.storage_ids.items():
            self._add_storage(key, one, found.stored.get(key))
        machine.state.stack[-1] = found.root

    def _read_programs(self, machine: PlainMachine, call: Call) -> None:
        """Read what another unpickler runs of bytes that may have stayed in the file."""
        programs = self._source.programs
        programs.opened.append(call)
        limits = within_bounds(self._limits)
        for value in call.arguments:
            found = self._place(machine, value)
            if found is None:
                continue
            place, nbytes = found
            inside = Within(self._source, place.offset, nbytes, place.nbytes, place.spelling)
            try:
                read_programs(inside, limits, self._progress)
            except (PickleError, ContainerError):
                self._note_unread()
            read_nested(inside.programs, limits, self._progress, 1)
            programs.adopt(inside.programs, f"{OBJECT} > bytes")

    def _note_unread(self) -> None:
        self._is_unread = True
        self._source.programs.note_unread(OBJECT)

    def _add_storage(self, key: str, storage_id: StorageId, extent: Extent | None) -> None:
        self._storage_ids[key] = storage_id
        if len(self._storage_ids) > self._limits.storages:
            raise ContainerError(f"the file has more than {self._limits.storages:,} storages")
        if extent is not None:
            self._extents[key] = extent

    def _tensor(self, machine: PlainMachine, array: Array | None) -> StoredTensor | None:
        place = None if array is None else self._place(machine, array.data)
        if array is None or place is None or place[1] != array.nbytes:
            return None
        return self._stored_tensor(array, *place)

    def _stored_tensor(self, array: Array, place: Place, nbytes: int) -> StoredTensor:
        key = f"array:{len(self._storage_ids)}"
        element = array.element
        own = StorageId(
            key, element.dtype, element.itemsize, NO_DEVICE, array.numel, untyped=False, view=None
        )
        method = coded(place.spelling, element.swap)
        self._add_storage(key, own, Extent(place.offset, place.nbytes, nbytes, method, 0))
        return array.stored(key)

    def _place(self, machine: PlainMachine, value: Value) -> tuple[Place, int] | None:
        if isinstance(value, Call) and isinstance(value.args, tuple):
            name, args = value.name, value.args
            if name == _ENCODE or (name in _BYTES and len(args) == 2):
                return self._place_of_text(machine, args)
            if name in _BYTES and not args:
                return Place(0, 0), 0
            return self._place(machine, args[0]) if name in _BYTES and len(args) == 1 else None
        if not isinstance(value, bytes | Blob):
            return None
        place = machine.place_of(value)
        return None if place is None or place.spelling != PLAIN else (place, place.nbytes)

    def _place_of_text(self, machine: PlainMachine, args: tuple[Value, ...]) -> tuple[Place, int] | None:
        if len(args) != 2 or args[1] not in _LATIN_1 or not isinstance(args[0], str | Blob):
            return None
        place = machine.place_of(args[0])
        if place is None or place.spelling == PLAIN:
            return None
        if isinstance(args[0], str):
            return place, len(args[0])
        inside = Within(self._source, place.offset, self._source.nbytes, place.nbytes, place.spelling)
        nbytes = 0
        while data := inside.read_at(nbytes, _STEP_NBYTES):
            self._progress.advance(0)
            nbytes += len(data)
        return place, nbytes

    def _skip_array(self, machine: PlainMachine, call: Call, at: int) -> int | None:
        """Put an array of joblib's in the place of what announces it; return where the pickle goes on."""
        found = wrapped(call)
        if found is None:
            return None
        self._is_joblib = True
        if found.holds_objects:
            return self._read_objects(machine, at)
        if found.nbytes is None:
            raise BrokenStreamError("an array of an unknown type follows the pickle's instruction")
        start = at
        if found.is_aligned:
            padding = self._source.read_upto(at, 1)
            start += 1 + (padding[0] if padding else 0)
        end = start + found.nbytes
        if not self._source.reaches(end):
            raise PastEndError("an array runs past the end of the file")
        place = Place(start, found.nbytes)
        if found.array is None:
            machine.state.stack[-1] = found.described(Blob("bytes", start, found.nbytes))
        else:
            machine.state.stack[-1] = self._stored_tensor(found.array, place, found.nbytes)
        return end

    def _read_objects(self, machine: PlainMachine, at: int) -> int:
        if self._depth >= _MOST_DEPTH:
            raise BrokenStreamError("arrays of objects are nested too deeply")
        self._depth += 1
        inner = self._machine(at)
        stream = self._source.programs.run(inner, OBJECT, "object")
        self._depth -= 1
        machine.state.stack[-1] = stream.root
        return at + stream.end


def is_pickle(source: Source) -> bool:
    """Return whether a file begins with a pickle."""
    head = source.read_upto(0, 2)
    return b"\x02" <= head[1:] <= b"\x05" if head[:1] == b"\x80" else begins_undeclared(source)


class Unpacked(Format):
    """The pickle of a zip that was unpacked into a folder."""

    name = "unpacked"
    what = "one part of an unpacked checkpoint"
    is_read = False
    remedy = "give the folder that it is in, to be told how to pack it again"

    @override
    def matches(self, source: Source) -> bool:
        return is_pickle(source) and is_part(source.path)


class Pickle(Format):
    """What pickle.dump and its relatives write."""

    name = "pickle"
    what = "a plain pickle, not written by torch.save"
    is_read_through_gzip = True
    loader = "pickle.load"
    unchecked = True

    @override
    def matches(self, source: Source) -> bool:
        return is_pickle(source)

    @override
    def read(self, source: Source, limits: Limits, progress: Progress) -> Container:
        return open_pickled(source, limits, progress).container

    @override
    def finder(self, source: Source) -> Find:
        return open_pickled(source, DEFAULT_LIMITS, Progress()).extents.get


class Joblib(Pickle):
    """What joblib.dump writes: told by what stands in the pickle, once it is read."""

    name = "joblib"
    what = "a file of joblib"
    loader = "joblib.load"

    @override
    def matches(self, _source: Source) -> bool:
        return False
