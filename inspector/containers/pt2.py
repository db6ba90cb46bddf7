"""The archive of `torch.export.save`: weights as they are, a graph in JSON, and pickles beside them.

The archive of today is described in `torch/export/pt2_archive/_package.py`, the classes of its JSON in
`torch/_export/serde/schema.py`; before torch 2.8 it held `serialized_exported_program.json` and files of
`torch.save` for all tensors. Of those files, and of sample inputs, `torch.export.load` unpickles whatever
they name: it tries `weights_only=True` first, and `weights_only=False` when that fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

from inspector.containers.base import Cannot
from inspector.containers.container import CodeDevice, Container, Declared, OwnLoader, StoredBytes
from inspector.containers.joined import InnerFiles
from inspector.containers.notes import Note, NoteKind, listed, shown
from inspector.containers.persistent_ids import StorageId
from inspector.containers.programs import within_bounds
from inspector.containers.rebuilds import PARAMETERS
from inspector.containers.source import Window
from inspector.containers.torchscript import is_tensor
from inspector.containers.unread import read_programs
from inspector.containers.zip.archive import read_torchzip
from inspector.containers.zip.directory import STORED, ZipEntry, payload_offset
from inspector.containers.zip.records import Archive, Records, ZipFormat
from inspector.containers.zip.storages import Metadata, Places, assemble, read_metadata
from inspector.errors import ContainerError, PickleError
from inspector.overriding import override
from inspector.pickles.values import Dict, Global, StoredTensor, Value
from inspector.records import replace
from inspector.units import format_count

# --- its JSON -----------------------------------------------------------------------------------------------


# Of ScalarType: torch's name, and the bytes of an element.
DTYPES: dict[int, tuple[str, int]] = {
    1: ("uint8", 1),
    2: ("int8", 1),
    3: ("int16", 2),
    4: ("int32", 4),
    5: ("int64", 8),
    6: ("float16", 2),
    7: ("float32", 4),
    8: ("float64", 8),
    9: ("complex32", 4),
    10: ("complex64", 8),
    11: ("complex128", 16),
    12: ("bool", 1),
    13: ("bfloat16", 2),
    28: ("uint16", 2),
    29: ("float8_e4m3fn", 1),
    30: ("float8_e5m2", 1),
    31: ("float8_e4m3fnuz", 1),
    32: ("float8_e5m2fnuz", 1),
    33: ("float8_e8m0fnu", 1),
    34: ("uint32", 4),
    35: ("uint64", 8),
}
_STRIDED = 7
_MOST = (1 << 63) - 1
_MOST_DIMENSIONS = 64
_MOST_CHARS = 80


class Payload(NamedTuple):
    """One weight or constant."""

    name: str
    record: str
    is_parameter: bool
    is_pickled: bool
    meta: Meta | None


class Meta(NamedTuple):
    """A tensor."""

    dtype: str
    itemsize: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]
    offset: int
    requires_grad: bool
    device: str


def parse_json(data: bytes, where: str) -> Any:  # noqa: ANN401 - anything can stand in JSON
    """Return what a record says."""
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        what = "the JSON in the archive cannot be read"
        raise ContainerError(what, where=f"{where}: {error}", remedy="fetch it again") from None


def parse_payloads(data: bytes, where: str) -> list[Payload]:
    """Return the weights or constants that a record lists."""
    rows = _get(parse_json(data, where), "config")
    if not isinstance(rows, dict):
        raise ContainerError("the list of weights cannot be read", where=where, remedy="fetch it again")
    return [_payload(name, row, where) for name, row in rows.items()]


def _payload(name: str, row: object, where: str) -> Payload:
    record = _get(row, "path_name")
    if not isinstance(record, str):
        raise ContainerError(
            "a weight has no record", where=f"{where}: {shown(name)}", remedy="fetch it again"
        )
    is_pickled = _get(row, "use_pickle") is True
    return Payload(name, record, _get(row, "is_param") is True, is_pickled, _meta(_get(row, "tensor_meta")))


def _meta(row: object) -> Meta | None:
    dtype = DTYPES.get(_count(_get(row, "dtype")))
    shape, stride = _counts(_get(row, "sizes")), _counts(_get(row, "strides"))
    offset = _count(_get(_get(row, "storage_offset"), "as_int"))
    device = device_of(_get(row, "device"))
    if dtype is None or shape is None or stride is None or offset < 0 or device is None:
        return None
    if _get(row, "layout") != _STRIDED or len(shape) != len(stride):
        return None
    return Meta(*dtype, shape, stride, offset, _get(row, "requires_grad") is True, device)


def device_of(row: object) -> str | None:
    """Return a device as text; None where it is none."""
    kind, index = _get(row, "type"), _get(row, "index")
    if not isinstance(kind, str) or not kind.isascii() or not kind.isidentifier() or len(kind) > _MOST_CHARS:
        return None
    return kind if type(index) is not int or not 0 <= index < 1 << 31 else f"{kind}:{index}"


def devices_in_graph(model: object) -> Iterator[tuple[str, str]]:
    """Yield the devices that the operators of a graph are called with, each with its node and operator."""
    nodes = _get(_get(_get(model, "graph_module"), "graph"), "nodes")
    for node in nodes if isinstance(nodes, list) else ():
        inputs = _get(node, "inputs")
        for one in inputs if isinstance(inputs, list) else ():
            device = device_of(_get(_get(one, "arg"), "as_device"))
            if device is not None:
                name, target = str(_get(node, "name")), str(_get(node, "target"))
                yield device, shown(f"{name} = {target}")


def _get(row: object, key: str) -> object:
    return row.get(key) if isinstance(row, dict) else None


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= _MOST else -1


def _counts(values: object) -> tuple[int, ...] | None:
    if not isinstance(values, list) or len(values) > _MOST_DIMENSIONS:
        return None
    found = tuple(_count(_get(one, "as_int")) for one in values)
    return None if -1 in found else found


# --- the archive --------------------------------------------------------------------------------------------


OWN = "data/"
_MODELS, _JSON = "models/", ".json"
_WEIGHTS, _CONSTANTS = "data/weights/", "data/constants/"
_OLD = ("serialized_state_dict.pt", "serialized_constants.pt", "serialized_example_inputs.pt")
_OLD_MODEL = "serialized_exported_program.json"
_SAMPLES = "data/sample_inputs/"
_COMPILED = "data/aotinductor/"
_MACHINE_CODE = (".so", ".o", ".cubin", ".hsaco", ".dll", ".pyd", ".dylib")
_MOST_JSON_NBYTES = 1 << 26
# What `load` in `torch/export/__init__.py` returns of all programs, and `load_package` of all models.
_DEFAULT_MODEL = "model"
LOAD_ONE = "torch.export.load"
LOAD_ALL = "torch.export.pt2_archive._package.load_pt2"
LOAD_COMPILED = "torch._inductor.aoti_load_package"
LOAD_NAMED = "torch._inductor.package.load_package"
# What `get_device_information` in `torch/_inductor/codecache.py` says of the machine that compiled.
_MADE_FOR = ("AOTI_PLATFORM", "AOTI_MACHINE", "AOTI_CPU_ISA", "AOTI_COMPUTE_CAPABILITY")
_MADE_ON = "AOTI_DEVICE_KEY"
_METADATA = f"_metadata{_JSON}"
_MOST_METADATA = 64
_EXTRA = "extra/"
_NO_MODEL = "KeyError: 'model'"  # what it says to an archive of nothing but further files
_NO_PROGRAM = "RuntimeError: We ran into an error when deserializing the saved file."


class _Reading(InnerFiles):
    def __init__(self, archive: Archive) -> None:
        super().__init__(archive.limits)
        self._archive = archive
        self._source = archive.source
        self._records = archive.records
        self._owners: dict[str, str] = {}
        self.declared: dict[int, Declared] = {}
        self.devices: list[CodeDevice] = []
        self.made_for: dict[str, None] = {}

    # --- the archive of today -------------------------------------------------------------------------------

    def new(self) -> Iterator[tuple[Value, Value]]:
        """Yield what it holds: the weights of its model by name, or of each of several models."""
        models = self._models()
        for model in models:
            pairs = [*self._tensors(model, _WEIGHTS), *self._beside(model)]
            if len(models) == 1:
                yield from pairs
            else:
                yield model, Dict(pairs)

    def _models(self) -> list[str]:
        """Return the names of the models; of an archive that lost its graphs, those that have weights."""
        found: dict[str, None] = {}
        for name in self._records.below(""):
            if name.startswith(_MODELS) and name.endswith(_JSON):
                found[name[len(_MODELS) : -len(_JSON)]] = None
            elif name.startswith(_WEIGHTS) and name.endswith(f"_weights_config{_JSON}"):
                found[name[len(_WEIGHTS) : -len(f"_weights_config{_JSON}")]] = None
        for model in found:
            self._find_devices(f"{_MODELS}{model}{_JSON}")
        return list(found)

    def _beside(self, model: str) -> Iterator[tuple[Value, Value]]:
        """Yield what is no weight, constants and sample inputs, in the folders that they stand in."""
        beside: list[tuple[Value, Value]] = []
        constants = list(self._tensors(model, _CONSTANTS))
        if constants:
            beside.append((_name_in_own(_CONSTANTS), Dict(constants)))
        samples = self._file(f"{_SAMPLES}{model}.pt")
        if samples is not None:
            beside.append((_name_in_own(_SAMPLES), samples))
        if beside:
            yield OWN.rstrip("/"), Dict(beside)

    def _tensors(self, model: str, folder: str) -> Iterator[tuple[Value, Value]]:
        kind = "weights" if folder == _WEIGHTS else "constants"
        whole = self._file(f"{folder}{model}.pt")  # torch 2.8 wrote one file of torch.save for all
        if isinstance(whole, Dict):
            yield from self._weights(whole) if folder == _WEIGHTS else whole.pairs
            return
        data = self._json(f"{folder}{model}_{kind}_config{_JSON}")
        for payload in parse_payloads(data, f"{folder}{model}") if data else ():
            value = self._payload(payload, folder)
            if value is not None:
                yield payload.name, value

    def _weights(self, mapping: Dict) -> list[tuple[Value, Value]]:
        """Return a state dict; torch keeps in its pickle what is a parameter."""
        for _, value in mapping.pairs:
            if is_tensor(value):
                is_parameter = isinstance(value.func, Global) and value.func.name in PARAMETERS
                self.declared[id(value)] = "parameter" if is_parameter else "buffer"
        return mapping.pairs

    def _payload(self, payload: Payload, folder: str) -> Value:
        """Return one tensor; what is no plain tensor is read for what it runs, and shown as what it makes."""
        name = folder + payload.record
        if payload.is_pickled:
            return self._file(name) or self._unpickled(name)
        meta, entry = payload.meta, self._records.get(name)
        if meta is None:
            self._note_unlisted()
            return None
        self._place(name, entry, payload)
        value = StoredTensor(
            name, meta.dtype, meta.shape, meta.stride, meta.offset, requires_grad=meta.requires_grad
        )
        is_weight = folder == _WEIGHTS
        self.declared[id(value)] = (
            "other" if not is_weight else "parameter" if payload.is_parameter else "buffer"
        )
        return value

    def _place(self, key: str, entry: ZipEntry | None, payload: Payload) -> None:
        """Describe the storage of a tensor, once: torch goes by the first that names it."""
        meta = payload.meta
        if ":" in key:
            raise ContainerError("a tensor of the archive is named like a storage of a file in it")
        if meta is None or key in self.storage_ids:
            return
        nbytes = 0 if entry is None else entry.nbytes
        if entry is None or (not nbytes and 0 not in meta.shape):
            # Without a record, it is as long as it should be; an empty one is what a fake tensor leaves.
            nbytes = meta.itemsize * (meta.offset + 1 + _reach(meta.shape, meta.stride))
        count, rest = divmod(nbytes, meta.itemsize)
        dtype, itemsize, numel = (meta.dtype, meta.itemsize, count) if not rest else ("uint8", 1, nbytes)
        self.add_storage(
            key,
            StorageId(key, dtype, itemsize, meta.device, min(numel, _MOST), untyped=bool(rest), view=None),
        )
        if entry is not None and entry.nbytes:
            with suppress(ContainerError):
                offset = payload_offset(self._source, entry)
                if offset + entry.stored_nbytes <= self._source.nbytes:
                    place = offset if entry.method == STORED else None
                    self.stored[key] = StoredBytes(0, place, entry.nbytes)

    def _unpickled(self, name: str) -> Value:
        """Read what a record runs that is no file of torch.save."""
        self._read_programs(name)
        self._note_unlisted()
        return None

    def _note_unlisted(self) -> None:
        note = Note(NoteKind.NOT_LISTED, ("Weights or constants that are not plain tensors",))
        if note not in self.notes:
            self.notes.append(note)

    # --- the archive before torch 2.8 -----------------------------------------------------------------------

    def old(self) -> Iterator[tuple[Value, Value]]:
        """Yield what it holds: the state dict, and below their files' names the rest."""
        names = [name for name in self._records.names if name.endswith(_OLD)]
        for name in names:
            root = self._file(name, below="")
            if name.endswith(_OLD[0]) and isinstance(root, Dict):
                yield from self._weights(root)
            elif root is not None:
                yield name, root
        model = next(name for name in self._records.names if name.endswith(_OLD_MODEL))
        self._find_devices(model, below="")

    # --- both -----------------------------------------------------------------------------------------------

    def _entry(self, name: str, below: str | None) -> ZipEntry | None:
        if below is None:
            return self._records.get(name)
        return next((one for one in self._records.directory.entries if one.name == below + name), None)

    def _file(self, name: str, below: str | None = None) -> Value:
        """Read a file of torch.save that stands in the archive as it is; None where there is none."""
        entry = self._entry(name, below)
        if entry is None or not entry.nbytes:
            return None
        self.count_file()
        if entry.method != STORED:
            self._read_programs(name, entry)
            self._note_unlisted()
            return None
        window = Window(self._source, payload_offset(self._source, entry), entry.nbytes)
        if window.read_upto(0, 2) != b"PK":
            self._read_programs(name, entry)
            self._note_unlisted()
            return None
        try:
            inner = read_torchzip(window, self._archive.limits, self._archive.progress)
        finally:
            self._source.programs.adopt(window.programs, name, "object")
        keys = (f"{name}:{key}" for key in inner.storage_ids)
        if any(self._owners.setdefault(key, name) != name for key in keys):
            raise ContainerError("a storage of one file in the archive is named like one of another")
        # No reader finds what is compressed in a file within the archive.
        plain = {key: place for key, place in inner.stored.items() if place.offset is not None}
        self.take(name, replace(inner, stored=plain), payload_offset(self._source, entry))
        self.notes += [note for note in inner.notes if note.kind is not NoteKind.LOST_BYTES]
        root = inner.root
        return Dict(root.pairs) if isinstance(root, Dict) else root

    def _read_programs(self, name: str, entry: ZipEntry | None = None) -> None:
        """Read the pickles in a record that is no plain file of torch.save."""
        entry = entry or self._records.get(name)
        if entry is None or entry.method != STORED:
            return
        with suppress(ContainerError, PickleError):
            window = Window(self._source, payload_offset(self._source, entry), entry.nbytes)
            try:
                read_programs(window, within_bounds(self._archive.limits), self._archive.progress)
            finally:
                self._source.programs.adopt(window.programs, name, "object")

    def _json(self, name: str, below: str | None = None) -> bytes:
        entry = self._entry(name, below)
        return b"" if entry is None else self._archive.contents(entry, _MOST_JSON_NBYTES).data

    def _find_devices(self, name: str, below: str | None = None) -> None:
        """Look for devices in a graph; one that is too large or broken says nothing."""
        with suppress(ContainerError):
            data = self._json(name, below)
            found = devices_in_graph(parse_json(data, name)) if data else ()
            self.devices += [CodeDevice(device, f"{name}: {node}") for device, node in found]
            return
        self.notes.append(Note(NoteKind.UNREAD_CODE))

    # --- what was compiled ----------------------------------------------------------------------------------

    def own_loader(self) -> OwnLoader | None:
        """Return what loads the archive where `torch.export.load` does not, or not all of it."""
        self._read_compiled()
        made_for = "; ".join(self.made_for)
        compiled = _folders_in(self._records, _COMPILED)
        programs = tuple(
            name[len(_MODELS) : -len(_JSON)] for name in self._records.below(_MODELS) if name.endswith(_JSON)
        )
        if compiled and not programs:
            call = LOAD_COMPILED if _DEFAULT_MODEL in compiled else LOAD_NAMED
            return OwnLoader(call, compiled, is_compiled=True, made_for=made_for)
        if programs == (_DEFAULT_MODEL,) and not compiled:
            return None
        call = LOAD_ONE if programs == (_DEFAULT_MODEL,) else LOAD_ALL
        return OwnLoader(call, programs, made_for=made_for) if programs else None

    def has_program(self) -> bool:
        """Return whether there is anything that a loader returns."""
        is_there = any(name.endswith(_JSON) for name in self._records.below(_MODELS))
        return is_there or bool(_folders_in(self._records, _COMPILED))

    def _read_compiled(self) -> None:
        """Read for which machine the machine code was made."""
        names = [name for name in self._records.below(_COMPILED) if name.endswith(_METADATA)]
        for name in names[:_MOST_METADATA]:
            with suppress(ContainerError):
                data = self._json(name)
                found = parse_json(data, name) if data else None
                device = device_of({"type": _get(found, _MADE_ON)})
                if device is not None:
                    self.devices.append(CodeDevice(device, name))
                said = [one for key in _MADE_FOR if isinstance(one := _get(found, key), str) and one]
                if said:
                    self.made_for[" ".join(map(shown, said))] = None


def _folders_in(records: Records, folder: str) -> tuple[str, ...]:
    found = (name[len(folder) :].partition("/") for name in records.below(folder))
    return tuple(dict.fromkeys(name for name, mark, _ in found if mark and name))


def _reach(shape: tuple[int, ...], stride: tuple[int, ...]) -> int:
    return sum((size - 1) * step for size, step in zip(shape, stride, strict=True) if size)


def _compiled(records: Records) -> Iterator[Note]:
    names = [name for name in records.below(_COMPILED) if name.endswith(_MACHINE_CODE)]
    if names:
        amount, ends = format_count(len(names), "file"), [name.rpartition("/")[2] for name in names]
        yield Note(NoteKind.MACHINE_CODE, (f"{amount}, {listed(ends)}",))


def _name_in_own(folder: str) -> str:
    return folder.removeprefix(OWN).rstrip("/")


class ExportedProgram(ZipFormat):
    """What torch.export.save writes."""

    name = "pt2"
    what = "a torch.export archive"
    loader = LOAD_ONE
    own = OWN
    cannot = (
        Cannot(
            ("remap", "in-place"),
            "the devices of an exported program stand in its graph, which is checked against them",
            "load it where its device is, move it with torch.export.passes.move_to_device_pass(program, "
            '"cpu"), and save it with torch.export.save',
        ),
    )
    left = re.compile(r"[^/]*/(models/|data/weights/)")

    @override
    def matches_records(self, records: Records) -> bool:
        return (
            records.lists("archive_format")
            or _OLD_MODEL in records.names
            or next(records.below(_COMPILED), None) is not None
        )

    @override
    def take_apart(self, archive: Archive) -> Container:
        source, records, _, _, _ = archive
        reading = _Reading(archive)
        is_old = any(name.endswith(_OLD_MODEL) for name in records.names)
        root = Dict(list(reading.old() if is_old else reading.new()))
        own_loader = None if is_old else reading.own_loader()
        # Python's zipfile reads the older generation
        metadata = Metadata() if is_old else read_metadata(source, records)
        if not (is_old or metadata.refusal or reading.has_program()):
            metadata = metadata._replace(
                refusal=_NO_PROGRAM if next(records.below(_EXTRA), None) is None else _NO_MODEL
            )
        return assemble(
            archive,
            "pt2",
            root,
            reading.storage_ids,
            Places(reading.stored),
            metadata,
            more=(*reading.notes, *_compiled(records)),
            pickles=tuple(reading.pickles),
            data=bytes(reading.large),
            declared=reading.declared,
            code_devices=tuple(dict.fromkeys(reading.devices)),
            own_loader=own_loader,
        )
