"""What a call of `torch.load` does on a machine: the first error, or where everything lands.

torch checks the container, then restores storages in the order of the pickle, and makes tensors and
generators of their own devices in between. Whether the classes in the file can be imported there is not
known, so their errors are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, takewhile

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.model.checkpoint import Checkpoint, HiddenPlace, Storage, Tensor
from inspector.model.obstacles import (
    Obstacle,
    legacy_obstacle,
    legacy_type,
    pickle_obstacle,
    storage_obstacles,
    tensor_obstacles,
)
from inspector.model.once import once
from inspector.model.tensors.views import CANNOT_GROW
from inspector.records import dataclass
from inspector.target.landing import Landing, is_wrapper, sent_tensors
from inspector.target.load_call import LoadCall
from inspector.target.machine.profile import Profile
from inspector.target.opening import opening_failure
from inspector.target.rebuilding import rebuild_failure
from inspector.target.refusal import refusal_message
from inspector.target.restore import Failure, generator_failure, restore_failure, send_failure
from inspector.target.versions import release_of

__all__ = ["LoadFailure", "LoadOutcome", "device_failures", "restore_failure", "simulate"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFailure:
    """The error that stops a load.

    Attributes:
        finding: The id of the finding that explains it.
        device: The location tag that raises it; empty where no device does.
        storage: The storage that raises it first; empty where none does.
        message: torch's text, with the exception's name.
        tensor: The path of the first tensor that waits for it; empty where none does.
    """

    finding: str
    device: str
    storage: str
    message: str
    tensor: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOutcome:
    """What a call of `torch.load` comes to.

    Attributes:
        failure: The error that stops it, or None.
        weights_only: Whether the restricted unpickler did it: the default is torch's.
        tensors: Where each tensor lands, in the order of the checkpoint's rows; empty after a failure.
        storages: The same for each storage.
    """

    failure: LoadFailure | None
    weights_only: bool
    tensors: tuple[str, ...] = ()
    storages: tuple[str, ...] = ()

    @property
    def devices(self) -> tuple[str, ...]:
        """All devices that something lands on, in the order of their first tensor."""
        return tuple(dict.fromkeys(chain(self.tensors, self.storages)))


def simulate(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> LoadOutcome:
    """Return what `torch.load` does with a file on a machine."""
    is_weights_only = how.is_weights_only(release_of(target.torch_version))
    failure = first_failure(checkpoint, target, how)
    if failure is not None:
        return LoadOutcome(failure=failure, weights_only=is_weights_only)
    landing = Landing(checkpoint.format, target, how)
    return LoadOutcome(
        failure=None,
        weights_only=is_weights_only,
        tensors=landing.of_tensors(checkpoint),
        storages=landing.of_storages(checkpoint),
    )


def device_failures(checkpoint: Checkpoint, target: Profile) -> dict[str, Failure]:
    """Return, by device, what torch says to it on a machine; devices that it takes are left out."""
    restored = {storage.device for storage in _first_of_tags(checkpoint)}
    sent = {tensor.device for tensor in sent_tensors(checkpoint)}
    failures = {device: send_failure(device, target) for device in sent}
    landing = Landing(checkpoint.format, target, LoadCall())
    failures |= {device: landing.of_tag(device)[1] for device in restored - {NO_DEVICE}}
    return {device: failure for device, failure in failures.items() if failure is not None}


def first_failure(checkpoint: Checkpoint, target: Profile, how: LoadCall) -> LoadFailure | None:
    """Return the error that stops a call, or None if it loads."""
    opening = opening_failure(checkpoint, target, how)
    if opening is not None:
        return LoadFailure(finding=opening[0], device="", storage="", message=opening[1])
    landing = Landing(checkpoint.format, target, how)
    failures = chain(_storage_failures(checkpoint, landing), _own_failures(checkpoint, target, landing))
    failure = _named(checkpoint, _legacy_type_failure(checkpoint, next(failures, None)))
    refusal = _refused(checkpoint, target, how, failure)
    if refusal is not None or failure is not None:
        return refusal or failure
    obstacle = None if _restricts(target, how) else pickle_obstacle(checkpoint, restricted=False)
    obstacle = obstacle or legacy_obstacle(checkpoint)
    return None if obstacle is None else _of_obstacle(obstacle)


def _legacy_type_failure(checkpoint: Checkpoint, failure: LoadFailure | None) -> LoadFailure | None:
    """Return the error of what the legacy format cannot hold, unless a load fails earlier in the file."""
    use, obstacle = legacy_type(checkpoint), legacy_obstacle(checkpoint)
    if use is None or obstacle is None:
        return failure
    if failure is not None and _storages_before(checkpoint, failure) < use.storages_before:
        return failure
    keys = [storage.key for storage in checkpoint.storages[use.storages_before :][:1]]
    return _of_obstacle(obstacle, storage="".join(keys))


def _restricts(target: Profile, how: LoadCall) -> bool:
    return how.is_weights_only(release_of(target.torch_version))


def _refused(
    checkpoint: Checkpoint, target: Profile, how: LoadCall, failure: LoadFailure | None
) -> LoadFailure | None:
    """Return the error of the restricted unpickler, unless a device stops the load earlier in the file."""
    release = release_of(target.torch_version)
    refusal = how.refusal
    if refusal is None or not how.is_weights_only(release):
        return None
    if failure is not None and _storages_before(checkpoint, failure) < refusal.storages_before:
        return None
    message = refusal_message(refusal, release)
    return LoadFailure(finding=refusal.finding, device="", storage="", message=message)


def _storages_before(checkpoint: Checkpoint, failure: LoadFailure) -> int:
    """Return how many storages are loaded before the one that fails, or before the tensor that does."""
    order = {storage.key: place for place, storage in enumerate(checkpoint.storages)}
    if failure.storage:
        return order[failure.storage]
    rows = takewhile(lambda row: row.path != failure.tensor, checkpoint.tensors)
    return 1 + max((order.get(row.storage or "", -1) for row in rows), default=-1)


def _named(checkpoint: Checkpoint, failure: LoadFailure | None) -> LoadFailure | None:
    """Name the first tensor that waits for the storage that failed."""
    if failure is None or failure.tensor or not failure.storage:
        return failure
    rows = (row.path for row in checkpoint.tensors if row.storage == failure.storage)
    return LoadFailure(
        finding=failure.finding,
        device=failure.device,
        storage=failure.storage,
        message=failure.message,
        tensor=next(rows, ""),
    )


def _storage_failures(checkpoint: Checkpoint, landing: Landing) -> Iterator[LoadFailure]:
    """Yield the errors of storages, and of tensors that are sent on as soon as their storage is read."""
    obstacles = storage_obstacles(checkpoint) if landing.reads_records else {}
    own, wrong = _own_by_storage(checkpoint), _wrong_by_storage(checkpoint)
    yield from wrong.get("", ())
    # Where nothing but its tag can stop a storage, the first with each tag tells of the rest.
    for storage in checkpoint.storages if obstacles or own or wrong else _first_of_tags(checkpoint):
        key = storage.key
        if key in obstacles and landing.meets(obstacles[key]):
            yield _of_obstacle(obstacles[key], storage=key)
        landed, failure = landing.of_tag(storage.device)
        if failure is not None:
            yield LoadFailure(finding=failure[0], device=storage.device, storage=key, message=failure[1])
        for tensor in own.get(key, ()):
            yield from _own_failure(tensor, landing)
        for unmade in wrong.get(key, ()):
            if landed != "meta" or unmade.message != CANNOT_GROW:
                yield unmade


@once
def _wrong_by_storage(checkpoint: Checkpoint) -> dict[str, list[LoadFailure]]:
    """Return the errors of tensors that cannot be made, by the last storage that is loaded before."""
    obstacles = tensor_obstacles(checkpoint)
    found: dict[str, list[LoadFailure]] = {}
    if not obstacles:
        return found
    order = {storage.key: place for place, storage in enumerate(checkpoint.storages)}
    order[""] = -1
    last = ""
    for number, row in enumerate(checkpoint.tensors):
        last = max(last, row.storage or "", key=order.__getitem__)
        if number in obstacles:
            failure = _of_obstacle(obstacles[number], storage=row.storage or "", tensor=row.path)
            found.setdefault(last, []).append(failure)
    return found


@once
def _first_of_tags(checkpoint: Checkpoint) -> tuple[Storage, ...]:
    """Return the first storage with each location tag."""
    found: dict[str, Storage] = {}
    for storage in checkpoint.storages:
        found.setdefault(storage.device, storage)
    return tuple(found.values())


@once
def _own_by_storage(checkpoint: Checkpoint) -> dict[str, list[Tensor]]:
    """Return the tensors that name a device themselves by the storage after which they are made.

    A wrapper is made after its parts, and they stand behind it in the file's order of rows.
    """
    own: dict[str, list[Tensor]] = {}
    last: dict[int, str] = {}
    for row in sent_tensors(checkpoint):
        if row.storage is not None:
            own.setdefault(row.storage, []).append(row)
    wrappers = {index: row for index, row in enumerate(checkpoint.tensors) if is_wrapper(row)}
    for row in checkpoint.tensors if wrappers else ():
        if row.part_of in wrappers and row.storage is not None:
            last[row.part_of] = row.storage
    for index, key in last.items():
        own.setdefault(key, []).append(wrappers[index])
    return own


def _own_failures(checkpoint: Checkpoint, target: Profile, landing: Landing) -> Iterator[LoadFailure]:
    """Yield the errors that no storage raises: of NumPy arrays, tensors made late, random generators."""
    for tensor in sent_tensors(checkpoint):
        if tensor.storage is None:
            yield from _own_failure(tensor, landing)
    unmade = rebuild_failure(checkpoint, landing)
    if unmade is not None:
        yield _of_row(*unmade)
    for hidden in checkpoint.hidden_devices:
        failure = generator_failure(hidden.device, target) if hidden.what is HiddenPlace.GENERATOR else None
        if failure is not None:
            yield LoadFailure(finding=failure[0], device=hidden.device, storage="", message=failure[1])


def _own_failure(tensor: Tensor, landing: Landing) -> Iterator[LoadFailure]:
    failure = landing.of_own(tensor.device, is_wrapper=is_wrapper(tensor))[1]
    if failure is not None:
        yield _of_row(tensor, failure)


def _of_row(tensor: Tensor, failure: Failure) -> LoadFailure:
    return LoadFailure(
        finding=failure[0],
        device=tensor.device,
        storage=tensor.storage or "",
        message=failure[1],
        tensor=tensor.path,
    )


def _of_obstacle(obstacle: Obstacle, *, storage: str = "", tensor: str = "") -> LoadFailure:
    return LoadFailure(
        finding=obstacle.finding, device="", storage=storage, message=obstacle.message, tensor=tensor
    )
