"""The device map: where the tensors of each original device go, and what the user can choose there."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.model.roles.devices import device_order
from inspector.model.roles.hidden import CHANGED_IN
from inspector.records import dataclass
from inspector.remap.plan import Plan, plan_remap, rules_for_hidden, rules_for_target, with_hidden
from inspector.remap.rules import Rule, check_destination
from inspector.report.colors import NEUTRAL, device_name, device_names, device_runs
from inspector.report.outline.node import Node
from inspector.session.document import Document
from inspector.session.export.page import ExportWish
from inspector.session.screen import DeviceRow
from inspector.target.profile import Profile
from inspector.target.simulate import restore_failure
from inspector.units import format_count, format_nbytes

Pairs = tuple[tuple[str, str], ...]
"""(original device, destination)."""

_MOST_ENDS = 2
_ELSEWHERE = frozenset({"cuda:0", "mps"})
_MOST_ROWS = 64
"""More devices than any machine has; a hostile file may name a hundred thousand."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeviceMap:
    """Where each device goes, and what that changes.

    Attributes:
        going: Each device of the file with its destination, whether it moves or not.
        branches: Rules for parts of the tree, which go before the devices.
        plan: What an export would change; nothing when it is refused.
        refusal: Why the map cannot be carried out, or None.
        hidden_rules: Rules for devices outside of tensors, for those who want them changed as well.
    """

    checkpoint: Checkpoint
    going: Pairs
    branches: tuple[Rule, ...]
    plan: Plan
    refusal: PlanError | None
    hidden_rules: tuple[Rule, ...] = ()

    def plan_for(self, wish: ExportWish) -> Plan:
        """Return what an export changes."""
        return self.with_hidden if wish.hidden else self.plan

    @property
    def with_hidden(self) -> Plan:
        """The plan that changes devices outside of tensors as well."""
        if self.checkpoint.format not in CHANGED_IN:
            return self.plan
        return with_hidden(self.checkpoint, self.plan, self.hidden_rules)

    @property
    def moves(self) -> Pairs:
        """Only the devices that move."""
        return tuple((device, to) for device, to in self.going if device != to)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Landing:
    """Where the rows of a tree go by a map."""

    device_map: DeviceMap

    def text(self, node: Node) -> str:
        """Return the devices of a row, and where they go, if that is known of all tensors of a group.

        What stays where the others go is not named twice.
        """
        plan, going = self.device_map.plan, dict(self.device_map.going)
        if node.kind == "tensor":
            to = plan.tensors.get(node.index, "")
            return f"{node.device_text} \u2192 {device_name(to)}" if to else node.device_text
        devices = [device for device, _ in node.devices]
        ends = {going.get(device, device) for device in devices}
        moved = [device for device in devices if going.get(device, device) != device]
        is_kept = bool(plan.kept) and "cpu" in moved  # of some tensors, by design
        if ends == set(devices) or self.device_map.branches or is_kept:
            return node.device_text
        joined = {going[device] for device in moved}
        before = [device for device in devices if device in moved or device not in joined]
        named = ", ".join(name for name, _ in device_runs(sorted(before, key=device_order), 2))
        return f"{named} \u2192 {device_names(ends, _MOST_ENDS)}"


def landing(routes: DeviceMap) -> Landing | None:
    """Return where the rows of the tree go; None where all stay."""
    return None if routes.plan.is_empty else Landing(device_map=routes)


def is_mappable(target: Profile, routes: DeviceMap, no_map: str) -> bool:
    """Return whether anything is mapped, or there is another device than the CPU to map from or to."""
    devices = {*target.devices, *(device for device, _ in routes.going)}
    return not no_map and bool(routes.moves or routes.branches or devices - {"cpu"})


def map_devices(
    document: Document, target: Profile, chosen: Pairs, branches: tuple[Rule, ...] = ()
) -> DeviceMap:
    """Send each device where the user chose, else where the file loads on the target.

    Args:
        branches: Rules for parts of the tree, which go before those for devices.
    """
    checkpoint = document.checkpoint
    needed = rules_for_target(checkpoint, target)
    wanted = {rule.device: rule.to for rule in needed if rule.device is not None}
    held = [rule for rule in needed if rule.device is None]  # what the target has no type for
    picked = dict(chosen)
    going = []
    for device in (total.device for total in document.totals):
        name = device_name(device)
        to = picked.get(name) or wanted.get(device) or device
        going.append((device, device if to == name else to))
    rules = [*branches, *held, *(Rule(device=device, to=to) for device, to in going if device != to)]
    try:
        plan, refusal = plan_remap(checkpoint, rules), None
    except PlanError as error:
        plan, refusal = plan_remap(checkpoint, ()), error
    return DeviceMap(
        checkpoint=checkpoint,
        going=tuple(going),
        branches=branches,
        plan=plan,
        refusal=refusal,
        hidden_rules=rules_for_hidden(checkpoint, target),
    )


def device_rows(
    document: Document, target: Profile, device_map: DeviceMap, colors: Mapping[str, int]
) -> tuple[DeviceRow, ...]:
    """Return the rows of the device map."""
    kept = Counter(document.checkpoint.tensors[index].device for index in device_map.plan.kept)
    rows = list(zip(document.totals, device_map.going, strict=True))[:_MOST_ROWS]
    offered = {to for _, (_, to) in rows} | {total.device for total, _ in rows} | {*target.devices, "cpu"}
    offered = {device for device in offered if _can_be_reached(device)}
    return tuple(
        DeviceRow(
            device=device_name(device),
            color=colors.get(device, NEUTRAL),
            summary=f"{format_count(total.tensors, 'tensor')}, {format_nbytes(total.nbytes)}",
            to=device_name(to),
            choices=_choices(device, offered),
            note=_note(device, to, target, device_map, kept[device]),
            is_missing=restore_failure(to, target) is not None,
        )
        for total, (device, to) in rows
    )


def choices_for_all(map_rows: tuple[DeviceRow, ...]) -> tuple[str, ...]:
    """Return where all that has data can be sent at once, in the order of the rows' own choices.

    Where that is the CPU alone, also to the first GPU of a machine that has some: a copy may be for one.
    """
    movable = [row for row in map_rows if row.device != "meta"]
    common = set.intersection(*(set(row.choices) for row in movable)) if movable else set()
    return tuple(sorted(common | _ELSEWHERE if common == {"cpu"} else common, key=device_order))


def _choices(device: str, offered: set[str]) -> tuple[str, ...]:
    if device == "meta":  # there is no data to put anywhere
        return ("meta",)
    return tuple(sorted({device_name(device), *offered}, key=device_order))


def _can_be_reached(device: str) -> bool:
    try:
        check_destination(device)
    except PlanError:
        return False
    return True


def _note(device: str, to: str, target: Profile, device_map: DeviceMap, kept: int) -> str:
    """Return what a row does not show by itself: what stays behind, what is missing, what is left alone."""
    if restore_failure(to, target) is not None:
        return f"the target has no {device_name(to)}"
    if kept:
        return f"{format_count(kept, 'tensor')} kept on cpu by design (step, RNG state)"
    return "kept as saved" if device == to and device_map.moves else ""
