"""A pickle brought to a given length by instructions that change nothing, for files where nothing may move.

Only what `weights_only` knows is used (`torch/_weights_only_unpickler.py`): PROTO may stand anywhere and says
the same again in 2 bytes, and a small integer may be written with one byte more. Together they make every
length.
"""

from __future__ import annotations

from inspector.pickles.instructions import CODES, iter_instructions
from inspector.remap.relabel.edits import Edit, apply_edits, mend_frames

_PROTO = bytes([CODES["PROTO"]])
_PROTO_NBYTES = 2
_NARROW, _WIDE = CODES["BININT1"], CODES["BININT2"]
_PAIR = bytes([CODES["NONE"], CODES["POP"]])
_TRIPLE = bytes([CODES["BININT1"], 0, CODES["POP"]])


def fit_pickle(data: bytes, nbytes: int) -> bytes | None:
    """Return a pickle of this length that says the same; None where it is too long or takes no filling.

    Filling that an earlier call has put in is taken out first, so a file can be changed more than once, and
    back again.
    """
    if data[:1] != _PROTO:
        return data if len(data) == nbytes else None
    data = _with_first_number(_without_filling(data), _NARROW)
    if (nbytes - len(data)) % 2:
        data = _with_first_number(data, _WIDE)
    missing = nbytes - len(data)
    head = data[:_PROTO_NBYTES]
    return head * (missing // _PROTO_NBYTES) + data if missing >= 0 and missing % 2 == 0 else None


def unfit_pickle(data: bytes) -> bytes:
    """Return a pickle as it was before `fit_pickle` filled it up; one that it did not fill stays as it is."""
    plain = _without_filling(data)
    return data if plain == data else _with_first_number(plain, _NARROW)


def _without_filling(data: bytes) -> bytes:
    head = data[:_PROTO_NBYTES]
    filled = 0
    while data[:1] == _PROTO and data.startswith(head, filled + _PROTO_NBYTES):
        filled += _PROTO_NBYTES
    return data[filled:]


def pad_pickle(data: bytes, nbytes: int) -> bytes | None:
    """Return a pickle of this length that says the same, for files that `weights_only` never reads.

    None and small numbers are pushed and dropped again behind PROTO. Nothing is one byte long, so a pickle
    that lacks one cannot be padded; `unpad_pickle` takes out what this put in.
    """
    missing = nbytes - len(data)
    if missing < 0 or missing == 1 or data[:1] != _PROTO:
        return data if missing == 0 else None
    padding = _PAIR * (missing // len(_PAIR))
    if missing % len(_PAIR):
        padding = _TRIPLE + padding[: missing - len(_TRIPLE)]
    return data[:_PROTO_NBYTES] + padding + data[_PROTO_NBYTES:]


def unpad_pickle(data: bytes) -> bytes:
    """Return a pickle as it was before `pad_pickle`."""
    if data[:1] != _PROTO:
        return data
    pos = _PROTO_NBYTES
    if data.startswith(_TRIPLE, pos):
        pos += len(_TRIPLE)
    while data.startswith(_PAIR, pos):
        pos += len(_PAIR)
    return data[:_PROTO_NBYTES] + data[pos:]


def _with_first_number(data: bytes, code: int) -> bytes:
    """Write the first integer below 256 in one byte or in two; the same bytes where there is none."""
    frames: list[int] = []
    for start, end in iter_instructions(data, 0, len(data)):
        if data[start] == CODES["FRAME"]:
            frames.append(start)
        elif data[start] == _NARROW or (data[start] == _WIDE and not data[start + 2]):
            low = bytes([code, data[start + 1]])
            edit = Edit(start, end, low if code == _NARROW else low + b"\0")
            return apply_edits(data, [edit, *mend_frames(data, frames, [edit])])
    return data
