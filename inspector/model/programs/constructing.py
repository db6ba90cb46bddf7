"""Which imported names a pickle merely makes objects of, and which it calls or hands on to be called.

torch's list of names makes no difference between the two: a name on it may be called by REDUCE with
any arguments. NEWOBJ is `cls.__new__(cls, *args)`, which fails for everything but a class, and the state
that BUILD sets from a plain dictionary becomes the object's attributes. So a name that is used in no other
way is a class, of which the file only brings the attributes. REDUCE proves nothing: a function is called the
same way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inspector.containers.rebuilds import REBUILDS
from inspector.pickles.values import Call, Dict, Global, Set, Value

# torch takes nothing but a class at this place of their arguments (`torch/_tensor.py`, `torch/_utils.py`).
_CLASS_AT = {one.dotted: one.class_at for one in REBUILDS if one.class_at >= 0}
_MOST_ARGS = 16
_PAIR = 2


def split_by_use(
    calls: Iterable[Call], look: Callable[[int], None] = lambda _: None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the names that are only constructed, and those that are called or may be by what is handed them.

    A name that is in neither is imported and left alone. Each container is looked into once, however many
    calls share it. `look` counts the work.
    """
    made: dict[str, None] = {}
    called: dict[str, None] = {}
    seen: set[int] = set()
    for call in calls:
        look(2)
        func = call.func
        if isinstance(func, Global):
            (made if _constructs(call) else called)[func.dotted] = None
        _note_handed(_arguments(call, made), called, seen)
    return tuple(name for name in made if name not in called), tuple(called)


def _constructs(call: Call) -> bool:
    return call.kind == "newobj" and call.kwargs is None and _is_plain_state(call.state)


def _is_plain_state(state: Value) -> bool:
    """Return whether a state is one that becomes attributes; with slots, it is a pair of such."""
    if isinstance(state, tuple) and len(state) == _PAIR:
        return all(part is None or isinstance(part, Dict) for part in state)
    return state is None or isinstance(state, Dict)


def _arguments(call: Call, made: dict[str, None]) -> list[Value]:
    """Return the arguments that the callee may call, and note the class among them."""
    args, func = call.args, call.func
    place = _CLASS_AT.get(func.dotted) if isinstance(func, Global) else None
    if place is None or not isinstance(args, tuple) or not place < len(args) <= _MOST_ARGS:
        return [args, call.kwargs]
    cls = args[place]
    if not isinstance(cls, Global):
        return [args]
    made[cls.dotted] = None
    return [*args[:place], *args[place + 1 :]]


def _note_handed(values: list[Value], called: dict[str, None], seen: set[int]) -> None:
    while values:
        value = values.pop()
        if isinstance(value, Global):
            called[value.dotted] = None
        elif isinstance(value, list | tuple | Dict | Set) and id(value) not in seen:
            seen.add(id(value))
            values.extend(_inside(value))


def _inside(value: list[Value] | tuple[Value, ...] | Dict | Set) -> Iterable[Value]:
    if isinstance(value, Dict):
        return [part for pair in value.pairs for part in pair]
    return value.items if isinstance(value, Set) else value
