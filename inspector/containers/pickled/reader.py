"""Plain pickles: what `pickle.dump`, cloudpickle, dill and joblib write.

The object is read where it stands. Bytes that loading makes a tensor of are files of torch within it, see
`nested`; arrays that torch could hold are tensors without a device, whose bytes stay where they are. A file
may hold several pickles one behind the other, one for each `dump`.
"""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.container import Container, Extent, StoredBytes, damage_note, first_storage_ids
from inspector.containers.nested import OPENER, OPENERS, read_nested
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import NO_DEVICE, StorageId
from inspector.containers.pickled.arrays import (
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
from inspector.containers.pickled.left import folded, is_filled
from inspector.containers.pickled.machine import ENCODE, Hooks, PastEndError, Place, PlainMachine
from inspector.containers.pickled.nested import LOST, NestedFiles
from inspector.containers.raw.codings import PLAIN, coded
from inspector.containers.raw.within import Within
from inspector.containers.source import Source
from inspector.containers.zip.directory import STORED
from inspector.errors import BrokenOffError, CancelledError, CheckpointError, ContainerError, PickleError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.state import BrokenStreamError
from inspector.pickles.values import Blob, Call, Global, StoredTensor, Value
from inspector.progress import Progress
from inspector.records import dataclass

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
    """A plain pickle, taken apart.

    Attributes:
        container: The checkpoint.
        extents: The bytes of each storage, by key.
        files: The files within it.
        ends: Where each of its pickles ends.
        frames: Where the lengths of their frames stand, and those lengths.
    """

    container: Container
    extents: dict[str, Extent]
    files: NestedFiles
    ends: tuple[int, ...]
    frames: tuple[tuple[int, int], ...]


def read_pickled(source: Source, limits: Limits, progress: Progress) -> Container:
    """Take a plain pickle apart."""
    return open_pickled(source, limits, progress).container


def find_within(source: Source) -> Callable[[str], Extent | None]:
    """Return what finds the bytes of a storage by its key."""
    return open_pickled(source, DEFAULT_LIMITS, Progress()).extents.get


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
        """Return what is left of a pickle that breaks off, and note it; nothing of other bytes."""
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
        damage = damage_note(self._storage_ids, stored)
        if damage is not None:
            notes.append(damage)
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
        name = _name(call)
        if name == OPENER:
            self._open(machine, call)
        elif name in OPENERS:
            self._read_programs(machine, call)
        elif name in _ARRAYS:
            tensor = self._tensor(machine, _ARRAYS[name](call))
            if tensor is not None:
                machine.state.stack[-1] = tensor

    def _built(self, machine: PlainMachine, call: Call, at: int) -> int | None:
        name = _name(call)
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
        place = self._place(machine, call.args[0]) if isinstance(call.args, tuple) and call.args else None
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
        from inspector.containers.unread import read_programs, within_bounds  # noqa: PLC0415 - few have any

        programs = self._source.programs
        programs.opened.append(call)
        limits = within_bounds(self._limits)
        for value in call.args if isinstance(call.args, tuple) else ():
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
        """Return an array as a tensor; None where torch has none like it, or its bytes are elsewhere."""
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
        """Return where the bytes stand that a value is, and how many they are."""
        if isinstance(value, Call) and isinstance(value.func, Global) and isinstance(value.args, tuple):
            name, args = value.func.present, value.args
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
        """Read the pickle that joblib writes an array of objects as."""
        if self._depth >= _MOST_DEPTH:
            raise BrokenStreamError("arrays of objects are nested too deeply")
        self._depth += 1
        inner = self._machine(at)
        stream = self._source.programs.run(inner, OBJECT, "object")
        self._depth -= 1
        machine.state.stack[-1] = stream.root
        return at + stream.end


def _name(call: Call) -> str:
    return call.func.present if isinstance(call.func, Global) else ""
