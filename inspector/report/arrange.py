"""The place of each tensor and value in the tree: below modules by dotted name, slots below their parameter.

Rows keep the order of the file. Every dictionary here has paths as its keys: Python salts the hash of a str,
so no file can provoke collisions, as it could with integers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from functools import cached_property
from itertools import accumulate

from inspector.model.checkpoint import Checkpoint, Tensor, ValueRow
from inspector.model.values.text import step_text
from inspector.records import dataclass
from inspector.units import cut_text, shown_step, unescaped_path

Leaf = int
"""A row's index: `i` among the tensors, `~i` among the values. Its name is made when it is shown."""

MOST_NAME = 512
NO_NAME = shown_step("")
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
        path: What the paths of all its rows begin with, the `/` or `.` at its end included.
        below: The rows below in file order.
        is_bucket: Whether it is only a slice of a very long list of rows.
    """

    name: str
    path: str
    below: list[Group | Leaf]
    is_bucket: bool = False
    is_above: bool = False


@dataclass(frozen=True, slots=True)
class Arrangement:
    """The rows in their places."""

    root: Group
    parts: dict[int, list[Leaf]]
    name_of: Callable[[Leaf], str]


def arrange(checkpoint: Checkpoint) -> Arrangement:
    """Return each tensor and value in its place, without the empty attributes that every module has."""
    places = _Places(checkpoint)
    parts: dict[int, list[Leaf]] = defaultdict(list)
    add = places.add
    values = [(i, value) for i, value in enumerate(checkpoint.values) if not _is_empty_part_of_module(value)]
    values.reverse()
    for index, tensor in enumerate(checkpoint.tensors):
        while values and values[-1][1].after <= index:
            turn, value = values.pop()
            add(~turn, value)
        if tensor.part_of is None:
            add(index, tensor)
        else:
            parts[tensor.part_of].append(index)
    for turn, value in reversed(values):
        add(~turn, value)
    return Arrangement(places.root, parts, Names(checkpoint).of)


class Names:
    """Knows where the name of a row begins in its path: behind its container, and behind the last dot."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Look at no row yet."""
        self._checkpoint = checkpoint

    def of(self, leaf: Leaf) -> str:
        """Return the name of a row."""
        row = self._checkpoint.tensors[leaf] if leaf >= 0 else self._checkpoint.values[~leaf]
        if not row.keys:
            return "(tensor)" if leaf >= 0 else "(value)"
        start = row.path.rfind("/") + 1
        is_part = isinstance(row, Tensor) and row.part_of is not None
        return _shown(row.path[start if is_part else self.dot_in(row, start) or start :])

    def dot_in(self, row: Tensor | ValueRow, start: int) -> int:
        """Return where the last step of a dotted name begins; 0 where the name, from `start` on, is whole.

        That of a value is split only where tensors beside it have dotted names.
        """
        if not _is_dotted(row.path[start:]):
            return 0
        is_split = isinstance(row, Tensor) or _container(row) in self._state_dicts
        return row.path.rfind(".") + 1 if is_split else 0

    @cached_property
    def _state_dicts(self) -> set[str | None]:
        """The containers of tensors with dotted names."""
        rows = self._checkpoint.tensors
        return {_container(row) for row in rows if _is_dotted(row.path.rpartition("/")[2])}


class _Places:
    """Finds the group that a row belongs to, by the path of its container and the dotted name within that."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        self.root = Group("", "", [])
        self._checkpoint = checkpoint
        self._names = Names(checkpoint)
        # By what the paths of its rows begin with. A mapping and a prefix of dotted names may have one name.
        self._known: dict[str, Group] = {"": self.root}
        self._states = {_join(optimizer.path, "state") for optimizer in checkpoint.optimizers}

    def add(self, leaf: Leaf, row: Tensor | ValueRow) -> None:
        """Put a row in its place."""
        path = row.path
        dot = path.rfind(".") + 1
        last = path[dot:]
        group = None
        if dot and last and "/" not in last and "(" not in last:
            group = self._known.get(path[:dot]) or self._beside(path, dot)
        if group is None:
            start = path.rfind("/") + 1
            dot = self._names.dot_in(row, start)
            group = self._known.get(path[: dot or start]) or self._group(_container(row), path[start:dot])
        group.below.append(leaf)

    def _beside(self, path: str, dot: int) -> Group | None:
        """Return a new group for a dotted name, where the level above it is known, and so its container."""
        above = path.rfind(".", 0, dot - 1) + 1
        group = self._known.get(path[:above]) if above else None
        name = path[above : dot - 1]
        if group is None or not name or "/" in name or "(" in name or path.count(".") > _MOST_NESTED:
            return None
        return self._enter(group, name, path[:dot])

    def _group(self, container: str | None, head: str) -> Group:
        """Return the group of a container, or of a head of dotted names in it, which ends with a dot."""
        within = "" if container is None else f"{container}/"
        found = self._known.get(within + head)
        if found is None:
            found = self._known[within + head] = self._new_group(container, head)
        return found

    def _new_group(self, container: str | None, head: str) -> Group:
        if head:
            above, dot, name = head[:-1].rpartition(".")
            within = "" if container is None else f"{container}/"
            return self._enter(self._group(container, above + dot), name, within + head)
        group = self.root
        for step, path in () if container is None else self._steps(container):
            if step not in _WRAPPERS:
                group = self._enter(group, step, path)
        return group

    def _enter(self, above: Group, step: str, path: str) -> Group:
        """Return the group at a path, a new one if there is none; a path stands below one group only."""
        found = self._known.get(path)
        if found is None:
            found = self._known[path] = Group(_shown(step), path, [])
            above.below.append(found)
            above.is_above = True
        return found

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
    def _parameters(self) -> dict[str, str]:
        """The parameter's name for the path of its state (`optimizer/state/0`)."""
        return {
            tensor.path.rsplit("/", tensor.slot.count("/") + 1)[0]: step_text(tensor.parameter)
            for tensor in self._checkpoint.tensors
            if tensor.slot is not None and tensor.parameter is not None
        }


def _container(row: Tensor | ValueRow) -> str | None:
    """Return the path of the container that a row stands in; None for the root."""
    return row.path.rpartition("/")[0] if len(row.keys) > 1 else None


def _is_dotted(name: str) -> bool:
    """Return whether the last step of a path is a dotted name, like those of a state dict."""
    if "." not in name or ".." in name or name[0] == "." or name[-1] == "." or "(" in name:
        return False
    return name.count(".") <= _MOST_NESTED


def _is_empty_part_of_module(value: ValueRow) -> bool:
    return bool(value.keys) and value.keys[-1] in _ALWAYS_THERE and value.text in _EMPTY


def _join(path: str, step: str) -> str:
    return f"{path}/{step}" if path else step


def _shown(step: str) -> str:
    return shown_step(cut_text(unescaped_path(step), MOST_NAME))
