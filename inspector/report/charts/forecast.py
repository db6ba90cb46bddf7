"""A memory forecast as bars and sentences."""

from __future__ import annotations

from inspector.records import dataclass
from inspector.report.charts.bars import Bar, Chart, Segment
from inspector.report.charts.rooms import room_text
from inspector.target.memory import HOST, Forecast, Room, fits
from inspector.target.profile import Profile
from inspector.units import cut_text, escape_text, format_nbytes

STAYS, PASSES = "stays", "while loading"
_MOST_BARS = 16
_MOST_CHARS = 300
_MOST_LOADER = 40
_STEPS = {
    "read": "reading every tensor",
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
    bars = tuple(_bar(room, finals[room.device]) for room in rooms[:_MOST_BARS] if room.needed_nbytes)
    tight = tuple(room for room in rooms if room.fits is False)
    notes = [_too_small(forecast, room) for room in tight]
    mapped = max((stage.mapped_nbytes for stage in forecast.stages), default=0)
    if mapped:
        notes.append(
            f"Up to {format_nbytes(mapped)} of the file may also be cached in memory, if there is room."
        )
    if len(rooms) > _MOST_BARS:
        notes.append(f"{len(rooms) - _MOST_BARS} more devices are not shown.")
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
