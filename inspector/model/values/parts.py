"""Everything that a value is made of, and one walk through all of it.

Unlike `children_of`, which lists what is shown, this leaves out nothing that a pickle refers to: keys of
mappings, what objects are made with, and what is called to make them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value

_CONTAINERS = frozenset({list, tuple, Dict, Set, PersistentId, Call})


def parts_of(value: Value) -> Iterable[Value]:
    """Return the values that a value is made of; of a call's function only what is not just a name."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Dict):
        return [part for pair in value.pairs for part in pair]
    if isinstance(value, Set):
        return value.items
    if isinstance(value, PersistentId):
        return [value.pid]
    if not isinstance(value, Call):
        return ()
    func = () if isinstance(value.func, Global) else (value.func,)
    pairs = [part for pair in value.pairs or () for part in pair]
    return [*func, value.args, value.kwargs, value.state, *(value.items or ()), *pairs]


def iter_values(root: Value, below: Callable[[Value], Iterable[Value]] = parts_of) -> Iterator[Value]:
    """Go through a value and all below it, the last first; what can hold others comes once, however shared.

    A stack of its own keeps track, so that no depth of nesting exhausts Python's. What is below a value is
    asked for after the value was given out, so it may have been changed by then.
    """
    seen: dict[int, Value] = {}  # what is known by its identity must live on
    stack: list[Value] = [root]
    while stack:
        value = stack.pop()
        if type(value) in _CONTAINERS:
            if id(value) in seen:
                continue
            seen[id(value)] = value
            yield value
            stack.extend(below(value))
        else:
            yield value
