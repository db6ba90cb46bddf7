"""One function for each opcode: `handler(state, data, pos) -> offset of the next instruction`.

`pos` is the offset of the operand. A handler reads its whole operand before it changes anything, so that an
instruction that was cut off can be repeated once more of the stream is there. What each opcode does is
stated in CPython's `Lib/pickletools.py`; how unpicklers really behave, in `Modules/_pickle.c`.
"""

from __future__ import annotations

from inspector.pickles.handlers_calls import CALLS
from inspector.pickles.handlers_containers import CONTAINERS
from inspector.pickles.handlers_literals import LITERALS
from inspector.pickles.handlers_memo import MEMO
from inspector.pickles.instructions import CODES
from inspector.pickles.state import BrokenStreamError, Handler, PausedError, State


def _unknown(state: State, data: bytes, pos: int) -> int:
    raise BrokenStreamError("the byte is no pickle opcode")


HANDLERS: list[Handler] = [_unknown] * 256
"""The handler of each opcode byte."""

for _name, _handler in {**LITERALS, **CONTAINERS, **MEMO, **CALLS}.items():
    HANDLERS[CODES[_name]] = _handler


def _enter_frame(state: State, data: bytes, pos: int) -> int:
    raise PausedError(HANDLERS[CODES["FRAME"]](state, data, pos))


_RUNNING = HANDLERS.copy()
_RUNNING[CODES["FRAME"]] = _enter_frame


def first_use(state: State, data: bytes, pos: int) -> int:
    """Stand in the table for every opcode not met yet, and make way for its handler.

    So the table ends up telling which opcodes a stream uses, which costs nothing for each instruction.
    """
    code = data[pos - 1]
    state.firsts[code] = len(state.persistent_ids), len(state.globals)
    handler = state.table[code] = _RUNNING[code]
    return handler(state, data, pos)
