"""Tensors as pickles describe them: which rebuild function, and what its arguments mean.

The functions are those of torch's `torch/_utils.py` and `torch/_tensor.py` (`Tensor.__reduce_ex__`), of
every generation since 0.4. None is called; `describe_tensor` reads their arguments.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.model.dtypes import ITEMSIZES, known_dtype, stored_nbytes
from inspector.pickles.values import Call, Dict, Global, PersistentId, Value

_MOST_BITS = 63
_MOST_DIMENSIONS = 4096


@dataclass(frozen=True, slots=True)
class TensorFacts:
    """What a rebuild call says of its tensor.

    Attributes:
        device: The device's text.
        dtype: torch's name of the element type.
        shape: Sizes by dimension.
        stride: Steps by dimension in elements, or None.
        offset: First element in the storage, or None.
        layout: torch's name of the layout.
        requires_grad: Whether gradients were asked for.
        storage: The storage viewed, or None.
        parts: Tensors it is made of, by torch's names for them.
        state: Attributes set on it, to be looked through for more tensors.
        is_parameter: Whether it was an `nn.Parameter`.
        problem: Why the description cannot be true, or None.
    """

    device: str
    dtype: str
    shape: tuple[int, ...]
    stride: tuple[int, ...] | None = None
    offset: int | None = None
    layout: str = "strided"
    requires_grad: bool = False
    storage: StorageId | None = None
    parts: tuple[tuple[str, Value], ...] = ()
    state: Value = None
    is_parameter: bool = False
    problem: str | None = None

    @property
    def numel(self) -> int:
        """Number of elements."""
        count = 1
        for size in self.shape:
            count *= size
        return count

    @property
    def nbytes(self) -> int:
        """Elements times item size."""
        return self.numel * ITEMSIZES.get(self.dtype, 1)


def describe_tensor(value: Value) -> TensorFacts | None:
    """Read a value as a tensor or bare storage; None if it is neither."""
    if type(value) is Call:
        return _describe_call(value)
    if type(value) is PersistentId:
        storage = parse_storage_id(value)
        return None if storage is None else _bare_storage(storage)
    return None


def looks_like_tensor(value: Value) -> bool:
    """Say quickly whether `describe_tensor` is likely to know a value, without reading its arguments."""
    if type(value) is Call and type(value.func) is Global:
        return value.func.name in _REBUILDS and value.func.module.startswith("torch")
    return type(value) is PersistentId


def device_text(value: Value) -> str | None:
    """Read a `torch.device(...)` call or a device text; None if it is neither."""
    if isinstance(value, str):
        return value
    if not is_call_to(value, "torch", "device") or not isinstance(value, Call):
        return None
    args = value.args if isinstance(value.args, tuple) else ()
    if not args or not isinstance(args[0], str):
        return None
    return f"{args[0]}:{args[1]}" if len(args) > 1 and isinstance(args[1], int) else args[0]


def is_call_to(value: Value, module: str, name: str) -> bool:
    """Say whether a value is a call of that global."""
    if not isinstance(value, Call) or not isinstance(value.func, Global):
        return False
    return value.func.name == name and value.func.module == module


def _bare_storage(storage: StorageId) -> TensorFacts:
    return TensorFacts(storage.location, storage.dtype, (storage.numel,), layout="storage", storage=storage)


def _describe_call(call: Call) -> TensorFacts | None:
    func, args = call.func, call.args
    if type(func) is not Global or type(args) is not tuple or not func.module.startswith("torch"):
        return None
    rebuild = _REBUILDS.get(func.name)
    if rebuild is not None:
        try:
            return rebuild(args)
        except (IndexError, TypeError, ValueError, RecursionError):
            return None  # arguments of another generation or of a deceiver: shown as an object instead
    if func.name.endswith("Tensor"):
        return _old_tensor(call)
    return None


# --- one function for each rebuild function: arguments in, facts out --------------------------------------


def _storage_of(value: Value) -> StorageId:
    storage = parse_storage_id(value) if type(value) is PersistentId else None
    if storage is None:
        raise TypeError("no storage")
    return storage.viewed()


def _tensor(args: tuple[Value, ...]) -> TensorFacts:
    storage = _storage_of(args[0])
    requires_grad = len(args) > 4 and args[4] is True
    return _strided(storage, storage.dtype, args[1], args[2], args[3], requires_grad=requires_grad)


def _tensor_v3(args: tuple[Value, ...]) -> TensorFacts:
    storage = _storage_of(args[0])
    return _strided(storage, _dtype(args[6]), args[1], args[2], args[3], requires_grad=args[4] is True)


def _strided(
    storage: StorageId, dtype: str, offset: Value, size: Value, stride: Value, *, requires_grad: bool
) -> TensorFacts:
    shape, problem = _sizes(size)
    steps, stride_problem = _sizes(stride)
    if type(offset) is not int or offset.bit_length() > _MOST_BITS:
        offset, problem = 0, "its offset is no sensible number"
    problem = problem or stride_problem or _misfit(storage, dtype, offset, shape, steps)
    return TensorFacts(
        storage.location, dtype, shape, steps, offset, requires_grad=requires_grad, storage=storage, problem=problem
    )


def _sizes(value: Value) -> tuple[tuple[int, ...], str | None]:
    if is_call_to(value, "torch", "Size") and isinstance(value, Call) and isinstance(value.args, tuple) and value.args:
        value = value.args[0]
    if type(value) is not tuple and type(value) is not list:
        raise TypeError("no sizes")
    if len(value) > _MOST_DIMENSIONS:
        return (), f"it claims {len(value):,} dimensions"
    sizes = tuple(size for size in value if type(size) is int and 0 <= size and size.bit_length() <= _MOST_BITS)
    if len(sizes) < len(value):
        return (), "its sizes or strides are not all sensible numbers"
    return sizes, None


def _misfit(
    storage: StorageId, dtype: str, offset: int, shape: tuple[int, ...], stride: tuple[int, ...]
) -> str | None:
    """Say why a view cannot lie within its storage, or None if it can."""
    if len(shape) != len(stride):
        return f"it has {len(shape)} sizes but {len(stride)} strides"
    if offset < 0:
        return "its offset is negative"
    if 0 in shape:
        return None
    last = offset
    for size, step in zip(shape, stride, strict=True):
        last += (size - 1) * step
    needed = stored_nbytes(dtype, last + 1)
    if needed > storage.nbytes:
        return f"it runs past its storage: {needed:,} of {storage.nbytes:,} bytes"
    return None


def _parameter(args: tuple[Value, ...]) -> TensorFacts:
    data = describe_tensor(args[0])
    if data is None:
        raise TypeError("no tensor")
    state = args[3] if len(args) > 3 else None
    return replace(data, requires_grad=args[1] is True, is_parameter=True, state=state if state else data.state)


def _quantized(args: tuple[Value, ...]) -> TensorFacts:
    storage = _storage_of(args[0])
    facts = _strided(storage, storage.dtype, args[1], args[2], args[3], requires_grad=args[5] is True)
    qparams = args[4]
    if isinstance(qparams, tuple) and len(qparams) == 4:  # per channel: scheme, scales, zero points, axis
        return replace(facts, parts=(("scales", qparams[1]), ("zero_points", qparams[2])))
    return facts


_SPARSE_PARTS = {
    "sparse_coo": ("indices", "values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _sparse(args: tuple[Value, ...]) -> TensorFacts:
    layout, data = _layout(args[0]), args[1]
    if not isinstance(data, tuple):
        raise TypeError("no parts")
    names = _SPARSE_PARTS[layout] if layout in _SPARSE_PARTS else ()
    return _composite(layout, tuple(zip(names, data, strict=False)), data[len(names)])


def _composite(layout: str, parts: tuple[tuple[str, Value], ...], size: Value) -> TensorFacts:
    """Describe a tensor made of others; device and type are those of its last part, the values."""
    values = describe_tensor(parts[-1][1])
    if values is None:
        raise TypeError("no values")
    shape, problem = _sizes(size)
    return TensorFacts(
        values.device,
        values.dtype,
        shape,
        layout=layout,
        requires_grad=values.requires_grad,
        parts=parts,
        problem=problem,
    )


def _nested(args: tuple[Value, ...]) -> TensorFacts:
    buffer = describe_tensor(args[0])
    if buffer is None:
        raise TypeError("no buffer")
    parts = tuple(zip(("buffer", "sizes", "strides", "offsets"), args, strict=False))
    return TensorFacts(buffer.device, buffer.dtype, buffer.shape, layout="nested", parts=parts)


def _jagged(args: tuple[Value, ...]) -> TensorFacts:
    state = args[0]
    pairs = state.pairs if isinstance(state, Dict) else []
    parts = tuple((key, value) for key, value in pairs if isinstance(key, str) and describe_tensor(value) is not None)
    values = next((describe_tensor(value) for key, value in parts if key == "values"), None)
    if values is None:
        raise TypeError("no values")
    return TensorFacts(values.device, values.dtype, values.shape, layout="jagged", parts=parts)


def _on_device(args: tuple[Value, ...]) -> TensorFacts:
    """Describe a tensor that is stored on the CPU and sent to a device while loading (XLA, Maia, MTIA)."""
    inner = describe_tensor(args[0])
    device = device_text(args[2])
    if device is None:
        raise TypeError("no device")
    dtype = _dtype(args[1])
    if inner is None:  # a NumPy array
        return TensorFacts(device, dtype, (), requires_grad=args[3] is True, problem="its data is a NumPy array")
    return replace(inner, device=device, dtype=dtype, stride=None, offset=None, requires_grad=args[3] is True)


def _meta(args: tuple[Value, ...]) -> TensorFacts:
    shape, problem = _sizes(args[1])
    stride, _ = _sizes(args[2])
    return TensorFacts(
        "meta", _dtype(args[0]), shape, stride, 0, requires_grad=args[3] is True, problem=problem
    )


def _wrapper(args: tuple[Value, ...]) -> TensorFacts:
    _, dtype, size, stride, offset, layout, device, requires_grad = args[:8]
    shape, problem = _sizes(size)
    steps, _ = _sizes(stride)
    return TensorFacts(
        device_text(device) or "cpu",
        _dtype(dtype),
        shape,
        steps,
        offset if type(offset) is int else None,
        layout=_layout(layout),
        requires_grad=requires_grad is True,
        problem=problem,
    )


def _from_type(args: tuple[Value, ...]) -> TensorFacts:
    func, _, inner_args = args[:3]
    facts = _describe_call(Call(func, inner_args, "reduce"))
    if facts is None:
        raise TypeError("no tensor")
    return replace(facts, state=args[3] if len(args) > 3 else None)


def _old_tensor(call: Call) -> TensorFacts | None:
    """Describe a tensor of torch 0.x: made empty, its (storage, offset, size, stride) set as state."""
    state, args = call.state, call.args
    if isinstance(state, tuple) and len(state) == 4 and type(state[0]) is PersistentId:
        return _describe_call(Call(Global("torch._utils", "_rebuild_tensor"), state, "reduce"))
    if isinstance(args, tuple) and len(args) == 3 and describe_tensor(args[1]) is not None:
        return _composite("sparse_coo", (("indices", args[0]), ("values", args[1])), args[2])
    return None


def _dtype(value: Value) -> str:
    name = known_dtype(value.name) if isinstance(value, Global) and value.module == "torch" else None
    if name is None:
        raise TypeError("no dtype")
    return name


def _layout(value: Value) -> str:
    if isinstance(value, Call) and isinstance(value.args, tuple) and value.args:
        value = value.args[0]
    text = value.name if isinstance(value, Global) else value
    return text.removeprefix("torch.") if isinstance(text, str) else "strided"


_REBUILDS: dict[str, Callable[[tuple[Value, ...]], TensorFacts]] = {
    "_rebuild_tensor": _tensor,
    "_rebuild_tensor_v2": _tensor,
    "_rebuild_tensor_v3": _tensor_v3,
    "_rebuild_parameter": _parameter,
    "_rebuild_parameter_with_state": _parameter,
    "_rebuild_qtensor": _quantized,
    "_rebuild_sparse_tensor": _sparse,
    "_rebuild_sparse_csr_tensor": _sparse,
    "_rebuild_nested_tensor": _nested,
    "_rebuild_njt": _jagged,
    "_rebuild_device_tensor_from_numpy": _on_device,
    "_rebuild_device_tensor_from_cpu_tensor": _on_device,
    "_rebuild_xla_tensor": _on_device,
    "_rebuild_meta_tensor_no_storage": _meta,
    "_rebuild_wrapper_subclass": _wrapper,
    "_rebuild_from_type": _from_type,
    "_rebuild_from_type_v2": _from_type,
}
