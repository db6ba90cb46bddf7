"""The device map: where the tensors of each original device go, and what a person may choose there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from inspector.model.devices import device_order
from inspector.remap.plan import Plan, plan_remap, rules_for_target
from inspector.remap.rules import Rule
from inspector.session.document import Document
from inspector.session.screen import DeviceRow
from inspector.target.profile import Profile
from inspector.units import format_count, format_nbytes

Destinations = tuple[tuple[str, str], ...]
"""(original device, destination) for each device of the file, whether it moves or not."""


def destinations(document: Document, target: Profile, chosen: Mapping[str, str]) -> Destinations:
    """Give where each device goes: what the person chose, else what makes the file load on the target."""
    wanted = {rule.device: rule.to for rule in rules_for_target(document.checkpoint, target)}
    return tuple(
        (total.device, chosen.get(total.device) or wanted.get(total.device) or total.device)
        for total in document.totals
    )


def moves_of(going: Destinations) -> Destinations:
    """Give only the devices that move."""
    return tuple((device, to) for device, to in going if device != to)


def plan_for(document: Document, going: Destinations) -> Plan:
    """Give the plan of a device map."""
    rules = [Rule(device=device, to=to) for device, to in moves_of(going)]
    return plan_remap(document.checkpoint, rules)


def device_rows(
    document: Document, target: Profile, going: Destinations, plan: Plan, colours: Mapping[str, int]
) -> tuple[DeviceRow, ...]:
    """Give the rows of the device map."""
    kept = Counter(document.checkpoint.tensors[index].device for index in plan.kept)
    offered = {to for _, to in going} | {total.device for total in document.totals} | set(target.devices)
    rows = []
    for total, (device, to) in zip(document.totals, going, strict=True):
        rows.append(
            DeviceRow(
                device=device,
                colour=colours.get(device, -1),
                summary=f"{format_count(total.tensors, 'tensor')}, {format_nbytes(total.nbytes)}",
                to=to,
                choices=_choices(device, offered),
                note=_note(kept[device], device == to),
            )
        )
    return tuple(rows)


def _choices(device: str, offered: set[str]) -> tuple[str, ...]:
    if device == "meta":
        return ("meta",)
    return tuple(sorted({*(name for name in offered if name != "meta"), device, "cpu"}, key=device_order))


def _note(kept: int, stays: bool) -> str:  # noqa: FBT001 - a private helper of one caller
    if kept:
        return f"{format_count(kept, 'tensor')} stay on cpu by design (step, RNG state)"
    return "kept as saved" if stays else ""
