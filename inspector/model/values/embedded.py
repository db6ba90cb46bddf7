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


def may_hold_checkpoint(value: Value) -> bool:
    """Return whether a leaf is bytes that may begin as a file of torch does."""
    if isinstance(value, bytes):
        return _is_checkpoint(value[:_HEAD_NBYTES])
    if isinstance(value, Blob):
        return value.kind in _BYTES
    if not isinstance(value, Call):
        return False
    known = describe_bytes(value)
    return _blob_of(value) is not None if known is None else _is_checkpoint(known.head)


def holds_checkpoint(value: Value, data: bytes) -> bool:
    """Return whether a leaf that may do so begins as a file of torch does.

    Args:
        value: The leaf.
        data: The pickle, in which large values are left.
    """
    blob = value if isinstance(value, Blob) else _blob_of(value)
    if blob is None:
        return True
    head = data[blob.offset : blob.offset + min(blob.nbytes, 2 * _HEAD_NBYTES)]
    if blob.kind == "text":  # of which two bytes are one
        head = head.decode("utf-8", "ignore").encode("latin-1", "replace")
    return _is_checkpoint(head[:_HEAD_NBYTES])


def _blob_of(value: Value) -> Blob | None:
    """Return the large text or bytes that a call makes bytes of, or None."""
    if not isinstance(value, Call) or not isinstance(value.func, Global) or value.func.present not in _MAKERS:
        return None
    first = value.args[0] if isinstance(value.args, tuple) and value.args else None
    return first if isinstance(first, Blob) else None


def _is_checkpoint(head: bytes) -> bool:
    return (head.startswith(_ZIP) and _RECORD in head) or head[2:].startswith(_LEGACY)
