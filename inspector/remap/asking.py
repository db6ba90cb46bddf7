"""What people ask of a copy, a map and a machine, as the rules and the plan that it makes of a file."""

from __future__ import annotations

from collections.abc import Callable

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.model.totals import device_totals
from inspector.remap.hidden import rules_for_hidden, with_hidden
from inspector.remap.plan import Plan, plan_remap, rules_for_target
from inspector.remap.rules import Rule, Rules, parse_rule
from inspector.remap.unmatched import refuse_unmatched
from inspector.target.machine.profile import Profile

Machine = Callable[[], Profile]
"""Describes the machine; it is called only where that matters, since it may have to be probed."""


def rules_for(
    checkpoint: Checkpoint, said: tuple[Rule, ...], machine: Machine | None, *, hidden: bool = False
) -> tuple[Rule, ...]:
    """Return the rules of a map, then those that a machine still needs; with neither, all goes to the CPU.

    Args:
        checkpoint: The file.
        said: The map.
        machine: The machine, or None.
        hidden: Whether devices outside of tensors are to be changed too.
    """
    refuse_unmatched(said, checkpoint)
    if machine is None:
        return said or (parse_rule("*=cpu"),)
    profile = machine()
    rules = said + rules_for_target(checkpoint, profile)
    return rules + rules_for_hidden(checkpoint, profile) if hidden else rules


def plan_for(
    checkpoint: Checkpoint,
    said: tuple[Rule, ...],
    machine: Machine | None,
    *,
    move_all: bool = False,
    hidden: bool = False,
) -> Plan:
    """Return the plan of those rules; `move_all` moves what torch keeps on the CPU, too. Errors as above."""
    plan = plan_remap(checkpoint, rules_for(checkpoint, said, machine, hidden=hidden), move_all=move_all)
    return with_hidden(checkpoint, plan) if hidden else plan


def refuse_other_than_devices(said: tuple[Rule, ...]) -> None:
    """Refuse rules that loading code has no word for."""
    if any(rule.device is None for rule in said):
        raise PlanError("snippets can map devices only, not paths", remedy="use remap for path:GLOB@TO")


def device_map(checkpoint: Checkpoint, said: tuple[Rule, ...]) -> tuple[tuple[str, str], ...]:
    """Return where each saved device goes by rules for devices: (saved device, where to)."""
    refuse_unmatched(said, checkpoint)
    ordered = Rules(said)
    going = ((total.device, ordered.by_device(total.device)) for total in device_totals(checkpoint))
    return tuple((device, to) for device, to in going if to is not None)
