"""Handlers of the opcodes that make and fill lists, tuples, dicts and sets; see `handlers`."""

from __future__ import annotations

from inspector.pickles.instructions import CODES
from inspector.pickles.oddities import OddityKind
from inspector.pickles.state import Handler, State
from inspector.pickles.values import Call, Dict, Set, Value, noun_for

_ADDITEMS = CODES["ADDITEMS"]


def _empty_list(state: State, data: bytes, pos: int) -> int:
    state.created += 1
    state.stack.append([])
    return pos


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


def _empty_dict(state: State, data: bytes, pos: int) -> int:
    state.created += 1
    state.stack.append(Dict([]))
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


def _empty_set(state: State, data: bytes, pos: int) -> int:
    state.created += 1
    state.stack.append(Set([], frozen=False))
    return pos


def _frozenset(state: State, data: bytes, pos: int) -> int:
    items = state.pop_mark()
    state.stack.append(Set(items, frozen=True))
    return pos


CONTAINERS: dict[str, Handler] = {
    "EMPTY_LIST": _empty_list,
    "LIST": _list,
    "APPEND": _append,
    "APPENDS": _appends,
    "EMPTY_TUPLE": _empty_tuple,
    "TUPLE": _tuple,
    "TUPLE1": _tuple1,
    "TUPLE2": _tuple2,
    "TUPLE3": _tuple3,
    "EMPTY_DICT": _empty_dict,
    "DICT": _dict,
    "SETITEM": _setitem,
    "SETITEMS": _setitems,
    "EMPTY_SET": _empty_set,
    "ADDITEMS": _appends,
    "FROZENSET": _frozenset,
}
