"""What a torch.export archive says in JSON: its weights and constants, and the devices in its graph.

The classes are those of `torch/_export/serde/schema.py`: `PayloadMeta` and `TensorMeta`, `ScalarType` and
`Layout` by their numbers.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from inspector.errors import ContainerError
from inspector.units import cut_text, escape_text

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
    """One weight or constant.

    Attributes:
        name: Its name.
        record: The name of its record within the folder.
        is_parameter: Whether it is a parameter.
        is_pickled: Whether its record is a file of its own that is unpickled.
        meta: What it is; None where that is not known here.
    """

    name: str
    record: str
    is_parameter: bool
    is_pickled: bool
    meta: Meta | None


class Meta(NamedTuple):
    """A tensor.

    Attributes:
        dtype: torch's name of its element type.
        itemsize: The bytes of an element.
        shape: Its sizes.
        stride: Its steps.
        offset: Its first element.
        requires_grad: Whether gradients were asked for.
        device: The device's text.
    """

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
        shown = escape_text(cut_text(name, _MOST_CHARS))
        raise ContainerError("a weight has no record", where=f"{where}: {shown}", remedy="fetch it again")
    is_pickled = _get(row, "use_pickle") is True
    return Payload(name, record, _get(row, "is_param") is True, is_pickled, _meta(_get(row, "tensor_meta")))


def _meta(row: object) -> Meta | None:
    """Return a tensor; None where it is not one of plain numbers in plain order."""
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
                yield device, escape_text(cut_text(f"{name} = {target}", _MOST_CHARS))


def _get(row: object, key: str) -> object:
    return row.get(key) if isinstance(row, dict) else None


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value <= _MOST else -1


def _counts(values: object) -> tuple[int, ...] | None:
    """Return sizes or steps that are known numbers."""
    if not isinstance(values, list) or len(values) > _MOST_DIMENSIONS:
        return None
    found = tuple(_count(_get(one, "as_int")) for one in values)
    return None if -1 in found else found
