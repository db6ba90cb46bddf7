"""The rule about the device that is wanted on the target: what loads, and lands on another one."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.branches import devices_fix
from inspector.diagnose.case import Case, Rule
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, finding
from inspector.model.roles.devices import device_order, is_accelerator
from inspector.target.call import LoadCall, TagMap
from inspector.target.memory import fits, forecast
from inspector.target.profile import Profile
from inspector.target.restore import landing_place, restore_failure
from inspector.units import format_nbytes

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
    full = _overflow(case.checkpoint, target, others)
    yield finding(
        "not-on-wanted-device",
        "note",
        f"Saved on {named}, and {wanted} is wanted",
        "torch.load puts each tensor on the device that it was saved on, if there is one, and not on "
        f"{wanted}. {full or 'Map it there, with map_location or in a copy.'}",
        [tensor.path for tensor in case.checkpoint.tensors if tensor.device in others],
        fix=None if full else devices_fix(others, wanted),
    )


def _overflow(checkpoint: Checkpoint, target: Profile, others: list[str]) -> str:
    """Return that all of it would not fit into the memory of the wanted device; empty where it does."""
    memory = next((gpu.memory_nbytes for gpu in target.gpus if gpu.device == target.wanted), None)
    if memory is None or sum(row.nbytes for row in checkpoint.storages) <= memory // 2:
        return ""  # whatever its allocator makes of it
    place = TagMap(pairs=tuple((tag, target.destination) for tag in others))
    rooms = fits(forecast(checkpoint, target, LoadCall(weights_only=False, map_location=place)), target)
    needed = next((room.needed_nbytes for room in rooms if room.device == target.wanted), 0)
    if needed <= memory:
        return ""
    return f"It would take {format_nbytes(needed)} there, and {target.wanted} has {format_nbytes(memory)}."


WANTED_RULES: tuple[Rule, ...] = (_elsewhere,)
