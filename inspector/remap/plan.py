"""The plan: which storages get which device, decided from the model alone, before any byte is touched."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.devices import split_device
from inspector.remap.rules import Rule, check_destination, matches_device
from inspector.target.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a remap changes.

    Attributes:
        storages: The new device of each storage that moves, by its key.
        rebuilt: The new device of tensors that are sent to a device while loading (XLA and its like), by the
            key of the storage they are made from.
        rules: The rules, for devices that belong to no storage.
        tensors: The new device of each tensor row that moves, by its index.
        kept: Indexes of the tensors that a rule would move but that torch keeps on the CPU.
        texts: Every device text in the checkpoint; no other text can be one that has to change.
    """

    storages: dict[str, str]
    rebuilt: dict[str, str]
    rules: tuple[Rule, ...]
    tensors: dict[int, str]
    kept: tuple[int, ...]
    texts: frozenset[str]

    @property
    def is_empty(self) -> bool:
        """Whether nothing changes."""
        return not (self.storages or self.rebuilt)


def plan_remap(checkpoint: Checkpoint, rules: Sequence[Rule], *, move_all: bool = False) -> Plan:
    """Decide where each tensor goes.

    State that torch keeps on the CPU by design stays there, unless `move_all`. Tensors that share a storage
    must agree.

    Raises:
        PlanError: Rules send tensors that share their bytes to different devices.
    """
    moves: dict[int, str] = {}
    kept: list[int] = []
    for index, tensor in enumerate(checkpoint.tensors):
        to = _destination(checkpoint, tensor, rules)
        if to is None or to == tensor.device:
            continue
        if tensor.on_cpu_by_design and tensor.device == "cpu" and not move_all:
            kept.append(index)
        else:
            moves[index] = to
    devices = {storage.key: storage.device for storage in checkpoint.storages}
    rows = checkpoint.tensors
    return Plan(
        storages=_storage_moves(checkpoint, moves, devices) | _unviewed(checkpoint, rules),
        rebuilt={rows[i].storage or "": to for i, to in moves.items() if _is_rebuilt(rows[i], devices)},
        rules=tuple(rules),
        tensors=moves,
        kept=tuple(kept),
        texts=device_texts(checkpoint),
    )


def device_texts(checkpoint: Checkpoint) -> frozenset[str]:
    """Give every device text that a checkpoint's storages and tensors carry."""
    tags = {storage.device for storage in checkpoint.storages}
    return frozenset(tags | {tensor.device for tensor in checkpoint.tensors})


def rules_for_target(checkpoint: Checkpoint, target: Profile) -> tuple[Rule, ...]:
    """Give the rules that make a checkpoint load on a machine: what exists there stays where it is.

    Accelerators that are missing are folded onto those that exist, in turn, or else onto the CPU.
    """
    rules = []
    for device in sorted(device_texts(checkpoint)):
        parts = split_device(device)
        if parts is not None and target.offers(*parts):
            continue
        rules.append(Rule(device=device, to=check_destination(_fold(device, target))))
    return tuple(rules)


def _fold(device: str, target: Profile) -> str:
    parts = split_device(device)
    accelerators = [name for name in target.devices if name != "cpu"]
    if parts is None or not accelerators:
        return "cpu"
    return accelerators[(parts[1] or 0) % len(accelerators)]


def _destination(checkpoint: Checkpoint, tensor: Tensor, rules: Sequence[Rule]) -> str | None:
    if tensor.device == "meta" and tensor.storage is None:
        return None
    paths = [tensor.path]
    if tensor.part_of is not None:
        paths.append(checkpoint.tensors[tensor.part_of].path)
    return next((rule.to for rule in rules if rule.matches(tensor.device, paths)), None)


def _is_rebuilt(tensor: Tensor, devices: dict[str, str]) -> bool:
    """Say whether a tensor is sent to its device while loading, so that its storage stays on the CPU."""
    return tensor.storage is not None and devices.get(tensor.storage) != tensor.device


def _storage_moves(checkpoint: Checkpoint, moves: dict[int, str], devices: dict[str, str]) -> dict[str, str]:
    viewers: dict[str, list[int]] = defaultdict(list)
    for index, tensor in enumerate(checkpoint.tensors):
        if tensor.storage is not None and not _is_rebuilt(tensor, devices):
            viewers[tensor.storage].append(index)
    found = {}
    for key, indexes in viewers.items():
        wanted = {moves.get(index, checkpoint.tensors[index].device) for index in indexes}
        if len(wanted) > 1:
            names = ", ".join(checkpoint.tensors[index].path for index in indexes[:4])
            raise PlanError(
                f"tensors that share one storage are sent to {' and '.join(sorted(wanted))}",
                where=names,
                remedy="give them one device",
            )
        (device,) = wanted
        if device != devices.get(key):
            found[key] = device
    return found


def _unviewed(checkpoint: Checkpoint, rules: Sequence[Rule]) -> dict[str, str]:
    """Map the storages that no listed tensor views, such as those inside objects of unknown classes."""
    found = {}
    for storage in checkpoint.storages:
        if storage.tensors:
            continue
        to = next(
            (rule.to for rule in rules if rule.device and matches_device(rule.device, storage.device)), None
        )
        if to is not None and to != storage.device:
            found[storage.key] = to
    return found
