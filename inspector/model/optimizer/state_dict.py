"""Optimizer state dicts as they lie in a file: groups, parameters by number or name, options.

The layout is that of `Optimizer.state_dict` in torch's `torch/optim/optimizer.py`: `state` maps a parameter's
number (its `id()` before torch 0.4.1, its name in some frameworks) to its slots, `param_groups` lists the
numbers, the options and, since torch 2.6, the names. An optimizer that was pickled whole has the same two as
attributes, and its parameters themselves in the place of numbers. fastai's optimizers (`Optimizer.state_dict`
in `fastai/optimizer.py`) list the slots of all parameters in `state`, and the options of groups in `hypers`.
"""

from __future__ import annotations

from collections.abc import Callable

from inspector.limits import Work
from inspector.model.checkpoint import Key, OddKey
from inspector.model.values.children import attributes_of, breadth_of, mapping_pairs, mapping_steps
from inspector.model.values.text import path_key
from inspector.pickles.values import Call, Value
from inspector.records import dataclass, field, replace

_KEPT_ON_CPU = frozenset({"step", "mu_product"})
_MOST_PARTS = 64
_MOST_NUMBER = 1 << 62
_KEPT_PARTS = 24


@dataclass(slots=True, kw_only=True)
class GroupDraft:
    """One parameter group.

    Attributes:
        capturable: Whether `capturable` or `fused` is set, so that `step` lives on the device.
        step_follows: Whether the algorithm keeps its counters beside the parameter (ASGD does).
    """

    ids: list[Key] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    capturable: bool = False
    step_follows: bool = False


class Groups:
    """The parameter groups of an optimizer; optimizers that share theirs in the file share this.

    Attributes:
        by_id: The group that lists a parameter, where there are several groups.
    """

    __slots__ = ("by_id", "capturable", "groups", "parameters", "sizes")

    def __init__(self, groups: list[GroupDraft]) -> None:
        self.groups = groups
        self.sizes = tuple(len(group.ids) for group in groups)
        self.parameters = sum(self.sizes)
        self.capturable = any(group.capturable for group in groups)
        several = groups if len(groups) > 1 else []
        self.by_id: dict[Key, GroupDraft] = {key: group for group in several for key in group.ids}


@dataclass(slots=True, kw_only=True)
class OptimizerDraft:
    """One optimizer state dict.

    Attributes:
        state_ids: The parameters that have state, in file order.
        held: The parameters themselves, where the optimizer was pickled whole and has them.
    """

    keys: tuple[Key, ...]
    path: str
    listed: Groups
    state_ids: list[Key]
    held: dict[Key, Value] = field(default_factory=dict)
    is_object: bool = False

    def is_kept_on_cpu(self, parameter: Key, slot: str, shape: tuple[int, ...]) -> bool:
        """Return whether torch keeps this slot on the CPU wherever the parameter is.

        `_init_group` of Adam and most others makes `step` a CPU tensor of one number unless the group is
        capturable or fused, and `load_state_dict` leaves it where it is.
        """
        if slot not in _KEPT_ON_CPU or any(size != 1 for size in shape):
            return False
        group = self.group_of(parameter)
        return group is None or not (group.capturable or group.step_follows)

    def group_of(self, parameter: Key) -> GroupDraft | None:
        """Return the group that lists a parameter; the only group even if it does not."""
        groups = self.listed.groups
        return groups[0] if len(groups) == 1 else self.listed.by_id.get(parameter)


def looks_like_optimizer(value: Value) -> bool:
    """Return whether a value is an optimizer, or its state dict: it has `state` and groups."""
    if breadth_of(value) > _MOST_PARTS:
        return False
    parts = dict(_parts_of(value))
    return ("state" in parts and "param_groups" in parts) or _is_listed(parts)


def _is_listed(parts: dict[str, Value]) -> bool:
    """Return whether the slots are a list, as fastai keeps them."""
    return isinstance(parts.get("state"), list) and "hypers" in parts


def _with_texts(listed: Groups) -> Groups:
    """Return groups with texts for numbers, as DCP makes of all keys of a mapping but not of lists."""
    return Groups([replace(group, ids=list(map(_as_text, group.ids))) for group in listed.groups])


def _as_text(key: Key) -> Key:
    return str(key) if type(key) is int and 0 <= key <= _MOST_NUMBER else key


class OptimizerReader:
    """Reads the state dicts of optimizers; what several of them share is read once.

    Values are remembered by their `id`, and stay alive meanwhile.
    """

    def __init__(self, work: Work) -> None:
        """Begin; `work` counts what is read."""
        self._work = work
        self._ids: dict[int, list[Key]] = {}
        self._states: dict[int, list[Key]] = {}
        self._groups: dict[int, GroupDraft] = {}
        self._listed: dict[int, Groups] = {}

    def read(self, keys: tuple[Key, ...], path: str, value: Value) -> OptimizerDraft:
        """Read one; parts that are malformed count as empty."""
        parts = dict(_parts_of(value))
        if _is_listed(parts):
            return self._read_listed(keys, path, parts["state"])
        listed, state = parts.get("param_groups"), parts.get("state")
        state_ids = self._states.get(id(state))
        if state_ids is None:
            self._keep(breadth_of(state))
            state_ids = self._states[id(state)] = list(mapping_steps(mapping_pairs(state) or []))
        if mapping_pairs(value) is None:
            return self._read_object(keys, path, listed, state)
        found = self._listed.get(id(listed))
        if found is None:
            found = self._listed[id(listed)] = self._read_groups(listed, self._read_group)
        if state_ids and all(isinstance(key, str) and key.isdecimal() for key in state_ids):
            self._keep(found.parameters)
            found = _with_texts(found)
        return OptimizerDraft(keys=keys, path=path, listed=found, state_ids=state_ids)

    def _read_listed(self, keys: tuple[Key, ...], path: str, state: Value) -> OptimizerDraft:
        """Read the state of fastai: a place for each parameter, in the order of its groups."""
        slots = state if isinstance(state, list) else []
        self._keep(len(slots))
        groups = Groups([GroupDraft(ids=list(range(len(slots))))])
        filled: list[Key] = [place for place, slot in enumerate(slots) if mapping_pairs(slot)]
        return OptimizerDraft(keys=keys, path=path, listed=groups, state_ids=filled)

    def _read_object(self, keys: tuple[Key, ...], path: str, listed: Value, state: Value) -> OptimizerDraft:
        """Read an optimizer that was pickled whole: its parameters are the keys of its state."""
        pairs = mapping_pairs(state) or []
        state_ids = self._states[id(state)]
        names = {id(key): step for (key, _), step in zip(pairs, state_ids, strict=True)}
        held: dict[Key, Value] = {}

        def ids_of(ids: Value) -> list[Key]:
            items = ids if isinstance(ids, list | tuple) else []
            self._keep(len(items))
            first = len(held)
            found = [
                names.get(id(item), OddKey(f"Parameter {place} without state"))
                for place, item in enumerate(items, first)
            ]
            held.update(zip(found, items, strict=True))
            return found

        groups = self._read_groups(listed, lambda group: self._make_group(group, ids_of))
        return OptimizerDraft(
            keys=keys, path=path, listed=groups, state_ids=state_ids, held=held, is_object=True
        )

    def _read_groups(self, listed: Value, read: Callable[[Value], GroupDraft]) -> Groups:
        items = listed if isinstance(listed, list | tuple) else []
        self._keep(len(items))
        groups = [read(item) for item in items]
        self._keep(sum(len(group.ids) for group in groups) if len(groups) > 1 else 0)
        return Groups(groups)

    def _read_group(self, value: Value) -> GroupDraft:
        found = self._groups.get(id(value))
        if found is None:
            found = self._groups[id(value)] = self._make_group(value, self._read_ids)
        return found

    def _make_group(self, value: Value, read_ids: Callable[[Value], list[Key]]) -> GroupDraft:
        self._keep(breadth_of(value))
        parts = dict(_named(value))
        names = parts.get("param_names")
        return GroupDraft(
            ids=read_ids(parts.get("params")),
            names=self._read_names(names) if isinstance(names, list | tuple) else [],
            capturable=parts.get("capturable") is True or parts.get("fused") is True,
            step_follows={"lambd", "t0"} <= parts.keys(),
        )

    def _read_ids(self, ids: Value) -> list[Key]:
        if not isinstance(ids, list | tuple):
            return []
        found = self._ids.get(id(ids))
        if found is None:
            self._keep(len(ids))
            found = self._ids[id(ids)] = [path_key(item) for item in ids]
        return found

    def _read_names(self, names: list[Value] | tuple[Value, ...]) -> list[str]:
        self._keep(len(names))
        return [name for name in names if isinstance(name, str)]

    def _keep(self, entries: int) -> None:
        """Count entries that stay in memory: each is worth as much as many parts that are looked at."""
        self._work.look(_KEPT_PARTS * entries)


def _named(value: Value) -> list[tuple[str, Value]]:
    return [(key, item) for key, item in mapping_pairs(value) or [] if isinstance(key, str)]


def _parts_of(value: Value) -> list[tuple[str, Value]]:
    """Return the entries of a state dict, or the attributes of an object by their names."""
    if type(value) is not Call or mapping_pairs(value) is not None:
        return _named(value)
    attributes = attributes_of(value.state)
    return [(key[1:], item) for key, item in attributes if isinstance(key, str)]
