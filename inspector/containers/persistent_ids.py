"""What torch writes as a persistent id: a storage's class, key, location tag and length.

The tuples are made by `persistent_id` in torch's `torch/serialization.py`, the same for legacy and zip but
for the legacy form's sixth part, the view. The class says the element type and nothing of the device.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector.pickles.values import Call, Global, PersistentId, Value

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
    """One persistent id of a storage.

    Attributes:
        key: The storage's key as text.
        dtype: torch's dtype name; `uint8` for untyped storages.
        itemsize: Bytes for each of `numel`.
        location: The location tag.
        numel: Elements; bytes for untyped storages.
        untyped: Whether the class carries no element type.
        view: (key, offset, size) of a legacy view in elements, or None.
    """

    key: str
    dtype: str
    itemsize: int
    location: str
    numel: int
    untyped: bool
    view: tuple[str, int, int] | None

    @property
    def nbytes(self) -> int:
        """Bytes that the id declares."""
        return self.numel * self.itemsize

    def viewed(self) -> StorageId:
        """Give the storage that tensors see: the view's own where there is one, else this."""
        if self.view is None:
            return self
        return self._replace(key=self.view[0], numel=self.view[2])


def parse_storage_id(node: PersistentId) -> StorageId | None:
    """Read a persistent id as a storage's, or give None if it is something else (a module, a stranger's)."""
    pid = node.pid
    if type(pid) is not tuple or len(pid) < 5 or pid[0] != "storage":
        return None
    cls, key, location, numel = pid[1:5]
    if type(location) is not str or type(numel) is not int or numel < 0:
        return None
    found = _dtype_of(cls)
    text = key if type(key) is str else _int_key(key)
    if found is None or text is None:
        return None
    dtype, itemsize, untyped = found
    return StorageId(text, dtype, itemsize, location, numel, untyped, _view(pid))


def _int_key(key: Value) -> str | None:
    # torch.package counts its storages with ints.
    return str(key) if type(key) is int and key.bit_length() <= 64 else None


def _dtype_of(cls: Value) -> tuple[str, int, bool] | None:
    if isinstance(cls, Call):  # Python 2 wrote some classes through a helper; the name is its last argument
        cls = cls.args[-1] if isinstance(cls.args, tuple) and cls.args else None
    if not isinstance(cls, Global) or not cls.name.endswith("Storage"):
        return None
    short = cls.name.removesuffix("Storage").rpartition(".")[2]
    found = STORAGE_DTYPES.get(short)
    return None if found is None else (*found, short in {"Untyped", "_Untyped"})


def _view(pid: tuple[Value, ...]) -> tuple[str, int, int] | None:
    view = pid[5] if len(pid) > 5 else None
    if not isinstance(view, tuple) or len(view) != 3:
        return None
    key, offset, size = view
    if isinstance(key, str) and type(offset) is int and type(size) is int and min(offset, size) >= 0:
        return key, offset, size
    return None
