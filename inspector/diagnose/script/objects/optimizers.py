"""Optimizers: whose parameters they hold, where their state was put, and what `step` then finds."""

from __future__ import annotations

import ast
from itertools import chain

from inspector.diagnose.script.edits import line_after, line_before, removed_line
from inspector.diagnose.script.objects.containers import pairs_of
from inspector.diagnose.script.objects.modules import made_by
from inspector.diagnose.script.objects.values import (
    NONE,
    UNKNOWN,
    DictObject,
    FilePlace,
    Groups,
    ListObject,
    OptimizerObject,
    Parameters,
    Ref,
    Value,
)
from inspector.diagnose.script.problems import Edit
from inspector.diagnose.script.simulate.context import Arguments, Context
from inspector.model.checkpoint import Optimizer
from inspector.records import replace
from inspector.target.after.complaints import Complaint
from inspector.units import format_count

_BUFFERS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_REST = " and the same dtype except `step` tensors that can be CPU and float32/64 notwithstanding"
_MIXED = (
    "RuntimeError: Expected all tensors to be on the same device, but found at least two devices, {} and {}!"
)


def make_optimizer(context: Context, cls: str, arguments: Arguments) -> Value:
    """Make an optimizer of what it is given."""
    modules, groups = _held(context, arguments.get(0, "params") or UNKNOWN)
    made = OptimizerObject(cls=cls, modules=modules, groups=groups, line=context.line)
    return context.memory.put(made)


def _held(context: Context, value: Value) -> tuple[tuple[int, ...] | None, Groups | None]:
    """Return the modules behind parameters, and the groups; each None where it is not known."""
    found = context.memory.get(value)
    if isinstance(value, Parameters):
        return value.modules, _sizes(context, value)
    if isinstance(found, DictObject):
        return _held(context, found.pairs.get("params", UNKNOWN))
    if not isinstance(found, ListObject) or not found.items:
        return None, None
    parts = [_held(context, item) for item in found.items]
    known = [modules for modules, _ in parts if modules is not None]
    modules = tuple(dict.fromkeys(chain.from_iterable(known))) if len(known) == len(parts) else None
    is_groups = all(isinstance(context.memory.get(item), DictObject) for item in found.items)
    if not is_groups or not found.whole:
        return modules, None
    # A group of what is not known is a group.
    return modules, tuple(chain.from_iterable(sizes or (None,) for _, sizes in parts))


def _sizes(context: Context, value: Parameters) -> Groups:
    """Return the one group that parameters make, whatever class they are of."""
    count = 0
    for number in value.modules:
        for _, _, module in context.memory.below(number):
            if not module.whole:
                return (None,)
            count += sum(
                1 for name in module.own if name not in module.buffers | _BUFFERS and name[:1] != "~"
            )
    return (count or None,)


def call_optimizer(
    context: Context, owner: Ref, found: OptimizerObject, name: str, arguments: Arguments
) -> Value:
    """Call a method of an optimizer."""
    if name == "load_state_dict":
        _load(context, owner, found, arguments.get(0, "state_dict") or UNKNOWN)
    elif name == "step":
        _step(context, found)
    elif name == "add_param_group":
        context.memory.objects[owner.id] = replace(found, modules=None, groups=None)
    return NONE if name != "state_dict" else UNKNOWN


def _load(context: Context, owner: Ref, found: OptimizerObject, given: Value) -> None:
    state: str | None = None
    saved = _saved(context, given)
    _refuse_without(context, given, "param_groups")
    if saved is not None:
        _compare_groups(context, found, saved)
        state = "" if not saved.with_state else _place(context, found)
    _refuse_without(context, given, "state")
    context.memory.objects[owner.id] = replace(found, state=state, loaded=context.line)


def _saved(context: Context, given: Value) -> Optimizer | None:
    """Return the optimizer of the file whose state a value is, where the script has not changed it."""
    if not isinstance(given, FilePlace):
        return None
    depth = len(given.keys)
    if any(load == given.load and keys[:depth] == given.keys for load, keys in context.memory.changed):
        return None
    return next((one for one in context.known.checkpoint.optimizers if one.keys == given.keys), None)


def _refuse_without(context: Context, given: Value, key: str) -> None:
    """Raise what torch raises where a state that is known has no such entry."""
    found = pairs_of(context, given)
    if found is not None and found[1] and key not in found[0]:
        context.fail("key-missing", f"KeyError: {key!r}", "This is not the state of an optimizer.")


def _compare_groups(context: Context, found: OptimizerObject, saved: Optimizer) -> None:
    """Raise what torch raises where the groups do not have the sizes of the file's."""
    if found.groups is None or not saved.groups:
        return
    message = "contains a parameter group that doesn't match the size of optimizer's group"
    if len(found.groups) != len(saved.groups):
        message = "has a different number of parameter groups"
    elif all(size in {None, wanted} for size, wanted in zip(found.groups, saved.groups, strict=True)):
        return
    context.fail(
        "optimizer-groups",
        f"ValueError: loaded state dict {message}",
        f"The script's optimizer holds {_counted(found.groups)}, the file's {_counted(saved.groups)}.",
        advice="Make the optimizer over the parameters that were saved with it, or leave its state out.",
    )


def _counted(groups: Groups) -> str:
    if None in groups:  # their number is all that is known
        return format_count(len(groups), "group of parameters", "groups of parameters")
    parts = f"{sum(size or 0 for size in groups)} parameters"
    return parts if len(groups) == 1 else f"{parts} in {len(groups)} groups"


def _place(context: Context, found: OptimizerObject) -> str | None:
    """Return where the parameters of an optimizer are, if that is one place."""
    devices: set[str | None] = set()
    for number in found.modules or ():
        module = context.memory.module(number)
        devices.add(None if module is None else module.device)
    return devices.pop() if len(devices) == 1 else None


def _step(context: Context, found: OptimizerObject) -> None:
    place = _place(context, found)
    if found.state and place and place != found.state:
        _fail_left(context, found, place)
    used = {number for number in context.used if context.memory.module(number) is not None}
    if found.modules and used and not context.maybe:
        held = {number for start in found.modules for _, number, _ in context.memory.below(start)}
        above = {number for start in used for _, number, _ in context.memory.below(start)}
        if not held & above and not context.memory.names(held):
            _note_other(context, found, max(used))


def _fail_left(context: Context, found: OptimizerObject, place: str) -> None:
    is_grouped = place.startswith("cuda") and context.release >= (2, 0)
    context.fail(
        "optimizer-left-behind",
        f"RuntimeError: {Complaint.FOREACH}{_REST}" if is_grouped else _MIXED.format(place, found.state),
        f"Line {found.loaded} loads the state of {found.cls} where the parameters are, on the "
        f"{_word(found.state)}. The model moves to {place} afterwards, and the state does not.",
        edits=_swap(context, found),
    )


def _word(device: str | None) -> str:
    return "CPU" if device == "cpu" else str(device)


def _swap(context: Context, found: OptimizerObject) -> list[Edit]:
    """Move the model before the state is loaded: its line up, where that can be done, else one more line."""
    number = (found.modules or (0,))[0]
    module = context.memory.module(number)
    loading, moving = _statement(context, found.loaded), _statement(context, module.moved if module else 0)
    if loading is not None and moving is not None and _share_names(context, loading, moving):
        gone = removed_line(context.script, moving)
        text = context.script.source(moving)
        added = line_before(context.script, loading, text)
        return [added] if gone is None else [added, gone]
    name, made = made_by(context, Ref(id=number))
    word = context.device_word() or repr(context.best)
    return [] if made is None else [line_after(context.script, made, f"{name}.to({word})")]


def _statement(context: Context, line: int) -> ast.stmt | None:
    """Return the simple statement at a line."""
    simple = (ast.Expr, ast.Assign)
    found = [
        node
        for node in ast.walk(context.script.tree)
        if isinstance(node, simple) and node.lineno <= line <= (node.end_lineno or 0)
    ]
    return found[-1] if found else None


def _share_names(context: Context, one: ast.stmt, two: ast.stmt) -> bool:
    """Return whether a statement means the same at the place of another."""
    if context.script.source(two).startswith("self."):
        return context.script.source(one).startswith("self.")
    functions = [
        node
        for node in ast.walk(context.script.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inside = [
        {id(node) for node in functions if node.lineno <= statement.lineno <= (node.end_lineno or 0)}
        for statement in (one, two)
    ]
    return inside[0] == inside[1]


def _note_other(context: Context, found: OptimizerObject, number: int) -> None:
    name, made = made_by(context, Ref(id=number))
    statement = _statement(context, found.line)
    edits: list[Edit] = []
    if made is not None and statement is not None and made.lineno > statement.lineno:
        gone = removed_line(context.script, statement)
        added = line_after(context.script, made, context.script.source(statement))
        edits = [] if gone is None else [gone, added]
    context.note_silent(
        "optimizer-holds-another",
        f"Line {found.line} gave {found.cls} the parameters of a model that is no longer used: this step "
        f"changes nothing in {name or 'the model'}.",
        advice="Make the optimizer after the model that it is to train.",
        edits=edits,
    )
