"""Rules about the memory of the target: what would not fit, and who would fill one GPU for all."""

from __future__ import annotations

from collections.abc import Iterator

from inspector.diagnose.branches import devices_fix
from inspector.diagnose.case import Case, Rule
from inspector.diagnose.fitting import (
    advised_moves,
    fitting_text,
    may_overflow,
    overflow_finding,
    overflow_of,
    smallest_memory,
    what_fits,
)
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import is_accelerator, split_device
from inspector.target.call import LoadCall
from inspector.target.memory import HOST, Room, fits, forecast
from inspector.target.opening import can_map
from inspector.target.profile import Profile
from inspector.target.restore import landing_place
from inspector.target.simulate import device_failures
from inspector.target.versions import release_of
from inspector.units import format_nbytes

_PLAIN = LoadCall(weights_only=False)
_TO_CPU_FIRST = (
    "Load to the CPU first, and move only the weights: optimizer state is often two thirds of a checkpoint."
)
_MMAP = "mmap=True reads only what is used. Or save only the weights, without the optimizer."
_NO_MMAP = "mmap=True cannot be used with this file. Save only the weights, without the optimizer."


def _all_ranks(case: Case) -> Iterator[Finding]:
    """Warn of several processes that would all load onto the one GPU in the file."""
    if case.target is None or case.target.wanted is not None:
        return  # who wants one device starts one process
    devices = {storage.device for storage in case.checkpoint.storages}
    saved = [device for device in devices if is_accelerator(device)]
    if len(saved) != 1:
        return
    device = saved[0]
    kind, _ = split_device(device) or ("", None)
    count = case.target.count(kind)
    if count < 2 or device_failures(case.checkpoint, case.target):
        return
    yield finding(
        "all-ranks-on-one-device",
        "note",
        f"With several processes, all of them would load onto {device}",
        f"All that this file has on a GPU was saved on {device}, and the target has {count}. Training on "
        "several GPUs runs one process for each (torchrun, DistributedDataParallel), and each of them calls "
        f"torch.load: without map_location they all put their copy on {device}, which fills up while the "
        f"others stay empty. Give each process its own GPU with map_location=f'{kind}:{{local_rank}}', where "
        "local_rank is the index of the process on its machine (torchrun sets LOCAL_RANK), or load to the "
        "CPU first. With a single process there is nothing to do.",
        [tensor.path for tensor in case.checkpoint.tensors if tensor.device == device],
        fix=Fix(style="distributed"),
    )


def _does_not_fit(case: Case) -> Iterator[Finding]:
    """Compare what loading takes at its worst moment with the memory that is there."""
    target = case.target
    if target is None or not may_overflow(case.checkpoint, target):
        return
    rooms = fits(forecast(case.checkpoint, target, _PLAIN), target)
    for place, room in enumerate(room for room in rooms if room.fits is False):
        # What fits is tried once: that takes a forecast for each way.
        fitting = "" if place else f"{fitting_text(what_fits(case.checkpoint, target, _PLAIN, room))} "
        yield _too_large(case, target, room, fitting)


def _map_does_not_fit(case: Case) -> Iterator[Finding]:
    """Compare what loading takes after the map that makes it work with the memory that is there."""
    target = case.target
    if target is None or smallest_memory(target) is None:
        return
    moves = advised_moves(case.checkpoint, target)
    overflow = overflow_of(case.checkpoint, target, moves) if moves else None
    if overflow is not None:
        yield overflow_finding(case.checkpoint, moves, overflow)


def _too_large(case: Case, target: Profile, room: Room, fitting: str) -> Finding:
    on_gpu = room.device != HOST
    named = room.device if on_gpu else "the CPU"
    elsewhere = on_gpu and room.needed_nbytes < (target.memory_nbytes or room.needed_nbytes + 1)
    release = release_of(target.torch_version)
    excess = room.needed_nbytes - (room.memory_nbytes or 0)
    tags = {row.device for row in case.checkpoint.storages if landing_place(row.device, 0) == room.device}
    paths = [
        tensor.path
        for tensor in case.checkpoint.tensors
        if not on_gpu or landing_place(tensor.device, 0) == room.device
    ]
    return finding(
        "does-not-fit",
        "error",
        f"The file does not fit into the memory of {named}",
        f"torch.load takes {format_nbytes(room.needed_nbytes)} of {named}, which has "
        f"{format_nbytes(room.memory_nbytes or 0)}: {format_nbytes(excess)} too much, and a model created "
        f"before takes its share as well. {fitting}"
        + (_TO_CPU_FIRST if on_gpu else _MMAP if can_map(case.checkpoint, release) else _NO_MMAP),
        paths,
        fix=devices_fix(sorted(tags), "cpu") if elsewhere else Fix(option=("mmap", "True")),
    )


MEMORY_RULES: tuple[Rule, ...] = (_does_not_fit, _map_does_not_fit, _all_ranks)
