"""A legacy stream as `_legacy_save` in torch's `torch/serialization.py` writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from inspector.containers.legacy import MAGIC, NUMEL, PROTOCOL_VERSION
from inspector.pickles.values import Dict
from inspector.remap.objects.pickle_writer import write_pickle
from inspector.remap.objects.views import Writing

_INFO = Dict(
    [
        ("protocol_version", PROTOCOL_VERSION),
        ("little_endian", True),
        ("type_sizes", Dict([("short", 2), ("int", 4), ("long", 4)])),
    ]
)


class LegacyStorage(NamedTuple):
    """One storage to write.

    Attributes:
        key: Its key in the pickle.
        numel: How many elements it has.
        copy: Writes its bytes to the file.
    """

    key: str
    numel: int
    copy: Callable[[], object]


def write_legacy(pickle: bytes, storages: Iterable[LegacyStorage], write: Callable[[bytes], object]) -> None:
    """Write a legacy stream: `write` takes the bytes in between those of storages."""
    for value in (MAGIC, PROTOCOL_VERSION, _INFO):
        write(write_pickle(value, Writing()))
    write(pickle)
    ordered = sorted(storages, key=lambda storage: storage.key)
    write(write_pickle([storage.key for storage in ordered], Writing()))
    for storage in ordered:
        write(NUMEL.pack(storage.numel))
        storage.copy()
