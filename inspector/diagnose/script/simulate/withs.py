"""What `with` statements change while they last."""

from __future__ import annotations

from collections.abc import Callable

from inspector.diagnose.script.objects.values import Bound, Const, Device, External, Value
from inspector.diagnose.script.simulate.context import Context

_GRAD = {"no_grad": False, "inference_mode": False, "enable_grad": True, "set_grad_enabled": None}


def entered(context: Context, value: Value) -> tuple[Value, Callable[[], None]]:
    """Return what `with value as name` names, and what ends it."""
    if isinstance(value, Bound) and isinstance(value.owner, External):
        last = value.owner.name.rpartition(".")[2]
        if last in _GRAD:
            return value, _switch_grad(context, _asked(last, value.name))
        if last == "autocast":
            return value, _autocast(context)
    if isinstance(value, Device):
        before, context.memory.default_device = context.memory.default_device, value.text

        def leave() -> None:
            context.memory.default_device = before

        return value, leave
    return value, _nothing


def _asked(last: str, mode: str) -> bool | None:
    if _GRAD[last] is not None:
        return _GRAD[last]
    return {"True": True, "False": False}.get(mode)


def manager(name: str, values: tuple[Value, ...]) -> Value:
    """Return what stands for a context manager of torch until it is entered."""
    first = values[0] if values else None
    mode = str(first.value) if isinstance(first, Const) else ""
    return Bound(owner=External(name=name), name=mode)


def switch_grad(context: Context, value: Value) -> None:
    """Do what `torch.set_grad_enabled(False)` does as a statement."""
    name = value.owner.name if isinstance(value, Bound) and isinstance(value.owner, External) else ""
    if isinstance(value, Bound) and name.endswith("set_grad_enabled"):
        context.memory.is_grad = _asked("set_grad_enabled", value.name)


def _switch_grad(context: Context, is_grad: bool | None) -> Callable[[], None]:  # noqa: FBT001 - a mode
    before, context.memory.is_grad = context.memory.is_grad, is_grad

    def leave() -> None:
        context.memory.is_grad = before

    return leave


def _autocast(context: Context) -> Callable[[], None]:
    context.casting += 1

    def leave() -> None:
        context.casting -= 1

    return leave


def _nothing() -> None:
    """Leave what changed nothing."""
