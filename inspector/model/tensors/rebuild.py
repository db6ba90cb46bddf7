"""Tensors as pickles describe them: which rebuild function, and what its arguments mean.

The functions are those of torch's `torch/_utils.py` and `torch/_tensor.py` (`Tensor.__reduce_ex__`), of
every generation since 0.4. None is called; `describe_tensor` reads their arguments. Of the parts of a tensor
at most one is described with it, so that parts which contain each other many times over cost no more than
they are long.
"""

from __future__ import annotations

from collections.abc import Callable

from inspector.containers.persistent_ids import own_location
from inspector.model.checkpoint import Encoding
from inspector.model.tensors.numpy_arrays import describe_array
from inspector.model.tensors.views import (
    NOTHING_KNOWN,
    Known,
    NoTensorError,
    TensorFacts,
    bare_storage,
    contiguous,
    dtype_of,
    is_call_to,
    nbytes_of,
    shape_of,
    sizes_of,
    storage_of,
    stored_tensor,
    strided,
)
from inspector.model.values.text import device_label, int_text
from inspector.pickles.values import Call, Dict, Global, PersistentId, StoredTensor, Value


def describe_tensor(value: Value, known: Known = NOTHING_KNOWN) -> TensorFacts | None:
    """Read a value as a tensor or bare storage; None if it is neither."""
    try:
        if type(value) is Call:
            func, args = value.func, value.args
            if type(func) is not Global or type(args) is not tuple or func.package != "torch":
                return None
            rebuild = _REBUILDS.get(func.name)
            if rebuild is None:
                return _describe_old(func.name, args, value.state, known)
            facts = rebuild(args, known)
            return facts if value.state is None else facts._replace(state=value.state)
        if type(value) is StoredTensor:
            return stored_tensor(value, known)
        return bare_storage(storage_of(value, known)) if type(value) is PersistentId else None
    except (IndexError, NoTensorError):
        return None  # arguments of another generation or of a deceiver: shown as an object instead


def looks_like_tensor(value: Value) -> bool:
    """Return quickly whether `describe_tensor` is likely to know a value, without reading its arguments."""
    if type(value) is Call:
        func = value.func
        return type(func) is Global and func.name in _REBUILDS and func.package == "torch"
    return type(value) is PersistentId or type(value) is StoredTensor


def device_text(value: Value) -> str | None:
    """Read a `torch.device(...)` call or a device text, fit to be shown; None if it is neither."""
    if isinstance(value, str):
        return device_label(own_location(value))
    if not is_call_to(value, "torch", "device") or not isinstance(value, Call):
        return None
    args = value.args if isinstance(value.args, tuple) else ()
    if not args or not isinstance(args[0], str):
        return None
    kind = device_label(own_location(args[0]))
    return f"{kind}:{int_text(args[1])}" if len(args) > 1 and isinstance(args[1], int) else kind


def _describe_inner(value: Value, known: Known) -> TensorFacts:
    """Describe a tensor that another is made of, or raise `NoTensorError`, also when too many are nested."""
    facts = describe_tensor(value, Known(known.storages, known.room - 1, known.look)) if known.room else None
    if facts is None:
        raise NoTensorError
    return facts


# --- one function for each rebuild function: arguments in, facts out ----------------------------------------


def _tensor(args: tuple[Value, ...], known: Known) -> TensorFacts:
    storage = storage_of(args[0], known)
    return strided(storage, storage.dtype, args[1:4], requires_grad=False)


def _tensor_v2(args: tuple[Value, ...], known: Known) -> TensorFacts:
    storage = storage_of(args[0], known)
    facts = strided(storage, storage.dtype, args[1:4], requires_grad=args[4] is True)
    return facts if len(args) < 7 else _marked(facts, args[6])


def _tensor_v3(args: tuple[Value, ...], known: Known) -> TensorFacts:
    storage = storage_of(args[0], known)
    facts = strided(storage, dtype_of(args[6]), args[1:4], requires_grad=args[4] is True)
    return facts if len(args) < 8 else _marked(facts, args[7])


def _marked(facts: TensorFacts, metadata: Value) -> TensorFacts:
    """Read what `torch._utils.get_tensor_metadata` wrote: lazy bits, or how a device keeps its tensors."""
    pairs = metadata.pairs if isinstance(metadata, Dict) else ()
    if not pairs:
        return facts
    bits = {key for key, value in pairs if key in _BITS and value is True} if len(pairs) <= 2 else set()
    is_readable = len(bits) == len(pairs)
    return facts._replace(encoding=Encoding("conj" in bits, "neg" in bits, is_readable=is_readable))


MOST_NAMED = 64
"""How many arguments by name a jagged tensor has at most; torch writes a dozen."""
_BITS = frozenset({"conj", "neg"})
_MOST_BITS = 32  # a zero point is one of the elements' own type
_SPARSE_PARTS = {
    "sparse_coo": ("indices", "values"),
    "sparse_csr": ("crow_indices", "col_indices", "values"),
    "sparse_bsr": ("crow_indices", "col_indices", "values"),
    "sparse_csc": ("ccol_indices", "row_indices", "values"),
    "sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _parameter(args: tuple[Value, ...], known: Known) -> TensorFacts:
    data = _describe_inner(args[0], known)
    state = args[3] if len(args) > 3 else data.state
    return data._replace(requires_grad=args[1] is True, is_parameter=True, state=state)


def _quantized(args: tuple[Value, ...], known: Known) -> TensorFacts:
    storage = storage_of(args[0], known)
    facts = strided(storage, storage.dtype, args[1:4], requires_grad=args[5] is True)
    qparams = args[4] if isinstance(args[4], tuple) else ()
    if len(qparams) == 4:  # per channel: scheme, scales, zero points, axis
        axis = qparams[3] if type(qparams[3]) is int and 0 <= qparams[3] < len(facts.shape) else None
        encoding = Encoding(axis=axis, is_readable=axis is not None)
        parts = (("scales", qparams[1]), ("zero_points", qparams[2]))
        return facts._replace(parts=parts, encoding=encoding)
    scale, zero_point = qparams[1:] if len(qparams) == 3 else (None, None)
    if type(scale) is not float or type(zero_point) is not int or zero_point.bit_length() > _MOST_BITS:
        return facts._replace(encoding=Encoding(is_readable=False))
    return facts._replace(encoding=Encoding(scale=scale, zero_point=zero_point))


def _sparse(args: tuple[Value, ...], known: Known) -> TensorFacts:
    layout, data = _layout(args[0]), args[1]
    names = _SPARSE_PARTS.get(layout)
    if names is None or not isinstance(data, tuple):
        raise NoTensorError
    return _composite(layout, tuple(zip(names, data, strict=False)), data[len(names)], known)


def _composite(layout: str, parts: tuple[tuple[str, Value], ...], size: Value, known: Known) -> TensorFacts:
    """Describe a tensor whose device and type are those of its last part, the values."""
    values = _describe_inner(parts[-1][1], known)
    shape, problem = shape_of(size)
    return _whole(values, shape, layout, parts, problem)


def _whole(
    values: TensorFacts,
    shape: tuple[int, ...],
    layout: str,
    parts: tuple[tuple[str, Value], ...],
    problem: str | None = None,
) -> TensorFacts:
    return TensorFacts(
        values.device,
        values.dtype,
        shape,
        layout=layout,
        requires_grad=values.requires_grad,
        nbytes=nbytes_of(values.dtype, shape),
        parts=parts,
        problem=problem,
    )


def _nested(args: tuple[Value, ...], known: Known) -> TensorFacts:
    buffer = _describe_inner(args[0], known)
    parts = tuple(zip(("buffer", "sizes", "strides", "offsets"), args, strict=False))
    return _whole(buffer, buffer.shape, "nested", parts)


def _jagged(args: tuple[Value, ...], known: Known) -> TensorFacts:
    arguments = args[0].pairs if isinstance(args[0], Dict) else []
    if len(arguments) > MOST_NAMED:
        raise NoTensorError
    parts = tuple((key, item) for key, item in arguments if isinstance(key, str) and looks_like_tensor(item))
    for key, item in parts:
        if key == "values":
            values = _describe_inner(item, known)
            return _whole(values, values.shape, "jagged", parts)
    raise NoTensorError


def _on_device(args: tuple[Value, ...], known: Known) -> TensorFacts:
    """Describe a tensor that is stored on the CPU and sent to a device while loading (XLA, Maia, MTIA)."""
    device, dtype = device_text(args[2]), dtype_of(args[1])
    if device is None:
        raise NoTensorError
    array = describe_array(args[0])
    inner = _describe_inner(args[0], known) if array is None else TensorFacts("cpu", dtype, array.shape)
    return inner._replace(
        device=device,
        dtype=dtype,
        stride=None,
        offset=None,
        requires_grad=args[3] is True,
        nbytes=nbytes_of(dtype, inner.shape),
        encoding=None if _is_plain(inner, dtype) else Encoding(is_readable=False),
    )


def _is_plain(inner: TensorFacts, dtype: str) -> bool:
    """Return whether elements stand in order and are of this type; loading would cast others."""
    is_in_order = not inner.offset and inner.stride in {None, contiguous(inner.shape)}
    return inner.dtype == dtype and is_in_order and inner.encoding is None


def _meta(args: tuple[Value, ...], known: Known) -> TensorFacts:  # noqa: ARG001 - the table's signature
    dtype = dtype_of(args[0])
    shape, problem = shape_of(args[1])
    stride, _ = sizes_of(args[2])
    return TensorFacts(
        "meta",
        dtype,
        shape,
        stride,
        0,
        requires_grad=args[3] is True,
        nbytes=nbytes_of(dtype, shape),
        problem=problem,
    )


def _wrapper(args: tuple[Value, ...], known: Known) -> TensorFacts:  # noqa: ARG001 - the table's signature
    dtype, offset = dtype_of(args[1]), args[4]
    shape, problem = shape_of(args[2])
    stride, _ = sizes_of(args[3])
    return TensorFacts(
        device_text(args[6]) or "cpu",
        dtype,
        shape,
        stride,
        offset if type(offset) is int and 0 <= offset < 1 << 63 else None,
        layout=_layout(args[5]),
        requires_grad=args[7] is True,
        nbytes=nbytes_of(dtype, shape),
        problem=problem,
    )


def _from_type(args: tuple[Value, ...], known: Known) -> TensorFacts:
    return _describe_inner(Call(args[0], args[2], "reduce"), known)._replace(state=args[3])


# --- objects of classes that torch pickled as such, before there were rebuild functions ---------------------


def _describe_old(name: str, args: tuple[Value, ...], state: Value, known: Known) -> TensorFacts | None:
    if name in {"Parameter", "Variable"}:
        return _old_variable(args, state, known)
    return _old_tensor(args, state, known) if name.endswith("Tensor") else None


def _old_tensor(args: tuple[Value, ...], state: Value, known: Known) -> TensorFacts | None:
    """Describe a tensor of torch 0.x: made empty, its (storage, offset, size, stride) set as state.

    A sparse one is called with its indices, values and size.
    """
    if isinstance(state, tuple) and len(state) == 4 and type(state[0]) is PersistentId:
        return _tensor(state, known)
    if len(args) == 3:
        return _composite("sparse_coo", (("indices", args[0]), ("values", args[1])), args[2], known)
    return None


def _old_variable(args: tuple[Value, ...], state: Value, known: Known) -> TensorFacts:
    """Describe a parameter of torch 0.x: its data is an argument, or in the state (data, _, _, grad, _)."""
    if isinstance(state, tuple) and len(state) == 5:
        return _describe_inner(state[0], known)._replace(requires_grad=state[3] is True, is_parameter=True)
    return _describe_inner(args[0], known)._replace(requires_grad=True, is_parameter=True)


def _layout(value: Value) -> str:
    """Read a layout: a text, a global, or a call of `torch.serialization._get_layout`."""
    if isinstance(value, Call) and isinstance(value.args, tuple) and value.args:
        value = value.args[0]
    text = value.name if isinstance(value, Global) else value
    return device_label(text).removeprefix("torch.") if isinstance(text, str) else "strided"


_REBUILDS: dict[str, Callable[[tuple[Value, ...], Known], TensorFacts]] = {
    "_rebuild_tensor": _tensor,
    "_rebuild_tensor_v2": _tensor_v2,
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
