"""From values to rows: everything that can be reached from the root, in file order, each container once.

Walks with a stack of its own, so that no depth of nesting can exhaust Python's; below `Limits.depth` values
are counted and no longer entered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from inspector.errors import ModelError
from inspector.limits import Limits
from inspector.model.checkpoint import HiddenDevice, Key, Role, Value as Leaf
from inspector.model.optimizer import OptimizerDraft, looks_like_optimizer, read_optimizer
from inspector.model.roles import Context, ModelDraft, enter, names_model, parameter_name, role_of_tensor
from inspector.model.shapes import attributes_of, children_of
from inspector.model.tensors import TensorFacts, describe_tensor, device_text, is_call_to, looks_like_tensor
from inspector.model.texts import step_text, text_of, type_of
from inspector.pickles.values import Call, Dict, Global, Set, Value
from inspector.progress import Progress

_ASK_EACH = 4096
_SCALARS = (type(None), bool, int, float, str, bytes)


class TensorDraft(NamedTuple):
    """A tensor row before optimizer slots have their names.

    Attributes:
        keys: The way to it.
        path: The same as text.
        facts: What the pickle says of it.
        role: What it is for.
        optimizer: Index of the optimizer it belongs to, or None.
        part_of: Index of the composite tensor it is a part of, or None.
        value: What it is in the pickle, for those who change it there.
    """

    keys: tuple[Key, ...]
    path: str
    facts: TensorFacts
    role: Role
    optimizer: int | None
    part_of: int | None
    value: Value


@dataclass(slots=True)
class Findings:
    """All that a walk found."""

    tensors: list[TensorDraft] = field(default_factory=list)
    values: list[Leaf] = field(default_factory=list)
    optimizers: list[OptimizerDraft] = field(default_factory=list)
    models: list[ModelDraft] = field(default_factory=list)
    hidden_devices: list[HiddenDevice] = field(default_factory=list)
    too_deep: int = 0


class _Visit(NamedTuple):
    keys: tuple[Key, ...]
    path: str
    value: Value
    context: Context
    part_of: int | None


def walk(root: Value, limits: Limits, progress: Progress) -> Findings:
    """Collect the rows of everything below `root`.

    Raises:
        ModelError: There are more rows than the limits allow.
        CancelledError: The work was cancelled.
    """
    return _Walk(limits, progress).run(root)


class _Walk:
    def __init__(self, limits: Limits, progress: Progress) -> None:
        self._limits = limits
        self._progress = progress
        self._found = Findings()
        self._entered: dict[int, str] = {}

    def run(self, root: Value) -> Findings:
        found, stack = self._found, [_Visit((), "", root, Context(), None)]
        visits = 0
        while stack:
            visits += 1
            if visits % _ASK_EACH == 0:
                self._progress.advance(0)
                if len(found.tensors) + len(found.values) > self._limits.rows:
                    raise ModelError(f"the checkpoint holds more than {self._limits.rows:,} tensors and values")
            below = self._visit(stack.pop())
            below.reverse()
            stack.extend(below)
        return found

    def _visit(self, visit: _Visit) -> list[_Visit]:
        value = visit.value
        if isinstance(value, _SCALARS):
            return self._leaf(visit)
        facts = describe_tensor(value)
        if facts is not None:
            return self._tensor(visit, facts)
        self._note_device(visit)
        children = children_of(value)
        if not children:
            return self._leaf(visit)
        if id(value) in self._entered:
            where = self._entered[id(value)] or "the root"
            return self._leaf(visit, f"the same object as {where}")
        if len(visit.keys) >= self._limits.depth:
            self._found.too_deep += 1
            return self._leaf(visit)
        self._entered[id(value)] = visit.path
        return self._enter(visit, children)

    def _leaf(self, visit: _Visit, text: str | None = None) -> list[_Visit]:
        value, after = visit.value, len(self._found.tensors)
        shown = text_of(value) if text is None else text
        self._found.values.append(
            Leaf(keys=visit.keys, path=visit.path, type=type_of(value), text=shown, after=after)
        )
        return []

    def _tensor(self, visit: _Visit, facts: TensorFacts) -> list[_Visit]:
        context, found = visit.context, self._found
        index = len(found.tensors)
        if visit.part_of is None:
            role = role_of_tensor(context, visit.keys, facts)
        else:
            role = found.tensors[visit.part_of].role
        found.tensors.append(
            TensorDraft(visit.keys, visit.path, facts, role, context.optimizer, visit.part_of, visit.value)
        )
        if role == "parameter" and context.model is not None and visit.part_of is None:
            context.model.add(parameter_name(context, visit.keys), facts)
        below: list[tuple[Key, Value]] = list(facts.parts)
        if facts.state is not None:
            below += [pair for pair in attributes_of(facts.state) if _holds_tensor(pair[1])]
        return [self._below(visit, key, value, context, index) for key, value in below]

    def _enter(self, visit: _Visit, children: list[tuple[Key, Value]]) -> list[_Visit]:
        context = self._context(visit, children)
        return [self._below(visit, key, value, enter(context, key), visit.part_of) for key, value in children]

    @staticmethod
    def _below(visit: _Visit, key: Key, value: Value, context: Context, part_of: int | None) -> _Visit:
        step = step_text(key)
        return _Visit((*visit.keys, key), f"{visit.path}/{step}" if visit.keys else step, value, context, part_of)

    def _context(self, visit: _Visit, children: list[tuple[Key, Value]]) -> Context:
        """Say what the inside of a container is: an optimizer's state, a model, or nothing new."""
        context, value, depth = visit.context, visit.value, len(visit.keys)
        if context.optimizer is None and looks_like_optimizer(value):
            self._found.optimizers.append(read_optimizer(visit.keys, visit.path, value))
            return Context(optimizer=len(self._found.optimizers) - 1, optimizer_depth=depth)
        if context.model is not None or context.optimizer is not None or context.role not in {None, "ema"}:
            return context
        if not _looks_like_model(visit, children):
            return context
        model = ModelDraft(visit.keys)
        self._found.models.append(model)
        return Context(role=context.role, model=model, model_depth=depth)

    def _note_device(self, visit: _Visit) -> None:
        value = visit.value
        if is_call_to(value, "torch", "device"):
            device = device_text(value) or "?"
            self._found.hidden_devices.append(HiddenDevice(path=visit.path, device=device, what="torch.device"))
        elif isinstance(value, Call) and isinstance(value.func, Global) and value.func.dotted == "torch._C.Generator":
            args = value.args if isinstance(value.args, tuple) else ()
            device = (device_text(args[0]) if args else None) or "cpu"
            self._found.hidden_devices.append(HiddenDevice(path=visit.path, device=device, what="torch.Generator"))


def _looks_like_model(visit: _Visit, children: list[tuple[Key, Value]]) -> bool:
    """Say whether a container is a model: a module, or a mapping from names to mostly tensors."""
    # Compared one by one: a set would hash integer keys, which a hostile file can make collide.
    if any(key == "._parameters" for key, _ in children):
        return True
    if not isinstance(visit.value, Dict | Call):
        return False
    tensors = sum(1 for key, value in children if isinstance(key, str) and looks_like_tensor(value))
    last = visit.keys[-1] if visit.keys else None
    if names_model(last):
        return tensors > 0 and (bool(visit.keys) or 2 * tensors > len(children))
    return tensors > 1 and 2 * tensors > len(children)


def _holds_tensor(value: Value) -> bool:
    return looks_like_tensor(value) or isinstance(value, Dict | Set | Call)
