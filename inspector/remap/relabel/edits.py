"""Changes of a pickle's bytes: the instructions that texts and devices are written with, and their FRAMEs."""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Mapping
from itertools import accumulate
from typing import NamedTuple

from inspector.errors import PlanError
from inspector.pickles.instructions import CODES, I4, U8, instruction_end
from inspector.pickles.trace import Built, Push, Trace

_FRAME_NBYTES = 9
_SHORT = frozenset({CODES["SHORT_BINUNICODE"], CODES["SHORT_BINSTRING"]})
_LONG = frozenset({CODES["BINUNICODE"], CODES["BINSTRING"]})


class Edit(NamedTuple):
    """Replace the bytes from `start` to `end`."""

    start: int
    end: int
    data: bytes


def literal_of(data: bytes, trace: Trace, push: Push[str], text: str) -> bytes:
    """Return the instruction that pushes a text, of the kind that the stream writes this push's text with.

    `weights_only` knows some kinds only, so no kind is brought in that the stream does not use already.
    """
    first = _first_push(trace, push)
    if text == first.value:
        return data[first.start : first.end]
    return _text_instruction(data[first.start], text)


def _first_push(trace: Trace, push: Push[str]) -> Push[str]:
    while push.base is not None:
        push = trace.texts[push.base]
    return push


def _text_instruction(code: int, text: str) -> bytes:
    """Write a device's text with one of the opcodes for texts."""
    encoded = text.encode("ascii")
    if code in _SHORT:
        return bytes([code, len(encoded)]) + encoded
    if code in _LONG:
        return bytes([code]) + struct.pack("<I", len(encoded)) + encoded
    if code == CODES["BINUNICODE8"]:
        return bytes([code]) + U8.pack(len(encoded)) + encoded
    quote = b"'" if code == CODES["STRING"] else b""
    return bytes([code]) + quote + encoded + quote + b"\n"


def index_instruction(index: int) -> bytes:
    """Write a device's number, with opcodes that are known to `weights_only`."""
    if 0 <= index < 256:
        return bytes([CODES["BININT1"], index])
    return bytes([CODES["BININT"]]) + I4.pack(index)


def index_of(data: bytes, built: Built) -> bytes:
    """Return the instruction that pushes the number among the arguments of a `torch.device`, or nothing."""
    if len(built.starts) == 1:
        return b""
    start = built.starts[1]
    if len(built.starts) > 2 or instruction_end(data, start) != built.close:
        raise PlanError(
            "the number of a device is written in a way that cannot be changed", where=f"byte {start:,}"
        )
    return data[start : built.close]


def index_edit(data: bytes, built: Built, index: bytes) -> Edit:
    """Return the edit that changes, adds or takes away the number among the arguments of a `torch.device`."""
    start = built.close - len(index_of(data, built))
    if data[built.close] == CODES["TUPLE"]:
        return Edit(start, built.close, index)
    return Edit(start, built.close + 1, index + bytes([CODES["TUPLE2" if index else "TUPLE1"]]))


def device_instructions(kind: bytes, index: bytes) -> bytes:
    """Write a `torch.device` afresh from the instructions of its arguments; nothing of it enters the memo."""
    close = bytes([CODES["TUPLE2" if index else "TUPLE1"], CODES["REDUCE"]])
    return bytes([CODES["GLOBAL"]]) + b"torch\ndevice\n" + kind + index + close


def text_edits(data: bytes, trace: Trace, wanted: Mapping[int, str]) -> list[Edit]:
    """Return the edits that make each push of a text leave what its user wants.

    Args:
        data: The stream.
        trace: Where its texts are pushed.
        wanted: What some of the pushes are to leave, by where they start; all others leave what they did.
    """
    edits = []
    left: dict[int, str] = {}  # what each push leaves once edited
    for start, push in trace.texts.items():
        text = left[start] = wanted.get(start, push.value)
        given = push.value if push.base is None else left[push.base]
        if text != given:
            edits.append(Edit(start, push.end, literal_of(data, trace, push, text)))
    return edits


def mend_frames(data: bytes, frames: list[int], edits: list[Edit]) -> list[Edit]:
    """Return the edits that keep each FRAME as long as the instructions it holds."""
    edits = sorted(edits)
    places = [edit.start for edit in edits]
    growths = [0, *accumulate(len(edit.data) - (edit.end - edit.start) for edit in edits)]
    mended = []
    for start in frames:
        first = start + _FRAME_NBYTES
        (nbytes,) = U8.unpack_from(data, start + 1)
        growth = growths[bisect_left(places, first + nbytes)] - growths[bisect_left(places, first)]
        if growth:
            mended.append(Edit(start + 1, first, U8.pack(nbytes + growth)))
    return mended


def apply_edits(data: bytes, edits: list[Edit]) -> bytes:
    """Return the bytes with all edits made; edits must not overlap."""
    parts = []
    pos = 0
    for edit in sorted(edits):
        parts += [data[pos : edit.start], edit.data]
        pos = edit.end
    return b"".join([*parts, data[pos:]])
