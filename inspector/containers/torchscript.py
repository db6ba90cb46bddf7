"""The archive of `torch.jit.save`: `data.pkl` and `constants.pkl`, their tensors, and the code in text.

Written by `ScriptModuleSerializer` in torch's `torch/csrc/jit/serialization/export_module.cpp`, and read by
`import.cpp` beside it with an unpickler of its own, which imports no Python. A module is an object of a class
of `__torch__` with a dictionary of attributes (`pickler.cpp`), here a plain mapping, so that its tensors have
the keys of a state dict; calls of `torch.jit._pickle` only say the type of a container.

The code, see https://github.com/pytorch/pytorch/blob/main/torch/csrc/jit/docs/serialization.md, is only
looked at. Each class lists its parameters and buffers by name. `torch.jit.trace` writes the device of a
tensor that was made in `forward()` as a constant: there it is made for ever, whatever `map_location` says.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from typing import NamedTuple, TypeGuard

from inspector.containers.container import CodeDevice, Container, Declared, PickleRecord, first_storage_ids
from inspector.containers.notes import Note, NoteKind
from inspector.containers.persistent_ids import StorageId, parse_storage_id, prefix_key
from inspector.containers.programs import within_bounds
from inspector.containers.rebuilds import names_of
from inspector.containers.zip.directory import ZipEntry, place_of
from inspector.containers.zip.records import PICKLE, Archive, Records, ZipFormat
from inspector.containers.zip.rivals import namesakes, read_rivals
from inspector.containers.zip.storages import assemble, find_storages, read_metadata
from inspector.errors import ContainerError, PickleError, UnsupportedFormatError
from inspector.overriding import override
from inspector.pickles.machine import Stream
from inspector.pickles.values import Call, Dict, Global, PersistentId, Value
from inspector.records import replace

# --- code ---------------------------------------------------------------------------------------------------


FOLDER, _ENDING = "code/", ".py"
_CLASS = re.compile(
    rb"^class (\S{1,300})\(Module\):\n  __parameters__ = \[([^\n]*)\]\n(?:  __buffers__ = (\[[^\n]*\]))?",
    re.MULTILINE,
)
_NAME = re.compile(rb'"((?:[^"\\]|\\.)*)"')
_DEVICE = re.compile(rb'torch\.device\("([a-z]{1,16}(?::[0-9]{1,3})?)"\)')
_RUN_AT_LOAD = re.compile(rb"^  def __setstate__\(", re.MULTILINE)
_FILES = re.compile(rb"\btorch\.(save|from_file)\(")
_MOST_RECORDS = 4096
_MOST_NBYTES = 1 << 25
"""Of code, in all."""
_MOST_PLACES = 1000


class Members(NamedTuple):
    """The tensors of a class that belong into a state dict."""

    parameters: frozenset[str]
    # those of its buffers; None where the code is so old that it does not list them
    buffers: frozenset[str] | None


class Code(NamedTuple):
    """What the code says."""

    members: dict[str, Members]
    devices: tuple[CodeDevice, ...]
    is_whole: bool  # whether all of it was looked at
    runs_at_load: tuple[str, ...]
    files: tuple[str, ...]


def read_code(archive: Archive) -> Code:
    """Look through the code of an archive; code that cannot be read says nothing."""
    members: dict[str, Members] = {}
    devices: list[CodeDevice] = []
    runs: list[str] = []
    files: list[str] = []
    names = sorted(name for name in archive.records.below(FOLDER) if name.endswith(_ENDING))
    left, is_whole = _MOST_NBYTES, len(names) <= _MOST_RECORDS
    for name in names[:_MOST_RECORDS]:
        archive.progress.advance(0)
        text = _text(archive, name, left)
        if text is None:
            is_whole = False
            continue
        left -= len(text)
        members |= _members(name, text)
        devices += [CodeDevice(match[1].decode("ascii"), at) for match, at in _places(_DEVICE, name, text)]
        runs += [at for _, at in _places(_RUN_AT_LOAD, name, text)]
        files += [f"torch.{match[1].decode('ascii')} in {at}" for match, at in _places(_FILES, name, text)]
    return Code(members, tuple(dict.fromkeys(devices))[:_MOST_PLACES], is_whole, tuple(runs), tuple(files))


def _members(name: str, text: bytes) -> dict[str, Members]:
    module = name[len(FOLDER) : -len(_ENDING)].replace("/", ".")
    return {
        f"{module}.{match[1].decode('utf-8', 'replace')}": Members(
            _names(match[2]), None if match[3] is None else _names(match[3])
        )
        for match in _CLASS.finditer(text)
    }


def _text(archive: Archive, name: str, left: int) -> bytes | None:
    entry = archive.records.get(name)
    try:
        return None if entry is None else archive.contents(entry, left).data
    except ContainerError:
        return None


def _names(listed: bytes) -> frozenset[str]:
    return frozenset(match[1].decode("utf-8", "replace") for match in _NAME.finditer(listed))


def _places(wanted: re.Pattern[bytes], name: str, text: bytes) -> Iterator[tuple[re.Match[bytes], str]]:
    line, start = 1, 0
    for match in islice(wanted.finditer(text), _MOST_PLACES):
        line += text.count(b"\n", start, match.start())
        start = match.start()
        yield match, f"{name}:{line}"


# --- objects ------------------------------------------------------------------------------------------------


CLASSES = "__torch__"
_TYPED = "torch.jit._pickle"
_TENSORS = names_of(lambda _: True)
_MOST_WRAPPERS = 64
_MOST_AGAIN = 50_000
"""How many attributes of modules are listed again, where one module stands in several places."""


class Objects:
    """Makes the mappings of one archive.

    Attributes:
        declared: What tensors are for, by the `id` of the value, where their class says so.
    """

    def __init__(self, members: Mapping[str, Members]) -> None:
        self.declared: dict[int, Declared] = {}
        self._members = members
        self._made: dict[int, Dict | list[Value]] = {}
        self._open: set[int] = set()
        self._again = _MOST_AGAIN
        self._stack: list[tuple[int, Iterator[None]]] = []

    def plain(self, root: Value) -> Value:
        """Return a value with mappings in the place of objects; tensors are those of the pickle."""
        made = self._plain(root)
        while self._stack:
            number, steps = self._stack[-1]
            depth = len(self._stack)
            for _ in steps:
                if len(self._stack) > depth:
                    break
            else:
                self._stack.pop()
                self._open.discard(number)
        return made

    def _plain(self, value: Value) -> Value:
        """Return what stands for a value; what is in it is filled in later."""
        value, cls = _unwrapped(value)
        if not isinstance(value, Dict | list | tuple) or not _size(value):
            return value
        number = id(value)
        known = self._made.get(number)
        if known is not None and (cls is None or number in self._open or _size(value) > self._again):
            return known
        if known is not None:
            # A state dict lists a module that stands in two places in both.
            self._again -= _size(value)
        if isinstance(value, Dict):
            mapping = Dict([])
            self._made[number] = mapping
            self._stack.append((number, self._fill(value, mapping, cls)))
            self._open.add(number)
            return mapping
        items: list[Value] = []
        self._made[number] = items
        self._stack.append((number, self._fill_list(value, items)))
        self._open.add(number)
        return items

    def _fill(self, value: Dict, made: Dict, cls: str | None) -> Iterator[None]:
        members = None if cls is None else self._members.get(cls)
        for key, item in value.pairs:
            if cls is not None and is_tensor(item):
                made.pairs.append((key, self._declare(item, _declared(members, key))))
            else:
                made.pairs.append((key, self._plain(item)))
            yield

    def _fill_list(self, value: list[Value] | tuple[Value, ...], made: list[Value]) -> Iterator[None]:
        for item in value:
            made.append(self._plain(item))
            yield

    def _declare(self, value: Call, role: Declared) -> Call:
        """Return a tensor once more, as what it is at one place: at another it may be something else."""
        copy = Call(value.func, value.args, value.kind)
        copy.state = value.state
        self.declared[id(copy)] = role
        return copy


def _size(value: Dict | list[Value] | tuple[Value, ...]) -> int:
    return len(value.pairs) if isinstance(value, Dict) else len(value)


def _unwrapped(value: Value) -> tuple[Value, str | None]:
    """Return what an object or a typed container holds, and the class of an object."""
    cls = None
    for _ in range(_MOST_WRAPPERS):
        if type(value) is not Call or type(value.func) is not Global:
            break
        func = value.func
        if func.package == CLASSES and value.kind == "newobj":
            cls = func.dotted
            value = value.state
        elif func.module == _TYPED and value.arguments:
            value = value.arguments[0]
        else:
            break
    return value, cls


def is_tensor(value: Value) -> TypeGuard[Call]:
    """Return whether a value is made by one of the functions that make tensors."""
    return type(value) is Call and type(value.func) is Global and value.func.name in _TENSORS


def _declared(members: Members | None, key: Value) -> Declared:
    """Return what a tensor is for; of a class whose code is not there, nothing may be left out of a copy."""
    if members is None:
        return "parameter"
    if not isinstance(key, str):
        return "other"
    if key in members.parameters:
        return "parameter"
    return "buffer" if members.buffers is None or key in members.buffers else "other"


# --- the archive --------------------------------------------------------------------------------------------


CONSTANTS = "constants.pkl"
OWN = "constants/"
PICKLES = ((PICKLE, ""), (CONSTANTS, OWN))
"""The pickles that hold tensors, each with what its storages' keys begin with here."""
_FIRST = "model.json"
_MOST_OTHERS = 16
_OTHERS = (".pkl", ".pickle", ".pt", ".pth", ".bin", ".ckpt")


def _code_notes(code: Code) -> Iterator[Note]:
    if not code.is_whole:
        yield Note(NoteKind.UNREAD_CODE)
    if code.runs_at_load:
        yield Note(NoteKind.RUNS_AT_LOAD, code.runs_at_load[:1])
    if code.files:
        yield Note(NoteKind.FILE_ACCESS, code.files[:1])


class _Reading:
    def __init__(self, archive: Archive) -> None:
        self._archive = archive
        self._records = archive.records
        self.doubts: list[NoteKind] = []
        self.is_damaged = False
        self.shares = False

    def pickles(self) -> Iterator[PickleRecord]:
        """Read those that hold tensors, the object's first."""
        is_damaged = bool(self._archive.damage)
        for name, prefix in PICKLES:
            entry = self._records.get(name)
            if entry is None and not prefix and self._records.get(_FIRST) is not None:
                raise UnsupportedFormatError(
                    "this is a TorchScript archive of the first generation, with its objects in model.json",
                    where=self._archive.source.path,
                    remedy="torch 2.13 refuses it, too: load and save it once with torch 1.x",
                )
            if entry is None and not (is_damaged and prefix):
                raise ContainerError(
                    f"the TorchScript archive has no {name}",
                    where=self._archive.source.path,
                    remedy="fetch it again, or load it with the torch that wrote it, and save it anew",
                )
            with suppress(*((ContainerError, PickleError) if is_damaged and prefix else ())):
                if entry is not None:
                    yield PickleRecord(entry.name, self._read(entry, name), prefix)

    def _read(self, entry: ZipEntry, name: str) -> Stream:
        data, doubt = self._archive.contents(entry, self._archive.limits.pickle_nbytes)
        if doubt is not None:
            self.doubts.append(doubt)
        if entry.crc not in {0, zlib.crc32(data)}:
            self.is_damaged = True
        stream = self._archive.run(data, place_of(entry), name, "object" if name == PICKLE else "part")
        others = tuple(namesakes(entry, self._records.directory.entries))
        if len(others) > 1:
            self.shares = True
            stream = replace(
                stream, oddities=(*stream.oddities, *read_rivals(entry, others, self._read_rival))
            )
        return stream

    def _read_rival(self, entry: ZipEntry) -> None:
        archive = self._archive
        data = archive.contents(entry, archive.limits.pickle_nbytes).data
        archive.run(data, place_of(entry), entry.name, "rival")

    def read_others(self) -> None:
        """Read what else is a pickle by its name: torch hands it out as it is, and others may unpickle it."""
        archive = self._archive._replace(limits=within_bounds(self._archive.limits))
        folder = self._records.prefix
        known = {folder + name for name, _ in PICKLES}
        others = (
            entry
            for entry in self._records.directory.entries
            if entry.name.startswith(folder) and entry.name.endswith(_OTHERS) and entry.name not in known
        )
        for entry in islice(others, _MOST_OTHERS):
            with suppress(PickleError, ContainerError):  # what is broken, or none, is left at that
                data = archive.contents(entry, archive.limits.pickle_nbytes).data
                archive.run(data, place_of(entry), entry.name, "rival")


def build_root(streams: Sequence[Stream], code: Code) -> tuple[Dict, dict[int, Declared]]:
    """Return the objects as mappings, with the constants of the code, and what tensors are for."""
    objects = Objects(code.members)
    root = objects.plain(streams[0].root)
    made = root if isinstance(root, Dict) else Dict([("data.pkl", root)])
    constants = objects.plain(streams[1].root) if streams[1:] else None
    tensors: list[Value] = [one for one in constants if is_tensor(one)] if isinstance(constants, list) else []
    if tensors:
        made = Dict([*made.pairs, (CONSTANTS, tensors)])
    return made, objects.declared


def _rekeyed(pickle: PickleRecord) -> Sequence[PersistentId]:
    """Return the persistent ids of a pickle; those of the constants, which are counted anew, get new keys."""
    nodes = pickle.stream.persistent_ids
    for node in nodes:
        found = prefix_key(node, pickle.prefix) if pickle.prefix else parse_storage_id(node)
        if found is not None and not pickle.prefix and found.key.startswith(OWN):
            raise ContainerError("a storage of data.pkl is named like one of constants.pkl")
    return nodes


class TorchScript(ZipFormat):
    """What torch.jit.save writes."""

    name = "torchscript"
    what = "a TorchScript archive"
    loader = "torch.jit.load"
    own = OWN
    left = re.compile(r"[^/]*/(code/|constants\.pkl)")

    @override
    def matches_records(self, records: Records) -> bool:
        return records.lists(CONSTANTS) or records.lists(_FIRST)

    @override
    def take_apart(self, archive: Archive) -> Container:
        source, records, limits, progress, _ = archive
        reading = _Reading(archive)
        pickles = tuple(reading.pickles())
        reading.read_others()
        storage_ids: dict[str, StorageId] = {}
        for one in pickles:
            storage_ids |= first_storage_ids(_rekeyed(one), limits)
        code = read_code(archive)
        root, declared = build_root([one.stream for one in pickles], code)
        return assemble(
            archive,
            "torchscript",
            root,
            storage_ids,
            find_storages(source, records, storage_ids, progress),
            read_metadata(source, records),
            doubts=reading.doubts,
            flags={NoteKind.SHARED_NAME: reading.shares, NoteKind.WRONG_CHECKSUM: reading.is_damaged},
            more=_code_notes(code),
            stream=pickles[0].stream,
            pickles=pickles,
            declared=declared,
            code_devices=code.devices,
        )
