"""What torch writes as a persistent id: a storage's class, key, location tag and length.

The tuples are made by `persistent_id` in torch's `torch/serialization.py`, the same for legacy and zip but
for the legacy form's sixth part, the view. The class says the element type and nothing of the device.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple, TypeGuard

from inspector.pickles.values import Call, Global, PersistentId, Value

_PLAIN_PARTS = 5
_MOST_COUNTED = 2**63 - 1  # torch counts with int64

NO_DEVICE = "none"
"""The location of storages in formats that write none: the call that loads them decides where they go."""
_AS_WRITTEN = "none (as written)"

# Class name without "Storage": torch's dtype name and bytes for each element counted by numel.
STORAGE_DTYPES: dict[str, tuple[str, int]] = {
    "Double": ("float64", 8),
    "Float": ("float32", 4),
    "Half": ("float16", 2),
    "BFloat16": ("bfloat16", 2),
    "Long": ("int64", 8),
    "Int": ("int32", 4),
    "Short": ("int16", 2),
    "Char": ("int8", 1),
    "Byte": ("uint8", 1),
    "Bool": ("bool", 1),
    "ComplexDouble": ("complex128", 16),
    "ComplexFloat": ("complex64", 8),
    "QInt8": ("qint8", 1),
    "QInt32": ("qint32", 4),
    "QUInt8": ("quint8", 1),
    "QUInt4x2": ("quint4x2", 1),
    "QUInt2x4": ("quint2x4", 1),
    "Untyped": ("uint8", 1),
    "_Untyped": ("uint8", 1),
}


class StorageId(NamedTuple):
    """One persistent id of a storage."""

    key: str
    dtype: str
    itemsize: int  # bytes for each of `numel`
    location: str
    numel: int  # elements; bytes for untyped storages
    untyped: bool  # whether the class carries no element type
    view: tuple[str, int, int] | None  # (key, offset, size) of a legacy view in elements, or None

    @property
    def nbytes(self) -> int:
        """Bytes that the id declares."""
        return self.numel * self.itemsize

    def viewed(self) -> StorageId:
        """Return the storage that tensors see: the view's own where there is one, else this."""
        if self.view is None:
            return self
        return self._replace(key=self.view[0], numel=self.view[2])


def parse_storage_id(node: PersistentId) -> StorageId | None:
    """Read a persistent id as a storage's, or give None if it is something else (a module, a stranger's)."""
    meaning = node.meaning
    if meaning is node:  # not read yet
        meaning = node.meaning = _parse(node.pid)
    return meaning  # type: ignore[return-value]  # nobody else writes there


def rename_storage(node: PersistentId, storage_id: StorageId) -> None:
    """Write the keys of a storage's new id into the persistent id that named it by others."""
    pid = node.pid if isinstance(node.pid, tuple) else ()  # it was parsed
    view = () if len(pid) == _PLAIN_PARTS else (storage_id.view, *pid[_PLAIN_PARTS + 1 :])
    node.pid = (*pid[:2], storage_id.key, *pid[3:_PLAIN_PARTS], *view)
    node.meaning = storage_id


def prefixed(storage_id: StorageId, prefix: str) -> StorageId:
    """Return a storage's id with this before its keys, as one of several pickles' that are one checkpoint."""
    view = None if storage_id.view is None else (prefix + storage_id.view[0], *storage_id.view[1:])
    return storage_id._replace(key=prefix + storage_id.key, view=view)


def prefix_key(node: PersistentId, prefix: str) -> StorageId | None:
    """Write a prefix before the keys of the storage that an id names, and return that; None for other ids."""
    storage_id = parse_storage_id(node)
    if storage_id is None:
        return None
    renamed = prefixed(storage_id, prefix)
    rename_storage(node, renamed)
    return renamed


def _parse(pid: Value) -> StorageId | None:
    if type(pid) is not tuple or len(pid) < 5:
        return None
    tag, cls, key, location, numel = pid if len(pid) == 5 else pid[:5]
    if tag != "storage" or not isinstance(location, str) or type(numel) is not int:
        return None
    if not 0 <= numel <= _MOST_COUNTED:
        return None
    text = key if type(key) is str else _key_text(key)
    found = _dtype_of(cls.name if type(cls) is Global else _old_class_name(cls))
    if found is None or text is None:
        return None
    dtype, itemsize, untyped = found
    view = _view(pid[5]) if len(pid) > 5 else None
    place = own_location(location if type(location) is str else str(location))
    return StorageId(text, dtype, itemsize, place, numel, untyped, view)


def own_location(text: str) -> str:
    """Return a location that a file writes: `none` is no device of torch, and no word that means none."""
    return _AS_WRITTEN if text == NO_DEVICE else text


def _is_count(value: Value) -> TypeGuard[int]:
    return type(value) is int and 0 <= value <= _MOST_COUNTED


def _key_text(key: Value) -> str | None:
    if isinstance(key, str):
        return str(key)  # without what tells a byte string of Python 2
    # torch.package counts its storages with ints.
    return str(key) if type(key) is int and key.bit_length() <= 64 else None


def _old_class_name(cls: Value) -> str:
    """Return the class's name where Python 2 wrote it through a helper: it is the helper's last argument."""
    last = cls.arguments[-1] if isinstance(cls, Call) and cls.arguments else None
    return last.name if isinstance(last, Global) else ""


@lru_cache(maxsize=64)
def _dtype_of(name: str) -> tuple[str, int, bool] | None:
    if not name.endswith("Storage"):
        return None
    short = name.removesuffix("Storage").rpartition(".")[2]
    found = STORAGE_DTYPES.get(short)
    return None if found is None else (*found, short in {"Untyped", "_Untyped"})


def _view(view: Value) -> tuple[str, int, int] | None:
    if not isinstance(view, tuple) or len(view) != 3:
        return None
    key, offset, size = view
    return (
        (str(key), offset, size) if isinstance(key, str) and _is_count(offset) and _is_count(size) else None
    )
