"""Small crowds of everything that a pickle can hold, each as a function of how many there are.

A *wide* thing has `wide` parts and is referred to `often` times, so that a reader that looks at all of its
parts at each reference takes `wide * often` steps where the pickle is as long as `wide + often`.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.builders.pickles import (
    MARK,
    NONE,
    call,
    dict_,
    list_,
    name,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)

FUNC, THING, OTHER = op("BINGET", b"\1"), op("BINGET", b"\2"), op("BINGET", b"\3")


def _kept(push: bytes, slot: int) -> bytes:
    return push + op("BINPUT", bytes([slot])) + op("POP")


def _numbers(wide: int) -> bytes:
    return MARK + b"".join(map(number, range(wide)))


# --- what is wide -------------------------------------------------------------------------------------------

THINGS: dict[str, Callable[[int], bytes]] = {
    "tuple": lambda wide: _numbers(wide) + op("TUPLE"),
    "list": lambda wide: op("EMPTY_LIST") + _numbers(wide) + op("APPENDS"),
    "list of lists": lambda wide: op("EMPTY_LIST") + MARK + op("EMPTY_LIST") * wide + op("APPENDS"),
    "pairs": lambda wide: op("EMPTY_LIST") + MARK + (NONE + NONE + op("TUPLE2")) * wide + op("APPENDS"),
    "dict": lambda wide: (
        op("EMPTY_DICT") + MARK + b"".join(text(f"k{at}") + NONE for at in range(wide)) + op("SETITEMS")
    ),
    "dict of numbers": lambda wide: (
        op("EMPTY_DICT") + MARK + b"".join(number(at) + NONE for at in range(wide)) + op("SETITEMS")
    ),
    "set": lambda wide: op("EMPTY_SET") + _numbers(wide) + op("ADDITEMS"),
    "frozenset": lambda wide: _numbers(wide) + op("FROZENSET"),
    "text": lambda wide: text("x" * wide),
    "astral text": lambda wide: text("\U0001f600" * wide),
    "invisible text": lambda wide: text("\u202e" * wide),
    "bytes": lambda wide: op("BINBYTES", wide.to_bytes(4, "little") + b"x" * wide),
    "integer": lambda wide: op("LONG4", wide.to_bytes(4, "little") + b"\x01" * wide),
    "size": lambda wide: call("torch.Size", _numbers(wide) + op("TUPLE")),
    "OrderedDict of arguments": lambda wide: call("collections.OrderedDict", THINGS["pairs"](wide)),
    "OrderedDict of items": lambda wide: (
        call("collections.OrderedDict")
        + MARK
        + b"".join(text(f"k{at}") + NONE for at in range(wide))
        + op("SETITEMS")
    ),
    "object of attributes": lambda wide: call("a.B") + THINGS["dict"](wide) + op("BUILD"),
    "object of arguments": lambda wide: name("a.B") + THINGS["tuple"](wide) + op("REDUCE"),
    "object of items": lambda wide: call("a.B") + _numbers(wide) + op("APPENDS"),
    "dtype": lambda wide: call("numpy.dtype", text("f" + "9" * wide), op("NEWFALSE"), op("NEWTRUE")),
    "array of objects": lambda wide: (
        call("numpy.core.multiarray._reconstruct", name("numpy.ndarray"), tuple_(number(0)), text("b"))
        + tuple_(
            number(1),
            tuple_(number(wide)),
            call("numpy.dtype", text("O8")),
            op("NEWFALSE"),
            THINGS["list"](wide),
        )
        + op("BUILD")
    ),
    "mesh": lambda wide: (
        call("torch.distributed.device_mesh.DeviceMesh") + THINGS["dict"](wide) + op("BUILD")
    ),
    "name": lambda wide: name("a." + "b" * wide),
    "optimizer": lambda wide: dict_(
        (text("state"), THINGS["dict of numbers"](wide)),
        (text("param_groups"), list_(dict_((text("params"), THINGS["list"](wide))))),
    ),
    "model": lambda wide: dict_(
        *((text(f"p{at}"), tensor(storage(f"{at}", numel=4), 4)) for at in range(max(wide // 16, 1)))
    ),
}

# --- where it stands again and again ------------------------------------------------------------------------


def _calls(function: str) -> Callable[[int], bytes]:
    """Calls of a function, each an object of its own, with the thing as the only argument."""

    def make(often: int) -> bytes:
        one = FUNC + THING + op("TUPLE1") + op("REDUCE")
        return _kept(name(function), 1) + op("EMPTY_LIST") + MARK + one * often + op("APPENDS")

    return make


def _many(one: bytes, head: bytes = b"") -> Callable[[int], bytes]:
    return lambda often: head + op("EMPTY_LIST") + MARK + one * often + op("APPENDS")


def _view(shape: bytes, stride: bytes) -> bytes:
    args = MARK + OTHER + number(0) + shape + stride + op("NEWFALSE") + NONE + op("TUPLE")
    return FUNC + args + op("REDUCE")


_REBUILD = _kept(name("torch._utils._rebuild_tensor_v2"), 1) + _kept(storage(numel=4), 3)
_SCALAR = _kept(name("numpy.core.multiarray.scalar"), 1)
_OBJECT = _kept(name("a.B"), 1)
_PARAMETER = _kept(name("torch._utils._rebuild_parameter_with_state"), 1) + _kept(
    tensor(storage(numel=4), 4), 3
)

PLACES: dict[str, Callable[[int], bytes]] = {
    "items of a list": _many(THING),
    "items of lists": _many(op("EMPTY_LIST") + THING + op("APPEND")),
    "values of a dict": lambda often: (
        op("EMPTY_DICT") + MARK + b"".join(text(f"r{at}") + THING for at in range(often)) + op("SETITEMS")
    ),
    "keys of a dict": lambda often: op("EMPTY_DICT") + MARK + (THING + NONE) * often + op("SETITEMS"),
    "keys of dicts": _many(op("EMPTY_DICT") + THING + NONE + op("SETITEM")),
    "keys of dicts of dicts": _many(
        op("EMPTY_DICT") + THING + op("EMPTY_LIST") + op("EMPTY_LIST") + op("APPEND") + op("SETITEM")
    ),
    "arguments of objects": _calls("a.B"),
    "all arguments of objects": _many(FUNC + THING + op("REDUCE"), _OBJECT),
    "arguments of sizes": _calls("torch.Size"),
    "arguments of devices": _calls("torch.device"),
    "arguments of sets": _calls("builtins.set"),
    "arguments of OrderedDicts": _calls("collections.OrderedDict"),
    "arguments of Counters": _calls("collections.Counter"),
    "arguments of bytearrays": _calls("builtins.bytearray"),
    "arguments of getattr": _calls("builtins.getattr"),
    "arguments of storages": _calls("torch.FloatStorage"),
    "arguments of sparse tensors": _calls("torch._utils._rebuild_sparse_tensor"),
    "arguments of nested tensors": _calls("torch._utils._rebuild_nested_tensor"),
    "arguments of jagged tensors": _calls("torch.nested._internal.nested_tensor._rebuild_njt"),
    "all arguments of tensors": _many(FUNC + THING + op("REDUCE"), _REBUILD),
    "states of objects": _many(FUNC + op("EMPTY_TUPLE") + op("REDUCE") + THING + op("BUILD"), _OBJECT),
    "states of tensors": _many(_view(tuple_(number(4)), tuple_(number(1))) + THING + op("BUILD"), _REBUILD),
    "states of parameters": _many(
        FUNC + MARK + OTHER + op("NEWTRUE") + NONE + THING + op("TUPLE") + op("REDUCE"), _PARAMETER
    ),
    "keyword arguments": _many(FUNC + op("EMPTY_TUPLE") + THING + op("NEWOBJ_EX"), _OBJECT),
    "shapes": _many(_view(THING, tuple_(number(1))), _REBUILD),
    "strides": _many(_view(tuple_(number(1)), THING), _REBUILD),
    "shapes and strides": _many(_view(THING, THING), _REBUILD),
    "dtypes of scalars": _many(FUNC + THING + NONE + op("TUPLE2") + op("REDUCE"), _SCALAR),
    "dropped scalars": lambda often: (
        _SCALAR + (FUNC + THING + NONE + op("TUPLE2") + op("REDUCE") + op("POP")) * often + NONE
    ),
    "dropped sizes": lambda often: (
        _kept(name("torch.Size"), 1) + (FUNC + THING + op("TUPLE1") + op("REDUCE") + op("POP")) * often + NONE
    ),
    "data of scalars": _many(
        FUNC + OTHER + THING + op("TUPLE2") + op("REDUCE"),
        _SCALAR + _kept(call("numpy.dtype", text("f4")), 3),
    ),
    "states of optimizers": _many(
        op("EMPTY_DICT")
        + MARK
        + text("state")
        + THING
        + text("param_groups")
        + op("EMPTY_LIST")
        + op("SETITEMS")
    ),
    "groups of optimizers": _many(
        op("EMPTY_DICT")
        + MARK
        + text("state")
        + op("EMPTY_DICT")
        + text("param_groups")
        + THING
        + op("SETITEMS")
    ),
    "parameters of optimizers": _many(
        op("EMPTY_DICT")
        + MARK
        + text("state")
        + op("EMPTY_DICT")
        + text("param_groups")
        + list_(op("EMPTY_DICT") + text("params") + THING + op("SETITEM"))
        + op("SETITEMS")
    ),
    "names of parameters": _many(
        op("EMPTY_DICT")
        + MARK
        + text("state")
        + op("EMPTY_DICT")
        + text("param_groups")
        + list_(
            op("EMPTY_DICT")
            + MARK
            + text("params")
            + op("EMPTY_LIST")
            + text("param_names")
            + THING
            + op("SETITEMS")
        )
        + op("SETITEMS")
    ),
    "locations": lambda often: (
        op("EMPTY_LIST")
        + MARK
        + b"".join(
            MARK
            + text("storage")
            + name("torch.FloatStorage")
            + text(f"{at}")
            + THING
            + number(4)
            + op("TUPLE")
            + op("BINPERSID")
            for at in range(often)
        )
        + op("APPENDS")
    ),
    "storage keys": _many(
        MARK + text("storage") + OTHER + THING + text("cpu") + number(4) + op("TUPLE") + op("BINPERSID"),
        _kept(name("torch.FloatStorage"), 3),
    ),
    "persistent ids": _many(THING + op("BINPERSID")),
    "functions": _many(THING + op("EMPTY_TUPLE") + op("REDUCE")),
    "values set on other things": lambda often: (
        op("EMPTY_LIST") + (op("EMPTY_LIST") + op("APPEND") + THING + op("BUILD")) * often
    ),
}


def crowd(thing: str, place: str, wide: int, often: int, depth: int = 0) -> bytes:
    """A pickle in which one wide thing stands in so many places, within so many dictionaries."""
    down, up = (op("EMPTY_DICT") + text("a")) * depth, op("SETITEM") * depth
    return stream(proto(4), _kept(THINGS[thing](wide), 2), down, PLACES[place](often), up)
