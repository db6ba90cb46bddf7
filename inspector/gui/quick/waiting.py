"""Enumerations that get their members when they are first asked for one.

PySide makes each enumeration of a class with the class, and a window asks for members of one in four. What
waits is an instance of `Waiting` and has no members; whatever needs them, by name, by value, in a loop or
from C, asks the class for an attribute that is missing, which puts them in. From then on it is an instance of
`EnumMeta` as any other.

Only PySide's search for `Qt.AlignLeft`, short for `Qt.AlignmentFlag.AlignLeft`, looks past the classes that
wait. Type checkers refuse the short form; PySide needs it for its signatures: from then on, nothing waits.
"""

from __future__ import annotations

import enum
from collections import deque
from collections.abc import Callable
from itertools import repeat
from threading import RLock
from typing import Any

LATER = frozenset({
    "_all_bits_",
    "_flag_mask_",
    "_iter_member_",
    "_member_map_",
    "_member_names_",
    "_singles_mask_",
    "_unhashable_values_",
    "_value2member_map_",
})  # fmt: skip
"""What an enumeration has that its members make."""
Pairs = list[tuple[str, int]]
_waiting: dict[Any, tuple[Pairs, Callable[[], dict[str, Any]]]] = {}
_LOCK = RLock()
_is_over = False
_exhaust = deque[Any](maxlen=0).extend


def wait(made: Any, pairs: Pairs, fill: Callable[[], dict[str, Any]]) -> None:  # noqa: ANN401 - any enumeration
    """Have an enumeration filled when it is first asked for one of its members."""
    _waiting[made] = pairs, fill
    if _is_over:
        complete(made)


def wait_no_longer() -> None:
    """Complete all enumerations, and those that are made later at once."""
    global _is_over  # noqa: PLW0603 - of the process, as what PySide makes
    _is_over = True
    for made in list(_waiting):
        complete(made)


def complete(made: Any) -> None:  # noqa: ANN401 - any enumeration
    """Put the members into an enumeration that waits for them."""
    with _LOCK:  # or another thread would meet half of them
        waits = _waiting.get(made)
        if waits is not None:
            parts = {"__class__": enum.EnumMeta} | waits[1]()
            # In one call of C, for the threads that do not ask for the lock.
            _exhaust(map(type.__setattr__, repeat(made), parts.keys(), parts.values()))
            del _waiting[made]


class _Missing:
    """An attribute of an enumeration that is there when its members are."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, made: Any, _: object = None) -> Any:  # noqa: ANN401 - as the attribute
        complete(made)
        return getattr(made, self._name)

    def __set__(self, made: Any, value: object) -> None:  # noqa: ANN401 - as above
        complete(made)
        setattr(made, self._name, value)


def _find(made: Any, name: str) -> Any:  # noqa: ANN401 - as the attribute
    """Stand in for `__getattr__`: return a member, if it is one."""
    waits = _waiting.get(made)
    if waits is not None and all(name != member for member, _ in waits[0]):
        raise AttributeError(name)
    complete(made)
    return getattr(made, name)


def _set(made: Any, name: str, value: object) -> None:  # noqa: ANN401 - as above
    """Stand in for `__setattr__`: PySide sets `__module__` and `_missing_` of what it has made."""
    if name.startswith("_"):
        type.__setattr__(made, name, value)
    else:
        complete(made)
        setattr(made, name, value)


_missing: dict[str, Any] = {name: _Missing(name) for name in {*LATER, "__dict__"}}
_own = {"__slots__": (), "__getattr__": _find, "__setattr__": _set}
Waiting: Any = type("Waiting", (enum.EnumMeta,), _missing | _own)
