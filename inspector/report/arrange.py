"""The place of each tensor and value in the tree: below modules by dotted name, slots below their parameter.

Rows keep the order of the file. Every dictionary here has paths as its keys: Python salts the hash of a str,
so no file can provoke collisions, as it could with integers.
"""

from __future__ import annotations

from collections import defaultdict
from functools import cached_property
from itertools import accumulate

from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.model.values.text import step_text
from inspector.records import dataclass, field
from inspector.units import cut_text

Leaf = tuple[str, int]
"""A row's name, and its index: `i` among the tensors, `~i` among the values."""

MOST_NAME = 512
_MOST_NESTED = 64
"""A name with more dots is not split: a hostile one could nest half a million rows."""
_WRAPPERS = frozenset({"._modules", "._parameters", "._buffers"})
_HOOKS = (
    "._backend ._backward_hooks ._backward_pre_hooks ._forward_hooks ._forward_hooks_always_called "
    "._forward_hooks_with_kwargs ._forward_pre_hooks ._forward_pre_hooks_with_kwargs "
    "._is_full_backward_hook ._load_state_dict_post_hooks ._load_state_dict_pre_hooks "
    "._non_persistent_buffers_set ._state_dict_hooks ._state_dict_pre_hooks"
)
"""Attributes of every `nn.Module`, see `torch/nn/modules/module.py`; nearly always empty."""
_ALWAYS_THERE = _WRAPPERS.union(_HOOKS.split())
_EMPTY = frozenset(
    {"{}", "None", "False", "collections.OrderedDict()", "builtins.set([])", "__builtin__.set([])"}
)


@dataclass(slots=True, eq=False)
class Group:
    """A row with rows below it, before it has an id.

    Attributes:
        name: Its name.
        path: What the paths of all its rows begin with, the `/` or `.` at its end included.
        is_bucket: Whether it is only a slice of a very long list of rows.
        below: The rows below in file order.
        groups: The groups among them, by path: a mapping and a prefix of dotted names may have one name.
    """

    name: str
    path: str = ""
    is_bucket: bool = False
    below: list[Group | Leaf] = field(default_factory=list)
    groups: dict[str, Group] = field(default_factory=dict)

    def enter(self, name: str, path: str) -> Group:
        """Return the group at this path, a new one of this name if there is none."""
        found = self.groups.get(path)
        if found is None:
            found = self.groups[path] = Group(name, path)
            self.below.append(found)
        return found


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The rows in their places.

    Attributes:
        root: The invisible root.
        parts: The parts of each composite tensor, by its index.
    """

    root: Group
    parts: dict[int, list[Leaf]]


def arrange(checkpoint: Checkpoint) -> Arrangement:
    """Return each tensor and value in its place, without the empty attributes that every module has."""
    places = _Places(checkpoint)
    parts: dict[int, list[Leaf]] = defaultdict(list)
    values = [(i, value) for i, value in enumerate(checkpoint.values) if not _is_empty_part_of_module(value)]
    values.reverse()
    for index, tensor in enumerate(checkpoint.tensors):
        while values and values[-1][1].after <= index:
            places.add_value(*values.pop())
        if tensor.part_of is None:
            places.add_tensor(index, tensor)
        else:
            parts[tensor.part_of].append((_cut(tensor.path.rpartition("/")[2]), index))
    for turn, value in reversed(values):
        places.add_value(turn, value)
    return Arrangement(places.root, parts)


class _Places:
    """Finds the group that a row belongs to, by the path of its container and the dotted name within that."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.root = Group("")
        self._checkpoint = checkpoint
        self._known: dict[tuple[str | None, str], Group] = {}
        self._states = {_join(optimizer.path, "state") for optimizer in checkpoint.optimizers}

    def add_tensor(self, index: int, tensor: Tensor) -> None:
        """Put a tensor in its place."""
        container, name = _split(tensor)
        self._add(container, name, index, nested="." in name and _is_dotted(name))

    def add_value(self, index: int, value: ValueRow) -> None:
        """Put a value in its place; its name is split only where tensors beside it have dotted names."""
        container, name = _split(value)
        self._add(container, name, ~index, nested=_is_dotted(name) and container in self._state_dicts)

    def _add(self, container: str | None, name: str, index: int, *, nested: bool) -> None:
        head = ""
        if nested:
            head, _, name = name.rpartition(".")
        group = self._known.get((container, head)) or self._group(container, head)
        group.below.append((name if 0 < len(name) <= MOST_NAME else _cut(name), index))

    def _group(self, container: str | None, head: str) -> Group:
        found = self._known.get((container, head))
        if found is None:
            found = self._known[container, head] = self._new_group(container, head)
        return found

    def _new_group(self, container: str | None, head: str) -> Group:
        if head:
            above, _, name = head.rpartition(".")
            within = "" if container is None else f"{container}/"
            return self._group(container, above).enter(_cut(name), f"{within}{head}.")
        group = self.root
        for step, path in () if container is None else self._steps(container):
            if step not in _WRAPPERS:
                group = group.enter(_cut(step), path)
        return group

    def _steps(self, container: str) -> list[tuple[str, str]]:
        """Split a path into steps, each with the path up to it.

        Inside an optimizer, the parameter's name stands in place of `state` and its number.
        """
        steps = container.split("/")
        ways = [f"{way}/" for way in accumulate(steps, "{}/{}".format)]
        found = list(zip(steps, ways, strict=True))
        for at, step in enumerate(steps[:-1]):
            if step == "state" and ways[at][:-1] in self._states:
                name = self._parameters.get(ways[at + 1][:-1], f"parameter {steps[at + 1]}")
                return [*found[:at], (name, ways[at + 1]), *found[at + 2 :]]
        return found

    @cached_property
    def _state_dicts(self) -> set[str | None]:
        """The containers of tensors with dotted names."""
        split = (_split(tensor) for tensor in self._checkpoint.tensors)
        return {container for container, name in split if _is_dotted(name)}

    @cached_property
    def _parameters(self) -> dict[str, str]:
        """The parameter's name for the path of its state (`optimizer/state/0`)."""
        return {
            tensor.path.rsplit("/", tensor.slot.count("/") + 1)[0]: step_text(tensor.parameter)
            for tensor in self._checkpoint.tensors
            if tensor.slot is not None and tensor.parameter is not None
        }


def _split(row: Tensor | ValueRow) -> tuple[str | None, str]:
    """Split a path into that of the container (None for the root) and the last step."""
    container, _, name = row.path.rpartition("/")
    if len(row.keys) > 1:
        return container, name
    return None, name if row.keys else f"({'tensor' if isinstance(row, Tensor) else 'value'})"


def _is_dotted(name: str) -> bool:
    """Return whether the last step of a path is a dotted name, like those of a state dict."""
    if "." not in name or ".." in name or name[0] == "." or name[-1] == "." or "(" in name:
        return False
    return name.count(".") <= _MOST_NESTED


def _is_empty_part_of_module(value: ValueRow) -> bool:
    return bool(value.keys) and value.keys[-1] in _ALWAYS_THERE and value.text in _EMPTY


def _join(path: str, step: str) -> str:
    return f"{path}/{step}" if path else step


def _cut(text: str) -> str:
    return cut_text(text, MOST_NAME) or "\u2205"
