"""The rule about the device that is wanted on the target: what loads, and lands on another one."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.branches import devices_fix
from inspector.diagnose.case import Case, Rule
from inspector.model.findings import Finding, finding
from inspector.model.roles.devices import device_order, is_accelerator
from inspector.target.restore import landing_place, restore_failure

_MOST_NAMED = 4


def _elsewhere(case: Case) -> Iterator[Finding]:
    """Find what loads onto another accelerator than the one that was asked for."""
    target = case.target
    if target is None or target.wanted is None:
        return
    wanted = target.wanted
    tags = {tensor.device for tensor in case.checkpoint.tensors if is_accelerator(tensor.device)}
    others = sorted(
        (tag for tag in tags if restore_failure(tag, target) is None and landing_place(tag, 0) != wanted),
        key=device_order,
    )
    if not others:
        return
    named = ", ".join(others[:_MOST_NAMED]) + (", ..." if len(others) > _MOST_NAMED else "")
    yield finding(
        "not-on-wanted-device",
        "note",
        f"Saved on {named}, and {wanted} is wanted",
        "torch.load puts each tensor on the device that it was saved on, if there is one, and not on "
        f"{wanted}. Map it there, with map_location or in a copy.",
        [tensor.path for tensor in case.checkpoint.tensors if tensor.device in others],
        fix=devices_fix(others, wanted),
    )


WANTED_RULES: tuple[Rule, ...] = (_elsewhere,)
