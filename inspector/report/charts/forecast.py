"""A memory forecast as bars and sentences."""

from __future__ import annotations

from collections.abc import Mapping

from inspector.model.roles.devices import device_order
from inspector.records import dataclass
from inspector.report.charts.bars import Bar, Chart, Flows, Segment, devices_at, is_mapped, query_at
from inspector.report.colors import NEUTRAL, device_name
from inspector.target.memory import HOST, Forecast, Room, fits
from inspector.target.profile import Profile
from inspector.target.restore import landing_place
from inspector.units import cut_text, escape_text, format_nbytes

# What a map puts on each device of the target, within the memory that it has.

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
    title = f"{'After the map, in' if is_mapped(flows) else 'In'} the memory of {target.label}"
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


STAYS, PASSES = "stays", "while loading"
_FORECAST_MOST_BARS = 16
_MOST_CHARS = 300
_MOST_LOADER = 40
_STEPS = {
    "load_state_dict": "load_state_dict",
    "to": "model.to",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ForecastReport:
    """What is shown of a forecast.

    Attributes:
        chart: A bar for each device, or None where loading fails.
        notes: What the bars do not say, a sentence each.
        is_tight: Whether something does not fit, or fails.
    """

    chart: Chart | None
    notes: tuple[str, ...]
    is_tight: bool


def forecast_report(forecast: Forecast, target: Profile, loader: str = "torch.load") -> ForecastReport:
    """Return a forecast as bars: what stays on each device, and what is taken only while loading."""
    if forecast.failure is not None:
        message = escape_text(cut_text(forecast.failure.message, _MOST_CHARS))
        return ForecastReport(chart=None, notes=(f"It would stop with: {message}",), is_tight=True)
    rooms = fits(forecast, target)
    finals = {use.device: use.final_nbytes for use in forecast.uses}
    bars = tuple(
        _bar(room, finals[room.device]) for room in rooms[:_FORECAST_MOST_BARS] if room.needed_nbytes
    )
    tight = tuple(room for room in rooms if room.fits is False)
    notes = [_too_small(forecast, room) for room in tight]
    mapped = max((stage.mapped_nbytes for stage in forecast.stages), default=0)
    if mapped:
        notes.append(
            f"Up to {format_nbytes(mapped)} of the file may also be cached in memory, if there is room."
        )
    if len(rooms) > _FORECAST_MOST_BARS:
        notes.append(f"{len(rooms) - _FORECAST_MOST_BARS} more devices are not shown.")
    chart = Chart(title=f"While loading: {steps_text(forecast, loader)}", bars=bars)
    return ForecastReport(chart=chart if bars else None, notes=tuple(notes), is_tight=bool(tight))


def steps_text(forecast: Forecast, loader: str) -> str:
    """Return the steps of a forecast, for its title."""
    named = loader if len(loader) <= _MOST_LOADER else loader.rpartition(".")[2]
    return ", ".join(_STEPS.get(stage.name, named) for stage in forecast.stages)


def _bar(room: Room, final_nbytes: int) -> Bar:
    passing = room.needed_nbytes - final_nbytes
    segments = [Segment(label=STAYS, color=0, nbytes=final_nbytes)]
    if passing > 0:
        segments.append(Segment(label=PASSES, color=2, nbytes=passing))
    memory = room.memory_nbytes
    text = format_nbytes(room.needed_nbytes) if memory is None else room_text(room.needed_nbytes, memory)
    return Bar(label=_name(room.device), segments=tuple(segments), text=text, capacity_nbytes=memory)


def _too_small(forecast: Forecast, room: Room) -> str:
    excess = room.needed_nbytes - (room.memory_nbytes or 0)
    peak = f"at the peak, {_peak_of(forecast, room.device)} takes {format_nbytes(room.needed_nbytes)}"
    return f"{_name(room.device)} is {format_nbytes(excess)} too small: {peak}."


def _peak_of(forecast: Forecast, device: str) -> str:
    """Return the step that takes most of a device."""
    peaks = [
        (use.peak_nbytes, -place, stage.name)
        for place, stage in enumerate(forecast.stages)
        for use in stage.uses
        if use.device == device
    ]
    return _STEPS.get(max(peaks)[2], "loading")


def _name(device: str) -> str:
    return "CPU memory" if device == HOST else device
