"""Lists, dictionaries, and the containers that were loaded from the file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import NoReturn

from inspector.diagnose.script.edits import key_edits
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    Batch,
    Const,
    DictObject,
    FilePlace,
    Items,
    ListObject,
    LoaderObject,
    ModuleObject,
    Parameters,
    Ref,
    Tensor,
    Unknown,
    Value,
)
from inspector.diagnose.script.places import (
    Branch,
    is_empty_container,
    plain_value,
    state_dicts,
)
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.model.checkpoint import Key, ValueRow
from inspector.model.checkpoint import Tensor as Row
from inspector.records import replace
from inspector.units import cut_text, escape_text

_MOST_ITEMS = 20_000


# --- the file -----------------------------------------------------------------------------------------------


def file_value(context: Context, load: int, keys: tuple[Key, ...], found: Branch | Row | ValueRow) -> Value:
    """Return what the file holds at some keys, as the script finds it."""
    changed = context.memory.changed.get((load, keys))
    if changed is not None:
        return Ref(id=changed)
    if isinstance(found, Branch):
        is_object = any(str(key).startswith(".") for key in found.children)
        is_object = is_object or all(isinstance(key, int) for key in found.children)  # or a list
        return Unknown(is_load=True) if is_object else FilePlace(load=load, keys=keys)
    if isinstance(found, Row):
        return _tensor(context, load, found)
    if is_empty_container(found):
        return _empty(context, load, keys, found.type)
    value = plain_value(found)
    return UNKNOWN if value is ... else Const(value=value)


def _empty(context: Context, load: int, keys: tuple[Key, ...], kind: str) -> Value:
    """Return an empty container of the file, which the script may fill."""
    if kind == "tuple":
        return Items(values=())
    made = context.memory.put(DictObject() if "ict" in kind else ListObject())
    context.memory.changed[load, keys] = made.id
    return made


def _tensor(context: Context, load: int, row: Row) -> Tensor:
    outcome = context.loads[load].outcome
    place = context.known.places.index(row)
    device = None if outcome is None or not outcome.tensors else outcome.tensors[place]
    return Tensor(
        device=device,
        dtype=row.dtype,
        shape=row.shape,
        is_number=row.shape == (),
        grad=row.requires_grad,
    )


def branch_of(context: Context, value: Value) -> Branch | None:
    """Return the container of the file that a value is, where the script has not changed it."""
    found = context.known.places.at(value.keys) if isinstance(value, FilePlace) else None
    return found if isinstance(found, Branch) else None


def owned(context: Context, value: Value) -> Value:
    """Return a dictionary of the file as one in the memory, ready to be changed."""
    branch = branch_of(context, value)
    if branch is None or not isinstance(value, FilePlace):
        return value
    changed = context.memory.changed.get((value.load, value.keys))
    if changed is not None:
        return Ref(id=changed)
    context.spend(len(branch.children))
    pairs: dict[object, Value] = {}
    for key, child in branch.children.items():
        pairs[key] = file_value(context, value.load, (*value.keys, key), child)
    made = context.memory.put(DictObject(pairs=pairs))
    context.memory.changed[value.load, value.keys] = made.id
    return made


# --- what is in a container ---------------------------------------------------------------------------------

_Pairs = tuple[Mapping[object, Value], bool]


def pairs_of(context: Context, value: Value) -> _Pairs | None:
    """Return the items of a dictionary and whether that is all; None for anything else."""
    branch = branch_of(context, value)
    if branch is not None and isinstance(value, FilePlace):
        current = file_value(context, value.load, value.keys, branch)
        if isinstance(current, FilePlace):
            context.spend(len(branch.children))
            children = branch.children.items()
            return {
                key: file_value(context, value.load, (*value.keys, key), at) for key, at in children
            }, True
        value = current
    held = context.memory.get(value)
    return (held.pairs, held.whole) if isinstance(held, DictObject) else None


def keys_of(context: Context, value: Value) -> Sequence[object] | None:
    """Return the keys of a dictionary, or None where they are not all known."""
    found = pairs_of(context, value)
    return list(found[0]) if found is not None and found[1] else None


def iterate(context: Context, value: Value) -> Sequence[Value] | None:
    """Return the items that a loop over a value goes through; None where they are not known."""
    if isinstance(value, Items):
        return value.values
    held = context.memory.get(value)
    if isinstance(held, ListObject):
        return held.items if held.whole else None
    if isinstance(held, ModuleObject) and held.layer in {"Sequential", "ModuleList"}:
        return [Ref(id=number) for number in held.children.values()] if held.whole else None
    keys = keys_of(context, value)
    if keys is None or len(keys) > _MOST_ITEMS:
        return None
    context.spend(len(keys))
    return [Const(value=key) for key in keys]


def element_of(context: Context, value: Value) -> Value:
    """Return one item of a value whose items are not known one by one."""
    held = context.memory.get(value)
    if isinstance(held, LoaderObject):
        return held.element
    if isinstance(held, ListObject) and held.items:
        return held.items[0]
    if isinstance(value, Parameters):
        return value
    if isinstance(value, Batch):
        return Tensor(device=value.device, from_loader=True)
    return UNKNOWN


# --- subscripts ---------------------------------------------------------------------------------------------


def subscript(context: Context, owner: Value, key: Value, node: ast.Subscript) -> Value:
    """Return `owner[key]`."""
    if isinstance(owner, Tensor):
        return replace(owner, shape=None, is_number=None)
    if isinstance(owner, Batch):
        return Tensor(device=owner.device, from_loader=True)
    if not isinstance(key, Const):
        return UNKNOWN
    found = pairs_of(context, owner)
    if found is not None:
        pairs, whole = found
        if key.value in pairs:
            return pairs[key.value]
        if not whole:
            return UNKNOWN
        _fail_missing(context, owner, key, node)
    return _indexed(context, owner, key.value)


def _indexed(context: Context, owner: Value, key: object) -> Value:
    held = context.memory.get(owner)
    if isinstance(held, ModuleObject):
        child = held.children.get(str(key))
        return UNKNOWN if child is None else Ref(id=child)
    items = iterate(context, owner)
    if items is None or not isinstance(key, int) or not -len(items) <= key < len(items):
        return UNKNOWN
    return items[key]


def _fail_missing(context: Context, owner: Value, key: Const, node: ast.Subscript | None = None) -> NoReturn:
    """Raise the KeyError of a dictionary that has no such key."""
    if not isinstance(owner, FilePlace):
        context.fail("key-missing", f"KeyError: {key.value!r}", "This dictionary has no such key.")
    branch = branch_of(context, owner)
    names = [] if branch is None else [escape_text(cut_text(str(name), 40)) for name in branch.children]
    shown = ", ".join(repr(name) for name in names[:8]) + (
        f" and {len(names) - 8} more" if len(names) > 8 else ""
    )
    where = "the file" if not owner.keys else f"{escape_text(str(owner.keys[-1]))!r} in the file"
    places = state_dicts(context.known.places)
    bare = places == [()] and not owner.keys
    why = f"There is no {key.value!r} in {where}, which holds {shown}."
    if bare:
        why = f"The file is a bare state dict: its keys are names of parameters ({shown})."
    at = places if not owner.keys else []
    edits = [] if node is None else key_edits(context.script, node, key.value, context.statement, at)
    context.fail("key-missing", f"KeyError: {key.value!r}", why, edits=edits)


def set_item(context: Context, owner: Value, key: Value, value: Value) -> None:
    """Do `owner[key] = value`."""
    owner = owned(context, owner)
    held = context.memory.get(owner)
    if not isinstance(owner, Ref):
        return
    if isinstance(held, DictObject):
        changed = (
            replace(held, pairs={**held.pairs, key.value: value})
            if isinstance(key, Const) and not context_is_large(context, held)
            else DictObject(pairs=held.pairs, whole=False)
        )
        context.memory.objects[owner.id] = changed
    elif isinstance(held, ListObject):
        context.memory.objects[owner.id] = ListObject(whole=False)
    elif isinstance(held, ModuleObject) and isinstance(key, Const) and isinstance(value, Ref):
        children = {**held.children, str(key.value): value.id}
        context.memory.objects[owner.id] = replace(held, children=children)


def context_is_large(context: Context, held: DictObject) -> bool:
    """Charge for the copy of a dictionary; return whether it is too large to be followed."""
    context.spend(1 + len(held.pairs) // 32)
    return len(held.pairs) > _MOST_ITEMS


def delete_item(context: Context, owner: Value, key: Value) -> None:
    """Do `del owner[key]`."""
    found = pairs_of(context, owner)
    if isinstance(key, Const) and found is not None and found[1] and key.value not in found[0]:
        _fail_missing(context, owner, key)
    _change(context, owner, lambda held: _without(held, key))


def _without(held: DictObject, key: Value) -> DictObject:
    if not isinstance(key, Const):
        return DictObject(whole=False)  # any of them may be gone
    left = {name: item for name, item in held.pairs.items() if name != key.value}
    return DictObject(pairs=left, whole=held.whole)


def _change(context: Context, owner: Value, change: Callable[[DictObject], DictObject]) -> None:
    """Put a changed dictionary in the place of what it was; other values stay."""
    owner = owned(context, owner)
    held = context.memory.get(owner)
    if isinstance(owner, Ref) and isinstance(held, DictObject):
        context.spend(1 + len(held.pairs) // 32)
        context.memory.objects[owner.id] = change(held)


# --- methods ------------------------------------------------------------------------------------------------

_Method = Callable[[Context, Value, _Pairs, Arguments], Value]


def call_dict(context: Context, owner: Value, name: str, arguments: Arguments) -> Value:
    """Call a method of a dictionary."""
    method, found = _DICT.get(name), pairs_of(context, owner)
    return UNKNOWN if method is None or found is None else method(context, owner, found, arguments)


def _listed(context: Context, found: _Pairs, make: Callable[[object, Value], Value]) -> Value:
    if len(found[0]) > _MOST_ITEMS:
        return context.memory.put(ListObject(whole=False))
    items = tuple(make(key, value) for key, value in found[0].items())
    return context.memory.put(ListObject(items=items, whole=found[1]))


def _keys(context: Context, _: Value, found: _Pairs, __: Arguments) -> Value:
    return _listed(context, found, lambda key, _: Const(value=key))


def _values(context: Context, _: Value, found: _Pairs, __: Arguments) -> Value:
    return _listed(context, found, lambda _, value: value)


def _items(context: Context, _: Value, found: _Pairs, __: Arguments) -> Value:
    return _listed(context, found, lambda key, value: Items(values=(Const(value=key), value)))


def _get(_: Context, __: Value, found: _Pairs, arguments: Arguments) -> Value:
    key, default = arguments.get(0, "key"), arguments.get(1, "default", NONE)
    if not isinstance(key, Const):
        return UNKNOWN
    return found[0].get(key.value, (default or NONE) if found[1] else UNKNOWN)


def _pop(context: Context, owner: Value, found: _Pairs, arguments: Arguments) -> Value:
    key = arguments.get(0, "key")
    if key is None:
        return UNKNOWN
    if arguments.get(1, "default") is None or not isinstance(key, Const) or key.value in found[0]:
        delete_item(context, owner, key)
    return _get(context, owner, found, arguments)


def _update(context: Context, owner: Value, _: _Pairs, arguments: Arguments) -> Value:
    more = pairs_of(context, arguments.get(0, "") or UNKNOWN)
    extra, whole = ({}, not arguments.values) if more is None else more
    named: Mapping[object, Value] = {str(name): value for name, value in arguments.named.items()}
    _change(
        context,
        owner,
        lambda held: DictObject(pairs={**held.pairs, **extra, **named}, whole=held.whole and whole),
    )
    return NONE


def _clear(context: Context, owner: Value, _: _Pairs, __: Arguments) -> Value:
    _change(context, owner, lambda _: DictObject())
    return NONE


def _copy(context: Context, _: Value, found: _Pairs, __: Arguments) -> Value:
    return context.memory.put(DictObject(pairs=dict(found[0]), whole=found[1]))


def _setdefault(context: Context, owner: Value, found: _Pairs, arguments: Arguments) -> Value:
    key, value = arguments.get(0, "key"), _get(context, owner, found, arguments)
    if isinstance(key, Const) and key.value not in found[0]:
        set_item(context, owner, key, value)
    return value


_DICT: Mapping[str, _Method] = {
    "keys": _keys,
    "values": _values,
    "items": _items,
    "get": _get,
    "pop": _pop,
    "update": _update,
    "clear": _clear,
    "copy": _copy,
    "setdefault": _setdefault,
}


def call_list(context: Context, owner: Ref, held: ListObject, name: str, arguments: Arguments) -> Value:
    """Call a method of a list."""
    added: Sequence[Value] | None = None
    if name in {"append", "add"}:
        added = arguments.values
    elif name in {"extend", "update"}:
        added = iterate(context, arguments.get(0, "") or UNKNOWN)
    elif name in {"index", "count", "copy"}:
        return UNKNOWN
    context.spend(1 + len(held.items) // 32)
    is_known = added is not None and len(held.items) < _MOST_ITEMS
    items = (*held.items, *(added or ())) if is_known else held.items
    context.memory.objects[owner.id] = ListObject(items=items, whole=held.whole and is_known)
    if name in {"append", "add", "extend", "update"}:
        return NONE
    return held.items[-1] if held.items and held.whole and not arguments.values else UNKNOWN
