"""Checkpoints of as many tensors as are read, and of more, as torch writes them."""

from __future__ import annotations

import io
import pickle
import struct
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from inspector.overriding import override
from tests.builders import zips

_MANY = 360_000
_PUTS = 8  # of each tensor behind the first


def _rebuild() -> None:
    """Stand for torch's function."""


class _Kind:
    """Stand for a class of storages."""


class _Storage:
    __slots__ = ("pid",)

    def __init__(self, key: int) -> None:
        self.pid = ("storage", _Kind, str(key), "cpu", 4)


class _Tensor:
    __slots__ = ("args",)

    def __init__(self, key: int, shape: tuple[int, ...], strides: tuple[int, ...], *, grad: bool) -> None:
        # Sizes of its own: one that several share comes out of the memo, which no genuine tensor does.
        own = (*shape, 0)[:-1], (*strides, 0)[:-1]
        self.args = (_Storage(key), 0, *own, grad, OrderedDict())  # type: ignore[var-annotated]

    @override
    def __reduce__(self) -> Any:
        return _rebuild, self.args


class _Pickler(pickle.Pickler):
    @override
    def persistent_id(self, value: Any) -> Any:
        return value.pid if type(value) is _Storage else None


def _pickled(root: object, kind: bytes) -> bytes:
    out = io.BytesIO()
    pickler = _Pickler(out, 2)
    pickler.dump(root)
    here = __name__.encode()
    data = out.getvalue().replace(b"c%b\n_rebuild\n" % here, b"ctorch._utils\n_rebuild_tensor_v2\n", 1)
    return data.replace(b"c%b\n_Kind\n" % here, b"ctorch\n%b\n" % kind, 1)


def _named(count: int, kind: bytes = b"FloatStorage", **how: Any) -> bytes:
    grad, strides = how.get("grad", False), how.get("strides", (2, 1))
    tensors = {
        f"model.layers.{at // 10}.block.{at % 10}.weight": _Tensor(at, (2, 2), strides, grad=grad)
        for at in range(count)
    }
    return _pickled(tensors, kind)


def _zipped(data: bytes, count: int) -> bytes:
    """A zip with a record for each storage, of which all stand for one."""
    first = zips.checkpoint(data, {"0": bytes(16)})
    end = first.rfind(b"PK\5\6")
    start = struct.unpack_from("<I", first, end + 16)[0]
    central = first[start:end]
    at = central.rindex(b"PK\1\2", 0, central.index(b"archive/data/0"))
    entry, name = central[at : at + 46], b"archive/data/0"
    builder = zips.ZipBuilder()
    builder.body += first[:start]
    builder.central += central[: at + 46] + name
    kept = central[at + 46 + len(name) :]
    for key in range(1, count):
        own = b"archive/data/%d" % key
        builder.central += entry[:28] + struct.pack("<H", len(own)) + entry[30:] + own
    builder.central += kept
    builder.count = count + central.count(b"PK\1\2") - 1
    return builder.finish(zip64=True)


def _asked(data: bytes, count: int) -> bytes:
    """The same, with each place of the memo asked for at the end."""
    gets = b"".join(b"j" + struct.pack("<I", slot) + b"0" for slot in range(300, _PUTS * count, 2))
    return data[:-1] + gets + b"."


def _slots(count: int) -> bytes:
    """The state of AdamW for as many parameters, and they."""
    parameters = {f"layers.{at}.weight": _Tensor(at, (2, 2), (2, 1), grad=False) for at in range(count)}
    state = {
        at: {
            name: _Tensor((place + 1) * count + at, shape, (2, 1)[: len(shape)], grad=False)
            for place, (name, shape) in enumerate(
                {"step": (), "exp_avg": (2, 2), "exp_avg_sq": (2, 2)}.items()
            )
        }
        for at in range(count)
    }
    groups = [{"lr": 0.1, "params": list(range(count))}]
    return _pickled(
        {"model": parameters, "optimizer": {"state": state, "param_groups": groups}}, b"FloatStorage"
    )


TENSOR_CROWDS: dict[str, Callable[[], bytes]] = {
    "360,000 tensors of torch": lambda: _zipped(_named(_MANY), _MANY),
    "360,000 tensors of bytes": lambda: _zipped(_named(_MANY, b"ByteStorage"), _MANY),
    "360,000 tensors past their storages": lambda: _zipped(_named(_MANY, strides=(9, 9)), _MANY),
    "360,000 tensors that torch does not take": lambda: _zipped(
        _named(_MANY, b"LongStorage", grad=True), _MANY
    ),
    "360,000 tensors whose arguments are asked for": lambda: _zipped(_asked(_named(_MANY), _MANY), _MANY),
    "100,000 parameters with the state of AdamW": lambda: _zipped(_slots(100_000), 400_000),
    "110,000 parameters with the state of AdamW": lambda: _zipped(_slots(110_000), 440_000),
    "a million tensors of torch": lambda: _zipped(_named(1_000_000), 1_000_000),
}
