"""A pickle brought to a given length by instructions that change nothing, for files where nothing may move.

Only what `weights_only` knows is used (`torch/_weights_only_unpickler.py`): PROTO may stand anywhere and says
the same again in 2 bytes, and a small integer may be written with one byte more. Together they make every
length.
"""

from __future__ import annotations

from inspector.pickles.instructions import CODES, iter_instructions
from inspector.remap.edits import Edit, apply_edits, mend_frames

_PROTO_NBYTES = 2


def fit_pickle(data: bytes, nbytes: int) -> bytes | None:
    """Give a pickle of this length that says the same; None where it is too long or takes no filling.

    Filling that an earlier call has put in is taken out first, so a file can be changed more than once.
    """
    head = data[:_PROTO_NBYTES]
    if head[:1] != bytes([CODES["PROTO"]]):
        return data if len(data) == nbytes else None
    filled = 0
    while data.startswith(head, filled + _PROTO_NBYTES):
        filled += _PROTO_NBYTES
    data = data[filled:]
    if (nbytes - len(data)) % 2:
        data = _with_wider_number(data)
    missing = nbytes - len(data)
    return head * (missing // _PROTO_NBYTES) + data if missing >= 0 and missing % 2 == 0 else None


def _with_wider_number(data: bytes) -> bytes:
    """Write the first integer of one byte with two; the same bytes where there is none."""
    frames: list[int] = []
    edit = None
    for start, end in iter_instructions(data, 0, len(data)):
        if data[start] == CODES["FRAME"]:
            frames.append(start)
        elif edit is None and data[start] == CODES["BININT1"]:
            edit = Edit(start, end, bytes([CODES["BININT2"], data[start + 1], 0]))
    if edit is None:
        return data
    return apply_edits(data, [edit, *mend_frames(data, frames, [edit])])
