"""What the chosen map puts on devices that are too small: a finding in place of that for the advised map."""

from __future__ import annotations

from inspector.diagnose.fitting import MAP_DOES_NOT_FIT, Overflow, overflow_finding, overflow_of
from inspector.model.findings import SEVERITIES, Finding
from inspector.report.charts.bars import flows_of
from inspector.report.charts.rooms import landed
from inspector.session.device_map import DeviceMap
from inspector.session.document import Document
from inspector.session.screen import ForecastPage, Loading
from inspector.target.profile import Profile

_MODEL_DOES_NOT_FIT = "model-does-not-fit"


def fitted_findings(
    document: Document,
    target: Profile,
    device_map: DeviceMap,
    loading: Loading,
    *,
    found: tuple[Finding, ...],
    page: ForecastPage | None,
) -> tuple[Finding, ...]:
    """Return the findings with what does not fit of the map that was chosen, worst first.

    Args:
        page: The forecast of what a script does with the file.
    """
    others = tuple(one for one in found if one.id != MAP_DOES_NOT_FIT)
    checkpoint, moves = document.checkpoint, device_map.moves
    overflow = _overflow(document, target, device_map, loading)
    if overflow is not None:
        card = overflow_finding(checkpoint, moves, overflow)
        return _in_order((*others, card))
    is_said = any(one.id == "does-not-fit" for one in others)
    if page is None or page.chart is None or not page.is_tight or is_said:
        return others
    tight = Finding(
        id=_MODEL_DOES_NOT_FIT,
        severity="warning",
        title="Filling a model takes more memory than there is",
        detail=" ".join(page.notes),
        paths=(),
        count=0,
        fix=None,
    )
    return _in_order((*others, tight))


def _overflow(
    document: Document, target: Profile, device_map: DeviceMap, loading: Loading
) -> Overflow | None:
    """Ask only about what differs from a plain load, of which the findings of the file speak."""
    if not device_map.plan.storages and loading.ranks == 1:
        return None
    stored: tuple[tuple[str, int], ...] = ()
    if device_map.branches:
        flows = flows_of(document.checkpoint, device_map.plan.storages)
        stored = tuple((device, sum(tags.values())) for device, tags in landed(flows).items())
    return overflow_of(
        document.checkpoint,
        target,
        device_map.moves,
        ranks=loading.ranks,
        mmap=loading.mmap,
        stored=stored,
    )


def _in_order(found: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple(sorted(found, key=lambda one: SEVERITIES.index(one.severity)))
