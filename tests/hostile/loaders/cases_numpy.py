"""Arrays of NumPy whose elements are objects, in all the ways that `numpy.load` knows and readers may not."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator

from tests.builders.arrays import npy
from tests.hostile.loaders.case import Case, files, payload

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


def array(description: str = "'|O'", version: int = 1, *, spaces: int = 0) -> bytes:
    """Return an array of objects whose pickle makes the mark."""
    header = f"{{'descr': {description}, 'fortran_order': False, 'shape': (1,), }}{' ' * spaces}\n"
    return npy(header=header, version=(version, 0), data=payload())


def archive(*records: tuple[str, bytes], method: int = 0) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as made:
        for name, data in records:
            made.writestr(zipfile.ZipInfo(name), data, method)
    return out.getvalue()


_PLAIN = "first.npy", npy(shape=(1,), data=bytes(4))


def _cases() -> Iterator[Case]:
    rows = {
        f"{name}, version {version}": array(text, version)
        for name, text in DESCRIPTIONS.items()
        for version in (1, 2, 3)
    } | {"a header with blanks": array(spaces=5_000)}
    yield from files("npy", "numpy.load", _LOAD, rows, (".npy",))
    rows = {name: archive(_PLAIN, ("b.npy", array(text))) for name, text in DESCRIPTIONS.items()}
    for method, number in {"deflate": 8, "bzip2": 12, "lzma": 14}.items():
        rows[f"packed with {method}"] = archive(_PLAIN, ("b.npy", array()), method=number)
    for name in ("B.NPY", "b", "b.txt", "b.npy.npy", "dir/b.npy", "é.npy"):
        rows[f"a record {name}"] = archive(_PLAIN, (name, array()))
    for name in ("B.NPY", "b.npy", "x/B.NPY"):
        rows[f"a record {name} alone"] = archive((name, array()))
    inner = archive(("a.npy", array()))
    rows["an archive in an archive"] = archive(_PLAIN, ("a.npy", array()), ("inner.npz", inner))
    yield from files("npz", "numpy.load", _LOAD_ALL, rows, (".npz",))
    named = {"an archive": archive(_PLAIN, ("b.npy", array()))}
    yield from files("npz", "numpy.load", _LOAD_ALL, named, (".zip", ".pt", ".npy"))
    rows = {f"a pickle of protocol {protocol}": payload(protocol) for protocol in range(6)}
    yield from files("pickle", "numpy.load", _LOAD, rows, (".npy", ".npz", ".pt", ".bin"))


CASES = tuple(_cases())
