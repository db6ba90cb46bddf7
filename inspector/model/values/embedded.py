"""Bytes that are a checkpoint of their own: what `torch.save` wrote into a buffer, kept as data.

Loading the file around them does not open them; the code that does calls `torch.load` again.
"""

from __future__ import annotations

from inspector.model.tensors.numpy_arrays import describe_bytes
from inspector.pickles.values import Blob, Call, Global, Value

MOST_CANDIDATES = 1_000
_HEAD_NBYTES = 256
_ZIP, _RECORD = b"PK\x03\x04", b"/data.pkl"
_LEGACY = b"\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."  # the first pickle of `_legacy_save`: its magic number
_MAKERS = frozenset({"_codecs.encode", "builtins.bytearray"})
_BYTES = frozenset({"bytes", "bytearray", "buffer"})
_LAST = "\xff"


def may_hold_checkpoint(value: Value) -> bool:
    """Return whether a leaf is bytes that may begin as a file of torch does."""
    if isinstance(value, bytes):
        return is_checkpoint(value[:_HEAD_NBYTES])
    if isinstance(value, Blob):
        return value.kind in _BYTES
    if not isinstance(value, Call):
        return False
    known = describe_bytes(value)
    return _blob_of(value) is not None if known is None else is_checkpoint(known.head)


def holds_checkpoint(value: Value, data: bytes) -> bool:
    """Return whether a leaf that may do so begins as a file of torch does."""
    blob = value if isinstance(value, Blob) else _blob_of(value)
    if blob is None:
        return True
    head = data[blob.offset : blob.offset + min(blob.nbytes, 2 * _HEAD_NBYTES)]
    if blob.kind == "text":  # of which two bytes are one
        head = head.decode("utf-8", "ignore").encode("latin-1", "replace")
    return is_checkpoint(head[:_HEAD_NBYTES])


def contents_of(value: Value, data: bytes) -> bytes:
    """Return the bytes that a leaf is; none where they do not stand in the pickle `data` as they are."""
    if isinstance(value, bytes):
        return bytes(value)
    blob = value if isinstance(value, Blob) else _blob_of(value)
    if blob is not None:
        return _raw(blob, data)
    first = _first_of(value)
    inner = _first_of(first)  # bytearray(bytes), the bytes spelled as a text
    if inner is not None:
        return _raw(inner, data) if isinstance(inner, Blob) else _encoded(inner)
    return _encoded(first)


def payload_of(call: Call, data: bytes) -> bytes:
    """Return the file of torch that a call makes bytes of, as its first argument spells it; else nothing."""
    first = _first_of(call)
    if isinstance(first, Blob) and first.kind == "text":
        first = data[first.offset : first.offset + first.nbytes].decode("utf-8", "replace")
    if type(first) is not str or (not first.isascii() and max(first) > _LAST):
        return b""
    found = first.encode("latin-1")
    return found if is_checkpoint(found) else b""


def _raw(blob: Blob, data: bytes) -> bytes:
    raw = data[blob.offset : blob.offset + blob.nbytes]
    if blob.kind == "text":
        return raw.decode("utf-8", "replace").encode("latin-1", "replace")
    return raw if blob.kind in _BYTES else b""


def _encoded(value: Value) -> bytes:
    if isinstance(value, bytes):
        return bytes(value)
    return value.encode("latin-1", "replace") if type(value) is str else b""


def _first_of(value: Value) -> Value:
    if not isinstance(value, Call) or not isinstance(value.func, Global) or value.func.present not in _MAKERS:
        return None
    return value.args[0] if isinstance(value.args, tuple) and value.args else None


def _blob_of(value: Value) -> Blob | None:
    first = _first_of(value)
    return first if isinstance(first, Blob) else None


def is_checkpoint(data: bytes) -> bool:
    """Return whether bytes begin as a file of torch does."""
    head = data[:_HEAD_NBYTES]
    return (head.startswith(_ZIP) and _RECORD in head) or head[2:].startswith(_LEGACY)
