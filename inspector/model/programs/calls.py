"""What loading would call besides the functions that make plain tensors, as text that does nothing.

The machine remembers every such call, also of those whose results are dropped or hidden where no row is. Of
each name the first few are described: a thousand calls of one function are one piece of news.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inspector.containers.rebuilds import JUDGED
from inspector.model.arguments.check import Arguments, is_judged
from inspector.model.arguments.kinds import listed_name
from inspector.model.checkpoint import CallUse
from inspector.model.programs.uses import Uses, note_fault, note_use
from inspector.model.values.children import breadth_of
from inspector.model.values.text import format_call
from inspector.pickles.values import Call, Global, Value

MOST_OF_ONE_NAME = 4
"""How many calls of one name are described."""
_MOST_NAMES = 10_000
_MOST_HANDED = 24


def list_calls(calls: Iterable[Call], places: dict[int, str]) -> tuple[CallUse, ...]:
    """Describe calls in the order in which they would be made.

    Args:
        places: Paths of the values that have a row, by their `id`.
    """
    counts: dict[int, int] = {}
    rows: list[CallUse] = []
    for call in calls:
        # What is called without having a name is one kind: it comes out of another call.
        number = id(call.func) if isinstance(call.func, Global) else 0
        count = counts[number] = counts.get(number, 0) + 1
        if count <= MOST_OF_ONE_NAME and len(counts) <= _MOST_NAMES:
            name = call.func.dotted if isinstance(call.func, Global) else ""
            rows.append(CallUse(name, format_call(call), _handed(call.args), places.get(id(call))))
    return tuple(rows)


def _handed(args: Value) -> tuple[str, ...]:
    items = args[:_MOST_HANDED] if isinstance(args, tuple) else (args,)
    return tuple(item.dotted for item in items if isinstance(item, Global))


def note_calls(uses: Uses, calls: Iterable[Call], arguments: Arguments, look: Callable[[int], None]) -> None:
    """Note what is done in calls: of each name and verb once, and every call whose arguments are not taken.

    That a function makes a tensor is no news, unless it cannot.
    """
    known: set[tuple[object, ...]] = set()
    names: dict[int, str] = {}
    for call in calls:
        look(1)
        number = _number(call.func)
        name = names.get(number)
        if name is None:
            name = names[number] = listed_name(call.func)
        if name in JUDGED:
            look(breadth_of(call))
            note_fault(uses, name, call, arguments)
        if name in JUDGED or is_rebuild(call.func):
            continue
        kind = (number, call.items is None, call.pairs is None, call.state is None)
        if kind not in known or (isinstance(call.func, Global) and call.func.package == "numpy"):
            known.add(kind)
            look(breadth_of(call))
            note_use(uses, call, arguments)
        elif is_judged(name):
            look(breadth_of(call))
            note_fault(uses, name, call, arguments)


def is_rebuild(func: Value) -> bool:
    """Return whether a value is one of torch's functions that make tensors, of whatever release."""
    return isinstance(func, Global) and func.package == "torch" and func.name.startswith("_rebuild")


def _number(func: Value) -> int:
    return id(func) if isinstance(func, Global) else 0
