"""Whether torch's restricted unpickler sets a state that BUILD hands it, on an object of a known type.

It has one rule for tensors, one for parameters, one for OrderedDict, and that of pickle for the other types
on its list; of these, few have attributes at all.
"""

from __future__ import annotations

from inspector.model.arguments.kinds import PARAMETER, STORAGE, TENSOR, UNKNOWN, UNTYPED, kind_of
from inspector.model.arguments.tensors import (
    is_empty,
    is_view,
    may_be_attributes,
)
from inspector.model.arguments.values import ITERABLE, is_pair, items_of
from inspector.pickles.values import Value

_WITH_ATTRIBUTES = frozenset({"Counter", STORAGE, UNTYPED})
_WITHOUT = frozenset({"set", "Size", "device", "complex", "bytearray"})
_SOURCES = frozenset({STORAGE, UNTYPED, TENSOR, PARAMETER, UNKNOWN})
_PAIR, _VIEW, _OF_PARAMETER, _OF_VARIABLE = 2, 4, 3, 5


def may_set(kind: str, state: Value) -> bool:
    """Return whether the state of an object of that type may be set."""
    if kind == UNKNOWN or kind_of(state) == UNKNOWN:
        return True
    if kind == TENSOR:
        return _may_view(state)
    if kind == PARAMETER:
        return _may_be_parameter(state)
    if kind == "OrderedDict":
        return _may_update(state)
    if kind in _WITH_ATTRIBUTES | _WITHOUT:
        return _may_load(state, has_attributes=kind in _WITH_ATTRIBUTES)
    return False


def _may_view(state: Value) -> bool:
    """Check what `Tensor.set_` is called with: nothing, a storage or tensor, or a view of one."""
    if kind_of(state) not in ITERABLE:
        return False
    given = tuple(items_of(state))
    if not given:
        return True
    if kind_of(given[0]) not in _SOURCES:
        return False
    return len(given) == 1 or (len(given) == _VIEW and is_view(given))


def _may_be_parameter(state: Value) -> bool:
    if kind_of(state) not in ITERABLE:
        return False
    given = tuple(items_of(state))
    if len(given) == _OF_VARIABLE:
        return kind_of(given[0]) in {TENSOR, PARAMETER, UNKNOWN} and isinstance(given[3], bool)
    return len(given) == _OF_PARAMETER and isinstance(given[0], bool)


def _may_update(state: Value) -> bool:
    kind = kind_of(state)
    return kind in {"dict", "OrderedDict", "Counter"} or (
        kind in ITERABLE and all(is_pair(item) for item in items_of(state))
    )


def _may_load(state: Value, *, has_attributes: bool) -> bool:
    slots: Value = None
    if isinstance(state, tuple) and len(state) == _PAIR:
        state, slots = state
    if not has_attributes:
        return is_empty(state) and is_empty(slots)
    return (is_empty(state) or _may_update(state)) and may_be_attributes(slots)
