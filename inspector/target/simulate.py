"""What `torch.load(path, weights_only=False)` without `map_location` does on a machine: the first error.

torch checks the container, then restores storages in the order of the pickle, and makes tensors and
generators of their own devices in between. Whether the classes in the file can be imported there is not
known, so their errors are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.obstacles import Obstacle, file_obstacle, legacy_obstacle, storage_obstacles
from inspector.target.profile import Profile
from inspector.target.restore import Failure, generator_failure, restore_failure, send_failure

__all__ = ["LoadFailure", "device_failures", "restore_failure", "simulate_load"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadFailure:
    """The error that stops a load.

    Attributes:
        finding: The id of the finding that explains it.
        device: The location tag that raises it; empty where no device does.
        storage: The storage that raises it first; empty where none does.
        message: torch's text, with the exception's name.
    """

    finding: str
    device: str
    storage: str
    message: str


def simulate_load(checkpoint: Checkpoint, target: Profile) -> LoadFailure | None:
    """Give the error that `torch.load(path)` raises on a machine, or None if it loads."""
    obstacle = file_obstacle(checkpoint)
    if obstacle is not None:
        return _of_obstacle(obstacle)
    failure = next(chain(_storage_failures(checkpoint, target), _own_failures(checkpoint, target)), None)
    if failure is not None:
        return failure
    obstacle = legacy_obstacle(checkpoint)
    return None if obstacle is None else _of_obstacle(obstacle)


def device_failures(checkpoint: Checkpoint, target: Profile) -> dict[str, Failure]:
    """Give, by device, what torch says to it on a machine; devices that it takes are left out."""
    restored = {storage.device for storage in checkpoint.storages}
    sent = {tensor.device for tensor in checkpoint.tensors if _is_sent(tensor)}
    failures = {device: send_failure(device, target) for device in sent}
    failures |= {device: restore_failure(device, target) for device in restored}
    return {device: failure for device, failure in failures.items() if failure is not None}


def _storage_failures(checkpoint: Checkpoint, target: Profile) -> Iterator[LoadFailure]:
    """Give the errors of storages, and of the tensors that are sent elsewhere as soon as theirs is there."""
    obstacles = storage_obstacles(checkpoint)
    sent = {tensor.storage: tensor for tensor in reversed(checkpoint.tensors) if _is_sent(tensor)}
    failures = {
        device: restore_failure(device, target) for device in {row.device for row in checkpoint.storages}
    }
    for storage in checkpoint.storages:
        if storage.key in obstacles:
            yield _of_obstacle(obstacles[storage.key], storage=storage.key)
        failure = failures[storage.device]
        if failure is not None:
            yield LoadFailure(
                finding=failure[0], device=storage.device, storage=storage.key, message=failure[1]
            )
        if storage.key in sent:
            yield from _sent_failure(sent[storage.key], target)


def _own_failures(checkpoint: Checkpoint, target: Profile) -> Iterator[LoadFailure]:
    """Give the errors of devices without a storage: sent NumPy arrays, random generators."""
    for tensor in checkpoint.tensors:
        if _is_sent(tensor) and tensor.storage is None:
            yield from _sent_failure(tensor, target)
    for hidden in checkpoint.hidden_devices:
        failure = generator_failure(hidden.device, target) if hidden.what == "torch.Generator" else None
        if failure is not None:
            yield LoadFailure(finding=failure[0], device=hidden.device, storage="", message=failure[1])


def _is_sent(tensor: Tensor) -> bool:
    """Say whether a tensor is stored on the CPU and sent to its device: such a row has no geometry."""
    return tensor.stride is None and tensor.layout == "strided"


def _sent_failure(tensor: Tensor, target: Profile) -> Iterator[LoadFailure]:
    failure = send_failure(tensor.device, target)
    if failure is not None:
        yield LoadFailure(
            finding=failure[0], device=tensor.device, storage=tensor.storage or "", message=failure[1]
        )


def _of_obstacle(obstacle: Obstacle, *, storage: str = "") -> LoadFailure:
    return LoadFailure(finding=obstacle.finding, device="", storage=storage, message=obstacle.message)
