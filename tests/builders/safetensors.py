"""Safetensors files made by hand, right and wrong."""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any

Row = dict[str, Any]


def row(dtype: str = "F32", shape: Sequence[Any] = (2,), offsets: Sequence[Any] = (0, 8)) -> Row:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


def safetensors(header: object, data: bytes | int = b"", nbytes: int | None = None) -> bytes:
    """A file of this header: a value for JSON, its text, or its bytes; and of the data or so many zeros."""
    text = header if isinstance(header, bytes | str) else json.dumps(header)
    raw = text.encode() if isinstance(text, str) else text
    return (
        struct.pack("<Q", len(raw) if nbytes is None else nbytes)
        + raw
        + (bytes(data) if isinstance(data, int) else data)
    )


def model(**shapes: Sequence[int]) -> bytes:
    """A sound file of float32 tensors that count from 0 on."""
    header, reached = {}, 0
    for name, shape in shapes.items():
        numel = 1
        for size in shape:
            numel *= size
        header[name.replace("__", ".")] = row("F32", shape, (reached, reached + 4 * numel))
        reached += 4 * numel
    return safetensors(header, b"".join(struct.pack("<f", index) for index in range(reached // 4)))
