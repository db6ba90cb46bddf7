"""What a map puts on each device of the target, within the memory that it has."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.report.charts.bars import Bar, Chart, Flows, Segment, devices_at, query_at
from inspector.report.colors import NEUTRAL, device_name
from inspector.target.machine.profile import Profile
from inspector.target.restore import landing_place
from inspector.units import format_nbytes

_MOST_BARS = 32


def room_chart(flows: Flows, target: Profile, colors: Mapping[str, int]) -> Chart | None:
    """Return a bar for each device that bytes go to and whose memory is known; None without one."""
    memory = memory_of(target)
    bars = []
    for device, tags in landed(flows).items():
        room = memory.get(device)
        if room is not None:
            nbytes, name = sum(tags.values()), device_name(device)
            query = query_at(flows, 1, next(iter(tags))) if len(tags) == 1 else ""
            color = colors.get(device, colors.get(next(iter(tags)), NEUTRAL))
            part = Segment(label=name, color=color, nbytes=nbytes, query=query)
            text = room_text(nbytes, room)
            bars.append(Bar(label=name, segments=(part,), text=text, capacity_nbytes=room))
    if not bars:
        return None
    return Chart(title=f"After the map, in the memory of {target.label}", bars=tuple(bars[:_MOST_BARS]))


def landed(flows: Flows) -> dict[str, dict[str, int]]:
    """Return what a map puts on each device, by the tags that mean it: `cuda` is `cuda:0`."""
    found: dict[str, dict[str, int]] = {}
    for tag, nbytes in devices_at(flows, 1).items():
        found.setdefault(landing_place(tag, 0), {})[tag] = nbytes
    return found


def memory_of(target: Profile) -> dict[str, int | None]:
    """Return the memory of each device of a machine, as far as it is known; the CPU's is the machine's."""
    return {gpu.device: gpu.memory_nbytes for gpu in target.gpus} | {"cpu": target.memory_nbytes}


def room_text(nbytes: int, room: int) -> str:
    """Return how much of a memory is taken, and by how much it is too small."""
    text = f"{format_nbytes(nbytes)} of {format_nbytes(room)}"
    return text if nbytes <= room else f"{text}: {format_nbytes(nbytes - room)} too much"
