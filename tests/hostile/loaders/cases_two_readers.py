"""Files that their own reader takes for harmless, and another one runs."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
from collections.abc import Iterator

from tests.builders import zips
from tests.builders.pickles import proto, stream
from tests.hostile.loaders.case import EVIL, TORCH, Case, files, payload
from tests.hostile.loaders.cases_numpy import archive, array

_PICKLE = "import pickle; pickle.load(open(path, 'rb'))"
_NUMPY = "import numpy; numpy.load(path, allow_pickle=True)"
_ARRAYS = "import numpy\nfor value in numpy.load(path, allow_pickle=True).values(): pass"
_PACKAGE = """
import torch.package
importer = torch.package.PackageImporter(path)
importer.load_pickle('models', {name!r})
"""


_DATA_NBYTES = 400
_HOP = 100


def _safetensors(opcode: int) -> bytes:
    """The length begins with an instruction that hops into the header, where others hop to the data."""
    width = {0x58: 4, 0x54: 4, 0x42: 4, 0x43: 1, 0x55: 1, 0x8A: 1, 0x8C: 1, 0x8B: 4}[opcode]
    entry = {"w": {"dtype": "U8", "shape": [_DATA_NBYTES], "data_offsets": [0, _DATA_NBYTES]}}
    start = json.dumps(entry)[:-1] + ', "__metadata__": {"x": "'
    for nbytes in range(0x400 + opcode, 0x40000, 0x100):
        size = nbytes.to_bytes(8, "little")
        at = 1 + width + int.from_bytes(size[1 : 1 + width], "little") - 8  # in the header
        if len(start) < at < nbytes - 2 * _HOP:
            break
    body = bytearray((start + " " * (nbytes - len(start) - 3) + '"}}').encode())
    while at < nbytes:
        body[at : at + 2] = b"U" + bytes([_HOP])
        at += 2 + _HOP
    data = bytearray(_DATA_NBYTES)
    evil = EVIL + b"."
    data[at - nbytes : at - nbytes + len(evil)] = evil
    assert len(body) == nbytes
    return size + body + data


def _with(**records: bytes) -> bytes:
    parts = {"archive/data.pkl": stream(proto(), b"}"), **records, "archive/version": b"3\n"}
    return zips.build_zip(*(zips.Record(name=name, data=data) for name, data in parts.items()), zip64=True)


def _cases() -> Iterator[Case]:
    readers = {"pickle.load": _PICKLE, "numpy.load": _NUMPY, "torch.load": TORCH}
    for reader in ("pickle.load", "torch.load"):
        yield from files("pickle", reader, readers[reader], {"plain": payload()}, (".pkl",))
    hops = {
        f"opcode {code:#x}": _safetensors(code) for code in (0x58, 0x54, 0x42, 0x43, 0x55, 0x8A, 0x8C, 0x8B)
    }
    for reader in ("pickle.load", "numpy.load"):
        yield from files("safetensors", reader, readers[reader], hops, (".safetensors",))
    for record in ("archive/a.npy", "archive/data/a.npy", "archive/A.NPY", "a.npy", "archive/x/y.npy"):
        for suffix in (".pt", ".pth", ".npz"):
            row = {f"{record} in a {suffix}": _with(**{record: array()})}
            yield from files("zip", "numpy.load", _ARRAYS, row, (suffix,))
    facts = {"archive/.data/extern_modules": b"builtins\n", "archive/.data/version": b"6\n"}
    for name in ("model.pkl", "weights", "a.txt", "MODEL.PKL", "x.bin"):
        row = {f"{name} beside data.pkl": _with(**{f"archive/models/{name}": payload()}, **facts)}
        yield from files("package", "PackageImporter", _PACKAGE.format(name=name), row)
    for method, module, pack in (
        ("gzip", "gzip", gzip.compress),
        ("bzip2", "bz2", bz2.compress),
        ("xz", "lzma", lzma.compress),
    ):
        load, row = f"import pickle, {module}; pickle.load({module}.open(path))", pack(payload())
        yield from files(
            "pickle", f"pickle.load of {module}.open", load, {f"packed with {method}": row}, (".pkl",)
        )
    honest = archive(("archive/data.pkl", stream(proto(), b"}")), ("archive/version", b"3\n"))
    for reader, load in readers.items():
        yield from files("zip", reader, load, {"a zip behind a pickle": payload() + honest})
        for suffix in (".gguf", ".h5", ".onnx", ".tflite", ".npy", ".msgpack", ".json"):
            row = {
                f"a pickle called {suffix}": payload(),
                f"a pickle called {suffix} behind a text": b"\x80\x02X\x04\x00\x00\x00GGUF0" + payload()[2:],
            }
            yield from files("foreign", reader, load, row, (suffix,))


CASES = tuple(_cases())
