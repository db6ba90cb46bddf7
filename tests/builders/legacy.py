"""Legacy checkpoints made by hand: five pickles, then the storages."""

from __future__ import annotations

import pickle
import struct
from typing import Any

MAGIC = 0x1950A86A20F9469CFC6C
INFO = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}


def checkpoint(
    stream: bytes,
    *storages: tuple[str, int, bytes],
    protocol: int = 2,
    magic: Any = MAGIC,
    version: Any = 1001,
    info: Any = INFO,
    keys: Any = None,
) -> bytes:
    """A legacy file: the object's stream, and (key, number of elements, bytes) for each storage.

    What is given as bytes for one of the other pickles is that pickle.
    """
    listed = [key for key, _, _ in storages] if keys is None else keys
    head = [_pickled(value, protocol) for value in (magic, version, info)]
    tail = [struct.pack("<q", numel) + data for _, numel, data in storages]
    return b"".join([*head, stream, _pickled(listed, protocol), *tail])


def _pickled(value: Any, protocol: int) -> bytes:
    return value if isinstance(value, bytes) else pickle.dumps(value, protocol)
