"""Rules about the state of optimizers: what `optimizer.load_state_dict` and `optimizer.step` stop at.

State dicts are restored by `load_state_dict`, which moves slots to their parameters; optimizers that were
pickled whole are used as they are loaded, see `target.after_load`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from inspector.containers.persistent_ids import NO_DEVICE
from inspector.diagnose.case import Case, Rule
from inspector.model.checkpoint import Checkpoint, Optimizer, Tensor
from inspector.model.findings import Finding, Fix, finding
from inspector.model.roles.devices import is_accelerator
from inspector.model.roles.roles import DICTIONARIES
from inspector.model.values.text import cut_name
from inspector.units import format_count

_RESUME = Fix(style="resume")


def _optimizer_apart(case: Case) -> Iterator[Finding]:
    """Find optimizer slots that were saved on another device than their parameter."""
    slots = [
        tensor
        for tensor in case.checkpoint.tensors
        if tensor.parameter is not None and not tensor.on_cpu_by_design and tensor.slot != "step"
    ]
    homes: dict[str, set[str]] = defaultdict(set)
    for tensor in case.checkpoint.tensors if slots else ():
        has_home = tensor.role == "parameter" and tensor.device != NO_DEVICE
        if has_home and tensor.part_of is None and tensor.keys:
            homes[_name_in_model(tensor)].add(tensor.device)
    strays = [
        slot.path for slot in slots if slot.device not in homes.get(slot.parameter or "", {slot.device})
    ]
    if strays:
        yield finding(
            "optimizer-off-parameter-device",
            "note",
            "Optimizer state was saved on another device than its parameter",
            "Nothing has to be mapped: optimizer.load_state_dict moves each slot to the device of its "
            "parameter. Move the model before: one that moves afterwards leaves the state behind, and "
            "optimizer.step() fails with 'Expected all tensors to be on the same device' or 'Tensors of the "
            "same index must be on the same device'.",
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
    """Find counters that were moved to a GPU although the optimizer keeps them on the CPU.

    `load_state_dict` leaves them where `torch.load` puts them. On the GPU of their parameter they are slow,
    on another one the next step fails.
    """
    # Only `step`: torch itself moves NAdam's mu_product when it loads a state dict.
    strays = [
        tensor
        for tensor in case.checkpoint.tensors
        if tensor.slot == "step" and tensor.on_cpu_by_design and is_accelerator(tensor.device)
    ]
    if strays:
        apart = _is_on_other_gpu(case, strays)
        yield finding(
            "step-on-accelerator",
            "warning" if apart else "note",
            f"The optimizer's step counters are on {'another GPU' if apart else 'an accelerator'}",
            "Neither capturable nor fused is set, so torch makes them on the CPU, but load_state_dict leaves "
            "them where torch.load puts them. On the model's GPU each step then waits for it; on another GPU "
            "optimizer.step() fails with 'Tensors of the same index must be on the same device', and torch "
            "1.12.0 fails with 'If capturable=False, state_steps should not be CUDA tensors'.",
            [tensor.path for tensor in strays],
            fix=Fix(rule="path:**/step@cpu"),
        )


def _is_on_other_gpu(case: Case, counters: list[Tensor]) -> bool:
    """Return whether counters are on another GPU than what they count for: the wanted one, or in the file."""
    if case.target is not None and case.target.wanted is not None:
        home = case.target.wanted
        offered = {tensor.device for tensor in counters} & set(case.target.devices)
        return is_accelerator(home) and bool(offered - {home})
    beside = _devices_beside(case.checkpoint)
    return any(tensor.device != beside.get(_place_of(tensor), tensor.device) for tensor in counters)


def _devices_beside(checkpoint: Checkpoint) -> dict[str, str]:
    """Return, by the place of one parameter's slots, the accelerator that its other slots are on."""
    return {
        _place_of(tensor): tensor.device
        for tensor in checkpoint.tensors
        if tensor.role == "optimizer" and tensor.slot != "step" and is_accelerator(tensor.device)
    }


def _place_of(slot: Tensor) -> str:
    return slot.path.rpartition("/")[0]


def _whole_optimizers(case: Case) -> Iterable[Finding]:
    """Look closer at optimizers that were pickled whole: they are used as they are loaded."""
    if not any(".param_groups" in tensor.keys for tensor in case.checkpoint.tensors):
        return ()
    from inspector.diagnose.findings.optimizers import find_apart  # noqa: PLC0415 - few files have one

    return find_apart(case)


def _capturable(case: Case) -> Iterator[Finding]:
    """Find optimizers that go on with a GPU only, where there is none."""
    if case.target is None or not any(optimizer.capturable for optimizer in case.checkpoint.optimizers):
        return
    from inspector.target.after_load import groups_with, takes_capturable  # noqa: PLC0415 - few ask for that

    groups = groups_with(case.checkpoint, "capturable")
    has_counters = any(tensor.slot == "step" for tensor in case.checkpoint.tensors)
    if groups and has_counters and not takes_capturable(case.target.destination):
        yield finding(
            "optimizer-capturable",
            "warning",
            "The optimizer was saved for CUDA graphs, and the target has no GPU for them",
            "optimizer.load_state_dict takes capturable=True over from the file, and there optimizer.step() "
            "fails with 'If capturable=True, params and state_steps must be on supported devices'. After "
            "loading, switch it off: for group in optimizer.param_groups: group['capturable'] = False.",
            groups,
        )


def _optimizer_mismatch(case: Case) -> Iterator[Finding]:
    """Return which optimizers do not match the parameters in the file."""
    of_model = sum(
        1 for tensor in case.checkpoint.tensors if tensor.role == "parameter" and tensor.part_of is None
    )
    if any(0 < of_model < optimizer.parameters for optimizer in case.checkpoint.optimizers):
        of_model = _count_parameters(case.checkpoint)
    for optimizer in case.checkpoint.optimizers:
        if 0 < of_model < optimizer.parameters:
            yield _too_many(optimizer, of_model)
        elif optimizer.naming in {"unknown", "partial"} and optimizer.with_state:
            crash = _crash(case.checkpoint, optimizer)
            yield finding(
                "optimizer-mismatch",
                "warning" if crash else "note",
                f"Optimizer slots of {optimizer.path or 'the checkpoint'} could not all be named",
                f"{optimizer.detail}{crash}",
                [optimizer.path],
            )


def _crash(checkpoint: Checkpoint, optimizer: Optimizer) -> str:
    """Return what a slot of another parameter does to a fused optimizer; empty for others.

    Adam(fused=True) of torch 2.13 on the CPU, with the state of a smaller parameter: a segmentation fault.
    """
    if not optimizer.capturable:
        return ""
    from inspector.target.after_load import groups_with  # noqa: PLC0415 - few files have one

    starts = f"{optimizer.path}/" if optimizer.path else ""
    if not any(path.startswith(f"{starts}param_groups/") for path in groups_with(checkpoint, "fused")):
        return ""
    return (
        " It is fused, and then optimizer.step() compares no sizes: with the state of another parameter it "
        "can end the process without an error (Segmentation fault). Give it the same parameters in the same "
        "order as when this was saved, or set group['fused'] = False in its param_groups after loading."
    )


def _count_parameters(checkpoint: Checkpoint) -> int:
    """Return how many parameters the models of a file have; tensors that are data have none."""
    from inspector.target.parts import Form, Kind, parts_of  # noqa: PLC0415 - few files do not match

    return sum(
        checkpoint.tensors[row].role == "parameter"
        for part in parts_of(checkpoint)
        if part.kind is Kind.MODEL and part.form is not Form.TENSORS
        for row in part.rows
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
    _whole_optimizers,
    _capturable,
    _optimizer_mismatch,
)
