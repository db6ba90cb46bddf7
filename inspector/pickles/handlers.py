"""One function for each opcode: `handler(state, data, pos) -> offset of the next instruction`.

`pos` is the offset of the operand. A handler reads its whole operand before it changes anything, so that an
instruction that was cut off can be repeated once more of the stream is there. What each opcode does is
stated in CPython's `Lib/pickletools.py`; how unpicklers really behave, in `Modules/_pickle.c`. What would
import, call and build makes inert nodes.
"""

from __future__ import annotations

from collections.abc import Callable

from inspector.pickles.handlers_literals import LITERALS
from inspector.pickles.instructions import CODES, U4, U8
from inspector.pickles.oddities import OddityKind, StreamFault
from inspector.pickles.state import (
    BrokenStreamError,
    CutOffError,
    EmptySlotError,
    Handler,
    PausedError,
    State,
    StoppedError,
)
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value, noun_for

# --- imports and calls --------------------------------------------------------------------------------------


_SHORT_NAME = 100


def _global(state: State, data: bytes, pos: int) -> int:
    module, name, end = _read_name(state, data, pos)
    state.stack.append(state.use_global(module, name))
    return end


def _stack_global(state: State, data: bytes, pos: int) -> int:
    name = state.stack.pop()
    module = state.stack.pop()
    if not isinstance(name, str) or not isinstance(module, str):
        state.note(OddityKind.STACK_GLOBAL_OPERANDS, pos)
    module, name = _name_of(module), _name_of(name)
    if len(module) + len(name) > _SHORT_NAME and (module, name) not in state.globals:
        state.add_text(len(module) + len(name))  # one long str can be part of many names
    state.stack.append(state.use_global(module, name))
    return pos


def _name_of(value: Value) -> str:
    return value if isinstance(value, str) else f"<{noun_for(value)}>"


def _read_name(state: State, data: bytes, pos: int) -> tuple[str, str, int]:
    limit = pos + state.limits.long_nbytes
    middle = data.find(b"\n", pos, limit)
    end = data.find(b"\n", middle + 1, limit) if middle >= 0 else -1
    if end < 0:
        raise CutOffError("the name of a global is not two short lines")
    return _decode(state, data[pos:middle]), _decode(state, data[middle + 1 : end]), end + 1


def _decode(state: State, line: bytes) -> str:
    state.add_text(len(line))
    try:
        return line.decode()
    except UnicodeDecodeError:
        state.tick()
        state.faults.add(StreamFault.UNDECODABLE_NAME)
        return line.decode("utf-8", "backslashreplace")


def _ext(width: int) -> Handler:
    def handler(state: State, data: bytes, pos: int) -> int:
        operand = data[pos : pos + width]
        if len(operand) < width:
            raise CutOffError("an extension code is cut off")
        code = int.from_bytes(operand, "little", signed=width == 4)
        state.note(OddityKind.EXTENSION_CODE, pos, str(code))
        state.stack.append(state.use_global("copyreg", f"extension_{code}"))
        return pos + width

    return handler


def _reduce(state: State, data: bytes, pos: int) -> int:
    stack = state.stack
    state.created += 1
    args = stack.pop()
    func = stack[-1]
    node = stack[-1] = Call(func, args, "reduce")
    if type(func) is Global and func.common and type(args) is tuple and 0 <= len(args) - func.arity <= 1:
        return pos
    state.calls.append(node)
    state.hand_over(args)
    return pos


def _newobj(state: State, data: bytes, pos: int) -> int:
    stack = state.stack
    state.created += 1
    args = stack.pop()
    node = stack[-1] = Call(stack[-1], args, "newobj")
    state.calls.append(node)
    state.hand_over(args)
    return pos


def _newobj_ex(state: State, data: bytes, pos: int) -> int:
    stack = state.stack
    state.created += 1
    kwargs = stack.pop()
    args = stack.pop()
    node = stack[-1] = Call(stack[-1], args, "newobj", kwargs)
    state.calls.append(node)
    state.hand_over((args, kwargs))
    state.hand_over(args)
    return pos


def _inst(state: State, data: bytes, pos: int) -> int:
    module, name, end = _read_name(state, data, pos)
    args = tuple(state.pop_mark())
    _instantiate(state, state.use_global(module, name), args)
    return end


def _obj(state: State, data: bytes, pos: int) -> int:
    items = state.pop_mark()
    _instantiate(state, items[0], tuple(items[1:]))
    return pos


def _instantiate(state: State, cls: Value, args: tuple[Value, ...]) -> None:
    node = Call(cls, args, "inst")
    state.calls.append(node)
    state.hand_over(args)
    state.stack.append(node)


def _build(state: State, data: bytes, pos: int) -> int:
    value = state.stack.pop()
    target = state.stack[-1]
    state.hand_over(value if type(value) is tuple else (value,))
    if not isinstance(target, Call):
        state.note(_built(target, value), pos, noun_for(target))
    elif value is None:
        _build_of_none(state, target)
    elif target.state is not None:
        state.note(OddityKind.BUILD_TWICE, pos)
        state.created += 1
        target.state = [target.state, value]
    else:
        target.state = value
    return pos


def _built(target: Value, value: Value) -> OddityKind:
    """Return what kind of oddity it is to set the state of a value that no call made."""
    if isinstance(target, Global):
        return OddityKind.BUILD_ON_NAME
    is_empty = value is None or value == () or (isinstance(value, Dict) and not value.pairs)
    if isinstance(target, Set) and is_empty:
        return OddityKind.BUILD_ON_SET
    is_attributes = is_empty or isinstance(value, Dict) or (isinstance(value, tuple) and len(value) == 2)
    if isinstance(target, PersistentId) and is_attributes:
        return OddityKind.BUILD_ON_STORAGE
    return OddityKind.BUILD_ON_OTHER


def _build_of_none(state: State, target: Call) -> None:
    """Note a state that is None where it is looked into; pickle itself sets none."""
    func = target.func
    if isinstance(func, Global) and func.dotted in state.expected.stateful:
        state.faults.add(StreamFault.BUILD_OF_NONE)


def _persid(state: State, data: bytes, pos: int) -> int:
    end = data.find(b"\n", pos, pos + state.limits.long_nbytes)
    if end < 0:
        raise CutOffError("a persistent id is not a short line")
    state.stack.append(_decode(state, data[pos:end]))
    _binpersid(state, data, end)
    return end + 1


def _binpersid(state: State, data: bytes, pos: int) -> int:
    stack = state.stack
    node = PersistentId(stack[-1])
    state.created += 1
    state.persistent_ids.append(node)
    stack[-1] = node if state.resolve is None else state.resolve(node)
    return pos


CALLS: dict[str, Handler] = {
    "GLOBAL": _global,
    "STACK_GLOBAL": _stack_global,
    "EXT1": _ext(1),
    "EXT2": _ext(2),
    "EXT4": _ext(4),
    "REDUCE": _reduce,
    "BUILD": _build,
    "INST": _inst,
    "OBJ": _obj,
    "NEWOBJ": _newobj,
    "NEWOBJ_EX": _newobj_ex,
    "PERSID": _persid,
    "BINPERSID": _binpersid,
}


# --- lists, tuples, dicts and sets --------------------------------------------------------------------------


_ADDITEMS = CODES["ADDITEMS"]


def _list(state: State, data: bytes, pos: int) -> int:
    items = state.pop_mark()
    state.stack.append(items)
    return pos


def _append(state: State, data: bytes, pos: int) -> int:
    item = state.stack.pop()
    _extend(state, data, pos, [item])
    return pos


def _appends(state: State, data: bytes, pos: int) -> int:
    items = state.pop_mark()
    _extend(state, data, pos, items)
    return pos


def _extend(state: State, data: bytes, pos: int, items: list[Value]) -> None:
    target = state.stack[-1]
    state.note_change(target, pos)
    if isinstance(target, list):
        target.extend(items)
    elif isinstance(target, Call):
        if target.items is None:
            state.created += 1
            target.items = []
        target.items.extend(items)
    elif isinstance(target, Set):
        target.items.extend(items)
        if data[pos - 1] != _ADDITEMS:  # CPython calls `extend`, which sets lack
            state.note(OddityKind.APPEND_ON_OTHER, pos, "a set")
    else:
        state.note(OddityKind.APPEND_ON_OTHER, pos, noun_for(target))


def _empty_tuple(state: State, data: bytes, pos: int) -> int:
    state.stack.append(())
    return pos


def _tuple(state: State, data: bytes, pos: int) -> int:
    items = state.stack
    state.stack = stack = state.marked.pop()
    state.created += 1
    stack.append(tuple(items))
    return pos


def _tuple1(state: State, data: bytes, pos: int) -> int:
    stack = state.stack
    state.created += 1
    stack[-1] = (stack[-1],)
    return pos


def _tuple2(state: State, data: bytes, pos: int) -> int:
    stack = state.stack
    state.created += 1
    second = stack.pop()
    stack[-1] = (stack[-1], second)
    return pos


def _tuple3(state: State, data: bytes, pos: int) -> int:
    stack = state.stack
    state.created += 1
    third = stack.pop()
    second = stack.pop()
    stack[-1] = (stack[-1], second, third)
    return pos


def _dict(state: State, data: bytes, pos: int) -> int:
    items = state.pop_mark()
    state.stack.append(Dict(_pairs(state, pos, items)))
    return pos


def _setitem(state: State, data: bytes, pos: int) -> int:
    value = state.stack.pop()
    key = state.stack.pop()
    state.created += 1
    _update(state, pos, [(key, value)])
    return pos


def _setitems(state: State, data: bytes, pos: int) -> int:
    items = state.pop_mark()
    _update(state, pos, _pairs(state, pos, items))
    return pos


def _pairs(state: State, pos: int, items: list[Value]) -> list[tuple[Value, Value]]:
    if len(items) % 2:
        state.note(OddityKind.ODD_ITEMS, pos)
    state.add_pairs(len(items) // 2)
    item = iter(items)
    return list(zip(item, item, strict=False))


def _update(state: State, pos: int, pairs: list[tuple[Value, Value]]) -> None:
    target = state.stack[-1]
    state.note_change(target, pos)
    if isinstance(target, Dict):
        target.pairs.extend(pairs)
    elif isinstance(target, Call):
        if target.pairs is None:
            state.created += 1
            target.pairs = []
        target.pairs.extend(pairs)
    else:
        state.note(OddityKind.SETITEM_ON_OTHER, pos, noun_for(target))


def _empty(make: Callable[[], Value]) -> Handler:
    def handler(state: State, data: bytes, pos: int) -> int:
        state.created += 1
        state.stack.append(make())
        return pos

    return handler


def _frozenset(state: State, data: bytes, pos: int) -> int:
    items = state.pop_mark()
    state.stack.append(Set(items, frozen=True))
    return pos


CONTAINERS: dict[str, Handler] = {
    "EMPTY_LIST": _empty(list),
    "LIST": _list,
    "APPEND": _append,
    "APPENDS": _appends,
    "EMPTY_TUPLE": _empty_tuple,
    "TUPLE": _tuple,
    "TUPLE1": _tuple1,
    "TUPLE2": _tuple2,
    "TUPLE3": _tuple3,
    "EMPTY_DICT": _empty(lambda: Dict([])),
    "DICT": _dict,
    "SETITEM": _setitem,
    "SETITEMS": _setitems,
    "EMPTY_SET": _empty(lambda: Set([], frozen=False)),
    "ADDITEMS": _appends,
    "FROZENSET": _frozenset,
}


# --- stack, marks and memo ----------------------------------------------------------------------------------


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
    try:  # in place: the commonest instruction of many tensors
        value = state.memo[data[pos]]
    except LookupError:
        _fetch(state, data[pos])
    else:
        state.stack.append(value)
    return pos + 1


def _long_binget(state: State, data: bytes, pos: int) -> int:
    _fetch(state, _read_u4(data, pos)[0])
    return pos + 4


def _fetch(state: State, slot: int) -> None:
    try:
        value = state.memo[slot]
    except LookupError:
        raise EmptySlotError(f"memo slot {slot} is read before it is filled") from None
    state.stack.append(value)


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


# --- the table ----------------------------------------------------------------------------------------------


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
