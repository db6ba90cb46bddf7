"""What a map puts on each device of the target, within the memory that it has."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.model.roles.devices import device_order
from inspector.report.charts.bars import Bar, Chart, Flows, Segment, devices_at, query_at
from inspector.report.colors import NEUTRAL, device_name
from inspector.target.profile import Profile
from inspector.target.restore import landing_place
from inspector.units import format_nbytes

_MOST_BARS = 32
AS_SAVED = ", as saved"
"""What stands behind the name of a device where its bytes are shown as they were saved."""


def room_chart(flows: Flows, target: Profile, colors: Mapping[str, int]) -> Chart | None:
    """Return what each device of the target takes whose memory is known; None without one.

    Where the map changes that, the bytes that were saved on it stand in its memory too.
    """
    memory = memory_of(target)
    saved, going = landed(flows, 0), landed(flows, 1)
    bars, after_alone = [], 0
    for device in sorted({*saved, *going}, key=device_order):
        room = memory.get(device)
        if room is not None:
            before, after = saved.get(device, {}), going.get(device, {})
            if before and sum(before.values()) != sum(after.values()):
                bars.append(_room_bar(flows, before, room, colors, end=0))
            if after:
                bars.append(_room_bar(flows, after, room, colors))
                after_alone += 1
    if not after_alone:
        return None
    title = f"After the map, in the memory of {target.label}"
    if after_alone < len(bars):
        title = f"In the memory of {target.label}, as saved and after the map"
    return Chart(title=title, bars=tuple(bars[:_MOST_BARS]))


def _room_bar(
    flows: Flows, tags: dict[str, int], room: int, colors: Mapping[str, int], *, end: int = 1
) -> Bar:
    """Return one device's bar: what has these tags, saved (0) or after the map (1), in its memory."""
    nbytes, tag = sum(tags.values()), next(iter(tags))
    device = landing_place(tag, 0)
    query = query_at(flows, end, tag) if len(tags) == 1 else ""
    color = colors.get(device, colors.get(tag, NEUTRAL))
    name = device_name(device)
    part = Segment(label=name, color=color, nbytes=nbytes, query=query)
    label = name if end else f"{name}{AS_SAVED}"
    return Bar(label=label, segments=(part,), text=room_text(nbytes, room), capacity_nbytes=room)


def landed(flows: Flows, end: int = 1) -> dict[str, dict[str, int]]:
    """Return what a map puts on each device, by the tags that mean it: `cuda` is `cuda:0`.

    At the end 0, what was saved there.
    """
    found: dict[str, dict[str, int]] = {}
    for tag, nbytes in devices_at(flows, end).items():
        found.setdefault(landing_place(tag, 0), {})[tag] = nbytes
    return found


def memory_of(target: Profile) -> dict[str, int | None]:
    """Return the memory of each device of a machine, as far as it is known; the CPU's is the machine's."""
    return {gpu.device: gpu.memory_nbytes for gpu in target.gpus} | {"cpu": target.memory_nbytes}


def room_text(nbytes: int, room: int) -> str:
    """Return how much of a memory is taken, and by how much it is too small."""
    text = f"{format_nbytes(nbytes)} of {format_nbytes(room)}"
    return text if nbytes <= room else f"{text}: {format_nbytes(nbytes - room)} too much"
