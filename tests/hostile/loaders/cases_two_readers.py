"""Files that their own reader takes for harmless, and another one runs."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.builders import zips
from tests.builders.pickles import call, proto, stream, text
from tests.hostile.loaders.case import MARK, Case, payload
from tests.hostile.loaders.cases_numpy import array

_EVIL = call("builtins.eval", text(f"__import__('os').makedirs({MARK!r}, exist_ok=True)"))
_PICKLE = "import pickle; pickle.load(open(path, 'rb'))"
_NUMPY = "import numpy; numpy.load(path, allow_pickle=True)"
_TORCH = "import torch; torch.load(path, weights_only=False)"
_ARRAYS = "import numpy\nfor value in numpy.load(path, allow_pickle=True).values(): pass"
_PACKAGE = """
import torch.package
importer = torch.package.PackageImporter(path)
importer.load_pickle('models', {name!r})
"""


_DATA_NBYTES = 400
_HOP = 100


def _safetensors(opcode: int, folder: Path) -> Path:
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
    evil = _EVIL + b"."
    data[at - nbytes : at - nbytes + len(evil)] = evil
    path = folder / "a.safetensors"
    path.write_bytes(size + body + data)
    assert len(body) == nbytes
    return path


def _with_array(record: str, suffix: str, folder: Path) -> Path:
    path = folder / f"a{suffix}"
    path.write_bytes(
        zips.build_zip(
            zips.Record(name="archive/data.pkl", data=stream(proto(), b"}")),
            zips.Record(name=record, data=array("'|O'")),
            zips.Record(name="archive/version", data=b"3\n"),
            zip64=True,
        )
    )
    return path


def _package(name: str, folder: Path) -> Path:
    path = folder / "a.pt"
    path.write_bytes(
        zips.build_zip(
            zips.Record(name="archive/data.pkl", data=stream(proto(), b"}")),
            zips.Record(name=f"archive/models/{name}", data=payload()),
            zips.Record(name="archive/.data/extern_modules", data=b"builtins\n"),
            zips.Record(name="archive/.data/version", data=b"6\n"),
            zips.Record(name="archive/version", data=b"3\n"),
            zip64=True,
        )
    )
    return path


def _packed(method: str, folder: Path) -> Path:
    path = folder / "a.pkl"
    path.write_bytes({"gzip": gzip.compress, "bzip2": bz2.compress, "xz": lzma.compress}[method](payload()))
    return path


def _foreign(head: bytes, suffix: str, folder: Path) -> Path:
    path = folder / f"a{suffix}"
    path.write_bytes(head + payload()[2:])
    return path


def _zip_behind(folder: Path) -> Path:
    path = folder / "a.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", stream(proto(), b"}"))
        archive.writestr("archive/version", b"3\n")
    path.write_bytes(payload() + path.read_bytes())
    return path


def _cases() -> Iterator[Case]:
    readers = {"pickle.load": _PICKLE, "numpy.load": _NUMPY, "torch.load": _TORCH}
    for opcode in (0x58, 0x54, 0x42, 0x43, 0x55, 0x8A, 0x8C, 0x8B):
        for reader in ("pickle.load", "numpy.load"):
            load = readers[reader]
            yield Case(f"opcode {opcode:#x}", "safetensors", reader, partial(_safetensors, opcode), load)
    for record in ("archive/a.npy", "archive/data/a.npy", "archive/A.NPY", "a.npy", "archive/x/y.npy"):
        for suffix in (".pt", ".pth", ".npz"):
            write = partial(_with_array, record, suffix)
            yield Case(f"{record} in a {suffix}", "zip", "numpy.load", write, _ARRAYS)
    for name in ("model.pkl", "weights", "a.txt", "MODEL.PKL", "x.bin"):
        write = partial(_package, name)
        yield Case(f"{name} beside data.pkl", "package", "PackageImporter", write, _PACKAGE.format(name=name))
    for method, module in (("gzip", "gzip"), ("bzip2", "bz2"), ("xz", "lzma")):
        load = f"import pickle, {module}; pickle.load({module}.open(path))"
        yield Case(
            f"packed with {method}", "pickle", f"pickle.load of {module}.open", partial(_packed, method), load
        )
    for reader, load in readers.items():
        yield Case("a zip behind a pickle", "zip", reader, _zip_behind, load)
        for suffix in (".gguf", ".h5", ".onnx", ".tflite", ".npy", ".msgpack", ".json"):
            for name, head in {"": b"\x80\x02", "behind a text": b"\x80\x02X\x04\x00\x00\x00GGUF0"}.items():
                write = partial(_foreign, head, suffix)
                yield Case(f"a pickle called {suffix}{name and ' '}{name}", "foreign", reader, write, load)


CASES = tuple(_cases())
