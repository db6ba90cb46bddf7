"""What type a value of a pickle has once torch's restricted unpickler has made it, told without making it.

The words are Python's and torch's names of types. `?` is what nobody can tell: the result of a call of a name
that is not on torch's list, and what the user's list would have to decide.
"""

from __future__ import annotations

from functools import lru_cache

from inspector.containers.persistent_ids import STORAGE_DTYPES
from inspector.containers.rebuilds import JUDGED, REBUILDS, WRAPPER
from inspector.model.tensors.dtypes import ITEMSIZES
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
)

UNKNOWN = "?"
TENSOR, PARAMETER, STORAGE, UNTYPED = "Tensor", "Parameter", "TypedStorage", "UntypedStorage"
UNHASHABLE_KINDS = frozenset({"list", "dict", "set", "OrderedDict", "Counter", "bytearray"})
"""Types without a hash, which can be no key."""
FUNCTIONS = JUDGED | {"_codecs.encode", "torch.serialization._get_layout"}
"""Listed names that are functions."""

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
    "torch.storage.UntypedStorage": UNTYPED,
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


def listed_name(value: Value) -> str:
    """Return the name of a global as torch looks it up; empty for anything else."""
    return value.present if isinstance(value, Global) else ""


@lru_cache(maxsize=1024)
def kind_of_name(name: str) -> str:
    """Return what a listed name stands for: `type`, `function`, `dtype`, `qscheme` or `StorageType`."""
    if name in FUNCTIONS:
        return "function"
    if name in _CLASSES or is_tensor_class(name):
        return "type"
    if name in _QSCHEMES:
        return "qscheme"
    module, _, last = name.rpartition(".")
    if module == "torch" and last in ITEMSIZES:
        return "dtype"
    return "StorageType" if is_storage_class(name) else UNKNOWN


def is_tensor_class(name: str) -> bool:
    """Return whether a name is that of a class of tensors by element, such as `torch.FloatTensor`."""
    module, _, last = name.rpartition(".")
    if module not in {"torch", "torch.cuda", "torch.sparse", "torch.cuda.sparse"}:
        return False
    return last.endswith("Tensor") and f"{last.removesuffix('Tensor')}Storage" in _STORAGES


def is_storage_class(name: str) -> bool:
    """Return whether a name is that of a class of storages by element, such as `torch.FloatStorage`."""
    module, _, last = name.rpartition(".")
    return module in {"torch", "torch.cuda"} and last in _STORAGES


def kind_of(value: Value) -> str:
    """Return the type that a value will have."""
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
    if name == "torch._tensor._rebuild_from_type_v2":
        new_type = call.args[1:2] if isinstance(call.args, tuple) else ()
        return _CLASSES.get(listed_name(new_type[0]), UNKNOWN) if new_type else UNKNOWN
    return TENSOR if name in FUNCTIONS or is_tensor_class(name) else UNKNOWN
