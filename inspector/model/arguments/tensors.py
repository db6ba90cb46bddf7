"""Which values the callables that make tensors and storages take, where their types alone do not decide.

Each rule gets arguments whose number and types are right, see `arguments`. Where a tensor lies in its storage
is looked at in `model.tensors.views`, whatever makes it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from inspector.model.arguments.kinds import PARAMETER, STORAGE, TENSOR, UNKNOWN, kind_of, listed_name
from inspector.model.arguments.values import Args, items_of
from inspector.model.tensors.dtypes import is_contiguous, is_whole
from inspector.model.tensors.numpy_arrays import describe_bytes
from inspector.model.tensors.rebuild import describe_tensor
from inspector.model.tensors.views import TensorFacts
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value

_MOST = 1 << 63
_MAPPINGS = frozenset({"dict", "OrderedDict", "Counter"})
_TENSORS = frozenset({TENSOR, PARAMETER})
_NUMBERS = frozenset({"int", "float", "bool"})
_SIZES = frozenset({"tuple", "list", "Size", "None", UNKNOWN})
_PAIR, _MOST_NESTED = 2, 8
_COO, _COMPRESSED = (
    "torch.sparse_coo",
    frozenset(f"torch.sparse_{name}" for name in ("csr", "csc", "bsr", "bsc")),
)


def facts_of(value: Value) -> TensorFacts | None:
    """Return what is known of a tensor before it is made; None for anything else."""
    return describe_tensor(value) if isinstance(value, Call | PersistentId) else None


def is_empty(value: Value) -> bool:
    """Return whether Python takes a value for false; of a tensor only its storage could tell."""
    if isinstance(value, Dict):
        return not value.pairs
    if isinstance(value, Set):
        return not value.items
    given = describe_bytes(value)
    if given is not None:
        return not given.nbytes
    if isinstance(value, Call):
        is_filled = bool(value.pairs) or bool(
            isinstance(value.args, tuple) and value.args and items_of(value)
        )
        return not is_filled and kind_of(value) in _MAPPINGS | {"set", "Size", "bytearray"}
    return not isinstance(value, Global | PersistentId) and not value


def may_be_state(state: Value) -> bool:
    """Return whether `_set_obj_state` of torch sets a state: a dictionary of attributes, or two of them."""
    if isinstance(state, tuple):
        return len(state) == _PAIR and all(map(may_be_attributes, state))
    return may_be_attributes(state)


def may_be_attributes(value: Value) -> bool:
    """Return whether a value is attributes by their names, or nothing."""
    facts = facts_of(value)
    if facts is not None:
        return _numel(facts) <= 1  # whether that is zero, only the bytes could tell
    if is_empty(value) or kind_of(value) in {UNKNOWN, TENSOR}:
        return True
    return kind_of(value) in _MAPPINGS and all(kind_of(key) == "str" for key in items_of(value))


# --- views of a storage -------------------------------------------------------------------------------------


def is_view(args: Args) -> bool:
    """Return whether arguments are (a storage, an offset, sizes, strides), and maybe more."""
    return _is_whole_tensor(args[1]) and all(kind_of(arg) in _SIZES and _are_sizes(arg) for arg in args[2:4])


def _is_whole_tensor(value: Value) -> bool:
    """Return whether a value can stand for an integer if it is a tensor: it has one, whole element."""
    facts = facts_of(value)
    return facts is None or (is_whole(facts.dtype) and facts.dtype != "bool" and _numel(facts) == 1)


def _are_sizes(value: Value) -> bool:
    sizes = items_of(value)
    return not (sizes and isinstance(sizes[0], bool)) and all(map(_is_size, sizes))


def _is_size(value: Value) -> bool:
    if kind_of(value) in _TENSORS:
        return _is_whole_tensor(value)
    return (
        not isinstance(value, int) or -_MOST <= value < _MOST if kind_of(value) in {"int", "bool"} else False
    )


def _numel(facts: TensorFacts) -> int:
    return prod(facts.shape)


def _takes_v2(args: Args) -> bool:
    facts = facts_of(args[0])
    if args[4] is True and facts is not None and has_no_gradient(facts.dtype):
        return False
    return is_view(args) and all(map(may_be_attributes, args[6:]))


def _takes_v3(args: Args) -> bool:
    # torch itself refuses to set the storage of a tensor that was made with requires_grad.
    return is_view(args) and args[4] is not True and all(map(may_be_attributes, args[7:]))


def has_no_gradient(dtype: str) -> bool:
    """Return whether elements are such that torch counts no gradients of them."""
    return is_whole(dtype) or dtype.startswith(("qint", "quint"))


def _takes_meta(args: Args) -> bool:
    dtype = args[0].name if isinstance(args[0], Global) else ""
    if dtype.startswith("q") or (args[3] is True and has_no_gradient(dtype)):
        return False
    sizes, strides = items_of(args[1]), items_of(args[2])
    return len(sizes) == len(strides) and _are_sizes(args[1]) and _are_sizes(args[2])


# --- tensors made of tensors --------------------------------------------------------------------------------


def _takes_data(args: Args) -> bool:
    """Check a parameter: whole numbers have no gradient, and it has one unless it is told otherwise."""
    wants = args[1] if len(args) > 1 else True
    facts = facts_of(args[0]) if args else None
    is_flag = isinstance(wants, bool) or kind_of(wants) == UNKNOWN
    return is_flag and not (wants is True and facts is not None and has_no_gradient(facts.dtype))


def _takes_data_with_state(args: Args) -> bool:
    return _takes_data(args) and may_be_state(args[3])


def _takes_quantizer(args: Args) -> bool:
    facts, params = facts_of(args[0]), args[4]
    if facts is None or not facts.dtype.startswith("q") or args[5] is True or not isinstance(params, tuple):
        return False
    scheme = listed_name(params[0]) if params else ""
    if not is_view(args) or len(items_of(args[2])) != len(items_of(args[3])):
        return False
    if scheme == "torch.per_tensor_affine":
        return len(params) == 3 and kind_of(params[1]) in _NUMBERS and kind_of(params[2]) in {"int", "bool"}
    is_channels = scheme in {"torch.per_channel_affine", "torch.per_channel_affine_float_qparams"}
    return is_channels and len(params) == 4 and _takes_channels(params, items_of(args[2]))


def _takes_channels(params: Args, sizes: Sequence[Value]) -> bool:
    _, scales, zero_points, axis = params
    if not isinstance(axis, int) or not 0 <= axis < len(sizes):
        return False
    steps = facts_of(scales)
    if steps is not None and is_whole(steps.dtype):
        return False
    return all(_length(part) in {None, sizes[axis]} for part in (scales, zero_points))


def _length(value: Value) -> int | None:
    """Return how many elements a list or tensor has; None where nobody knows, -1 for anything else."""
    if isinstance(value, list):
        return len(value)
    facts = facts_of(value)
    if facts is not None:
        return _numel(facts)
    return None if kind_of(value) in _TENSORS | {UNKNOWN} else -1


def _takes_sparse(args: Args) -> bool:
    layout, data = args
    name = (
        layout.args[0]
        if isinstance(layout, Call) and isinstance(layout.args, tuple) and layout.args
        else None
    )
    if not isinstance(data, tuple) or name not in {_COO, *_COMPRESSED}:
        return False
    counts = {3, 4} if name == _COO else {4}
    parts = 2 if name == _COO else 3
    if len(data) not in counts or not all(kind_of(part) in _TENSORS | {UNKNOWN} for part in data[:parts]):
        return False
    if kind_of(data[parts]) not in {"tuple", "list", "Size"} or not _are_sizes(data[parts]):
        return False
    return name != _COO or _fit_together(*data)


def _fit_together(indices: Value, values: Value, size: Value, is_coalesced: Value = None) -> bool:
    """Return whether indices, values and size are those of one tensor of coordinates."""
    where, what, sizes = facts_of(indices), facts_of(values), tuple(items_of(size))
    if kind_of(is_coalesced) not in {"bool", "None", UNKNOWN}:
        return False
    if where is None or what is None:
        return True
    dense = (what.shape or (1,))[1:]
    return (
        len(where.shape) == _PAIR
        and where.shape[1:] == (what.shape or (1,))[:1]
        and len(sizes) == where.shape[0] + len(dense)
        and all(
            type(one) is not int or one == other
            for one, other in zip(sizes[where.shape[0] :], dense, strict=True)
        )
    )


def _takes_nested(args: Args) -> bool:
    parts, buffer = [facts_of(arg) for arg in args[1:]], facts_of(args[0])
    if buffer is not None and len(buffer.shape) != 1:
        return False
    if len({facts.shape[:1] for facts in parts if facts is not None}) > 1:
        return False
    known = [facts for facts in parts[:_PAIR] if facts is not None]
    if len({facts.shape for facts in known}) > 1 or not all(
        facts.stride is None
        or (len(facts.stride) == len(facts.shape) and is_contiguous(facts.shape, facts.stride))
        for facts in known
    ):
        return False
    return all(
        facts is None or (facts.dtype == "int64" and len(facts.shape) == dimensions)
        for facts, dimensions in zip(parts, (2, 2, 1), strict=True)
    )


def _takes_cast(args: Args) -> bool:
    dtype = args[1]
    is_quantized = isinstance(dtype, Global) and dtype.name.startswith("q")
    facts = facts_of(args[0])
    whole = dtype.name if isinstance(dtype, Global) else "" if facts is None else facts.dtype
    return not is_quantized and not (args[3] is True and has_no_gradient(whole))


# --- classes ------------------------------------------------------------------------------------------------


def takes_elements_of(dtype: str, args: Args) -> bool:
    """Check the class of tensors of an element type, empty for any: sizes, numbers, a tensor or a storage."""
    if len(args) != 1:
        return all(map(_is_length, args))
    value = args[0]
    kind = kind_of(value)
    facts = facts_of(value)
    if kind == STORAGE or kind in _TENSORS:
        is_of_type = facts is None or facts.dtype == (dtype or "float32")
        return is_of_type or (not dtype and kind != STORAGE)
    return _is_length(value) if kind == "int" else _is_data(value)


def takes_sparse_parts(dtype: str, args: Args) -> bool:
    """Check the class of sparse tensors of an element type: sizes, or indices, values and maybe a size."""
    first = facts_of(args[0]) if args else None
    if first is None or len(args) == 1:
        return all(map(_is_length, args))
    values = facts_of(args[1])
    if first.dtype != "int64" or values is None or not values.shape:
        return False
    return values.dtype == dtype and len(first.shape) == _PAIR and all(items_of(arg) for arg in args[2:])


def _is_length(value: Value) -> bool:
    return 0 <= value < _MOST if isinstance(value, int) else _is_whole_tensor(value)


def _is_data(value: Value, room: int = _MOST_NESTED) -> bool:
    """Return whether a value is numbers, or sequences of as many numbers each."""
    kind = kind_of(value)
    if kind in _NUMBERS:
        return not isinstance(value, int) or -_MOST <= value < _MOST
    if kind in {"list", "tuple", "Size", "bytearray"}:
        return room > 0 and all(_is_data(item, room - 1) for item in items_of(value))
    return kind in _TENSORS | {UNKNOWN}


def _takes_bytes(args: Args) -> bool:
    if not args or kind_of(args[0]) in {"bytes", "bytearray", UNKNOWN}:
        return True
    value = args[0]
    if isinstance(value, int):
        return _is_length(value)
    if kind_of(value) in _TENSORS | {STORAGE}:
        facts = facts_of(value)
        is_flat = kind_of(value) == STORAGE or facts is None or not facts.shape
        return is_flat and (facts is None or is_whole(facts.dtype))
    return all(isinstance(item, int) and -_MOST <= item < _MOST for item in items_of(value))


def _takes_elements(args: Args) -> bool:
    if not args or isinstance(args[0], int):
        return all(map(_is_length, args))
    return _is_data(args[0])


TENSOR_RULES: dict[str, Callable[[Args], bool]] = {
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": _takes_cast,
    "torch._utils._rebuild_meta_tensor_no_storage": _takes_meta,
    "torch._utils._rebuild_nested_tensor": _takes_nested,
    "torch._utils._rebuild_parameter": _takes_data,
    "torch._utils._rebuild_parameter_with_state": _takes_data_with_state,
    "torch._utils._rebuild_qtensor": _takes_quantizer,
    "torch._utils._rebuild_sparse_tensor": _takes_sparse,
    "torch._utils._rebuild_tensor": is_view,
    "torch._utils._rebuild_tensor_v2": _takes_v2,
    "torch._utils._rebuild_tensor_v3": _takes_v3,
    "torch.nn.parameter.Parameter": _takes_data,
    "torch.storage.TypedStorage": _takes_elements,
    "torch.storage.UntypedStorage": _takes_bytes,
}
"""By callable, what looks at the values."""
