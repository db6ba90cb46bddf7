from __future__ import annotations

import io
import pickle
from functools import partial

from inspector.containers.legacy import MAGIC, NUMEL, PROTOCOL_VERSION
from inspector.remap.torch_file import LegacyStorage, write_legacy


def test_pickles_come_first_and_storages_in_the_order_of_their_keys() -> None:
    out = io.BytesIO()
    storages = [
        LegacyStorage(key, numel, partial(out.write, bytes([numel]) * numel))
        for key, numel in {"2": 3, "10": 1, "0": 0}.items()
    ]
    write_legacy(b"the object", storages, out.write)
    out.seek(0)
    info = {"protocol_version": 1001, "little_endian": True, "type_sizes": {"short": 2, "int": 4, "long": 4}}
    assert [pickle.load(out) for _ in range(3)] == [MAGIC, PROTOCOL_VERSION, info]
    assert out.read(10) == b"the object"
    assert pickle.load(out) == ["0", "10", "2"]
    assert out.read() == NUMEL.pack(0) + NUMEL.pack(1) + b"\1" + NUMEL.pack(3) + b"\3\3\3"
