"""Handlers of the opcodes that import, call and build, here as inert nodes; see `handlers`."""

from __future__ import annotations

from inspector.pickles.oddities import OddityKind, StreamFault
from inspector.pickles.state import CutOffError, Handler, State
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value, noun_for

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
