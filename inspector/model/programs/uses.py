"""What a pickle does with the names that it imports, as far as torch's restricted unpickler minds.

Importing is only the first step: `weights_only=True` also refuses to append to anything but a list, to set
items of anything but three kinds of dictionary, and to set the state of what it does not know. And `getattr`
reaches names that are imported nowhere.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from inspector.containers.persistent_ids import StorageId, parse_storage_id
from inspector.containers.rebuilds import JUDGED
from inspector.model.arguments import (
    PARAMETER,
    STORAGE,
    TENSOR,
    UNKNOWN,
    are_sizes,
    kind_of,
    listed_name,
    may_be_attributes,
    may_take,
    random_type,
)
from inspector.model.checkpoint import Verb
from inspector.model.tensors.numpy_arrays import describe_array, describe_scalar
from inspector.model.values.children import breadth_of, iter_values
from inspector.pickles.machine import Stream
from inspector.pickles.values import Call, Global, PersistentId, Value

# Whether torch's restricted unpickler sets a state that BUILD hands it, on an object of a known type.
#
# It has one rule for tensors, one for parameters and one for OrderedDict; of the other types on its list
# nobody writes a state.

_VIEW, _OF_PARAMETER, _OF_VARIABLE = 4, 3, 5


def may_set(kind: str, state: Value) -> bool:
    """Return whether the state of an object of that type is one that torch or Python writes."""
    if kind == UNKNOWN or kind_of(state) == UNKNOWN:
        return True
    given = state if isinstance(state, tuple) else ()
    if kind == TENSOR:  # of torch 0.x: a view of a storage
        is_stored = len(given) == _VIEW and kind_of(given[0]) in {STORAGE, UNKNOWN}
        return is_stored and type(given[1]) is int and are_sizes(*given[2:])
    if kind == PARAMETER:
        if len(given) == _OF_VARIABLE:
            return kind_of(given[0]) in {TENSOR, PARAMETER, UNKNOWN} and isinstance(given[3], bool)
        return len(given) == _OF_PARAMETER and isinstance(given[0], bool)
    return kind == "OrderedDict" and state is not None and may_be_attributes(state)


PERSISTENT_ID = "<persistent id>"
"""Stands for the name of what comes as a persistent id and is no storage: a class in a legacy file."""

_GETATTR = "builtins.getattr"
_DTYPE_CLASSES = {
    "bool": "BoolDType",
    "str": "StrDType",
    "bytes": "BytesDType",
    "void": "VoidDType",
    "object": "ObjectDType",
    "datetime64": "DateTime64DType",
    "timedelta64": "TimeDelta64DType",
}
_ASK_EACH = 4096
_MOST_NAME = 1000
_MOST_NESTED = 8  # a parameter of a wrapper of a tensor; what lies deeper is no tensor, see `views`
_ZIP_PARTS, _LEGACY_PARTS, _VIEW_PARTS = 5, 6, 3
Uses = set[tuple[str, Verb]]


def note_use(uses: Uses, call: Call) -> None:
    """Add what is done in one call and to its result."""
    name = _name_of(call.func)
    uses.add((name, Verb.CALL if may_take(name, call) else Verb.MISCALL))
    _note_filling(uses, name, call)
    made = random_type(call) if call.state is not None else None
    if made is not None:
        uses.add((made, Verb.BUILD))
    array = describe_array(call) or describe_scalar(call)
    if array is not None:
        # The state of a dtype is set, and its class is one for each element type, named nowhere in the file.
        uses.add((f"numpy.dtypes.{_dtype_class(array.dtype)}", Verb.BUILD))


def note_state(uses: Uses, name: str, call: Call) -> None:
    """Add that a call's result is given a state, unless torch knows its type and sets it."""
    kind = kind_of(call)
    if kind == UNKNOWN:
        uses.add((name, Verb.BUILD))
    elif not may_set(kind, call.state):
        uses.add((name, Verb.MISBUILD))


def note_fault(uses: Uses, name: str, call: Call, look: Callable[[int], None]) -> None:
    """Note a call of a name that torch knows, if nobody writes its arguments, or the state of its result."""
    for _ in range(_MOST_NESTED):
        look(breadth_of(call))
        if not may_take(name, call):
            uses.add((name, Verb.MISCALL))
        _note_filling(uses, name, call)
        given = call.args[0] if isinstance(call.args, tuple) and call.args else None
        if not isinstance(given, Call) or listed_name(given.func) not in JUDGED:
            break
        name, call = listed_name(given.func), given


def _note_filling(uses: Uses, name: str, call: Call) -> None:
    if call.items is not None:
        uses.add((name, Verb.APPEND))
    if call.pairs is not None:
        uses.add((name, Verb.SETITEM))
    if call.state is not None:
        note_state(uses, name, call)


def note_strangers(uses: Uses, stream: Stream, *, is_legacy: bool) -> None:
    """Add that there are persistent ids of something else than storages, if there are."""
    count = _LEGACY_PARTS if is_legacy else _ZIP_PARTS
    for node in stream.persistent_ids:
        pid = node.pid
        if type(node.meaning) is StorageId and type(pid) is tuple and len(pid) == count == _ZIP_PARTS:
            continue  # nearly all, told without another look
        if type(pid) is not tuple or not pid or pid[0] != "storage":
            is_class = bool(is_legacy and isinstance(pid, tuple) and pid and pid[0] == "module")
            uses.add((PERSISTENT_ID, Verb.LOAD if is_class or not is_legacy else Verb.MISREAD))
            return
        if parse_storage_id(node) is None or len(pid) != count or not _is_view(pid[_ZIP_PARTS:]):
            uses.add((PERSISTENT_ID, Verb.MISREAD))


def _is_view(parts: tuple[Value, ...]) -> bool:
    """Return whether the last part of a legacy storage's id is a view of it, or None; a zip's have none."""
    view = parts[0] if parts else None
    if not isinstance(view, tuple | list):
        return view is None
    return len(view) == _VIEW_PARTS and all(isinstance(number, int) for number in view[1:])


def note_attributes(uses: Uses, stream: Stream, ends_s: float = math.inf) -> None:
    """Add what `getattr` reaches; the name is empty where that cannot be told.

    Everything below the root is looked through, also what is never listed, and below every call, wherever its
    result ends: on the stack below the root, or dropped.
    What is left when the time is over, by the clock of this thread, counts as reaching anything.
    """
    if not any(node.present == _GETATTR for node in stream.globals):
        return
    if stream.oddities:
        uses.add(("", Verb.GETATTR))
    for step, value in enumerate(iter_values([stream.root, *stream.calls])):
        _note_attribute(uses, value)
        if step % _ASK_EACH == 0 and time.thread_time() > ends_s:
            uses.add(("", Verb.GETATTR))
            return


def _note_attribute(uses: Uses, value: Value) -> None:
    if isinstance(value, Call) and _is_getattr(value.func):
        uses.add((_attribute_of(value.args), Verb.GETATTR))
    elif _is_getattr(value):  # handed to somebody else to be called
        uses.add(("", Verb.GETATTR))


def _is_getattr(value: Value) -> bool:
    return isinstance(value, Global) and value.present == _GETATTR


def _attribute_of(args: Value) -> str:
    if not isinstance(args, tuple) or len(args) != 2:
        return ""
    owner, name = args
    if not isinstance(owner, Global) or not isinstance(name, str):
        return ""
    return f"{owner.dotted[:_MOST_NAME]}.{name[:_MOST_NAME]}"  # one long text can be part of many names


def _name_of(func: Value) -> str:
    if isinstance(func, PersistentId):
        return PERSISTENT_ID
    return func.dotted if isinstance(func, Global) else ""


def _dtype_class(dtype: str) -> str:
    return _DTYPE_CLASSES.get(dtype) or f"{dtype.capitalize()}DType".replace("Uint", "UInt")
