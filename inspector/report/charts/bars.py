"""Stacked bars of bytes: by device before and after a map, by role, by dtype."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from inspector.model.checkpoint import Checkpoint
from inspector.model.roles.devices import device_order
from inspector.model.totals import dtype_totals, lost_nbytes, role_totals, wasted_nbytes
from inspector.records import dataclass, replace
from inspector.report.colors import NEUTRAL, device_name
from inspector.units import cut_text, escape_text, format_nbytes

# The search that finds what a part of a chart stands for.


def filter_for(field: str, value: str | None, others: Iterable[str] = ()) -> str:
    """Return the search for tensors with a value; empty where none can be written.

    Args:
        field: What is searched: `device`, `dtype` or `role`.
        value: The value as in the file; None where the part stands for several.
        others: The other values: where one of them begins so, the search asks for the whole.
    """
    if not value or '"' in value or not value.isprintable():
        return ""
    told_apart = " " not in value and not any(other != value and other.startswith(value) for other in others)
    return f"{field}:{value}" if told_apart else f'{field}:"{value}"'


_MOST_SEGMENTS = 10
_MOST_DEVICES = 64
_MOST_LABEL = 40
_LEAST_WASTE = 100
"""Storages that are this many times as large as what nobody views of them are drawn as whole."""
LOOSE = "in no tensor"
Flows = Counter[tuple[str, str]]
"""Stored bytes by (device as saved, device after the map)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """A segment of a bar.

    Attributes:
        label: The device (or role, or dtype) that it stands for.
        color: -1 for the CPU and other neutral things, else 0, 1, 2, ... in a fixed order of devices, so
            that a device keeps its color on every page.
        query: The search that finds what it stands for; empty where none can be written.
        is_missing: Whether it stands for what the file should hold, and does not.
    """

    label: str
    color: int
    nbytes: int
    query: str = ""
    is_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """One stacked bar.

    Attributes:
        capacity_nbytes: What there is room for, which is drawn as a track around it; or None.
    """

    label: str
    segments: tuple[Segment, ...]
    text: str
    capacity_nbytes: int | None = None

    @property
    def nbytes(self) -> int:
        """Its whole length."""
        return sum(part.nbytes for part in self.segments)

    @property
    def excess_nbytes(self) -> int:
        """How much of it there is no room for."""
        return 0 if self.capacity_nbytes is None else max(self.nbytes - self.capacity_nbytes, 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A set of bars on one scale of bytes, starting at 0."""

    title: str
    bars: tuple[Bar, ...]


def device_chart(checkpoint: Checkpoint, moved: Mapping[str, str], colors: Mapping[str, int]) -> Chart:
    """Return stored bytes by device, as saved, and after a map where that moves any.

    Args:
        moved: The new device of each storage that moves, by its key.
    """
    flows, lost = (flows_of(part(checkpoint), moved) for part in (_declared, _lost_part))
    labels = ("As saved", "After the map")
    bars = tuple(_device_bar(label, flows, lost, end, colors) for end, label in enumerate(labels))
    return Chart(title="Memory by device", bars=bars if is_mapped(flows) else bars[:1])


def is_mapped(flows: Flows) -> bool:
    """Return whether a map moves any bytes."""
    return any(saved != to for saved, to in +flows)


def flows_of(checkpoint: Checkpoint, moved: Mapping[str, str]) -> Flows:
    """Add up stored bytes by the device where they were saved, and by the one where a map puts them."""
    sums: dict[tuple[str, str], int] = {}
    for storage in checkpoint.storages:
        device = storage.device
        pair = device, moved.get(storage.key, device)
        sums[pair] = sums.get(pair, 0) + storage.nbytes
    return Counter(sums)


def _lost_part(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with no other bytes than those that the file does not hold."""
    gone = (row if row.missing else row._replace(nbytes=lost_nbytes(row)) for row in checkpoint.storages)
    return replace(checkpoint, storages=tuple(row for row in gone if row.missing or row.nbytes))


def _declared(checkpoint: Checkpoint) -> Checkpoint:
    """Return the checkpoint with the bytes that the file should hold."""
    if not any(map(lost_nbytes, checkpoint.storages)):
        return checkpoint
    whole = (
        row if row.missing else row._replace(nbytes=row.nbytes + lost_nbytes(row))
        for row in checkpoint.storages
    )
    return replace(checkpoint, storages=tuple(whole))


def _missing(nbytes: int) -> tuple[Segment, ...]:
    missing = Segment(label="missing", color=NEUTRAL, nbytes=nbytes, query="is:missing", is_missing=True)
    return (missing,) if nbytes else ()


def _of_which(text: str, missing: int) -> str:
    return f"{text}, of which {format_nbytes(missing)} missing" if missing else text


def role_chart(checkpoint: Checkpoint) -> Chart:
    """Return stored bytes by role, one bar each."""
    return _one_bar_each("What the bytes are for", "role", role_totals, checkpoint)


def dtype_chart(checkpoint: Checkpoint) -> Chart:
    """Return stored bytes by dtype, one bar each."""
    return _one_bar_each("Dtypes", "dtype", dtype_totals, checkpoint)


def waste_chart(checkpoint: Checkpoint) -> Chart | None:
    """Return what is stored against what tensors view of it; None where they view nearly all."""
    there = [storage for storage in checkpoint.storages if not storage.missing]
    stored, wasted = sum(storage.nbytes for storage in there), wasted_nbytes(there)
    if not wasted or wasted * _LEAST_WASTE < stored:
        return None
    viewed = Segment(label="viewed by tensors", color=0, nbytes=stored - wasted)
    left = Segment(label="viewed by none", color=2, nbytes=wasted)
    text = f"{format_nbytes(wasted)} of {format_nbytes(stored)} are viewed by no tensor"
    return Chart(title="Stored and viewed", bars=(Bar(label="Storages", segments=(viewed, left), text=text),))


def devices_at(flows: Flows, end: int) -> dict[str, int]:
    """Add up by the device where bytes were saved (0) or where they go (1), in the order of devices."""
    totals: Counter[str] = Counter()
    for pair, nbytes in flows.items():
        totals[pair[end]] += nbytes
    return {device: totals[device] for device in sorted(totals, key=device_order) if totals[device]}


def query_at(flows: Flows, end: int, device: str) -> str:
    """Return the search for what is on a device; after a map, if that is all of one device and no more."""
    origins = {pair[0] for pair, nbytes in flows.items() if nbytes and pair[end] == device}
    if end and (len(origins) != 1 or any(one in origins and to != device for one, to in +flows)):
        return ""
    names = {pair[0] for pair in flows}
    return filter_for("device", next(iter(origins)), names)


def _device_bar(label: str, flows: Flows, lost: Flows, end: int, colors: Mapping[str, int]) -> Bar:
    totals, missing = devices_at(flows - lost, end), sum(lost.values())
    queries = {device_name(device): query_at(flows, end, device) for device in list(totals)[:_MOST_DEVICES]}
    segments = tuple(
        Segment(
            label=device_name(device),
            color=colors.get(device, NEUTRAL),
            nbytes=nbytes,
            query=queries.get(device_name(device), ""),
        )
        for device, nbytes in _few(list(totals.items()), _MOST_DEVICES)
    )
    text = _of_which(format_nbytes(sum(flows.values())), missing)
    return Bar(label=label, segments=(*segments, *_missing(missing)), text=text)


Totals = Callable[[Checkpoint], Iterable[tuple[str, int]]]


def _one_bar_each(title: str, field: str, totals: Totals, checkpoint: Checkpoint) -> Chart:
    lost, checkpoint = dict(totals(_lost_part(checkpoint))), _declared(checkpoint)
    shown = [(label, nbytes) for label, nbytes in totals(checkpoint) if nbytes]
    names = [label for label, _ in shown]
    given = sum(nbytes for _, nbytes in shown)
    loose = sum(storage.nbytes for storage in checkpoint.storages) - given
    rows = [*_few(shown, _MOST_SEGMENTS), *([(LOOSE, loose)] if loose else [])]
    bars = tuple(
        Bar(
            label=escape_text(cut_text(label, _MOST_LABEL)),
            segments=(
                Segment(
                    label=escape_text(cut_text(label, _MOST_LABEL)),
                    color=NEUTRAL,
                    nbytes=nbytes - lost.get(label, 0),
                    query=filter_for(field, label, names) if label in names else "",
                ),
                *_missing(lost.get(label, 0)),
            ),
            text=format_nbytes(nbytes),
        )
        for label, nbytes in rows
    )
    return Chart(title=title, bars=bars)


def _few(totals: list[tuple[str, int]], most: int) -> list[tuple[str, int]]:
    """Sum up those beyond the limit."""
    if len(totals) <= most:
        return totals
    return [*totals[: most - 1], ("others", sum(nbytes for _, nbytes in totals[most - 1 :]))]
