"""The steps of one rank, and what each takes of which memory; `memory` says what is assumed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

from inspector.containers.formats import format_of
from inspector.model.checkpoint import Checkpoint
from inspector.model.once import once
from inspector.model.roles.device_types import device_type
from inspector.records import dataclass
from inspector.target.landing import Landing, sent_tensors
from inspector.target.load_call import LoadCall
from inspector.target.machine.profile import Profile
from inspector.target.restore import landing_place
from inspector.target.versions import release_of

HOST = "host"
"""The name of the machine's own memory among devices."""

StageName = Literal["load", "read", "load_state_dict", "to"]

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
        reads_all: Whether it reads every tensor, which fetches the pages of a mapped file.
        fills_model: Whether it gives the parameters and buffers to a model's `load_state_dict`.
        assign: The argument of that name of `load_state_dict`.
        to: Where it moves the model then (`cuda` is each rank's own GPU), or None.
    """

    reads_all: bool = False
    fills_model: bool = False
    assign: bool = False
    to: str | None = None


LOAD_ALONE = Routine()
"""Nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """What is taken of one device's memory, by all ranks together.

    Attributes:
        device: Its name, or `host`.
        peak_nbytes: The most at any time of a stage.
        final_nbytes: What is left at its end.
    """

    device: str
    peak_nbytes: int
    final_nbytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One step of a script.

    Attributes:
        name: Which.
        uses: Memory by device, the host first.
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
    """What one rank takes, as the steps go on."""

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
    if routine.reads_all:
        memory.mapped += _left_mapped(sizes.stored, places) if is_mapped else 0
        memory.end("read")
    if routine.fills_model:
        is_fresh = is_mapped and not routine.reads_all
        _fill_model(memory, sizes, places, routine, call, is_mapped=is_fresh)
    return memory.stages


def _left_mapped(sizes: dict[str, _Size], places: dict[str, str]) -> int:
    """Return the bytes that are still in the file and nowhere else."""
    return sum(size.total for tag, size in sizes.items() if places[tag] == "cpu")


def _fill_model(
    memory: _Memory,
    sizes: Sizes,
    places: dict[str, str],
    routine: Routine,
    call: LoadCall,
    *,
    is_mapped: bool,
) -> None:
    """Return the parameters to a model, and move it."""
    unread = _left_mapped(sizes.model, places) if is_mapped else 0
    total = sum(size.total for size in sizes.model.values())
    if not routine.assign:
        memory.take("cpu", total)
        memory.mapped += unread
    memory.end("load_state_dict")
    if routine.to is None:
        return
    to = landing_place(routine.to, call.current)
    if not routine.assign:
        is_left = to != "cpu"
        memory.take(to, sum(size.on(to) for size in sizes.model.values()) if is_left else 0)
        memory.end("to", freed_nbytes=total if is_left else 0)
        return
    memory.take(to, sum(size.on(to) for tag, size in sizes.model.items() if places[tag] != to))
    memory.mapped += unread if to not in {"cpu", "meta"} else 0
    memory.end("to")


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
