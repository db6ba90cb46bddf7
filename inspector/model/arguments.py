"""What the names on torch's list make, and whether they take the arguments that a pickle hands them.

Only the arguments that torch and Python themselves write are known to be taken. Whether anything else is,
nobody can tell without the function: it counts as not taken, so that no such file is called safe. Nothing
here depends on the machine: a device counts as one that the machine has.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod

from inspector.containers.persistent_ids import STORAGE_DTYPES
from inspector.containers.rebuilds import JAGGED, JUDGED, REBUILDS, WRAPPER
from inspector.model.tensors.dtypes import ITEMSIZES, is_contiguous, is_whole
from inspector.model.tensors.rebuild import MOST_NAMED, describe_tensor
from inspector.model.tensors.views import TensorFacts
from inspector.pickles.values import (
    BLOB_TYPES,
    Blob,
    BlobKind,
    ByteArray,
    ByteString,
    Call,
    Dict,
    Global,
    PersistentId,
    Set,
    Value,
    present_name,
)

Args = tuple[Value, ...]

# --- what type a value has once torch's restricted unpickler has made it ------------------------------------

UNKNOWN = "?"
"""The type of what nobody can tell: what a call of a name makes that is not on torch's list."""
TENSOR, PARAMETER, STORAGE = "Tensor", "Parameter", "TypedStorage"
UNHASHABLE_KINDS = frozenset({"list", "dict", "set", "OrderedDict", "Counter", "bytearray"})
"""Types without a hash, which can be no key."""

_FUNCTIONS = JUDGED | {"_codecs.encode", "torch.serialization._get_layout"}
_CLASSES = {
    "builtins.bytearray": "bytearray",
    "builtins.complex": "complex",
    "builtins.set": "set",
    "collections.Counter": "Counter",
    "collections.OrderedDict": "OrderedDict",
    "torch.Size": "Size",
    "torch.Tensor": TENSOR,
    "torch.device": "device",
    "torch.nn.parameter.Parameter": PARAMETER,
    "torch.storage.TypedStorage": STORAGE,
    "torch.storage.UntypedStorage": "UntypedStorage",
}
_RESULTS = {
    "_codecs.encode": "bytes",
    "torch.serialization._get_layout": "layout",
    **{one.dotted: PARAMETER for one in REBUILDS if one.parameter},
    **{one.dotted: UNKNOWN for one in REBUILDS if one.name == WRAPPER},
}
_QSCHEMES = frozenset(
    f"torch.per_{what}"
    for what in (
        *("tensor_affine", "tensor_symmetric"),
        *("channel_affine", "channel_symmetric", "channel_affine_float_qparams"),
    )
)
_TYPES: dict[type, str] = {
    type(None): "None",
    ByteString: "str",
    ByteArray: "bytearray",
    Dict: "dict",
    Set: "set",
    PersistentId: STORAGE,
}
_BLOBS: dict[BlobKind, str] = {**BLOB_TYPES, "buffer": "bytearray"}
_STORAGES = frozenset(f"{name}Storage" for name in STORAGE_DTYPES)
_FROM_TYPE = "torch._tensor._rebuild_from_type_v2"


def listed_name(value: Value) -> str:
    """Return the name of a global as torch looks it up; empty for anything else."""
    return value.present if isinstance(value, Global) else ""


@lru_cache(maxsize=1024)
def kind_of_name(name: str) -> str:
    """Return what a listed name stands for: `type`, `function`, `dtype`, `qscheme` or `StorageType`."""
    if name in _FUNCTIONS:
        return "function"
    if name in _CLASSES or _is_tensor_class(name):
        return "type"
    if name in _QSCHEMES:
        return "qscheme"
    module, _, last = name.rpartition(".")
    if module == "torch" and last in ITEMSIZES:
        return "dtype"
    return "StorageType" if module in {"torch", "torch.cuda"} and last in _STORAGES else UNKNOWN


def _is_tensor_class(name: str) -> bool:
    """Return whether a name is that of a class of tensors by element, such as `torch.FloatTensor`."""
    module, _, last = name.rpartition(".")
    if module not in {"torch", "torch.cuda", "torch.sparse", "torch.cuda.sparse"}:
        return False
    return last.endswith("Tensor") and f"{last.removesuffix('Tensor')}Storage" in _STORAGES


def kind_of(value: Value) -> str:
    """Return the type that a value will have, in the words of Python and torch."""
    known = _TYPES.get(type(value))
    if known is not None:
        return known
    if isinstance(value, Call):
        return _kind_of_call(value)
    if isinstance(value, Global):
        return kind_of_name(listed_name(value))
    return _BLOBS[value.kind] if isinstance(value, Blob) else type(value).__name__


def _kind_of_call(call: Call) -> str:
    name = listed_name(call.func)
    found = _CLASSES.get(name) or _RESULTS.get(name)
    if found is not None:
        return found
    if name == _FROM_TYPE:
        new_type = call.args[1:2] if isinstance(call.args, tuple) else ()
        return _CLASSES.get(listed_name(new_type[0]), UNKNOWN) if new_type else UNKNOWN
    return TENSOR if name in _FUNCTIONS or _is_tensor_class(name) else UNKNOWN


# --- NumPy's random generators ------------------------------------------------------------------------------
#
# The makers are functions that call what they are handed: `__generator_ctor(name, maker)` returns
# `Generator(maker(name))`. So they count as harmless only with the arguments that NumPy writes, see
# `numpy/random/_pickle.py` and the `__reduce__` of its classes, in every release since 1.17. torch sets a
# state on objects of listed types alone, and the file need not name that of the object which such a call
# returns.

_PICKLE = "numpy.random._pickle."
_BIT_MAKER, _SEED_MAKER = (
    f"{_PICKLE}__bit_generator_ctor",
    "numpy.random.bit_generator.__pyx_unpickle_SeedSequence",
)
_SEED = "numpy.random.bit_generator.SeedSequence"
_BIT_TYPES = {
    "MT19937": "numpy.random._mt19937.MT19937",
    "PCG64": "numpy.random._pcg64.PCG64",
    "PCG64DXSM": "numpy.random._pcg64.PCG64DXSM",
    "Philox": "numpy.random._philox.Philox",
    "SFC64": "numpy.random._sfc64.SFC64",
}
_OF_BITS = {
    f"{_PICKLE}__generator_ctor": "numpy.random._generator.Generator",
    f"{_PICKLE}__randomstate_ctor": "numpy.random.mtrand.RandomState",
}
RANDOM_TYPES = frozenset({*_BIT_TYPES.values(), *_OF_BITS.values(), _SEED})
"""The classes."""


def random_type(call: Call) -> str | None:
    """Return the class of the random generator that a call makes; None for any other call."""
    name = _dotted(call.func)
    args = call.args if isinstance(call.args, tuple) else ()
    if name == _BIT_MAKER:
        return _bit_type(args[0]) if args else _BIT_TYPES["MT19937"]
    return _SEED if name == _SEED_MAKER else _OF_BITS.get(name)


def _bit_type(value: Value) -> str | None:
    if isinstance(value, str):
        return _BIT_TYPES.get(value)
    name = _dotted(value)
    return name if name in _BIT_TYPES.values() else None


def _takes_bits(args: Args) -> bool:
    return not args or (len(args) == 1 and _bit_type(args[0]) is not None)


def _takes_generator(args: Args) -> bool:
    if not args:
        return True
    first, *others = args
    is_made = isinstance(first, Call) and _dotted(first.func) == _BIT_MAKER
    is_known = is_made or _bit_type(first) is not None
    return is_known and [_dotted(other) for other in others] in ([], [_BIT_MAKER])


def _takes_seed(args: Args) -> bool:
    if len(args) != 3:
        return False
    made, checksum, state = args
    return _dotted(made) == _SEED and type(checksum) is int and (state is None or isinstance(state, tuple))


_RANDOM_RULES: dict[str, Callable[[Args], bool]] = {
    _BIT_MAKER: _takes_bits,
    _SEED_MAKER: _takes_seed,
    **dict.fromkeys(_OF_BITS, _takes_generator),
}


def _dotted(value: Value) -> str:
    return value.dotted if isinstance(value, Global) else ""


# --- the arguments that are written -------------------------------------------------------------------------

# Where common functions are told whether gradients are wanted, and how many arguments they have.
_PLAIN = {one.name: (one.grad_at, one.arity) for one in REBUILDS if one.common}
_VIEW = "TypedStorage int tuple tuple"
_DATA = "Tensor|Parameter bool *"
# By name, the types at each place, `*` for any; where there are several ways, one after the other. What a
# name makes that the user's list decides fits everywhere.
_WRITTEN = {
    "_codecs.encode": ("str str",),
    "builtins.bytearray": ("", "bytes", "str str"),
    "builtins.complex": ("float float",),
    "builtins.set": ("", "list"),
    "collections.Counter": ("", "dict"),
    "collections.OrderedDict": ("", "list"),
    "torch.Size": ("", "tuple|list"),
    "torch.Tensor": ("",),
    "torch.device": ("str", "str int"),
    "torch.nn.parameter.Parameter": ("", "Tensor bool"),
    "torch.serialization._get_layout": ("str",),
    "torch.sparse.FloatTensor": ("Tensor Tensor Size",),
    "torch.FloatTensor": ("",),
    "torch._utils._rebuild_tensor": (_VIEW,),
    "torch._utils._rebuild_tensor_v2": (f"{_VIEW} bool *", f"{_VIEW} bool * dict|None"),
    "torch._utils._rebuild_tensor_v3": (f"{_VIEW} bool * dtype", f"{_VIEW} bool * dtype dict|None"),
    "torch._utils._rebuild_parameter": (_DATA,),
    "torch._utils._rebuild_parameter_with_state": (f"{_DATA} *",),
    "torch._utils._rebuild_qtensor": (f"{_VIEW} tuple bool *",),
    "torch._utils._rebuild_sparse_tensor": ("layout tuple",),
    "torch._utils._rebuild_nested_tensor": ("Tensor Tensor Tensor Tensor",),
    "torch._utils._rebuild_meta_tensor_no_storage": ("dtype tuple tuple bool",),
    "torch._utils._rebuild_wrapper_subclass": ("? dtype tuple tuple int layout device bool",),
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": ("Tensor dtype str bool",),
    "torch._utils._rebuild_device_tensor_from_numpy": ("? dtype str bool",),
    _FROM_TYPE: ("function|? type|? tuple *",),
}
_SHAPES = {
    name: [[frozenset(place.split("|")) for place in way.split()] for way in ways]
    for name, ways in _WRITTEN.items()
}
_JAGGED = f"torch.nested._internal.nested_tensor.{JAGGED}"
_MOST = 1 << 63
_MOST_DIMENSIONS = 128
_DEVICE_TYPES = (
    "cpu|cuda|ipu|xpu|mkldnn|opengl|opencl|ideep|hip|ve|fpga|maia|xla|lazy|vulkan|mps|meta"
    "|hpu|mtia|privateuseone"
)
_DEVICE = re.compile(rf"(?:{_DEVICE_TYPES})(:(?:0|[1-9][0-9]{{0,8}}))?")
_COO, _COMPRESSED = (
    "torch.sparse_coo",
    frozenset(f"torch.sparse_{name}" for name in ("csr", "csc", "bsr", "bsc")),
)
_LAYOUTS = _COMPRESSED | {_COO, "torch.strided", "torch._mkldnn", "torch.jagged"}


def may_take(name: str, call: Call) -> bool:
    """Return whether a call of a listed name is one that torch or Python writes; others may take anything."""
    name, args = present_name(name), call.args
    kind = kind_of_name(name)
    if kind == UNKNOWN:
        rule = _RANDOM_RULES.get(name)
        return isinstance(args, list | tuple) and (rule is None or (isinstance(args, tuple) and rule(args)))
    if not isinstance(args, tuple) or (kind == "function" and call.kind == "newobj"):
        return False
    entry, dtype = name, ""
    if _is_tensor_class(name):
        entry = "torch.sparse.FloatTensor" if ".sparse." in name else "torch.FloatTensor"
        dtype = STORAGE_DTYPES[name.rpartition(".")[2].removesuffix("Tensor")][0]
    kinds = [kind_of(arg) for arg in args]
    if not any(_fits(kinds, way) for way in _SHAPES.get(entry, ())):
        return False
    if entry == "torch.sparse.FloatTensor":
        return _takes_sparse_parts(dtype, args)
    value_rule = _RULES.get(entry)
    return value_rule is None or value_rule(args)


def _fits(kinds: list[str], way: list[frozenset[str]]) -> bool:
    return len(kinds) == len(way) and all(
        kind in place or kind == UNKNOWN or "*" in place for kind, place in zip(kinds, way, strict=True)
    )


def is_plain(call: Call, dtype: str) -> bool:
    """Return quickly whether a call is that of nearly every tensor, which torch takes if its view is true."""
    func, args = call.func, call.args
    if type(func) is not Global or not func.common or type(args) is not tuple:
        return False
    place, count = _PLAIN.get(func.name, (0, -1))
    if len(args) != count or not call.state is call.items is call.pairs is None:
        return False
    if place < 0:  # `_rebuild_tensor` is not told
        return type(args[1]) is int
    wants = args[place]
    if type(wants) is not bool or (wants and _has_no_gradient(dtype)):
        return False
    if func.name == "_rebuild_parameter":
        return type(args[0]) is Call and is_plain(args[0], dtype)
    return type(args[1]) is int and not (wants and func.name == "_rebuild_tensor_v3")


def _facts_of(value: Value) -> TensorFacts | None:
    return describe_tensor(value) if isinstance(value, Call | PersistentId) else None


def _has_no_gradient(dtype: str) -> bool:
    return is_whole(dtype) or dtype.startswith(("qint", "quint"))


def may_be_attributes(state: Value) -> bool:
    """Return whether a value is attributes by their names, or nothing."""
    if isinstance(state, Dict):
        return all(isinstance(key, str) for key, _ in state.pairs)
    return kind_of(state) in {"None", UNKNOWN}


def _may_be_state(state: Value) -> bool:
    """Return whether torch's `_set_obj_state` sets a state: attributes, or two dictionaries of them."""
    if isinstance(state, tuple):
        return len(state) == 2 and all(map(may_be_attributes, state))
    return may_be_attributes(state)


# --- Python's own types -------------------------------------------------------------------------------------


_ATOMS = frozenset({type(None), bool, int, float, str, bytes})  # told first: there can be millions


def _is_hashable(value: Value) -> bool:
    if type(value) in _ATOMS:
        return True
    if isinstance(value, tuple):
        is_flat = len(value) <= _MOST_DIMENSIONS and not any(isinstance(item, tuple) for item in value)
        return is_flat and all(map(_is_hashable, value))
    return (isinstance(value, Set) and value.frozen) or kind_of(value) not in UNHASHABLE_KINDS


def _takes_members(args: Args) -> bool:
    return not args or not isinstance(args[0], list) or all(map(_is_hashable, args[0]))


def _takes_pairs(args: Args) -> bool:
    """Check what Python 2 makes an OrderedDict of: a list of lists of two."""
    items = args[0] if args and isinstance(args[0], list) else ()
    return all(
        isinstance(item, list | tuple)
        and len(item) == 2
        and (type(item[0]) in _ATOMS or _is_hashable(item[0]))
        for item in items
    )


def _takes_text(args: Args) -> bool:
    """Check how bytes are written in protocol 2; a text too long to be looked at is believed."""
    if len(args) < 2:
        return True
    text, encoding = args
    return encoding in ("latin1", "latin-1") and (not isinstance(text, str) or _is_latin(text))


@lru_cache(maxsize=16)
def _is_latin(text: str) -> bool:
    return text.isascii() or max(text) <= "\xff"


# --- torch's ------------------------------------------------------------------------------------------------


def _takes_device(args: Args) -> bool:
    match = _DEVICE.fullmatch(args[0]) if isinstance(args[0], str) else None
    if match is None or len(args) == 1:
        return match is not None
    return match[1] is None and (not isinstance(args[1], int) or 0 <= args[1] < _MOST)


def are_sizes(*values: Value) -> bool:
    """Return whether values that are sequences are whole numbers, as sizes and strides are."""
    return all(
        not isinstance(value, list | tuple)
        or (
            len(value) <= _MOST_DIMENSIONS
            and all(type(size) is int and -_MOST <= size < _MOST for size in value)
        )
        for value in values
    )


def _takes_v2(args: Args) -> bool:
    facts = _facts_of(args[0])
    wants = args[4] is True and facts is not None and _has_no_gradient(facts.dtype)
    return not wants and are_sizes(*args[2:4]) and all(map(may_be_attributes, args[6:]))


def _takes_v3(args: Args) -> bool:
    # torch itself refuses to set the storage of a tensor that was made with requires_grad.
    return args[4] is not True and are_sizes(*args[2:4]) and all(map(may_be_attributes, args[7:]))


def _takes_meta(args: Args) -> bool:
    dtype, sizes, steps, wants = args
    name = dtype.name if isinstance(dtype, Global) else ""
    if name.startswith("q") or (wants is True and _has_no_gradient(name)):
        return False
    is_even = not (isinstance(sizes, tuple) and isinstance(steps, tuple)) or len(sizes) == len(steps)
    return is_even and are_sizes(sizes, steps)


def _takes_data(args: Args) -> bool:
    """Check a parameter: whole numbers have no gradient."""
    facts = _facts_of(args[0]) if args else None
    return facts is None or not (args[1] is True and _has_no_gradient(facts.dtype))


def _takes_quantizer(args: Args) -> bool:
    facts, sizes, params = _facts_of(args[0]), args[2], args[4]
    if facts is None or not facts.dtype.startswith("q") or args[5] is True:
        return False
    if (
        not isinstance(params, tuple)
        or not params
        or not isinstance(sizes, tuple)
        or not are_sizes(*args[2:4])
    ):
        return False
    scheme, *rest = params
    if listed_name(scheme) == "torch.per_tensor_affine":
        return list(map(kind_of, rest)) == ["float", "int"]
    is_channels = listed_name(scheme) in {
        "torch.per_channel_affine",
        "torch.per_channel_affine_float_qparams",
    }
    if not is_channels or len(rest) != 3:
        return False
    scales, zero_points, axis = rest
    if type(axis) is not int or not 0 <= axis < len(sizes):
        return False
    steps = _facts_of(scales)
    is_whole_step = steps is not None and is_whole(steps.dtype)
    return not is_whole_step and all(_length(part) in {None, sizes[axis]} for part in (scales, zero_points))


def _length(value: Value) -> int | None:
    """Return how many elements a list or tensor has; None where nobody knows, -1 for anything else."""
    if isinstance(value, list):
        return len(value)
    facts = _facts_of(value)
    if facts is not None:
        return prod(facts.shape)
    return None if kind_of(value) == UNKNOWN else -1


def _takes_sparse(args: Args) -> bool:
    layout, data = args
    name = (
        layout.args[0]
        if isinstance(layout, Call) and isinstance(layout.args, tuple) and layout.args
        else None
    )
    if not isinstance(data, tuple) or name not in {_COO, *_COMPRESSED}:
        return False
    parts = 2 if name == _COO else 3
    if len(data) not in {4, parts + 1} or not all(
        kind_of(part) in {TENSOR, UNKNOWN} for part in data[:parts]
    ):
        return False
    sizes = _sizes_of(data[parts])
    return sizes is not None and (name != _COO or _fit_together(sizes, *data[:parts], *data[3:]))


def _sizes_of(value: Value) -> Sequence[Value] | None:
    if isinstance(value, Call) and listed_name(value.func) == "torch.Size":
        value = value.args[0] if isinstance(value.args, tuple) and value.args else ()
    return value if isinstance(value, list | tuple) and are_sizes(value) else None


def _fit_together(sizes: Sequence[Value], indices: Value, values: Value, is_coalesced: Value = None) -> bool:
    if kind_of(is_coalesced) not in {"bool", "None"}:
        return False
    where, what = _facts_of(indices), _facts_of(values)
    if where is None or what is None:
        return where is None and what is None
    if len(where.shape) != 2 or where.shape[1:] != (what.shape or (1,))[:1]:
        return False
    return tuple(sizes[where.shape[0] :]) == what.shape[1:] and len(sizes) == where.shape[0] + len(
        what.shape[1:]
    )


def _takes_sparse_parts(dtype: str, args: Args) -> bool:
    indices, values, size = _facts_of(args[0]), _facts_of(args[1]), _sizes_of(args[2])
    if indices is None or values is None or size is None:
        return False
    is_typed = indices.dtype == "int64" and values.dtype == dtype
    return is_typed and bool(values.shape) and _fit_together(size, args[0], args[1])


def _takes_nested(args: Args) -> bool:
    buffer, *parts = map(_facts_of, args)
    if buffer is not None and len(buffer.shape) != 1:
        return False
    told = [
        (facts, dimensions) for facts, dimensions in zip(parts, (2, 2, 1), strict=True) if facts is not None
    ]
    if any(facts.dtype != "int64" or len(facts.shape) != dimensions for facts, dimensions in told):
        return False
    if len({facts.shape[0] for facts, _ in told}) > 1:
        return False
    tables = [facts for facts, dimensions in told if dimensions == 2]
    return len({facts.shape for facts in tables}) < 2 and all(
        facts.stride is None
        or (len(facts.stride) == len(facts.shape) and is_contiguous(facts.shape, facts.stride))
        for facts in tables
    )


def _takes_cast(args: Args) -> bool:
    dtype = args[1].name if isinstance(args[1], Global) else ""
    return not dtype.startswith("q") and not (args[3] is True and _has_no_gradient(dtype))


def _rebuilds_type(args: Args) -> bool:
    """Check `_rebuild_from_type_v2`: a function, the class of its result, its arguments, a state."""
    function, new_type, given, state = args
    name = listed_name(function)
    if not isinstance(given, tuple) or name == _FROM_TYPE:
        return False
    # None of the functions of torch's list makes anything but tensors when it is called with tensors.
    made = Call(function, given, "reduce")
    is_made = (name in JUDGED and may_take(name, made)) or (name == _JAGGED and _are_named(given))
    is_type = listed_name(new_type) in {"torch.Tensor", "torch.nn.parameter.Parameter"}
    return is_made and (is_type or kind_of(new_type) == UNKNOWN) and _may_be_state(state)


def _are_named(given: Args) -> bool:
    pairs = given[0].pairs if len(given) == 1 and isinstance(given[0], Dict) else None
    return pairs is not None and len(pairs) <= MOST_NAMED and all(type(key) is str for key, _ in pairs)


_RULES: dict[str, Callable[[Args], bool]] = {
    "_codecs.encode": _takes_text,
    "builtins.bytearray": _takes_text,
    "builtins.set": _takes_members,
    "collections.OrderedDict": _takes_pairs,
    "torch.Size": lambda args: are_sizes(*args),
    "torch.device": _takes_device,
    "torch.nn.parameter.Parameter": _takes_data,
    "torch.serialization._get_layout": lambda args: args[0] in _LAYOUTS,
    "torch._utils._rebuild_tensor": lambda args: are_sizes(*args[2:4]),
    "torch._utils._rebuild_tensor_v2": _takes_v2,
    "torch._utils._rebuild_tensor_v3": _takes_v3,
    "torch._utils._rebuild_parameter": _takes_data,
    "torch._utils._rebuild_parameter_with_state": lambda args: _takes_data(args) and _may_be_state(args[3]),
    "torch._utils._rebuild_qtensor": _takes_quantizer,
    "torch._utils._rebuild_sparse_tensor": _takes_sparse,
    "torch._utils._rebuild_nested_tensor": _takes_nested,
    "torch._utils._rebuild_meta_tensor_no_storage": _takes_meta,
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _takes_cast,
    _FROM_TYPE: _rebuilds_type,
}
