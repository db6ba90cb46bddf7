"""Stacked bars of bytes: by device before and after a map, by role, by dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from inspector.model.checkpoint import Checkpoint
from inspector.model.roles.devices import device_order
from inspector.model.totals import dtype_totals, role_totals
from inspector.records import dataclass
from inspector.report.colors import NEUTRAL, device_name
from inspector.units import format_nbytes

_MOST_SEGMENTS = 10
_MOST_DEVICES = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment of a bar.

    Attributes:
        label: The device (or role, or dtype) that it stands for.
        color: -1 for the CPU and other neutral things, else 0, 1, 2, ... in a fixed order of devices, so
            that a device keeps its color on every page.
        nbytes: Its length.
    """

    label: str
    color: int
    nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stacked bar: its caption, its segments, and the text at its end."""

    label: str
    segments: tuple[Segment, ...]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A set of bars on one scale of bytes, starting at 0."""

    title: str
    bars: tuple[Bar, ...]


def device_chart(checkpoint: Checkpoint, moved: Mapping[str, str] | None, colors: Mapping[str, int]) -> Chart:
    """Return stored bytes by device, as saved and after a map.

    Args:
        checkpoint: The checkpoint.
        moved: The new device of each storage that moves, by its key; None where nothing can be mapped.
        colors: The color of each device.
    """
    before: Counter[str] = Counter()
    after: Counter[str] = Counter()
    for storage in checkpoint.storages:
        before[storage.device] += storage.nbytes
        after[(moved or {}).get(storage.key, storage.device)] += storage.nbytes
    bars = (_device_bar("As saved", before, colors), _device_bar("After the map", after, colors))
    return Chart(title="Memory by device", bars=bars if moved is not None else bars[:1])


def role_chart(checkpoint: Checkpoint) -> Chart:
    """Return stored bytes by role, one bar each."""
    return _one_bar_each("What the bytes are for", role_totals(checkpoint))


def dtype_chart(checkpoint: Checkpoint) -> Chart:
    """Return stored bytes by dtype, one bar each."""
    return _one_bar_each("Dtypes", dtype_totals(checkpoint))


def _device_bar(label: str, totals: Counter[str], colors: Mapping[str, int]) -> Bar:
    shown = [(device, totals[device]) for device in sorted(totals, key=device_order) if totals[device]]
    segments = tuple(
        Segment(label=device_name(device), color=colors.get(device, NEUTRAL), nbytes=nbytes)
        for device, nbytes in _few(shown, _MOST_DEVICES)
    )
    return Bar(label=label, segments=segments, text=format_nbytes(sum(totals.values())))


def _one_bar_each(title: str, totals: Iterable[tuple[str, int]]) -> Chart:
    shown = [(label, nbytes) for label, nbytes in totals if nbytes]
    bars = tuple(
        Bar(
            label=label,
            segments=(Segment(label=label, color=NEUTRAL, nbytes=nbytes),),
            text=format_nbytes(nbytes),
        )
        for label, nbytes in _few(shown, _MOST_SEGMENTS)
    )
    return Chart(title=title, bars=bars)


def _few(totals: list[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """Sum up those beyond the limit."""
    if len(totals) <= most:
        return totals
    return [*totals[: most - 1], ("others", sum(nbytes for _, nbytes in totals[most - 1 :]))]
