"""What the chunks of a tensor are packed in, and where in there their elements are.

Distributed checkpoints hold each chunk as a file of `torch.save`, one behind the other, and those written
with `SerializationFormat.SAFETENSORS` as entries of one safetensors file. What was asked for is compared with
what is there: a file of another save may lie in the place of the right one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from math import prod
from typing import Any

from inspector.containers.gathered.chunks import Chunk, Gathered, Place
from inspector.containers.gathered.window import Window
from inspector.containers.notes import AMBIGUOUS
from inspector.containers.persistent_ids import parse_storage_id
from inspector.containers.rebuilds import VIEWS
from inspector.containers.source import Source
from inspector.containers.zip.archive import read_torchzip
from inspector.errors import CheckpointError, ContainerError, DamagedError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import Call, Global, PersistentId, Value
from inspector.progress import Progress
from inspector.records import replace

Unpack = Callable[[Source, Gathered, Chunk], Place]
_MOST_HEADER_NBYTES = 100_000_000
_MOST_PICKLE_NBYTES = 1 << 20
_SAFETENSORS_DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "I64": "int64",
    "I32": "int32",
    "I16": "int16",
    "I8": "int8",
    "U8": "uint8",
    "U16": "uint16",
    "U32": "uint32",
    "U64": "uint64",
    "BOOL": "bool",
    "C64": "complex64",
    "F8_E4M3": "float8_e4m3fn",
    "F8_E5M2": "float8_e5m2",
    "F8_E8M0": "float8_e8m0fnu",
}


def _plain(source: Source, gathered: Gathered, chunk: Chunk) -> Place:
    """Return the place of a chunk that is packed in nothing."""
    nbytes = chunk.numel * gathered.itemsize
    if chunk.length < nbytes or not source.reaches(chunk.offset + nbytes):
        raise _damaged(gathered, source, "the file ends before it does")
    return Place(chunk.offset)


def _from_zip(source: Source, gathered: Gathered, chunk: Chunk) -> Place:
    """Return the place of a chunk in a file of `torch.save`."""
    limits = replace(DEFAULT_LIMITS, pickle_nbytes=_MOST_PICKLE_NBYTES).started()
    try:
        container = read_torchzip(Window(source, chunk.offset, chunk.length), limits, Progress())
    except CheckpointError as error:
        raise _damaged(gathered, source, str(error)) from error
    if any(note.kind in AMBIGUOUS for note in container.notes):
        raise _damaged(gathered, source, "the zip that it is in is damaged")
    if dict(container.versions).get("byteorder", "little") != "little":
        raise _damaged(gathered, source, "it was saved on a big-endian machine")
    dtype, sizes, strides, first, key = _view(container.root, gathered, source)
    if dtype != gathered.dtype or sizes != chunk.sizes:
        told = f"the file holds {dtype} {list(sizes)}, where {gathered.dtype} {list(chunk.sizes)} is expected"
        raise _damaged(gathered, source, told)
    stored = container.stored.get(key)
    reach = 1 + sum((size - 1) * step for size, step in zip(sizes, strides, strict=True))
    end = (first + max(reach, chunk.numel)) * gathered.itemsize
    if stored is None or stored.offset is None or end > stored.nbytes or reach > chunk.numel:
        raise _damaged(gathered, source, "its bytes are not all in the file, or not one by one")
    place = chunk.offset + stored.offset + first * gathered.itemsize
    return Place(place, None if _is_contiguous(sizes, strides) else strides)


def _view(
    root: Value, gathered: Gathered, source: Source
) -> tuple[str, tuple[int, ...], tuple[int, ...], int, str]:
    """Read a tensor: its type, sizes, strides, first element, and the key of its storage."""
    args: tuple[Any, ...] = root.args if isinstance(root, Call) and isinstance(root.args, tuple) else ()
    func = root.func if isinstance(root, Call) else None
    node = args[0] if args and isinstance(func, Global) and func.name in VIEWS else None
    storage = parse_storage_id(node) if isinstance(node, PersistentId) else None
    if storage is not None and len(args) in {4, 6, 7} and _are_counts(args[1], args[2], args[3]):
        if len(args) < 7:
            return storage.dtype, args[2], args[3], args[1], storage.key
        if isinstance(args[6], Global) and args[6].module == "torch":
            return args[6].name, args[2], args[3], args[1], storage.key
    raise _damaged(gathered, source, "it is stored in a way of its own (quantized, sparse, or a subclass)")


def _are_counts(first: object, sizes: object, strides: object) -> bool:
    if not isinstance(sizes, tuple) or not isinstance(strides, tuple) or len(sizes) != len(strides):
        return False
    return all(type(one) is int and 0 <= one < 1 << 63 for one in (first, *sizes, *strides))


def _is_contiguous(sizes: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    return all(
        size <= 1 or step == prod(sizes[number + 1 :])
        for number, (size, step) in enumerate(zip(sizes, strides, strict=True))
    )


def _from_safetensors(source: Source, gathered: Gathered, chunk: Chunk) -> Place:
    """Return the place of a chunk in a safetensors file that other things may stand before."""
    nbytes = int.from_bytes(source.read(chunk.offset, 8), "little")
    if nbytes > _MOST_HEADER_NBYTES:
        raise _damaged(gathered, source, "it is not where it should be")
    try:
        header = json.loads(source.read(chunk.offset + 8, nbytes))
        entry = header[gathered.name]
        dtype, sizes = _SAFETENSORS_DTYPES.get(entry["dtype"], ""), tuple(entry["shape"])
        start, end = entry["data_offsets"]
        is_it = dtype == gathered.dtype and sizes == chunk.sizes
        fits = type(start) is int and start >= 0 and end - start == chunk.numel * gathered.itemsize
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _damaged(gathered, source, "the header in front of it cannot be read") from error
    offset = chunk.offset + 8 + nbytes + start if fits else 0
    if not is_it or not fits or not source.reaches(offset + chunk.numel * gathered.itemsize):
        raise _damaged(gathered, source, "the file holds something else in its place")
    return Place(offset)


def _unknown(source: Source, gathered: Gathered, chunk: Chunk) -> Place:  # noqa: ARG001 - the table's signature
    raise ContainerError(
        "a tensor is compressed in a way that is not read here",
        where=gathered.name,
        remedy="convert the folder where that package is installed, with "
        "torch.distributed.checkpoint.format_utils.dcp_to_torch_save",
    )


def _damaged(gathered: Gathered, source: Source, why: str) -> DamagedError:
    return DamagedError(
        "a chunk of a tensor cannot be read", where=f"{gathered.name} in {source.path}: {why}"
    )


UNPACKERS: dict[str, Unpack] = {
    "": _plain,
    "zip": _from_zip,
    "safetensors": _from_safetensors,
    "transformed": _unknown,
}
"""What returns the place of a chunk, by what it is packed in."""
