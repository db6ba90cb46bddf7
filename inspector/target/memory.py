"""How much memory a load takes, device by device: at its peak, and when it is done.

What is assumed, and measured with `benchmarks/memory.py` (within 10 % for loads to the CPU):

- A storage that lands on the CPU is read to where it stays: nothing is held twice. One that lands elsewhere
  is read to the CPU first, one at a time, so the largest of them counts once more there.
- With `mmap=True` the file is mapped. Pages that have not been read take no memory; pages that were read are
  the file's own in the page cache, which all processes share and the kernel may take back. They are counted
  apart, as `mapped_nbytes`. A file of the other byte order is swapped in place, and so is no longer mapped.
- `load_state_dict` copies into a model of the saved sizes and types, on the CPU. With `assign=True` the model
  was made on the meta device and takes the tensors over.
- `.to` moves a model parameter by parameter and frees what it leaves.
- Whoever loaded the checkpoint keeps it to the end, as most scripts do.
- Every tensor costs Python objects besides its data; measured with 100,000 tensors.
- CUDA gives memory in pieces of 512 bytes (`kMinBlockSize` in `c10/cuda/CUDACachingAllocator.cpp`). What
  torch takes of a GPU to start with, some hundred megabytes a process, is not counted, nor what its
  allocator keeps in reserve.
- Ranks are processes of one machine that load at the same time; rank N's current device is number N.
"""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass, replace
from inspector.target.landing import Landing
from inspector.target.load_call import LoadCall
from inspector.target.machine.profile import Profile
from inspector.target.memory_steps import (
    HOST,
    LOAD_ALONE,
    Routine,
    Sizes,
    Stage,
    Use,
    sizes_of,
    stages_of_rank,
    together,
)
from inspector.target.restore import landing_place, send_failure
from inspector.target.simulate import LoadFailure, first_failure

__all__ = ["HOST", "LOAD_ALONE", "Forecast", "Room", "Routine", "Stage", "Use", "fits", "forecast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The memory of a load.

    Attributes:
        failure: The error that stops the first rank it stops, or None. After one there are no stages.
        ranks: How many processes load.
        stages: The steps in order.
    """

    failure: LoadFailure | None
    ranks: int
    stages: tuple[Stage, ...] = ()

    @property
    def uses(self) -> tuple[Use, ...]:
        """Memory by device over all stages."""
        peaks: dict[str, int] = {}
        for stage in self.stages:
            for use in stage.uses:
                peaks[use.device] = max(use.peak_nbytes, peaks.get(use.device, 0))
        finals = {use.device: use.final_nbytes for stage in self.stages[-1:] for use in stage.uses}
        return tuple(
            Use(device=device, peak_nbytes=peak, final_nbytes=finals.get(device, 0))
            for device, peak in peaks.items()
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """Whether what a device needs fits into it.

    Attributes:
        device: Its name, or `host`.
        needed_nbytes: The peak.
        memory_nbytes: What it has, or None where that is not known.
    """

    device: str
    needed_nbytes: int
    memory_nbytes: int | None

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None where the device's memory is not known."""
        return None if self.memory_nbytes is None else self.needed_nbytes <= self.memory_nbytes


def fits(forecast: Forecast, target: Profile) -> tuple[Room, ...]:
    """Compare a forecast with a machine's memory; mapped pages need no room of their own."""
    memory = {gpu.device: gpu.memory_nbytes for gpu in target.gpus} | {HOST: target.memory_nbytes}
    return tuple(
        Room(device=use.device, needed_nbytes=use.peak_nbytes, memory_nbytes=memory.get(use.device))
        for use in forecast.uses
    )


def forecast(
    checkpoint: Checkpoint, target: Profile, how: LoadCall, routine: Routine = LOAD_ALONE, *, ranks: int = 1
) -> Forecast:
    """Forecast the memory of a call of `torch.load`, and of what is done with it then."""
    if ranks < 1:
        raise ValueError("at least one process loads a checkpoint")
    sizes = sizes_of(checkpoint)
    memories = []
    for rank in range(ranks):
        call = how if ranks == 1 else replace(how, current=rank)
        failure = _failure(checkpoint, sizes, target, call, routine, is_first=rank == 0)
        if failure is not None:
            return Forecast(failure=failure, ranks=ranks)
        memories.append(stages_of_rank(checkpoint, sizes, target, call, routine))
    return Forecast(failure=None, ranks=ranks, stages=tuple(map(together, zip(*memories, strict=True))))


def _failure(
    checkpoint: Checkpoint,
    sizes: Sizes,
    target: Profile,
    call: LoadCall,
    routine: Routine,
    *,
    is_first: bool,
) -> LoadFailure | None:
    """Return what stops a rank. Ranks differ by their current device only, so one asks for everything."""
    if is_first:
        failure = first_failure(checkpoint, target, call)
        if failure is not None:
            return failure
    places = {Landing(checkpoint.format, target, call).of_tag(tag)[0] for tag in sizes.stored}
    if routine.to is not None:
        places.add(landing_place(routine.to, call.current))
    for place in sorted(places):
        missing = send_failure(place, target)
        if missing is not None:
            return LoadFailure(finding=missing[0], device=place, storage="", message=missing[1])
    return None
