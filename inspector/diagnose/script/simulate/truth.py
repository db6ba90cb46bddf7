"""What is known of conditions: True, False, or None for what is not."""

from __future__ import annotations

from inspector.diagnose.script.objects.containers import keys_of
from inspector.diagnose.script.objects.values import (
    Batch,
    Bound,
    Class,
    Const,
    Device,
    DictObject,
    External,
    FilePlace,
    Function,
    InstanceObject,
    Items,
    ListObject,
    LoaderObject,
    ModuleObject,
    OptimizerObject,
    Ref,
    Tensor,
    Unknown,
    Value,
)
from inspector.diagnose.script.simulate.context import Context

_THINGS = (Device, External, Function, Class, Bound)


def truth(context: Context, value: Value) -> bool | None:  # noqa: PLR0911 - a line for each kind of value
    """Return whether a value counts as true."""
    if isinstance(value, Const):
        return bool(value.value)
    if isinstance(value, Items):
        return bool(value.values)
    if isinstance(value, FilePlace):
        found = keys_of(context, value)
        return None if found is None else bool(found)
    held = context.memory.get(value)
    if isinstance(held, ListObject):
        return True if held.items else False if held.whole else None
    if isinstance(held, DictObject):
        return True if held.pairs else False if held.whole else None
    if isinstance(held, ModuleObject) and held.layer in {"Sequential", "ModuleList", "ModuleDict"}:
        return None
    is_thing = isinstance(held, ModuleObject | OptimizerObject | LoaderObject)
    return True if is_thing or isinstance(value, _THINGS) else None


def same(one: Value, two: Value) -> bool | None:
    """Return whether two values are the same object; asked of None, True and False."""
    if isinstance(one, Const) and isinstance(two, Const):
        return type(one.value) is type(two.value) and one.value == two.value
    for value, other in ((one, two), (two, one)):
        if isinstance(other, Const) and other.value is None:
            return None if isinstance(value, Unknown) else False
    return None


def equal(context: Context, one: Value, two: Value) -> bool | None:
    """Return whether two values are equal."""
    if isinstance(one, Const) and isinstance(two, Const):
        return bool(one.value == two.value)
    if isinstance(one, Device) and isinstance(two, Device | Const):
        other = two.text if isinstance(two, Device) else two.value
        return one.text == other if isinstance(other, str) else False
    if isinstance(one, Items) and isinstance(two, Items) and len(one.values) == len(two.values):
        parts = [equal(context, a, b) for a, b in zip(one.values, two.values, strict=True)]
        return False if False in parts else None if None in parts else True
    if isinstance(two, Const) and two.value is None:
        return same(one, two)
    return None


def is_in(context: Context, one: Value, two: Value) -> bool | None:
    """Return whether a value is in another."""
    if not isinstance(one, Const):
        return None
    if isinstance(two, Const):
        both = isinstance(one.value, str) and isinstance(two.value, str)
        return str(one.value) in str(two.value) if both else None
    keys = keys_of(context, two)
    if keys is not None:
        return one.value in keys
    held = context.memory.get(two)
    if isinstance(held, DictObject) and one.value in held.pairs:
        return True
    items = context.iterate(two) if isinstance(two, Ref | Items) else None
    if items is None or not all(isinstance(item, Const) for item in items):
        return None
    return any(isinstance(item, Const) and item.value == one.value for item in items)


def is_instance(context: Context, value: Value, kind: Value) -> bool | None:
    """Return what `isinstance` says, for the types that scripts ask for."""
    kinds = kind.values if isinstance(kind, Items) else (kind,)
    answers = [_is_of(context, value, one) for one in kinds]
    return True if True in answers else None if None in answers else False


def _is_of(context: Context, value: Value, kind: Value) -> bool | None:
    if isinstance(value, Unknown | Batch):
        return None
    name = kind.name.rpartition(".")[2] if isinstance(kind, External) else ""
    held = context.memory.get(value)
    if isinstance(held, ModuleObject):
        if name in {"DataParallel", "DistributedDataParallel", "OptimizedModule"}:
            return held.cls == name
        return True if name == "Module" else False if name in {"Tensor", "dict", "str", "list"} else None
    plain = {
        "Tensor": isinstance(value, Tensor),
        "dict": isinstance(value, FilePlace) or isinstance(held, DictObject),
        "Module": False,
        "str": isinstance(value, Const) and isinstance(value.value, str),
        "list": isinstance(held, ListObject),
        "tuple": isinstance(value, Items),
        "device": isinstance(value, Device),
    }
    if isinstance(held, InstanceObject):
        return None
    return plain.get(name)
