"""Messages of optimizers, schedulers and random generators while training is resumed."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, ErrorKind, Tied
from inspector.diagnose.errors.ties import by_finding, listed
from inspector.model.checkpoint import Optimizer
from inspector.model.findings import Fix
from inspector.units import format_count

_RESUME = Fix(style="resume")
_NO_OPTIMIZER = "This file holds no optimizer state: the error comes from another file."


def _groups(context: Context) -> Tied:
    """Report the groups of this file's optimizers, and what a model of this file would make."""
    optimizers = context.checkpoint.optimizers
    if not optimizers:
        return Tied(fits="no", here=_NO_OPTIMIZER)
    of_model = sum(
        1 for tensor in context.checkpoint.tensors if tensor.role == "parameter" and tensor.part_of is None
    )
    here = " ".join(_described(optimizer) for optimizer in optimizers[:4])
    if of_model:
        here += f" The model in the file has {format_count(of_model, 'parameter')}."
    here += " Yours has other numbers."
    mismatch = context.findings.get("optimizer-mismatch")
    return Tied(fits="yes", here=here, paths=() if mismatch is None else mismatch.paths, fix=_RESUME)


def _described(optimizer: Optimizer) -> str:
    sizes = [f"{size:,}" for size in optimizer.groups]
    groups = format_count(len(sizes), "group")
    return f"{optimizer.path or 'The optimizer'} has {groups} of {listed(sizes) or 'no'} parameters."


def _initial_lr(context: Context) -> Tied:
    """Return whether the optimizers of this file carry the rate that a scheduler left in them."""
    if not context.checkpoint.optimizers:
        return Tied(fits="no", here=_NO_OPTIMIZER)
    if any(value.keys[-1:] == ("initial_lr",) for value in context.checkpoint.values):
        here = "This file's optimizer has initial_lr in its groups: load it before the scheduler is made."
        return Tied(fits="yes", here=here, fix=_RESUME)
    here = "No group of this file's optimizer has initial_lr: it was saved without a scheduler."
    return Tied(fits="yes", here=here, fix=_RESUME)


def _rng_sizes(context: Context) -> Tied:
    """Report the sizes of the random states in this file."""
    states = [tensor for tensor in context.checkpoint.tensors if tensor.role == "rng"]
    if not states:
        return Tied(fits="no", here="This file holds no random generator's state in a tensor.")
    shown = listed([f"{tensor.path} ({tensor.nbytes:,} bytes)" for tensor in states])
    return Tied(fits="yes", here=f"This file holds {shown}.", paths=[tensor.path for tensor in states])


TRAINING_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="optimizer-group-size",
        title="The optimizer in the file was made for other parameters",
        pattern=r"parameter group that doesn'?t match the size of optimizer'?s group",
        finding="optimizer-mismatch",
        cause="An optimizer's state is numbered, not named: it fits only an optimizer with the same groups "
        "of the same number of parameters, in the same order. The model was changed since, layers were "
        "frozen or thawed, or weight decay was split in another way.",
        advice="Make model and optimizer exactly as for the run that was saved. If only the weights matter, "
        "load the model and leave the optimizer's state out.",
        tie=_groups,
    ),
    ErrorKind(
        id="optimizer-group-count",
        title="The optimizer in the file has another number of groups",
        pattern=r"has a different number of parameter groups",
        finding="optimizer-mismatch",
        cause="Parameter groups are the dictionaries given to the optimizer (other learning rates, no weight "
        "decay for biases). The file's optimizer had another number of them.",
        advice="Give the optimizer the same groups as for the run that was saved, in the same order, or "
        "leave its state out.",
        tie=_groups,
    ),
    ErrorKind(
        id="step-on-gpu",
        title="The optimizer's step counters are on the GPU",
        pattern=r"If capturable=False, state_steps should not be CUDA tensors",
        finding="step-on-accelerator",
        cause="Adam counts its steps in small tensors on the CPU. torch 1.12.0 moved them to the GPU in "
        "load_state_dict and then stopped at them; other versions put up with it. map_location='cuda' moves "
        "them too.",
        advice="Update torch (1.12.1 has it mended). Or load the optimizer's state with map_location='cpu'.",
        tie=by_finding(
            "step-on-accelerator",
            no="The step counters in this file are on the CPU, or numbers: they were moved while loading, by "
            "map_location or by load_state_dict of torch 1.12.0.",
        ),
        fix=Fix(rule="path:**/step@cpu"),
    ),
    ErrorKind(
        id="step-on-cpu",
        title="The optimizer's step counters are on the CPU, but capturable wants them on the GPU",
        pattern=r"If capturable=True, params and state_steps must be",
        finding="step-off-accelerator",
        cause="With capturable=True (for CUDA graphs) or fused=True the counters live on the GPU beside the "
        "parameters. Those that were loaded are on the CPU, or the parameters themselves are.",
        advice="Move the model to the GPU before the optimizer is made and loaded. Or set capturable to "
        "False in every group: for g in optimizer.param_groups: g['capturable'] = False.",
        tie=by_finding(
            "step-off-accelerator",
            no="No step counter of this file waits on the CPU for a GPU: the model, or the optimizer, was "
            "moved or changed by code.",
        ),
        fix=_RESUME,
    ),
    ErrorKind(
        id="foreach-device",
        title="The optimizer's state is not on the device of its parameters",
        pattern=r"Tensors of the same index must be on the same device",
        finding="optimizer-off-parameter-device",
        cause="The optimizer updates all parameters at once, and for that each must lie on one device, and "
        "have one number format, with its own state.",
        advice="Move the model to its device first, make the optimizer then, and call load_state_dict last: "
        "it moves the state to the parameters.",
        tie=by_finding(
            "optimizer-off-parameter-device",
            "step-off-accelerator",
            "mixed-devices",
            no="In this file the optimizer's state lies beside its parameters: the model was moved after the "
            "optimizer was loaded, or its number format was changed.",
        ),
        fix=_RESUME,
    ),
    ErrorKind(
        id="initial-lr",
        title="The scheduler misses the first learning rate",
        pattern=r"'initial_lr' is not specified in param_groups\[\d{1,4}\] when resuming",
        cause="A scheduler that starts in the middle (last_epoch=...) looks up initial_lr in the optimizer, "
        "where the scheduler of the first run left it.",
        advice="Load the optimizer's state before the scheduler is made; or make the scheduler without "
        "last_epoch and call scheduler.load_state_dict.",
        tie=_initial_lr,
        fix=_RESUME,
    ),
    ErrorKind(
        id="rng-device",
        title="A random generator's state is on the GPU",
        pattern=r"RNG state must be a torch\.ByteTensor|"
        r"expected a torch\.ByteTensor, but got torch\.(?:cuda|\w{1,20})\.?\w{0,30}Tensor",
        finding="rng-off-cpu",
        cause="torch.set_rng_state and torch.cuda.set_rng_state take the state as bytes on the CPU, also "
        "that of a GPU's generator. map_location='cuda' moved it along with the weights.",
        advice="Give them state.cpu(), or load with map_location='cpu' and move only the model. A dictionary "
        "such as {'cuda:0': 'cuda:1'} leaves alone what is on the CPU.",
        tie=by_finding(
            "rng-off-cpu",
            no="The random states in this file are on the CPU, or there are none: map_location moved them "
            "while loading, or the error comes from another file.",
        ),
        fix=_RESUME,
    ),
    ErrorKind(
        id="rng-size",
        title="A random generator's state of another kind",
        pattern=r"RNG state is wrong size|input RNG state size to be|invalid mt19937 state",
        cause="The state of a GPU's generator (16 bytes, more in old versions) and that of the CPU (5,056 "
        "bytes) were mixed up, or another version of torch wrote it.",
        advice="Give each generator its own state: torch.set_rng_state for the CPU, torch.cuda.set_rng_state "
        "or set_rng_state_all for GPUs. Or leave it out: training goes on with other random numbers.",
        tie=_rng_sizes,
        fix=_RESUME,
    ),
)
