"""Whether a file fits where a map puts it, by how much it does not, and what of it would fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from inspector.diagnose.branches import devices_fix
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import device_order
from inspector.model.totals import storage_nbytes_by
from inspector.records import dataclass, replace
from inspector.remap.plan import rules_for_target
from inspector.target.call import LoadCall, TagMap
from inspector.target.memory import HOST, Room, fits, forecast
from inspector.target.opening import can_map
from inspector.target.profile import Profile
from inspector.target.restore import landing_place
from inspector.target.versions import release_of
from inspector.units import format_nbytes

MAP_DOES_NOT_FIT = "map-does-not-fit"
Moves = tuple[tuple[str, str], ...]
"""(device of the file, where it goes); what stays is left out."""

_MOST_PER_TENSOR_NBYTES = 1 << 13
_MOST_DEVICES = 2
"""How many other GPUs are tried: each takes a forecast."""
_ON_CPU = "all of it on the CPU"
_WEIGHTS = frozenset({"parameter", "buffer"})


class Fitting(NamedTuple):
    """Something that would fit, in a few words."""

    way: Literal["fewer", "device", "cpu", "mmap", "weights"]
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Overflow:
    """What does not fit."""

    room: Room
    ranks: int
    fitting: tuple[Fitting, ...]

    @property
    def excess_nbytes(self) -> int:
        """By how much."""
        return self.room.needed_nbytes - (self.room.memory_nbytes or 0)


def most_nbytes(checkpoint: Checkpoint) -> int:
    """Return what no load can exceed on any device; nearly every file is below, and needs no forecast."""
    stored = sum(storage.nbytes for storage in checkpoint.storages)
    return 2 * stored + _MOST_PER_TENSOR_NBYTES * len(checkpoint.tensors)


def smallest_memory(target: Profile) -> int | None:
    """Return the smallest memory of a machine, of those that are known."""
    known = (target.memory_nbytes, *(gpu.memory_nbytes for gpu in target.gpus))
    return min((nbytes for nbytes in known if nbytes is not None), default=None)


def advised_moves(checkpoint: Checkpoint, target: Profile) -> Moves:
    """Return the map that makes a file load on a machine, as far as it is one of devices."""
    rules = rules_for_target(checkpoint, target)
    return tuple((rule.device, rule.to) for rule in rules if rule.device is not None)


def overflow_of(
    checkpoint: Checkpoint,
    target: Profile,
    moves: Moves,
    *,
    ranks: int = 1,
    mmap: bool = False,
    stored: tuple[tuple[str, int], ...] = (),
) -> Overflow | None:
    """Return what does not fit of a load that is mapped; None where all does, or nothing is known.

    Args:
        ranks: How many processes load at once.
        stored: Where rules for parts of the tree put bytes elsewhere, what is on each device then.
    """
    if not may_overflow(checkpoint, target, ranks):
        return None
    call = _call(moves, mmap=mmap)
    rooms = fits(forecast(checkpoint, target, call, ranks=ranks), target)
    if stored:
        host = [room for room in rooms if room.device == HOST]
        rooms = (*host, *_rooms(target, stored, ranks))
    short = [room for room in rooms if room.fits is False]
    if not short:
        return None
    worst = max(short, key=lambda room: room.needed_nbytes - (room.memory_nbytes or 0))
    return Overflow(
        room=worst,
        ranks=ranks,
        fitting=what_fits(checkpoint, target, call, worst, ranks=ranks),
    )


def has_room(checkpoint: Checkpoint, target: Profile, moves: Moves) -> bool:
    """Return whether a map is not known to put more on a device than it holds."""
    if not may_overflow(checkpoint, target):
        return True
    rooms = fits(forecast(checkpoint, target, _call(moves)), target)
    return all(room.fits is not False for room in rooms)


def may_overflow(checkpoint: Checkpoint, target: Profile, ranks: int = 1) -> bool:
    """Return whether a forecast is worth its time: nearly every file is smaller than every memory."""
    smallest = smallest_memory(target)
    return smallest is not None and most_nbytes(checkpoint) * ranks > smallest


def _call(moves: Moves, *, mmap: bool = False) -> LoadCall:
    return LoadCall(weights_only=False, map_location=TagMap(pairs=moves) if moves else None, mmap=mmap)


def _rooms(target: Profile, stored: tuple[tuple[str, int], ...], ranks: int) -> Iterator[Room]:
    """Yield the accelerators whose memory is known, with what is put on them."""
    nbytes = dict(stored)
    for gpu in target.gpus:
        needed = ranks * nbytes.get(gpu.device, 0)
        yield Room(device=gpu.device, needed_nbytes=needed, memory_nbytes=gpu.memory_nbytes)


def what_fits(
    checkpoint: Checkpoint, target: Profile, call: LoadCall, short: Room, *, ranks: int = 1
) -> tuple[Fitting, ...]:
    """Return what would fit in place of a load that does not."""
    return (
        *_fewer(checkpoint, target, call, short, ranks),
        *_devices(checkpoint, target, call, short),
        *_mapped(checkpoint, target, call, short, ranks),
        *_weights(checkpoint, short, ranks),
    )


def fitting_text(fitting: tuple[Fitting, ...]) -> str:
    """Return what fits as a sentence."""
    return (
        f"What fits: {'; '.join(one.text for one in fitting)}."
        if fitting
        else "Nothing else that could be tried fits either."
    )


def overflow_text(overflow: Overflow) -> str:
    """Return what does not fit and what does, in sentences."""
    room = overflow.room
    who = "Loading" if overflow.ranks == 1 else f"Loading in {overflow.ranks} processes at once"
    what = (
        f"{who} takes {format_nbytes(room.needed_nbytes)} of {_named(room.device)}, which has "
        f"{format_nbytes(room.memory_nbytes or 0)}: {format_nbytes(overflow.excess_nbytes)} too much."
    )
    return f"{what} {fitting_text(overflow.fitting)}"


def overflow_finding(checkpoint: Checkpoint, moves: Moves, overflow: Overflow) -> Finding:
    """Return the finding about a load, mapped or not, that takes more of a device than there is."""
    device = overflow.room.device
    going = dict(moves)
    tags = sorted({row.device for row in checkpoint.storages}, key=device_order)
    there = [tag for tag in tags if landing_place(going.get(tag, tag), 0) == _place(device)]
    after = "After the map, " if moves else ""
    title = f"{after}{_named(device)} is {format_nbytes(overflow.excess_nbytes)} too small"
    return finding(
        MAP_DOES_NOT_FIT,
        "error",
        title[:1].upper() + title[1:],
        overflow_text(overflow),
        [tensor.path for tensor in checkpoint.tensors if tensor.device in set(there)],
        fix=_fix(there, overflow),
    )


def _fix(there: list[str], overflow: Overflow) -> Fix | None:
    """Return the fix that does what fits, where a click can do that."""
    ways = {one.way for one in overflow.fitting}
    if there and "cpu" in ways:
        return devices_fix(there, "cpu")
    return Fix(option=("mmap", "True")) if "mmap" in ways else None


def _place(device: str) -> str:
    return "cpu" if device == HOST else device


def _named(device: str) -> str:
    return "the CPU's memory" if device == HOST else device


# --- what would fit -----------------------------------------------------------------------------------------


def _is_room(checkpoint: Checkpoint, target: Profile, call: LoadCall, device: str, ranks: int = 1) -> bool:
    """Return whether a load works, is known to fit into a device, and is known to exceed no other."""
    tried = forecast(checkpoint, target, call, ranks=ranks)
    rooms = {room.device: room.fits for room in fits(tried, target)}
    return bool(rooms.get(device)) and False not in rooms.values()


def _fewer(
    checkpoint: Checkpoint, target: Profile, call: LoadCall, short: Room, ranks: int
) -> Iterator[Fitting]:
    share = -(-short.needed_nbytes // ranks)
    count = min((short.memory_nbytes or 0) // max(share, 1), ranks - 1)
    if count and _is_room(checkpoint, target, call, short.device, count):
        yield Fitting("fewer", f"{count} processes at once" if count > 1 else "one process at a time")


def _devices(checkpoint: Checkpoint, target: Profile, call: LoadCall, short: Room) -> Iterator[Fitting]:
    """Yield the first other accelerator that takes all of it, and the CPU."""
    memory = {gpu.device: gpu.memory_nbytes for gpu in target.gpus if gpu.memory_nbytes is not None}
    total = sum(row.nbytes for row in checkpoint.storages)
    large = [device for device, room in memory.items() if room >= total and device != short.device]
    others = large[:_MOST_DEVICES]
    for device in others:
        if _is_room(checkpoint, target, replace(call, map_location=device), device):
            yield Fitting("device", f"all of it on {device} ({format_nbytes(memory[device])})")
            break
    to_cpu = replace(call, map_location="cpu")
    if short.device == HOST:
        return
    if target.memory_nbytes is None:
        needed = max((use.peak_nbytes for use in forecast(checkpoint, target, to_cpu).uses), default=0)
        yield Fitting("cpu", f"{_ON_CPU}, if that has {format_nbytes(needed)} free")
    elif _is_room(checkpoint, target, to_cpu, HOST):
        yield Fitting("cpu", f"{_ON_CPU} ({format_nbytes(target.memory_nbytes)})")


def _mapped(
    checkpoint: Checkpoint, target: Profile, call: LoadCall, short: Room, ranks: int
) -> Iterator[Fitting]:
    """Yield mmap=True where the machine's own memory is too small, torch can map the file, and that helps."""
    is_open = short.device == HOST and not call.mmap and can_map(checkpoint, release_of(target.torch_version))
    if is_open and _is_room(checkpoint, target, replace(call, mmap=True), HOST, ranks):
        yield Fitting("mmap", "mmap=True, which reads only what is used")


def _weights(checkpoint: Checkpoint, short: Room, ranks: int) -> Iterator[Fitting]:
    """Yield the weights without all else, and in half precision, as an export writes them."""
    total = sum(row.nbytes for row in checkpoint.storages)
    sizes = storage_nbytes_by(checkpoint, lambda row: row.dtype if row.role in _WEIGHTS else "")
    alone = sum(nbytes for dtype, nbytes in sizes.items() if dtype)
    half = alone - sizes.get("float32", 0) // 2
    room = (short.memory_nbytes or 0) // ranks
    if 0 < alone <= room and alone < total:
        yield Fitting("weights", f"the weights alone ({format_nbytes(alone)})")
    if 0 < half <= room and half < alone:
        yield Fitting("weights", f"the weights in bfloat16 ({format_nbytes(half)})")
