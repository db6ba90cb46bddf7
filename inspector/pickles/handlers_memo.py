"""Handlers of the opcodes that move values between stack, marks and memo; see `handlers`."""

from __future__ import annotations

from inspector.pickles.instructions import U4, U8
from inspector.pickles.oddities import OddityKind, StreamFault
from inspector.pickles.state import (
    BrokenStreamError,
    CutOffError,
    EmptySlotError,
    Handler,
    State,
    StoppedError,
)

HIGHEST_PROTOCOL = 5
_HIGHEST_SLOT = 2**63 - 1  # no unpickler in C can count further
_MOST_DIGITS = 64
_read_u4 = U4.unpack_from


def _mark(state: State, data: bytes, pos: int) -> int:
    state.marked.append(state.stack)
    state.stack = []
    return pos


def _pop(state: State, data: bytes, pos: int) -> int:
    if state.stack:
        state.stack.pop()
    else:
        state.pop_mark()
    return pos


def _pop_mark(state: State, data: bytes, pos: int) -> int:
    state.pop_mark()
    return pos


def _dup(state: State, data: bytes, pos: int) -> int:
    state.stack.append(state.stack[-1])
    return pos


def _get(state: State, data: bytes, pos: int) -> int:
    slot, end = _read_slot(data, pos)
    _fetch(state, slot)
    return end


def _binget(state: State, data: bytes, pos: int) -> int:
    slot = data[pos]
    try:
        value = state.memo[slot]
    except LookupError:
        raise _empty_slot(slot) from None
    state.stack.append(value)
    return pos + 1


def _long_binget(state: State, data: bytes, pos: int) -> int:
    _fetch(state, _read_u4(data, pos)[0])
    return pos + 4


def _fetch(state: State, slot: int) -> None:
    try:
        value = state.memo[slot]
    except LookupError:
        raise _empty_slot(slot) from None
    state.stack.append(value)


def _empty_slot(slot: int) -> EmptySlotError:
    return EmptySlotError(f"memo slot {slot} is read before it is filled")


def _put(state: State, data: bytes, pos: int) -> int:
    slot, end = _read_slot(data, pos)
    if slot > 0xFFFFFFFF:
        state.note(OddityKind.HUGE_MEMO_SLOT, pos)
    state.remember(slot, state.stack[-1])
    return end


# The two below are a third of all instructions: slots that come in order, the usual case, take the short way.


def _binput(state: State, data: bytes, pos: int) -> int:
    slot = data[pos]
    memo = state.memo
    if slot == len(memo) and type(memo) is list:
        memo.append(state.stack[-1])
    else:
        state.remember(slot, state.stack[-1])
    return pos + 1


def _long_binput(state: State, data: bytes, pos: int) -> int:
    slot = _read_u4(data, pos)[0]
    memo = state.memo
    if slot == len(memo) and type(memo) is list:
        memo.append(state.stack[-1])
    else:
        state.remember(slot, state.stack[-1])
    return pos + 4


def _memoize(state: State, data: bytes, pos: int) -> int:
    memo = state.memo
    if type(memo) is list:
        memo.append(state.stack[-1])
    else:
        state.remember(len(memo), state.stack[-1])
    return pos


def _read_slot(data: bytes, pos: int) -> tuple[int, int]:
    end = data.find(b"\n", pos, pos + _MOST_DIGITS)
    if end < 0:
        raise CutOffError("a memo slot is not a short line")
    slot = int(data[pos:end])
    if not 0 <= slot <= _HIGHEST_SLOT:
        raise BrokenStreamError("a memo slot is out of range")
    return slot, end + 1


def _proto(state: State, data: bytes, pos: int) -> int:
    protocol = data[pos]
    if protocol > HIGHEST_PROTOCOL:
        state.faults.add(StreamFault.UNKNOWN_PROTOCOL)
    else:
        state.protocol = max(state.protocol, protocol)
    return pos + 1


def _frame(state: State, data: bytes, pos: int) -> int:
    nbytes = U8.unpack_from(data, pos)[0]
    if pos - 1 < state.frame_end:
        is_whole = not pos < state.frame_end < pos + 8
        state.note(OddityKind.FRAME_IN_FRAME if is_whole else OddityKind.FRAME_STRADDLE, pos)
    state.frame_end = pos + 8 + nbytes
    return pos + 8


def _stop(state: State, data: bytes, pos: int) -> int:
    state.root = state.stack.pop()
    if state.frame_end > len(data):
        state.faults.add(StreamFault.LONG_FRAME)
    raise StoppedError(pos)


MEMO: dict[str, Handler] = {
    "POP": _pop,
    "DUP": _dup,
    "MARK": _mark,
    "POP_MARK": _pop_mark,
    "GET": _get,
    "BINGET": _binget,
    "LONG_BINGET": _long_binget,
    "PUT": _put,
    "BINPUT": _binput,
    "LONG_BINPUT": _long_binput,
    "MEMOIZE": _memoize,
    "PROTO": _proto,
    "FRAME": _frame,
    "STOP": _stop,
}
