"""Tensors that name their device themselves, beside or instead of their storages' location tags.

A wrapper subclass (DTensor, ShardedTensor, quantized weights, ...) has no storage; torch makes it on the
device that stands among its arguments. XLA, Maia and MTIA tensors are stored on the CPU and sent to theirs
while they are loaded. See `_rebuild_wrapper_subclass` and `_rebuild_device_tensor_from_cpu_tensor` in torch's
`torch/_utils.py`; `map_location` reaches both.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.containers.rebuilds import FROM_TYPE, PARAMETERS, SENT, WRAPPER
from inspector.pickles.values import Call, Global, Value

_WRAPPER_DEVICE, _SENT_DEVICE = 6, 2  # its place among the arguments

REBUILDS = SENT | FROM_TYPE | {WRAPPER}
"""The names of the calls that such a device can be an argument of."""


class OwnDevice(NamedTuple):
    """Where a tensor's own device stands: the arguments of a call, and its place among them.

    Attributes:
        has_parts: Whether the tensor is made of others that must be on its device: a wrapper.
    """

    args: tuple[Value, ...]
    place: int
    has_parts: bool


def find_own_device(value: Value) -> OwnDevice | None:
    """Return where a tensor names its device itself; None if it does not, or if the value is no tensor."""
    while isinstance(value, Call):
        name, args = _name_of(value.func), value.args
        if name in FROM_TYPE and isinstance(args, tuple) and len(args) > 2:
            return _in_arguments(_name_of(args[0]), args[2])
        if name not in PARAMETERS or not isinstance(args, tuple) or not args:
            return _in_arguments(name, args)
        value = args[0]
    return None


def _in_arguments(name: str, args: Value) -> OwnDevice | None:
    if name == WRAPPER:
        place = _WRAPPER_DEVICE
    elif name in SENT:
        place = _SENT_DEVICE
    else:
        return None
    if not isinstance(args, tuple) or len(args) <= place:
        return None
    return OwnDevice(args, place, has_parts=name == WRAPPER)


def _name_of(func: Value) -> str:
    return func.name if isinstance(func, Global) and func.package == "torch" else ""
