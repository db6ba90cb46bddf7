"""Arrays of NumPy whose elements are objects, in all the ways that `numpy.load` knows and readers may not."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.hostile.loaders.case import Case, payload

DESCRIPTIONS = {
    "O": "'|O'",
    "O8": "'O8'",
    "a word": "'object'",
    "object_": "'object_'",
    "1O": "'1O'",
    "of several": "'f4,O'",
    "of one in a shape": "'(1,)O'",
    "a field": "[('a', '|O')]",
    "a field without a name": "[('', '|O')]",
    "a title without a name": "[(('t', ''), '|O')]",
    "a title": "[(('t', 'a'), '|O')]",
    "within a field": "[('a', [('b', '|O')])]",
    "within a field without a name": "[('a', '<f4'), ('', [('b', '|O')])]",
    "without any name": "[('', [('', '|O')])]",
    "a shape": "[('a', '|O', (2,))]",
    "a tuple": "('|O', (2,))",
    "a tuple in a field": "[('a', ('|O', (2,)))]",
    "beside padding": "[('', '|V4'), ('a', '|O')]",
}
_LOAD = "import numpy; numpy.load(path, allow_pickle=True)"
_LOAD_ALL = "import numpy\nfor value in numpy.load(path, allow_pickle=True).values(): pass"


def array(description: str, version: int = 1, *, spaces: int = 0) -> bytes:
    """Return an array of objects whose pickle makes the mark."""
    text = f"{{'descr': {description}, 'fortran_order': False, 'shape': (1,), }}{' ' * spaces}\n"
    width = 2 if version == 1 else 4
    head = b"\x93NUMPY" + bytes([version, 0]) + len(text).to_bytes(width, "little") + text.encode()
    return head + payload()


def _npy(description: str, version: int, spaces: int, folder: Path) -> Path:
    path = folder / "a.npy"
    path.write_bytes(array(description, version, spaces=spaces))
    return path


def _npz(data: bytes, name: str, method: int, suffix: str, folder: Path) -> Path:
    path = folder / f"a{suffix}"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("first.npy", _plain())
        archive.writestr(name, data)
    return path


def _alone(data: bytes, name: str, folder: Path) -> Path:
    path = folder / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(name, data)
    return path


def _plain() -> bytes:
    head = b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head + bytes(4)


def _pickle(suffix: str, protocol: int, folder: Path) -> Path:
    path = folder / f"a{suffix}"
    path.write_bytes(payload(protocol))
    return path


def _nested(folder: Path) -> Path:
    inner = io.BytesIO()
    with zipfile.ZipFile(inner, "w") as archive:
        archive.writestr("a.npy", array("'|O'"))
    path = folder / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("first.npy", _plain())
        archive.writestr("a.npy", array("'|O'"))
        archive.writestr("inner.npz", inner.getvalue())
    return path


def _cases() -> Iterator[Case]:
    for name, text in DESCRIPTIONS.items():
        for version in (1, 2, 3):
            write = partial(_npy, text, version, 0)
            yield Case(f"{name}, version {version}", "npy", "numpy.load", write, _LOAD)
        write = partial(_npz, array(text), "b.npy", zipfile.ZIP_STORED, ".npz")
        yield Case(name, "npz", "numpy.load", write, _LOAD_ALL)
    yield Case("a header with blanks", "npy", "numpy.load", partial(_npy, "'|O'", 1, 5_000), _LOAD)
    methods = {"deflate": 8, "bzip2": 12, "lzma": 14}
    for method, number in methods.items():
        write = partial(_npz, array("'|O'"), "b.npy", number, ".npz")
        yield Case(f"packed with {method}", "npz", "numpy.load", write, _LOAD_ALL)
    for name in ("B.NPY", "b", "b.txt", "b.npy.npy", "dir/b.npy", "é.npy"):
        write = partial(_npz, array("'|O'"), name, 0, ".npz")
        yield Case(f"a record {name}", "npz", "numpy.load", write, _LOAD_ALL)
    for name in ("B.NPY", "b.npy", "x/B.NPY"):
        yield Case(
            f"a record {name} alone", "npz", "numpy.load", partial(_alone, array("'|O'"), name), _LOAD_ALL
        )
    for suffix in (".npy", ".npz", ".pt", ".bin"):
        for protocol in range(6):
            write = partial(_pickle, suffix, protocol)
            yield Case(
                f"a pickle of protocol {protocol} called {suffix}", "pickle", "numpy.load", write, _LOAD
            )
    yield Case("an archive in an archive", "npz", "numpy.load", _nested, _LOAD_ALL)
    for suffix in (".zip", ".pt", ".npy"):
        write = partial(_npz, array("'|O'"), "b.npy", 0, suffix)
        yield Case(f"an archive called {suffix}", "npz", "numpy.load", write, _LOAD_ALL)


CASES = tuple(_cases())
