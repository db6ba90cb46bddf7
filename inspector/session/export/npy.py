"""The values of a tensor as a `.npy` file: whole, or not at all.

The format is that of https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html, version 1.0.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from pathlib import Path

from inspector.child import Answer
from inspector.containers.copying import write_bytes
from inspector.remap.files import writing

_MAGIC = b"\x93NUMPY\x01\x00"
_ALIGNMENT = 64


def npy_header(descr: str, shape: tuple[int, ...]) -> bytes:
    """Return what stands before the elements."""
    text = repr({"descr": descr, "fortran_order": False, "shape": shape})
    start = len(_MAGIC) + 2
    padding = -(start + len(text) + 1) % _ALIGNMENT
    line = f"{text}{' ' * padding}\n".encode("ascii")
    return _MAGIC + struct.pack("<H", len(line)) + line


def write_npy(path: str, answers: Iterable[Answer]) -> str:
    """Write what a child answers, in the place of what was there; return the path."""
    with writing(Path(path), like=None, overwrite=True, what="the array cannot be written") as out:
        for answer in answers:
            if "descr" in answer.head:
                write_bytes(out.fd, npy_header(answer.head["descr"], tuple(answer.head["shape"])))
            write_bytes(out.fd, answer.block)
    return path
