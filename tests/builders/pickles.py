"""Pickles made by hand: instruction by instruction, where no honest writer would go."""

from __future__ import annotations

import math
import struct
from typing import Any

from inspector.containers.rebuilds import EXPECTED
from inspector.limits import Limits
from inspector.pickles.instructions import CODES
from inspector.pickles.machine import Stream, read_pickle
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value


class As:
    """What Python's pickler writes as a call of a function with these arguments, and maybe a state."""

    def __init__(self, *reduced: Any) -> None:
        self._reduced = reduced

    def __reduce__(self) -> Any:
        return self._reduced


# ------------------------------------------------------------------------------------------- instructions

STOP = b"."
MARK = b"("
NONE = b"N"
CPU_IN_EVERY_WAY = (
    b"S'cpu'\n",
    b"T\x03\x00\x00\x00cpu",
    b"U\x03cpu",
    b"Vcpu\n",
    b"X\x03\x00\x00\x00cpu",
    b"\x8c\x03cpu",
    b"\x8d" + struct.pack("<Q", 3) + b"cpu",
)
"""The text `cpu` by each instruction that makes one."""


def op(name: str, operand: bytes = b"") -> bytes:
    return bytes([CODES[name]]) + operand


def proto(version: int = 2) -> bytes:
    return op("PROTO", bytes([version]))


def number(value: int) -> bytes:
    if 0 <= value < 256:
        return op("BININT1", bytes([value]))
    if -(2**31) <= value < 2**31:
        return op("BININT", struct.pack("<i", value))
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return op("LONG1", bytes([len(data)]) + data)


def text(value: str) -> bytes:
    data = value.encode("utf-8", "surrogatepass")
    return op("BINUNICODE", struct.pack("<I", len(data)) + data)


def name(dotted: str) -> bytes:
    """GLOBAL; the last dot divides."""
    module, _, attribute = dotted.rpartition(".")
    return op("GLOBAL", f"{module}\n{attribute}\n".encode())


def tuple_(*items: bytes) -> bytes:
    return MARK + b"".join(items) + op("TUPLE")


def list_(*items: bytes) -> bytes:
    return op("EMPTY_LIST") + MARK + b"".join(items) + op("APPENDS")


def dict_(*pairs: tuple[bytes, bytes]) -> bytes:
    return op("EMPTY_DICT") + MARK + b"".join(key + value for key, value in pairs) + op("SETITEMS")


def call(dotted: str, *arguments: bytes) -> bytes:
    return name(dotted) + tuple_(*arguments) + op("REDUCE")


def new(dotted: str, *state: tuple[bytes, bytes]) -> bytes:
    """An object as Python pickles most of them: made without a call of its class, then given attributes."""
    made = name(dotted) + op("EMPTY_TUPLE") + op("NEWOBJ")
    return made + dict_(*state) + op("BUILD") if state else made


def stream(*parts: bytes) -> bytes:
    return b"".join(parts) + STOP


# ------------------------------------------------------------------------------------------- checkpoints


def storage(
    key: str | int = "0", cls: str = "torch.FloatStorage", location: str = "cpu", numel: int = 2
) -> bytes:
    """A storage's persistent id, as the zip format writes it."""
    key_push = number(key) if isinstance(key, int) else text(key)
    pid = tuple_(text("storage"), name(cls), key_push, text(location), number(numel))
    return pid + op("BINPERSID")


def legacy_storage(
    key: str = "0",
    cls: str = "torch.FloatStorage",
    location: str = "cpu",
    numel: int = 2,
    view: tuple[str, int, int] | None = None,
) -> bytes:
    """A storage's persistent id, as the legacy format writes it."""
    view_push = NONE if view is None else tuple_(text(view[0]), number(view[1]), number(view[2]))
    pid = tuple_(text("storage"), name(cls), text(key), text(location), number(numel), view_push)
    return pid + op("BINPERSID")


def tensor(storage_push: bytes, *shape: int) -> bytes:
    """A tensor over the whole of a storage."""
    strides = [math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
    return call(
        "torch._utils._rebuild_tensor_v2",
        storage_push,
        number(0),
        tuple_(*map(number, shape)),
        tuple_(*map(number, strides)),
        op("NEWFALSE"),
        call("collections.OrderedDict"),
    )


def state_dict(**tensors: bytes) -> bytes:
    """A whole stream: a dictionary of tensors."""
    return stream(proto(), dict_(*((text(key), value) for key, value in tensors.items())))


# ------------------------------------------------------------------------------------------- reading


def read(*parts: bytes, **limits: Any) -> Stream:
    """Read a stream made of these parts and a STOP, within these limits."""
    return read_pickle(stream(*parts), limits=Limits(**limits), expected=EXPECTED)


def root(*parts: bytes, **limits: Any) -> Any:
    """What a stream of these parts stands for, as plain data; see `plain`."""
    return plain(read(*parts, **limits).root)


def kinds(*parts: bytes) -> list[str]:
    return [oddity.kind for oddity in read(*parts).oddities]


def plain(value: Value, above: tuple[int, ...] = ()) -> Any:
    """Inert nodes as tuples that can be compared, anything else as it is; `...` where it holds itself."""
    if id(value) in above:
        return ...
    inside = (*above, id(value))
    if isinstance(value, list | tuple):
        return type(value)(plain(item, inside) for item in value)
    return _PLAIN[type(value)](value, inside) if type(value) in _PLAIN else value


def _plain_call(node: Call, above: tuple[int, ...]) -> Any:
    parts = {"kwargs": node.kwargs, "state": node.state, "items": node.items, "pairs": node.pairs}
    given = {key: plain(part, above) for key, part in parts.items() if part is not None}
    return (node.kind, plain(node.func, above), plain(node.args, above), given)


_PLAIN: dict[type, Any] = {
    Call: _plain_call,
    Dict: lambda node, above: ("dict", plain(node.pairs, above)),
    Set: lambda node, above: ("frozenset" if node.frozen else "set", plain(node.items, above)),
    Global: lambda node, above: ("global", node.dotted),
    PersistentId: lambda node, above: ("persistent", plain(node.pid, above)),
    Blob: lambda node, above: ("blob", node.kind, node.offset, node.nbytes),
}
