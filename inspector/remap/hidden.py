"""Devices outside of tensors, sent where the rules send tensors: only for those who ask for it.

No `map_location` reaches them, and a value may be a mere record of where something ran, so a remap leaves
them alone unless it is told. Then `torch.device` objects and meshes follow the rules for devices and paths. A
random generator goes to another device of its type only: torch refuses it the state of another type
("Expected a CPUGeneratorImplState of size 5056 but found the input RNG state size to be 16"). Texts, classes
of tensors and DataParallel are the user's, always.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from inspector.containers.formats import format_of
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.model.roles.devices import split_device
from inspector.model.roles.hidden import CHANGED_IN, DEVICE_CLASS, MOVABLE
from inspector.records import replace
from inspector.remap.plan import Plan, fold, is_in_place
from inspector.remap.rules import Rule, Rules, is_same_device
from inspector.target.machine.profile import Profile

_DEVICE = re.compile(r"torch\.device\([^()]*\)")
_MOVABLE = MOVABLE | {HiddenPlace.GENERATOR}


def with_hidden(checkpoint: Checkpoint, plan: Plan, rules: Iterable[Rule] = ()) -> Plan:
    """Return a plan that also sends the devices outside of tensors by its rules, and then by these."""
    every = Rules((*plan.rules, *rules))
    moves = {index: to for index, to, _ in _wanted(checkpoint, every) if to is not None}
    return plan_hidden(checkpoint, plan, moves)


def plan_hidden(checkpoint: Checkpoint, plan: Plan, moves: dict[int, str]) -> Plan:
    """Return a plan in which these devices outside of tensors change, by their index."""
    if not moves:
        return plan
    rows = checkpoint.hidden_devices
    if min(moves) < 0 or max(moves) >= len(rows):
        raise PlanError("it changes devices that are not there")
    if checkpoint.format not in CHANGED_IN:
        raise PlanError(
            f"this is {format_of(checkpoint.format).what}, in which devices outside of tensors stay",
            where=rows[min(moves)].path,
            remedy="set them where the file is made, or after it is loaded; leave --hidden-devices out",
        )
    _refuse_alike(rows, moves)
    return replace(plan, hidden=moves, texts=plan.texts | {rows[index].device for index in moves})


def _refuse_alike(rows: Sequence[HiddenDevice], moves: dict[int, str]) -> None:
    """Refuse to make two keys of one dictionary the same: loading would keep the value of one."""
    before: dict[tuple[str, str], tuple[str, str]] = {}
    for index, row in enumerate(rows):
        if row.what is not HiddenPlace.KEY:
            continue
        device, old = moves.get(index, row.device), (row.path, row.device)
        if before.setdefault((without_devices(row.path), device), old) != old:
            raise PlanError(
                f"two keys of one dictionary would be the same device, {device}, and a value lost",
                where=row.path,
                remedy="send them to different devices, or leave --hidden-devices out",
            )


def without_devices(text: str) -> str:
    """Return a path, or a step of one, without the devices that keys of dictionaries are."""
    return _DEVICE.sub(DEVICE_CLASS, text)


def hidden_stay(checkpoint: Checkpoint, plan: Plan) -> tuple[HiddenDevice, ...]:
    """Return the generators that a rule names and that stay: their state fits no other type of device."""
    return tuple(row for _, to, row in _wanted(checkpoint, plan.rules) if to is None)


def could_move(checkpoint: Checkpoint, plan: Plan) -> tuple[HiddenDevice, ...]:
    """Return the devices that a plan leaves alone, and that `with_hidden` would send elsewhere."""
    wanted = _wanted(checkpoint, plan.rules) if checkpoint.format in CHANGED_IN else ()
    return tuple(row for index, to, row in wanted if to is not None and index not in plan.hidden)


def rules_for_hidden(checkpoint: Checkpoint, target: Profile) -> tuple[Rule, ...]:
    """Return the rules that send the devices outside of tensors to what the target has."""
    texts = {row.device for row in checkpoint.hidden_devices if row.what in _MOVABLE}
    moving = (text for text in sorted(texts) if split_device(text) and not is_in_place(text, target))
    return tuple(Rule(device=text, to=fold(text, target)) for text in moving)


def with_hidden_moved(rows: Iterable[HiddenDevice], hidden: Mapping[int, str]) -> tuple[HiddenDevice, ...]:
    """Return the rows as they are once a plan is carried out."""
    return tuple(
        replace(row, device=hidden[index]) if index in hidden else row for index, row in enumerate(rows)
    )


def _wanted(checkpoint: Checkpoint, rules: Rules) -> Iterable[tuple[int, str | None, HiddenDevice]]:
    """Yield each device that a rule sends elsewhere, with where it goes; None where it cannot go there."""
    for index, row in enumerate(checkpoint.hidden_devices):
        here = split_device(row.device)
        if row.what not in _MOVABLE or here is None or here[0] == "meta":
            continue
        rule = rules.find_first(row.device, (row.path,))
        if rule is None:
            continue
        kind = rule.to.partition(":")[0]
        to = kind if row.what is HiddenPlace.MESH else rule.to
        if not is_same_device(to, row.device):
            is_kept = row.what is HiddenPlace.GENERATOR and kind != here[0]
            yield index, None if is_kept else to, row
