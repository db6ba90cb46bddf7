"""How much memory a load takes, device by device: at its peak, and when it is done.

What is assumed, and measured with `benchmarks/memory.py` (within 10 % for loads to the CPU):

- A storage that lands on the CPU is read to where it stays: nothing is held twice. One that lands elsewhere
  is read to the CPU first, one at a time, so the largest of them counts once more there.
- With `mmap=True` the file is mapped. Pages that have not been read take no memory; pages that were read are
  the file's own in the page cache, which all processes share and the kernel may take back. They are counted
  apart, as `mapped_nbytes`. A file of the other byte order is swapped in place, and so is no longer mapped.
- `load_state_dict` copies into a model of the saved sizes and types, on the CPU.
- `.to` moves a model parameter by parameter and frees what it leaves.
- Whoever loaded the checkpoint keeps it to the end, as most scripts do.
- Every tensor costs Python objects besides its data; measured with 100,000 tensors.
- CUDA gives memory in pieces of 512 bytes (`kMinBlockSize` in `c10/cuda/CUDACachingAllocator.cpp`). What
  torch takes of a GPU to start with, some hundred megabytes a process, is not counted, nor what its
  allocator keeps in reserve.
- Ranks are processes of one machine that load at the same time; rank N's current device is number N.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.once import once
from inspector.model.roles.devices import device_type
from inspector.records import dataclass, replace
from inspector.target.call import LoadCall
from inspector.target.profile import Profile
from inspector.target.restore import landing_place, send_failure
from inspector.target.simulate import Landing, LoadFailure, first_failure, sent_tensors
from inspector.target.versions import release_of

HOST = "host"
"""The name of the machine's own memory among devices."""

StageName = Literal["load", "load_state_dict", "to"]

_PIECE_NBYTES = 512
_OF_MODEL = frozenset({"parameter", "buffer"})
# Bytes by tensor in Python objects, when loaded and at the peak, by (legacy, weights_only).
_OBJECTS = {
    (False, False): (1600, 1800),
    (False, True): (1800, 2400),
    (True, False): (1900, 2050),
    (True, True): (2250, 2750),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Routine:
    """What a script does with a checkpoint that it has loaded.

    Attributes:
        fills_model: Whether it gives the parameters and buffers to a model's `load_state_dict`.
        to: Where it moves the model then (`cuda` is each rank's own GPU), or None.
    """

    fills_model: bool = False
    to: str | None = None


LOAD_ALONE = Routine()
"""Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is taken of one device's memory, by all ranks together.

    Attributes:
        device: Its name, or `host`.
    """

    device: str
    peak_nbytes: int
    final_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a script.

    Attributes:
        mapped_nbytes: Pages of the file that have been read: they stand in memory while there is room, on top
            of what the host uses.
    """

    name: StageName
    uses: tuple[Use, ...]
    mapped_nbytes: int


class _Size:
    """Bytes of several storages or tensors: together, in CUDA's pieces, and of the largest."""

    __slots__ = ("largest", "pieces", "total")

    def __init__(self, sizes: Sequence[int]) -> None:
        self.total, self.largest = sum(sizes), max(sizes)
        self.pieces = sum([-(-nbytes // _PIECE_NBYTES) for nbytes in sizes]) * _PIECE_NBYTES

    def on(self, device: str) -> int:
        """Return what they take of a device's memory."""
        if device == "meta":
            return 0
        return self.pieces if device_type(device.partition(":")[0]).in_pieces else self.total


class Sizes:
    """What a file holds, by the place where it was saved."""

    def __init__(self, checkpoint: Checkpoint) -> None:
        """Add up once what every rank needs."""
        stored, model, sent = (defaultdict[str, list[int]](list) for _ in range(3))
        for storage in checkpoint.storages:
            stored[storage.device].append(storage.nbytes)
        rows = [row for row in checkpoint.tensors if row.role in _OF_MODEL and row.part_of is None]
        views, seen = Counter(row.storage for row in rows), set()
        for row in rows:
            if row.storage is not None and views[row.storage] > 1:  # tied weights are one parameter
                view = row.storage, row.storage_offset, row.nbytes
                if view in seen:
                    continue
                seen.add(view)
            model[row.device].append(row.nbytes)
        for row in sent_tensors(checkpoint):
            sent[row.device].append(row.nbytes)
        self.rows = len(checkpoint.tensors)
        self.stored, self.model, self.sent = map(_summed, (stored, model, sent))


@once
def sizes_of(checkpoint: Checkpoint) -> Sizes:
    """Return what a file holds, added up once."""
    return Sizes(checkpoint)


def _summed(sizes: Mapping[str, Sequence[int]]) -> dict[str, _Size]:
    return {device: _Size(found) for device, found in sizes.items()}


class _Memory:
    def __init__(self) -> None:
        self.now: defaultdict[str, int] = defaultdict(int)
        self.mapped = 0
        self.stages: list[Stage] = []

    def take(self, device: str, nbytes: int) -> None:
        """Take memory; the CPU's is the host's, and the meta device has none."""
        if nbytes or device == "cpu":
            self.now[HOST if device == "cpu" else device] += nbytes

    def end(self, name: StageName, *, passing_nbytes: int = 0, freed_nbytes: int = 0) -> None:
        """End a stage in which the host held some bytes for a moment, and frees others at its end."""
        peaks = dict(self.now)
        self.now[HOST] -= freed_nbytes
        peaks[HOST] = peaks.get(HOST, 0) + passing_nbytes
        uses = [
            Use(device=device, peak_nbytes=peaks[device], final_nbytes=self.now[device])
            for device in sorted(peaks, key=lambda device: (device != HOST, device))
        ]
        self.stages.append(Stage(name=name, uses=tuple(uses), mapped_nbytes=self.mapped))


def stages_of_rank(
    checkpoint: Checkpoint, sizes: Sizes, target: Profile, call: LoadCall, routine: Routine
) -> list[Stage]:
    """Follow one rank through a load that does not fail, and what comes after it."""
    memory = _Memory()
    landing = Landing(checkpoint.format, target, call)
    places = {tag: landing.of_tag(tag)[0] for tag in {*sizes.stored, *sizes.model}}
    is_mapped = call.mmap and dict(checkpoint.versions).get("byteorder") != "big"
    passing = 0
    for tag, size in sizes.stored.items():
        place = places[tag]
        if is_mapped and place not in {"cpu", "meta"}:
            memory.mapped += size.total
        if not is_mapped and place != "cpu" and not landing.skips_data:
            passing = max(passing, size.largest)
        if place != "cpu" or not is_mapped:
            memory.take(place, size.on(place))
    for device, size in sizes.sent.items():
        place = landing.of_own(device, is_wrapper=False)[0]
        memory.take(place, size.on(place))
    is_weights_only = call.is_weights_only(release_of(target.torch_version))
    final, peak = _OBJECTS[format_of(checkpoint.format).is_stream, is_weights_only]
    memory.take("cpu", final * sizes.rows)
    memory.end("load", passing_nbytes=passing + (peak - final) * sizes.rows)
    if routine.fills_model:
        if is_mapped:
            memory.mapped += sum(size.total for tag, size in sizes.model.items() if places[tag] == "cpu")
        _fill_model(memory, sizes, routine, call)
    return memory.stages


def _fill_model(memory: _Memory, sizes: Sizes, routine: Routine, call: LoadCall) -> None:
    total = sum(size.total for size in sizes.model.values())
    memory.take("cpu", total)
    memory.end("load_state_dict")
    if routine.to is not None:
        to = landing_place(routine.to, call.current)
        is_left = to != "cpu"
        memory.take(to, sum(size.on(to) for size in sizes.model.values()) if is_left else 0)
        memory.end("to", freed_nbytes=total if is_left else 0)


def together(stages: Sequence[Stage]) -> Stage:
    """Add up what all ranks take in one stage; the pages of the file are there once for all."""
    peaks: defaultdict[str, int] = defaultdict(int)
    finals: defaultdict[str, int] = defaultdict(int)
    for use in (use for stage in stages for use in stage.uses):
        peaks[use.device] += use.peak_nbytes
        finals[use.device] += use.final_nbytes
    uses = tuple(
        Use(device=device, peak_nbytes=peaks[device], final_nbytes=finals[device])
        for device in sorted(peaks, key=lambda device: (device != HOST, device))
    )
    mapped = max(stage.mapped_nbytes for stage in stages)
    return Stage(name=stages[0].name, uses=uses, mapped_nbytes=mapped)


# --- all ranks together -------------------------------------------------------------------------------------

__all__ = ["HOST", "LOAD_ALONE", "Forecast", "Room", "Routine", "Stage", "Use", "fits", "forecast"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The memory of a load.

    Attributes:
        failure: The error that stops the first rank it stops, or None. After one there are no stages.
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
    """Whether what a device needs fits into it."""

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
            return LoadFailure(finding=missing[0], device=place, message=missing[1])
    return None
