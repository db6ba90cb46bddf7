"""Optimizer state dicts as they lie in a file: groups, parameters by number or name, options.

The layout is that of `Optimizer.state_dict` in torch's `torch/optim/optimizer.py`: `state` maps a parameter's
number (its `id()` before torch 0.4.1, its name in some frameworks) to its slots, `param_groups` lists the
numbers, the options and, since torch 2.6, the names.
"""

from __future__ import annotations

from inspector.model.checkpoint import Key
from inspector.model.shapes import mapping_pairs
from inspector.model.texts import key_of
from inspector.pickles.values import Value
from inspector.records import dataclass, field

_KEPT_ON_CPU = frozenset({"step", "mu_product"})
_MOST_PARTS = 64


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
        group_by_id: The group that lists a parameter.
    """

    keys: tuple[Key, ...]
    path: str
    groups: list[GroupDraft]
    state_ids: list[Key]
    group_by_id: dict[Key, GroupDraft]

    def is_kept_on_cpu(self, parameter: Key, slot: str, shape: tuple[int, ...]) -> bool:
        """Say whether torch keeps this slot on the CPU wherever the parameter is.

        `_init_group` of Adam and most others makes `step` a CPU tensor of one number unless the group is
        capturable or fused, and `load_state_dict` leaves it where it is.
        """
        if slot not in _KEPT_ON_CPU or any(size != 1 for size in shape):
            return False
        group = self.group_of(parameter)
        return group is None or not (group.capturable or group.step_follows)

    def group_of(self, parameter: Key) -> GroupDraft | None:
        """Give the group that lists a parameter; the only group even if it does not."""
        return self.groups[0] if len(self.groups) == 1 else self.group_by_id.get(parameter)


def looks_like_optimizer(value: Value) -> bool:
    """Say whether a value is an optimizer's state dict: a mapping with `state` and `param_groups`."""
    pairs = mapping_pairs(value)
    if pairs is None or len(pairs) > _MOST_PARTS:
        return False
    names = [key for key, _ in pairs if isinstance(key, str)]
    return "state" in names and "param_groups" in names


def read_optimizer(keys: tuple[Key, ...], path: str, value: Value) -> OptimizerDraft:
    """Read an optimizer's state dict; parts that are malformed count as empty."""
    parts = dict(_named(value))
    listed = parts.get("param_groups")
    groups = [_read_group(group) for group in listed] if isinstance(listed, list | tuple) else []
    return OptimizerDraft(
        keys=keys,
        path=path,
        groups=groups,
        state_ids=[key_of(key) for key, _ in mapping_pairs(parts.get("state")) or []],
        group_by_id={key: group for group in groups for key in group.ids},
    )


def _named(value: Value) -> list[tuple[str, Value]]:
    return [(key, item) for key, item in mapping_pairs(value) or [] if isinstance(key, str)]


def _read_group(value: Value) -> GroupDraft:
    parts = dict(_named(value))
    ids, names = parts.get("params"), parts.get("param_names")
    return GroupDraft(
        ids=[key_of(item) for item in ids] if isinstance(ids, list | tuple) else [],
        names=[item for item in names if isinstance(item, str)] if isinstance(names, list | tuple) else [],
        capturable=parts.get("capturable") is True or parts.get("fused") is True,
        step_follows={"lambd", "t0"} <= parts.keys(),
    )
