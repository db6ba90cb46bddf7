"""Optimizer state dicts as they lie in a file: groups, parameters by number or name, options.

The layout is that of `Optimizer.state_dict` in torch's `torch/optim/optimizer.py`: `state` maps a parameter's
number (its `id()` before torch 0.4.1, its name in some frameworks) to its slots, `param_groups` lists the
numbers, the options and, since torch 2.6, the names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.model.checkpoint import Key
from inspector.model.shapes import mapping_pairs
from inspector.model.texts import key_of
from inspector.pickles.values import Value

_KEPT_ON_CPU = frozenset({"step", "mu_product"})


@dataclass(slots=True, kw_only=True)
class GroupDraft:
    """One parameter group.

    Attributes:
        ids: Its parameters, by number or name.
        names: Their names where the file gives them, else empty.
        capturable: Whether `capturable` or `fused` is set, so that `step` lives on the device.
        step_follows: Whether the algorithm keeps its counters beside the parameter (ASGD does).
    """

    ids: list[Key] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    capturable: bool = False
    step_follows: bool = False


@dataclass(slots=True, kw_only=True)
class OptimizerDraft:
    """One optimizer state dict.

    Attributes:
        keys: Where it stands.
        path: The same as text.
        groups: Its parameter groups.
        state_ids: The parameters that have state, in file order.
    """

    keys: tuple[Key, ...]
    path: str
    groups: list[GroupDraft]
    state_ids: list[Key]

    def is_kept_on_cpu(self, parameter: Key, slot: str) -> bool:
        """Say whether torch keeps this slot on the CPU wherever the parameter is.

        `_init_group` of Adam and most others makes `step` a CPU tensor unless the group is capturable or
        fused, and `load_state_dict` leaves it where it is.
        """
        if slot not in _KEPT_ON_CPU:
            return False
        group = self.group_of(parameter)
        return group is None or not (group.capturable or group.step_follows)

    def group_of(self, parameter: Key) -> GroupDraft | None:
        """Give the group that lists a parameter; the only group even if it does not."""
        if len(self.groups) == 1:
            return self.groups[0]
        return next((group for group in self.groups if parameter in group.ids), None)


def looks_like_optimizer(value: Value) -> bool:
    """Say whether a value is an optimizer's state dict: a mapping with `state` and `param_groups`."""
    pairs = mapping_pairs(value)
    if pairs is None or len(pairs) > 64:
        return False
    names = [key for key, _ in pairs if isinstance(key, str)]
    return "state" in names and "param_groups" in names


def read_optimizer(keys: tuple[Key, ...], path: str, value: Value) -> OptimizerDraft:
    """Read an optimizer's state dict; parts that are malformed count as empty."""
    parts = dict(_named(value))
    groups = parts.get("param_groups")
    return OptimizerDraft(
        keys=keys,
        path=path,
        groups=[_read_group(group) for group in groups] if isinstance(groups, list) else [],
        state_ids=[key_of(key) for key, _ in mapping_pairs(parts.get("state")) or []],
    )


def _named(value: Value) -> list[tuple[str, Value]]:
    return [(key, item) for key, item in mapping_pairs(value) or [] if isinstance(key, str)]


def _read_group(value: Value) -> GroupDraft:
    parts = dict(_named(value))
    ids, names = parts.get("params"), parts.get("param_names")
    return GroupDraft(
        ids=[key_of(item) for item in ids] if isinstance(ids, list) else [],
        names=[item for item in names if isinstance(item, str)] if isinstance(names, list) else [],
        capturable=parts.get("capturable") is True or parts.get("fused") is True,
        step_follows={"lambd", "t0"} <= parts.keys(),
    )
