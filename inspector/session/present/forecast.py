"""The forecast of the memory page: loading as the device map says, and filling a model."""

from __future__ import annotations

from inspector.model.agents import loader_of
from inspector.model.roles.devices import is_accelerator
from inspector.model.totals import storage_nbytes_by
from inspector.records import replace
from inspector.report.charts.forecast import forecast_report
from inspector.session.device_map import DeviceMap
from inspector.session.document import Document, load_of
from inspector.session.screen import ForecastPage, Loading
from inspector.target.call import TagMap
from inspector.target.memory import Routine, forecast
from inspector.target.opening import can_map
from inspector.target.profile import Profile
from inspector.target.versions import release_of
from inspector.units import format_nbytes

_MOST_RANKS = 8


def forecast_page(
    document: Document, target: Profile, device_map: DeviceMap, loading: Loading
) -> ForecastPage | None:
    """Forecast what loading the file takes; None where there is nothing to load."""
    checkpoint = document.checkpoint
    if not checkpoint.storages:
        return None
    maps = can_map(checkpoint, release_of(target.torch_version))
    mmap = loading.mmap and maps
    map_location = TagMap(pairs=device_map.moves) if device_map.moves else None
    code = load_of(document, target).code
    call = replace(code, map_location=map_location, mmap=mmap, refusal=None)
    best = target.destination
    fills = any(tensor.role == "parameter" for tensor in checkpoint.tensors)
    is_shared = loading.ranks > 1 or target.wanted is None
    own = best.partition(":")[0] if best.startswith("cuda") and is_shared else best  # each rank's own GPU
    routine = Routine(fills_model=fills, to=own if fills and is_accelerator(best) else None)
    loader = loader_of(checkpoint)
    report = forecast_report(forecast(checkpoint, target, call, routine, ranks=loading.ranks), target, loader)
    return ForecastPage(
        loading=Loading(ranks=loading.ranks, mmap=mmap),
        most_ranks=max(_MOST_RANKS, target.count("cuda")),
        can_map=maps,
        chart=report.chart,
        notes=(*report.notes, *_optimizer_note(document, device_map, routine)),
        is_tight=report.is_tight,
    )


def _optimizer_note(document: Document, device_map: DeviceMap, routine: Routine) -> tuple[str, ...]:
    """Return what is not counted: `Optimizer.load_state_dict` moves state to the device of its parameters.

    See `_process_value_according_to_param_policy` in `torch/optim/optimizer.py`.
    """
    if routine.to is None:
        return ()
    checkpoint, moved = document.checkpoint, device_map.plan.storages
    places = {row.key: moved.get(row.key, row.device) for row in checkpoint.storages}
    waiting = storage_nbytes_by(
        checkpoint,
        lambda row: (
            places.get(row.storage or "", "") if row.role == "optimizer" and not row.on_cpu_by_design else ""
        ),
    )
    nbytes = waiting.get("cpu", 0)
    if not nbytes:
        return ()
    return (f"Not counted: optimizer.load_state_dict puts {format_nbytes(nbytes)} on {routine.to} as well.",)
