"""Making modules: the layers of `torch.nn`, what holds and wraps them, and classes of other packages."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.diagnose.script.objects.containers import iterate, pairs_of
from inspector.diagnose.script.objects.devices import read_device
from inspector.diagnose.script.objects.layers import LAYERS
from inspector.diagnose.script.objects.values import (
    UNKNOWN,
    Const,
    Device,
    Items,
    ModuleObject,
    Ref,
    Tensor,
    Value,
)
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.records import replace


def new_layer(context: Context, name: str, arguments: Arguments) -> Value:
    """Make a module of `torch.nn`."""
    if name in {"Sequential", "ModuleList", "ModuleDict"}:
        return _holding(context, name, arguments)
    if name in {"DataParallel", "DistributedDataParallel"}:
        return wrap(context, name, arguments)
    if name == "Parameter":
        first = arguments.get(0, "data")
        known = first if isinstance(first, Tensor) else Tensor()
        return replace(known, grad=arguments.get(1, "requires_grad") != Const(value=False))
    if not name[:1].isupper():
        return UNKNOWN
    layer = LAYERS.get(name)
    given = _plain(arguments, () if layer is None else layer.arguments)
    own = layer.own(given) if layer is not None and arguments.whole else None
    device = read_device(context, arguments.named["device"]) if "device" in arguments.named else None
    made = ModuleObject(
        cls=name,
        layer=name,
        own=own or {},
        whole=own is not None,
        device=device or _loss_device(own, arguments) or context.memory.default_device,
        dtype="float32" if "dtype" not in arguments.named else None,
        attributes={key: Const(value=value) for key, value in given.items() if isinstance(value, int | str)},
        line=context.line,
        is_model=True,
    )
    return context.memory.put(made)


def _loss_device(own: Mapping[str, object] | None, arguments: Arguments) -> str | None:
    """Return where the weights of a loss are, which come as tensors."""
    tensors = [value for value in arguments.all if isinstance(value, Tensor)]
    return tensors[0].device if own and tensors else None


def _plain(arguments: Arguments, names: tuple[str, ...]) -> dict[str, object]:
    """Return the arguments of a layer by name, as far as they are plain values."""
    values = dict(zip(names, arguments.values, strict=False)) | dict(arguments.named)
    plain: dict[str, object] = {}
    for name, value in values.items():
        items = value.values if isinstance(value, Items) else ()
        if isinstance(value, Const) and value.value is not None:
            plain[name] = value.value
        elif items and all(isinstance(item, Const) for item in items):
            plain[name] = tuple(item.value for item in items if isinstance(item, Const))
        elif isinstance(value, Tensor) or value == UNKNOWN:
            plain[name] = ...
    return plain


def _holding(context: Context, name: str, arguments: Arguments) -> Value:
    """Make a module that holds others."""
    children: dict[str, int] = {}
    whole = arguments.whole
    first = arguments.values[0] if arguments.values else None
    pairs = pairs_of(context, first) if first is not None and len(arguments.values) == 1 else None
    named: list[tuple[str, Value]]
    if pairs is not None:
        whole = whole and pairs[1]
        named = [(str(key), value) for key, value in pairs[0].items()]
    else:
        items = arguments.values
        if name == "ModuleList" and first is not None:
            listed = iterate(context, first)
            whole, items = whole and listed is not None, tuple(listed or ())
        named = [(str(place), value) for place, value in enumerate(items)]
    for key, value in named:
        if isinstance(value, Ref) and context.memory.module(value) is not None:
            children[key] = value.id
        else:
            whole = False
    made = ModuleObject(
        cls=name, layer=name, children=children, whole=whole, device=context.memory.default_device,
        line=context.line, is_model=True,
    )  # fmt: skip
    return context.memory.put(made)


def wrap(context: Context, name: str, arguments: Arguments) -> Value:
    """Make what wraps a module: a parallel or a compiled one."""
    inner = arguments.get(0, "module")
    held = context.memory.module(inner) if inner is not None else None
    if held is None or not isinstance(inner, Ref):
        return UNKNOWN
    wrapper = "_orig_mod" if name == "OptimizedModule" else "module"
    made = ModuleObject(
        cls=name,
        wrapper=wrapper,
        children={wrapper: inner.id},
        device=held.device,
        moves_input=wrapper == "module" and context.best != "cpu",
        line=context.line,
        is_model=True,
    )
    return context.memory.put(made)


def new_module(context: Context, name: str, arguments: Arguments, *, is_model: bool = False) -> Value:
    """Make an object of a class of another package: it may be a model, and is one once it is used as one."""
    knows_device = any(isinstance(value, Device) for value in arguments.all) or "device" in arguments.named
    knows_device = knows_device or not arguments.whole
    device = None if knows_device else context.memory.default_device
    for value in arguments.all:
        if context.memory.module(value) is not None:
            device = None
    context.give_away(arguments.all)
    made = ModuleObject(
        cls=name, whole=False, device=device, dtype=None, line=context.line, is_imported=True,
        is_model=is_model,
    )  # fmt: skip
    return context.memory.put(made)
