"""Whether a copy is what was planned: the same objects and bytes, on the devices that the plan says.

What is the same is for `diff` to say, whose digests leave out nothing but devices; here those are compared.
"""

from __future__ import annotations

import contextlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence

from inspector.containers.container import Container
from inspector.containers.formats import refuse_step
from inspector.containers.opening import open_path, read_container
from inspector.diff.copies import Devices, compare_copies, compare_objects, name_differences, shown
from inspector.errors import CancelledError, CheckpointError, ExportError
from inspector.model.build import build_checkpoint, collector_paused, open_checkpoint
from inspector.model.checkpoint import Checkpoint, HiddenDevice, HiddenPlace
from inspector.model.roles.devices import is_accelerator
from inspector.model.tensors.rebuild import device_text
from inspector.progress import Progress
from inspector.records import dataclass, replace
from inspector.remap.plan import (
    Plan,
    plan_remap,
    with_hidden,
    with_hidden_moved,
    without_devices,
    without_nowhere,
)
from inspector.remap.rules import Rule

_MOST_DIFFERENCES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What came out of comparing a copy with its original.

    Attributes:
        differences: What is not as it should be, a sentence each, at most twenty; nothing if all is.
    """

    differences: tuple[str, ...]
    tensors: int
    moves: tuple[tuple[str, str, int], ...]
    compared_nbytes: int
    moved_hidden: int = 0

    @property
    def is_same(self) -> bool:
        """Whether nothing differs but devices, and those as planned where a plan was given."""
        return not self.differences


def compare_files(
    copy: str,
    original: str,
    rules: Sequence[Rule] | None = None,
    *,
    move_all: bool = False,
    hidden: bool = False,
    progress: Progress | None = None,
) -> Comparison:
    """Compare a copy with the file that it was made from."""
    progress = progress or Progress()
    before = open_checkpoint(original, progress=progress)
    refuse_step(before.format, "verify", original)
    after = open_checkpoint(copy, progress=progress)
    with open_path(original) as source, open_path(copy) as other:
        found = compare_copies(source, other, progress)
    differences = found.differences
    if rules is not None and before.format == after.format:
        plan = without_nowhere(before, plan_remap(before, rules, move_all=move_all))
        plan = with_hidden(before, plan) if hidden else plan
        differences += compare_devices(before, after, plan, found.devices)
    moves = Counter(
        (one.device, other.device)
        for one, other in zip(before.tensors, after.tensors, strict=False)
        if one.device != other.device
    )
    rows = zip(before.hidden_devices, after.hidden_devices, strict=False)
    return Comparison(
        differences=tuple(differences[:_MOST_DIFFERENCES]),
        tensors=len(before.tensors),
        moves=tuple((there, here, count) for (there, here), count in moves.items()),
        compared_nbytes=found.nbytes,
        moved_hidden=sum(one.device != other.device for one, other in rows),
    )


def check_copy(
    container: Container, path: str, plan: Plan, progress: Progress, what: str = "the copy"
) -> tuple[Checkpoint, str]:
    """Open a file that was just written, and compare all but the bytes of tensors with what was planned.

    Returns:
        The file, and the first difference; empty for none.
    """
    with read_again(what), collector_paused():
        written = read_container(path, progress=progress)
        copy = build_checkpoint(written, progress=progress)
        devices = compare_objects(container, written, progress)
        if devices is None:
            return copy, name_differences(container, written, progress)[0]
        original = build_checkpoint(container, progress=progress)
    return copy, next(iter(compare_devices(original, copy, plan, devices)), "")


@contextlib.contextmanager
def read_again(what: str) -> Iterator[None]:
    """Turn the failure to read a file that was just written into one of writing it."""
    try:
        yield
    except CancelledError:
        raise
    except CheckpointError as error:
        raise ExportError(f"{what} cannot be read: {error}") from error


def compare_devices(original: Checkpoint, copy: Checkpoint, plan: Plan, devices: Devices) -> list[str]:
    """Return where the devices of a copy, in which nothing else differs, are not as planned."""
    found = []
    for index, (before, after) in enumerate(zip(original.tensors, copy.tensors, strict=False)):
        # One on meta has no device of its own to plan: it may be made of parts that move.
        is_planned = before.device != "meta" or before.storage is not None
        if is_planned and after.device != plan.tensors.get(index, before.device):
            found.append(f"{shown(before.path)} is not as planned.")
    for row, other in zip(original.storages, copy.storages, strict=False):
        if other.device != plan.storages.get(row.key, row.device):
            found.append(f"The storage {shown(row.key)} is not on the device of the plan.")
    if _hidden(with_hidden_moved(original.hidden_devices, plan.hidden)) != _hidden(copy.hidden_devices):
        found.append("Devices stored as values differ.")
    if not found and any(_is_stray(here, there, plan, _goals(original, plan)) for here, there in devices):
        found.append("A device that no row shows differs.")
    return found


def _goals(original: Checkpoint, plan: Plan) -> dict[str, set[str]]:
    goals: dict[str, set[str]] = defaultdict(set)
    for index, to in plan.tensors.items():
        goals[original.tensors[index].device].add(to)
    for row in original.storages:
        goals[row.device].add(plan.storages.get(row.key, row.device))
    for index, to in plan.hidden.items():
        goals[original.hidden_devices[index].device].add(to)
    return goals


def _is_stray(here: str, there: str, plan: Plan, goals: dict[str, set[str]]) -> bool:
    if here == there:
        return False
    before, after = device_text(here) or "", device_text(there)
    return after not in goals.get(before, ()) and after != plan.by_device(before)


def _hidden(rows: Iterable[HiddenDevice]) -> list[HiddenDevice]:
    """Return devices as they are listed: of a file within bytes those of accelerators, each once."""
    kept: list[HiddenDevice] = []
    for row in rows:
        is_nested = row.what is HiddenPlace.NESTED
        bare = replace(row, path=without_devices(row.path))
        if not is_nested or (is_accelerator(row.device) and bare not in kept):
            kept.append(bare)
    return kept
