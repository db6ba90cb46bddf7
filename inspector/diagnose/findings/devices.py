"""Rules about devices: what will not load, what will not work together, what no `map_location` reaches."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache

from inspector.diagnose.branches import branch_fix, devices_fix
from inspector.diagnose.case import Case, Rule
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import device_order, is_accelerator, is_destination
from inspector.target.simulate import device_failures
from inspector.units import format_count

_MOST_DEVICES = 16
_TITLES = {
    "cuda-unavailable": "Saved on a CUDA GPU, and the target has none",
    "cuda-index-out-of-range": "Saved on a GPU index that the target does not have",
    "mps-unavailable": "Saved on an Apple GPU, and the target has none",
    "xpu-unavailable": "Saved on an Intel GPU that the target does not have",
    "unknown-device": "Saved on a device that torch does not support there",
}


@cache
def _loss_names() -> re.Pattern[str]:
    """Return what tells the weights of a loss, compiled when a file has use for it.

    A loss is often made beside the model, and its weights are then forgotten by `model.to(device)`.
    """
    return re.compile(
        r"(?:^|[./])(?:(?:criteri(?:on|a)|loss(?:es)?|loss_?f(?:n|unc|unction))[0-9_]*[./].|"
        r"(?:pos|class|cls|loss)_weights?$)",
        re.IGNORECASE,
    )


def _unloadable(case: Case) -> Iterator[Finding]:
    """Explain each device that stops `torch.load` on the target."""
    if case.target is None:
        return
    by_finding: dict[str, list[str]] = defaultdict(list)
    failures = device_failures(case.checkpoint, case.target)
    for device in sorted(failures, key=device_order):
        by_finding[failures[device][0]].append(device)
    paths = _paths_by_device(case.checkpoint) if failures else {}
    for id_, devices in by_finding.items():
        detail = (
            f"torch.load without map_location fails with: {failures[devices[0]][1]} Map "
            f"{_listed(devices) or 'it'} to a device of the target, with map_location or in a copy."
        )
        found = [path for device in devices for path in paths.get(device, [])]
        fix = devices_fix(devices, case.target.devices[0])
        yield finding(id_, "error", _TITLES[id_], detail, found, fix=fix)


def _listed(devices: list[str]) -> str:
    """Name the first devices of many: a file can have a hundred thousand, each of a hundred characters."""
    more = len(devices) - _MOST_DEVICES
    return ", ".join(devices[:_MOST_DEVICES]) + (f" and {more:,} more" if more > 0 else "")


def _mixed(case: Case) -> Iterator[Finding]:
    """Find parameters and buffers that are not where most of them are, and at those of a loss apart."""
    weights = _weights_by_device(case.checkpoint)
    home = _home(weights)
    if home is None:
        return
    strays = [tensor for device, found in weights.items() if device != home for tensor in found]
    of_loss = [tensor.path for tensor in strays if _loss_names().search(tensor.path)]
    if of_loss:
        yield finding(
            "loss-buffer-left-behind",
            "warning",
            "Weights of the loss are not on the model's device",
            f"The model is on {home}. A loss such as CrossEntropyLoss(weight=...) or "
            "BCEWithLogitsLoss(pos_weight=...) holds these tensors itself, and model.to(device) does not "
            "move them: computing the loss fails with 'Expected all tensors to be on the same device'. "
            "Call criterion.to(device) as well, or map them to the model's device.",
            of_loss,
            fix=branch_fix(of_loss, home),
        )
    others = [tensor for tensor in strays if not _loss_names().search(tensor.path)]
    if others:
        yield _scattered(case, home, others)


def _scattered(case: Case, home: str, strays: list[Tensor]) -> Finding:
    to = home if case.target is None else case.target.devices[0]
    devices = len({home, *(tensor.device for tensor in strays)})
    return finding(
        "mixed-devices",
        "warning",
        f"The model is on {format_count(devices, 'device')}",
        f"Most of it is on {home}, {format_count(len(strays), 'tensor')} elsewhere. Loaded as saved, a "
        "forward pass can fail with 'Expected all tensors to be on the same device'. If the model was not "
        "split on purpose, map everything to one device.",
        [tensor.path for tensor in strays],
        fix=Fix(rule=f"*={to}") if is_destination(to) else None,
    )


def _weights_by_device(checkpoint: Checkpoint) -> dict[str, list[Tensor]]:
    """Sort parameters and buffers by device; what has no data is nowhere."""
    found: dict[str, list[Tensor]] = defaultdict(list)
    for tensor in checkpoint.tensors:
        if tensor.device != "meta" and tensor.part_of is None and _is_weight(tensor):
            found[tensor.device].append(tensor)
    return found


def _is_weight(tensor: Tensor) -> bool:
    """Return whether a tensor belongs to a model, or to a loss whose state dict was saved beside one."""
    role = tensor.role
    return role in {"parameter", "buffer"} or (
        role == "other" and _loss_names().search(tensor.path) is not None
    )


def _home(weights: dict[str, list[Tensor]]) -> str | None:
    """Return the device that most of a model is on; None where it is on one device only, or there is none."""
    if len(weights) < 2:
        return None
    return max(weights, key=lambda device: sum(tensor.nbytes for tensor in weights[device]))


def _rng_off_cpu(case: Case) -> Iterator[Finding]:
    """Find random generator states that were moved off the CPU."""
    strays = [
        tensor.path
        for tensor in case.checkpoint.tensors
        if tensor.role == "rng" and is_accelerator(tensor.device)
    ]
    if strays:
        yield finding(
            "rng-off-cpu",
            "warning",
            "Random generator state is not on the CPU",
            "torch.set_rng_state and torch.cuda.set_rng_state accept only CPU tensors: 'RNG state must be a "
            "torch.ByteTensor'. Something such as map_location='cuda' moved them along with the model. Map "
            "them to the CPU, or call .cpu() on each before setting it.",
            strays,
            fix=branch_fix(strays, "cpu"),
        )


def _hidden(case: Case) -> Iterator[Finding]:
    """Find devices that no map_location reaches."""
    hidden = [item for item in case.checkpoint.hidden_devices if is_accelerator(item.device)]
    if hidden:
        places = ", ".join(sorted({f"{item.what} {item.device}" for item in hidden})[:8])
        yield finding(
            "hidden-device",
            "note",
            "A device that map_location does not change",
            f"The file holds {places} as a value of its own. torch.load returns it as it was saved; code "
            "that uses it will expect that device.",
            [item.path for item in hidden],
        )


def _paths_by_device(checkpoint: Checkpoint) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = defaultdict(list)
    for tensor in checkpoint.tensors:
        paths[tensor.device].append(tensor.path)
    return paths


DEVICE_RULES: tuple[Rule, ...] = (_unloadable, _mixed, _rng_off_cpu, _hidden)
