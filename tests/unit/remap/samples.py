"""Checkpoints written by hand, instruction by instruction, so that a test can put any of them anywhere."""

from __future__ import annotations

import io
import struct
import zipfile
from pathlib import Path

from inspector.containers.container import Container, StoredBytes, first_storage_ids
from inspector.containers.programs import Program
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.pickles.machine import read_pickle
from inspector.pickles.values import Dict
from inspector.remap.plan import plan_remap
from inspector.remap.rewrite import rewrite_pickle
from inspector.remap.rules import parse_rule
from tests.builders import tars

NUMEL = 4
NBYTES = 4 * NUMEL

# --- instructions -------------------------------------------------------------------------------------------


def name(module: str, name: str) -> bytes:
    return f"c{module}\n{name}\n".encode()


def text(value: str) -> bytes:
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()


def put(slot: int) -> bytes:
    return bytes([0x71, slot])


def get(slot: int) -> bytes:
    return bytes([0x68, slot])


def group(*items: bytes) -> bytes:
    return b"(" + b"".join(items) + b"t"


def call(function: bytes, *args: bytes) -> bytes:
    return function + group(*args) + b"R"


def mapping(**items: bytes) -> bytes:
    return b"}(" + b"".join(text(key) + value for key, value in items.items()) + b"u"


def stream(body: bytes, protocol: int = 2) -> bytes:
    return bytes([0x80, protocol]) + body + b"."


# --- values -------------------------------------------------------------------------------------------------


def storage(location: bytes, key: str = "0", *, view: bytes = b"", numel: int = NUMEL) -> bytes:
    """A persistent id; its location is given as instructions."""
    return (
        group(text("storage"), name("torch", "FloatStorage"), text(key), location, bytes([0x4B, numel]), view)
        + b"Q"
    )


def tensor(location: bytes, key: str = "0", *, view: bytes = b"", numel: int = NUMEL) -> bytes:
    geometry = (
        b"K\x00",
        bytes([0x4B, NUMEL, 0x85]),
        b"K\x01\x85",
        b"\x89",
        call(name("collections", "OrderedDict")),
    )
    return call(
        name("torch._utils", "_rebuild_tensor_v2"), storage(location, key, view=view, numel=numel), *geometry
    )


def parameter(data: bytes) -> bytes:
    return call(
        name("torch._utils", "_rebuild_parameter"), data, b"\x88", call(name("collections", "OrderedDict"))
    )


def device(kind: bytes, index: bytes = b"") -> bytes:
    return name("torch", "device") + kind + index + (b"\x86" if index else b"\x85") + b"R"


CUDA_0 = device(text("cuda"), b"K\x00")
CUDA_1 = device(text("cuda"), b"K\x01")
CPU = device(text("cpu"))


def wrapper_args(place: bytes) -> bytes:
    """The arguments of `_rebuild_wrapper_subclass`, the device given as instructions."""
    layout = call(name("torch.serialization", "_get_layout"), text("torch.strided"))
    cls, dtype = name("mine", "Wrapper"), name("torch", "float32")
    return group(cls, dtype, bytes([0x4B, NUMEL, 0x85]), b"K\x01\x85", b"K\x00", layout, place, b"\x89")


def wrapper(place: bytes, **inner: bytes) -> bytes:
    """A tensor of a wrapper subclass, made of these tensors."""
    rebuild = name("torch._utils", "_rebuild_wrapper_subclass")
    cls = name("mine", "Wrapper")
    return call(
        name("torch._tensor", "_rebuild_from_type_v2"), rebuild, cls, wrapper_args(place), mapping(**inner)
    )


def sent(data: bytes, place: bytes, function: str = "_rebuild_device_tensor_from_cpu_tensor") -> bytes:
    """A tensor that is sent to its device while it is loaded."""
    return call(name("torch._utils", function), data, name("torch", "float32"), place, b"\x89")


def sparse(indices: bytes, values: bytes) -> bytes:
    layout = call(name("torch.serialization", "_get_layout"), text("torch.sparse_coo"))
    size = call(name("torch", "Size"), bytes([0x4B, 9, 0x85]))
    return call(name("torch._utils", "_rebuild_sparse_tensor"), layout, group(indices, values, size))


def nested(buffer: bytes, sizes: bytes, strides: bytes, offsets: bytes) -> bytes:
    return call(name("torch._utils", "_rebuild_nested_tensor"), buffer, sizes, strides, offsets)


# --- files --------------------------------------------------------------------------------------------------


def container_of(data: bytes) -> Container:
    """A container of nothing but a pickle, its storages complete."""
    read = read_pickle(data)
    ids = first_storage_ids(read.persistent_ids, DEFAULT_LIMITS)
    return Container(
        path="mine.pt",
        format="zip",
        file_nbytes=len(data),
        root=read.root,
        stream=read,
        programs=(Program("data.pkl", "object", read),),
        storage_ids=ids,
        stored={key: StoredBytes(0, None, storage_id.nbytes) for key, storage_id in ids.items()},
    )


def checkpoint_of(data: bytes) -> Checkpoint:
    return build_checkpoint(container_of(data))


def remapped(data: bytes, *rules: str, move_all: bool = False) -> bytes:
    """The pickle with the devices that rules give it."""
    container = container_of(data)
    plan = plan_remap(build_checkpoint(container), [parse_rule(rule) for rule in rules], move_all=move_all)
    return rewrite_pickle(container.stream, plan)


def devices_of(data: bytes) -> list[str]:
    return [row.device for row in checkpoint_of(data).tensors]


def zip_of(
    pickle: bytes, storages: dict[str, bytes], *, deflated: tuple[str, ...] = (), **more: bytes
) -> bytes:
    """A checkpoint as Python's zipfile writes it."""
    records = {"data.pkl": pickle, "version": b"3\n", **more}
    records |= {f"data/{key}": data for key, data in storages.items()}
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for record, data in records.items():
            method = zipfile.ZIP_DEFLATED if record in deflated else zipfile.ZIP_STORED
            archive.writestr(zipfile.ZipInfo(f"archive/{record}"), data, compress_type=method)
    return file.getvalue()


def legacy_of(pickle: bytes, storages: dict[str, bytes], tail: bytes = b"") -> bytes:
    magic = bytes.fromhex("80028a0a6cfc9c46f9206aa850192e")
    keys = stream(b"](" + b"".join(text(key) for key in storages) + b"e")
    info = stream(mapping(little_endian=b"\x88"))
    version = stream(b"M\xe9\x03")
    data = b"".join(struct.pack("<q", len(payload) // 4) + payload for payload in storages.values())
    return magic + version + info + pickle + keys + data + tail


def tar_of(pickle: bytes, storages: dict[str, bytes]) -> bytes:
    """The same tensors as torch 0.1 would have written them: a dictionary of views of whole storages."""
    root = read_pickle(pickle).root
    assert isinstance(root, Dict)
    locations, tensors, entries = {}, [], []
    for number, (key, made) in enumerate(root.pairs, 1):
        _, _, place, location, _ = made.args[0].pid
        locations[place] = location
        tensors.append(tars.Tensor(number, int(place) + 1000, (NUMEL,), (1,)))
        entries.append(text(key) + tars.reference(number))
    rows = [tars.Storage(int(key) + 1000, locations[key], data) for key, data in storages.items()]
    return tars.checkpoint(stream(b"}(" + b"".join(entries) + b"u"), rows, tensors)


def written(folder: Path, data: bytes, name: str = "in.pt") -> Path:
    path = folder / name
    path.write_bytes(data)
    return path
