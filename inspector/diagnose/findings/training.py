"""Rules about the state of optimizers: what `optimizer.load_state_dict` and `optimizer.step` stop at."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator

from inspector.diagnose.branches import branch_fix
from inspector.diagnose.case import Case, Rule
from inspector.model.checkpoint import Checkpoint, Optimizer, Tensor
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import is_accelerator
from inspector.model.roles.roles import DICTIONARIES
from inspector.model.values.text import cut_name
from inspector.units import format_count

_RESUME = Fix(style="resume")


def _optimizer_apart(case: Case) -> Iterator[Finding]:
    """Find optimizer slots that lie on another device than their parameter."""
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
            "Optimizer state is on another device than its parameter",
            "load_state_dict moves it to the parameter, so this is harmless as long as the model was moved "
            "to its device before. Used as loaded, optimizer.step() fails with 'Expected all tensors to be "
            "on the same device'.",
            strays,
            fix=_RESUME,
        )


def _name_in_model(tensor: Tensor) -> str:
    """Return the name that optimizer slots use for a parameter: its key, or its dotted path in a module."""
    steps = [key for key in tensor.keys if key not in DICTIONARIES]
    if len(steps) < len(tensor.keys):
        first = next(place for place, key in enumerate(tensor.keys) if key in DICTIONARIES)
        return cut_name(".".join(str(key) for key in steps[first:]))
    return cut_name(str(tensor.keys[-1]))


def _step_on_accelerator(case: Case) -> Iterator[Finding]:
    """Find counters that were moved to a GPU although the optimizer keeps them on the CPU."""
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
            "Neither capturable nor fused is set, so torch expects them on the CPU: each step then "
            "synchronizes with the GPU, and torch 1.12.0 fails with 'If capturable=False, state_steps "
            "should not be CUDA tensors'.",
            strays,
            fix=Fix(rule="path:**/step@cpu"),
        )


def _step_off_accelerator(case: Case) -> Iterator[Finding]:
    """Find the reverse: counters on the CPU that the optimizer wants beside the parameter."""
    waiting = [
        tensor
        for tensor in case.checkpoint.tensors
        if tensor.slot == "step" and tensor.device == "cpu" and not tensor.on_cpu_by_design
    ]
    beside = _devices_beside(case.checkpoint) if waiting else {}
    strays = [tensor.path for tensor in waiting if _place_of(tensor) in beside]
    if strays:
        homes = sorted({beside[_place_of(tensor)] for tensor in waiting if _place_of(tensor) in beside})
        yield finding(
            "step-off-accelerator",
            "warning",
            "The optimizer's step counters are on the CPU",
            "capturable or fused is set (or the optimizer is ASGD), so torch expects the counters on the "
            "device of their parameter. load_state_dict of a recent torch moves them; used as loaded, "
            "optimizer.step() fails with 'If capturable=True, params and state_steps must be on supported "
            "devices'.",
            strays,
            fix=branch_fix(strays, homes[0]) if len(homes) == 1 else _RESUME,
        )


def _devices_beside(checkpoint: Checkpoint) -> dict[str, str]:
    """Give, by the place of one parameter's slots, the accelerator that its other slots are on."""
    return {
        _place_of(tensor): tensor.device
        for tensor in checkpoint.tensors
        if tensor.role == "optimizer" and tensor.slot != "step" and is_accelerator(tensor.device)
    }


def _place_of(slot: Tensor) -> str:
    return slot.path.rpartition("/")[0]


def _optimizer_mismatch(case: Case) -> Iterator[Finding]:
    """Return which optimizers do not match the parameters in the file."""
    of_model = sum(
        1 for tensor in case.checkpoint.tensors if tensor.role == "parameter" and tensor.part_of is None
    )
    for optimizer in case.checkpoint.optimizers:
        if 0 < of_model < optimizer.parameters:
            yield _too_many(optimizer, of_model)
        elif optimizer.naming in {"unknown", "partial"} and optimizer.with_state:
            yield finding(
                "optimizer-mismatch",
                "note",
                f"Optimizer slots of {optimizer.path or 'the checkpoint'} could not all be named",
                optimizer.detail,
                [optimizer.path],
            )


def _too_many(optimizer: Optimizer, of_model: int) -> Finding:
    return finding(
        "optimizer-mismatch",
        "warning",
        f"The optimizer {optimizer.path or 'in this file'} has more parameters than the model",
        f"Its groups list {format_count(optimizer.parameters, 'parameter')}, the file holds {of_model:,}. "
        "An optimizer created for the model in this file does not accept such a state dict: 'loaded state "
        "dict contains a parameter group that doesn't match the size of optimizer's group'. Something "
        "else was trained along with it (a loss with weights, another model), or the two come from "
        f"different runs. {optimizer.detail}".rstrip(),
        [optimizer.path],
    )


TRAINING_RULES: tuple[Rule, ...] = (
    _optimizer_apart,
    _step_on_accelerator,
    _step_off_accelerator,
    _optimizer_mismatch,
)
