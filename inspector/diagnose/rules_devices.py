"""Rules about devices: what will not load, what will not work together, what no `map_location` reaches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inspector.diagnose.base import Case, Rule
from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.model.devices import KNOWN_TYPES, device_order, is_accelerator, split_device
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles import DICTIONARIES
from inspector.model.texts import cut_name
from inspector.target.simulate import device_failures
from inspector.units import format_count

_TITLES = {
    "cuda-unavailable": "Saved on a CUDA GPU, and the target has none",
    "cuda-index-out-of-range": "Saved on a GPU number that the target does not have",
    "mps-unavailable": "Saved on an Apple GPU, and the target has none",
    "xpu-unavailable": "Saved on an Intel GPU that the target does not have",
    "unknown-device": "Saved on a device that torch does not know there",
}


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
            f"torch.load without map_location stops with: {failures[devices[0]][1]} "
            f"Map {', '.join(devices) or 'it'} to a device of the target, with map_location or in a copy."
        )
        found = [path for device in devices for path in paths.get(device, [])]
        fix = _fix(devices, case.target.devices[0])
        yield finding(id_, "error", _TITLES[id_], detail, found, fix=fix)


def _fix(devices: list[str], to: str) -> Fix | None:
    """Give the rule that maps these devices; None for tags that no rule can name."""
    kinds = {name.partition(":")[0] for name in devices}
    if len(kinds) > 1:
        return Fix(rule=f"*={to}")
    pattern = devices[0] if len(devices) == 1 else f"{kinds.pop()}:*"
    writable = pattern and "=" not in pattern and not pattern.startswith("path:")
    return Fix(rule=f"{pattern}={to}") if writable else None


def _mixed(case: Case) -> Iterator[Finding]:
    """Point at parameters and buffers that are not where most of them are."""
    nbytes: dict[str, int] = defaultdict(int)
    paths: dict[str, list[str]] = defaultdict(list)
    for tensor in case.checkpoint.tensors:
        if tensor.role in {"parameter", "buffer"} and tensor.part_of is None and tensor.device != "meta":
            nbytes[tensor.device] += tensor.nbytes
            paths[tensor.device].append(tensor.path)
    if len(nbytes) < 2:
        return
    home = max(nbytes, key=lambda device: nbytes[device])
    strays = [path for device, found in paths.items() if device != home for path in found]
    to = home if case.target is None else case.target.devices[0]
    yield finding(
        "mixed-devices",
        "warning",
        f"The model lies on {format_count(len(nbytes), 'device')}",
        f"Most of it is on {home}, {format_count(len(strays), 'tensor')} elsewhere. Loaded as saved, a "
        "forward pass can stop with 'Expected all tensors to be on the same device'. If the model was not "
        "split on purpose, map all to one device.",
        strays,
        fix=Fix(rule=f"*={to}") if (split_device(to) or ("", None))[0] in KNOWN_TYPES else None,
    )


def _optimizer_apart(case: Case) -> Iterator[Finding]:
    """Point at optimizer slots that lie on another device than their parameter."""
    slots = [
        tensor
        for tensor in case.checkpoint.tensors
        if tensor.parameter is not None and not tensor.on_cpu_by_design and tensor.slot != "step"
    ]
    homes: dict[str, set[str]] = defaultdict(set)
    for tensor in case.checkpoint.tensors if slots else ():
        if tensor.role == "parameter" and tensor.part_of is None and tensor.keys:
            homes[_name_in_model(tensor)].add(tensor.device)
    strays = [
        slot.path for slot in slots if slot.device not in homes.get(slot.parameter or "", {slot.device})
    ]
    if strays:
        yield finding(
            "optimizer-off-parameter-device",
            "warning",
            "Optimizer state lies on another device than its parameter",
            "load_state_dict moves it to the parameter, so this is harmless there; used as loaded, "
            "optimizer.step() stops with 'Expected all tensors to be on the same device'.",
            strays,
        )


def _step_on_accelerator(case: Case) -> Iterator[Finding]:
    """Point at counters that were moved to a GPU although the optimizer keeps them on the CPU."""
    # Only `step`: torch itself moves NAdam's mu_product when it loads a state dict.
    strays = [
        tensor.path
        for tensor in case.checkpoint.tensors
        if tensor.slot == "step" and tensor.on_cpu_by_design and is_accelerator(tensor.device)
    ]
    if strays:
        yield finding(
            "step-on-accelerator",
            "warning",
            "The optimizer's step counters are on an accelerator",
            "Neither capturable nor fused is set, so torch expects them on the CPU: each step then waits "
            "for the GPU, and torch 1.12.0 stops with 'If capturable=False, state_steps should not be CUDA "
            "tensors'.",
            strays,
            fix=Fix(rule="path:**/step@cpu"),
        )


def _rng_off_cpu(case: Case) -> Iterator[Finding]:
    """Point at random generator states that were moved off the CPU."""
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
            "torch.set_rng_state and torch.cuda.set_rng_state take CPU tensors only: 'RNG state must be a "
            "torch.ByteTensor'. Something moved them along with the model.",
            strays,
        )


def _hidden(case: Case) -> Iterator[Finding]:
    """Point at devices that no map_location reaches."""
    hidden = [item for item in case.checkpoint.hidden_devices if is_accelerator(item.device)]
    if hidden:
        places = ", ".join(sorted({f"{item.what} {item.device}" for item in hidden})[:8])
        yield finding(
            "hidden-device",
            "note",
            "A device that map_location does not change",
            f"The file holds {places} as a value of its own. torch.load gives it back as it was saved; code "
            "that uses it will look for that device.",
            [item.path for item in hidden],
        )


def _name_in_model(tensor: Tensor) -> str:
    """Give what an optimizer's slots call a parameter: its key, or its dotted way through a whole module."""
    steps = [key for key in tensor.keys if key not in DICTIONARIES]
    if len(steps) < len(tensor.keys):
        first = next(place for place, key in enumerate(tensor.keys) if key in DICTIONARIES)
        return cut_name(".".join(str(key) for key in steps[first:]))
    return cut_name(str(tensor.keys[-1]))


def _paths_by_device(checkpoint: Checkpoint) -> dict[str, list[str]]:
    paths: dict[str, list[str]] = defaultdict(list)
    for tensor in checkpoint.tensors:
        paths[tensor.device].append(tensor.path)
    return paths


DEVICE_RULES: tuple[Rule, ...] = (
    _unloadable,
    _mixed,
    _optimizer_apart,
    _step_on_accelerator,
    _rng_off_cpu,
    _hidden,
)
