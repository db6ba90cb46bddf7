"""The values of a tensor as a `.npy` or `.safetensors` file: whole, or not at all.

NumPy's format is described in https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html. The
elements come from the child that reads values: for `.npy` in the order of rows and as NumPy's own types, for
`.safetensors` as they are stored.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from inspector.child import Answer
from inspector.containers.copying import write_bytes
from inspector.remap.files import writing
from inspector.remap.safetensors import Row, format_header

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
    return _write(path, answers, lambda head: npy_header(head["descr"], tuple(head["shape"])))


def write_safetensors(path: str, name: str, dtype: str, answers: Iterable[Answer]) -> str:
    """Write elements as they are stored, under a name; return the path."""

    def header(head: dict[str, Any]) -> bytes:
        return format_header([Row(name, dtype, tuple(head["shape"]), 0)])

    return _write(path, answers, header)


def _write(path: str, answers: Iterable[Answer], header: Callable[[dict[str, Any]], bytes]) -> str:
    with writing(Path(path), like=None, overwrite=True, what="the array cannot be written") as out:
        for answer in answers:
            if "shape" in answer.head:
                write_bytes(out.fd, header(answer.head))
            write_bytes(out.fd, answer.block)
    return path
