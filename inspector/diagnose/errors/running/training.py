"""Messages of optimizers, schedulers and random states when training goes on."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, ErrorKind, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE, by_finding, of_finding
from inspector.diagnose.listing import listed
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
    here += " Yours has a different number."
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
        here = (
            "The optimizer in this file has initial_lr in its groups: load it before the scheduler is "
            "created."
        )
        return Tied(fits="yes", here=here, fix=_RESUME)
    here = "The optimizer in this file has no initial_lr in its groups: it was saved without a scheduler."
    return Tied(fits="yes", here=here, fix=_RESUME)


def _grouped(context: Context) -> Tied:
    """Look for step counters on another GPU, which load_state_dict leaves there, then for other state."""
    counters = context.findings.get("step-on-accelerator")
    if counters is not None and counters.severity != "note":
        return of_finding(counters, in_full=True)
    return _state_apart(context)


_state_apart = by_finding(
    "optimizer-off-parameter-device",
    "step-off-accelerator",
    no="In this file the optimizer state is on the same device as its parameters: the model was moved "
    "after the optimizer was loaded, or its dtype was changed.",
)


def _rng_sizes(context: Context) -> Tied:
    """Report the sizes of the random states in this file."""
    states = [tensor for tensor in context.checkpoint.tensors if tensor.role == "rng"]
    if not states:
        return Tied(fits="no", here="This file holds no random generator state in a tensor.")
    shown = listed([f"{tensor.path} ({tensor.nbytes:,} bytes)" for tensor in states])
    return Tied(fits="yes", here=f"This file holds {shown}.", paths=[tensor.path for tensor in states])


_MOST_SLOTS = 12
_OF_OPTIMIZERS = frozenset(
    {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "momentum_buffer", "square_avg", "acc_delta"}
)


def _slots(context: Context) -> Tied:
    """Report which slots the optimizers of this file have."""
    if not context.checkpoint.optimizers:
        return Tied(
            fits="no",
            here="This file holds no optimizer state: the error comes from another file, or from the code.",
        )
    slots = sorted({tensor.slot for tensor in context.checkpoint.tensors if tensor.slot is not None})
    held = (
        f"with the slots {listed(slots[:_MOST_SLOTS])}"
        if slots
        else "without any slot: it was saved before the first step"
    )
    return Tied(fits="unknown", here=f"This file holds optimizer state {held}.", fix=_RESUME)


def _in_optimizer(told: Told) -> bool:
    """Return whether a missing key was looked up by an optimizer."""
    step = told.scene.step
    if told.groups["key"].lower() in _OF_OPTIMIZERS:
        return True
    return step in {"optimizer", "scaler", "load-optimizer"} or not told.scene.has_frames


_ADDRESS_DIGITS = 12  # torch before 1.5 numbered parameters by their address


TRAINING_ERRORS: tuple[ErrorKind, ...] = (
    ErrorKind(
        id="optimizer-group-size",
        title="The optimizer state in the file is for other parameters",
        pattern=r"parameter group that doesn'?t match the size of optimizer'?s group",
        finding="optimizer-mismatch",
        cause="Optimizer state is stored by index, not by name: it fits only an optimizer with the same "
        "groups, with the same number of parameters each, in the same order. The model has changed since, "
        "layers were frozen or unfrozen, or weight decay was split differently.",
        advice="Build the model and the optimizer exactly as in the run that was saved. If only the "
        "weights matter, load the model and skip the optimizer state.",
        tie=_groups,
    ),
    ErrorKind(
        id="optimizer-group-count",
        title="The optimizer in the file has a different number of groups",
        pattern=r"has a different number of parameter groups",
        finding="optimizer-mismatch",
        cause="Parameter groups are the dictionaries that the optimizer was created with (different "
        "learning rates, no weight decay for biases). The saved optimizer had a different number of them.",
        advice="Create the optimizer with the same groups as in the run that was saved, in the same order, "
        "or skip its state.",
        tie=_groups,
    ),
    ErrorKind(
        id="step-on-gpu",
        title="The optimizer's step counters are on the GPU",
        pattern=r"If capturable=False, state_steps should not be CUDA tensors",
        finding="step-on-accelerator",
        cause="Adam keeps its step counters in small tensors on the CPU. torch 1.12.0 moved them to the "
        "GPU in load_state_dict and then rejected them; other versions accept them. map_location='cuda' "
        "moves them too.",
        advice="Update torch (1.12.1 fixes this). Or load the optimizer state with map_location='cpu'.",
        tie=by_finding(
            "step-on-accelerator",
            no="The step counters in this file are on the CPU, or plain numbers: they were moved while "
            "loading, by map_location or by load_state_dict of torch 1.12.0.",
        ),
        fix=Fix(rule="path:**/step@cpu"),
    ),
    ErrorKind(
        id="step-on-cpu",
        title="The optimizer's step counters are on the CPU, but capturable wants them on the GPU",
        pattern=r"If capturable=True, params(?:, \w{2,12}){0,2},? and state_steps must be",
        finding="step-off-accelerator",
        cause="With capturable=True (for CUDA graphs) or fused=True the step counters are on the GPU with "
        "the parameters. The counters that were loaded are on the CPU, or the parameters themselves are.",
        advice="Move the model to the GPU before the optimizer is created and loaded. Or set capturable to "
        "False in every group: for g in optimizer.param_groups: g['capturable'] = False.",
        tie=by_finding(
            "optimizer-capturable",
            "step-off-accelerator",
            no="The step counters of this file do not decide that: load_state_dict moves those of a "
            "capturable optimizer to their parameters. The parameters themselves were on the CPU, or moved "
            "afterwards.",
        ),
        fix=_RESUME,
    ),
    ErrorKind(
        id="foreach-device",
        title="Optimizer state and parameters are on different devices",
        pattern=r"Tensors of the same index must be on the same device",
        finding="optimizer-off-parameter-device",
        cause="The optimizer updates all parameters at once, so each parameter must have the same device "
        "and dtype as its state.",
        advice="Move the model to its device first, then create the optimizer, and call load_state_dict "
        "last: it moves the state to the parameters.",
        tie=_grouped,
        fix=_RESUME,
    ),
    ErrorKind(
        id="initial-lr",
        title="The scheduler needs the initial learning rate",
        pattern=r"'initial_lr' is not specified in param_groups\[\d{1,4}\] when resuming",
        cause="A scheduler that starts in the middle (last_epoch=...) reads initial_lr from the "
        "optimizer's groups, where the scheduler of the first run stored it.",
        advice="Load the optimizer state before the scheduler is created. Or create the scheduler without "
        "last_epoch and call scheduler.load_state_dict.",
        tie=_initial_lr,
        fix=_RESUME,
    ),
    ErrorKind(
        id="groups-as-arguments",
        title="An optimizer was created from its saved groups, which a scheduler had added to",
        pattern=r"got an unexpected keyword argument '?initial_lr\b",
        cause="A scheduler writes initial_lr into the groups of its optimizer. Code that creates the "
        "optimizer anew with what stands in a saved group (Adam(params, **group)) passes it on, and the "
        "optimizer takes no such argument.",
        advice="Create the optimizer with its own settings (lr=...), then optimizer.load_state_dict(saved), "
        "then the scheduler. Or leave initial_lr and params out of what is passed.",
        tie=_initial_lr,
        fix=_RESUME,
    ),
    ErrorKind(
        id="rng-device",
        title="A random generator state is on the GPU",
        pattern=r"RNG state must be a torch\.ByteTensor|"
        r"expected a torch\.ByteTensor, but got torch\.(?:cuda|\w{1,20})\.?\w{0,30}Tensor",
        finding="rng-off-cpu",
        cause="torch.set_rng_state and torch.cuda.set_rng_state expect the state as a byte tensor on the "
        "CPU, even for a GPU's generator. map_location='cuda' moved it along with the weights.",
        advice="Pass state.cpu(), or load with map_location='cpu' and move only the model. A dictionary "
        "such as {'cuda:0': 'cuda:1'} leaves what is on the CPU there.",
        tie=by_finding(
            "rng-off-cpu",
            no="The random states in this file are on the CPU, or there are none: map_location moved them "
            "while loading, or the error comes from another file.",
        ),
        fix=_RESUME,
    ),
    ErrorKind(
        id="rng-count",
        title="The file has random states of more GPUs than there are",
        pattern=r"IndexError: (?:tuple|list) index out of range",
        finding="cuda-index-out-of-range",
        cause="set_rng_state_all restores one state for each GPU of the saved run, and this machine (or "
        "CUDA_VISIBLE_DEVICES) has fewer.",
        advice="Skip them, or restore as many as there are: for i, state in "
        "enumerate(states[:torch.cuda.device_count()]): torch.cuda.set_rng_state(state, i). Of a Trainer or "
        "accelerate folder delete the rng_state files (random_states_*.pkl).",
        tie=_rng_sizes,
        needs="set_rng_state",
        fix=_RESUME,
    ),
    ErrorKind(
        id="rng-size",
        title="A random generator state has the wrong size",
        pattern=r"RNG state is wrong size|input RNG state size to be|invalid mt19937 state",
        cause="The states of a GPU's generator (16 bytes, more in old versions) and of the CPU's (5,056 "
        "bytes) were mixed up, or another version of torch wrote them.",
        advice="Restore each generator from its own state: torch.set_rng_state for the CPU, "
        "torch.cuda.set_rng_state or set_rng_state_all for GPUs. Or skip it: training continues with other "
        "random numbers.",
        tie=_rng_sizes,
        fix=_RESUME,
    ),
    ErrorKind(
        id="optimizer-state-missing",
        title="The optimizer's state lacks something that its step needs",
        pattern=r"KeyError: ?['\"]?(?P<key>exp_avgs?|exp_avg_sqs?|max_exp_avg_sq|momentum_buffer|square_avg|"
        r"acc_delta|exp_inf|"
        r"betas|foreach|capturable|maximize|differentiable|fused|amsgrad|nesterov|decoupled_weight_decay|"
        r"dampening|momentum|step)\b",
        cause="The state or the settings that were loaded are not those of this optimizer: they were saved "
        "by an older torch or by another optimizer, saved before the first step, or cover fewer parameters "
        "than there are now (layers that were unfrozen later).",
        advice="Use the optimizer and the torch of the saved run. Or set what is missing: for g in "
        "optimizer.param_groups: g.setdefault('foreach', None). If only the weights matter, do not load "
        "the optimizer state.",
        tie=_slots,
        when=_in_optimizer,
    ),
    ErrorKind(
        id="optimizer-index",
        title="The optimizer's state has no entry for a parameter",
        pattern=r"KeyError: ?(?P<key>\d{1,15}(?!\d)|Parameter containing)",
        cause="Optimizer state is stored by the number of the parameter, and this number is not in it: the "
        "state covers fewer parameters (some had no gradient, or were frozen, when it was saved), or was "
        "saved by another program.",
        advice="Build the optimizer with the same parameters in the same order as in the saved run, or "
        "skip its state.",
        tie=_slots,
        when=lambda told: (
            told.scene.step in {"optimizer", "scaler", "load-optimizer"}
            or len(told.groups["key"]) >= _ADDRESS_DIGITS
        ),
    ),
    ErrorKind(
        id="optimizer-other",
        title="What was loaded into the optimizer is not an optimizer's state",
        pattern=r"KeyError: ?['\"](?P<key>param_groups|state)['\"]",
        cause="optimizer.load_state_dict takes a dictionary with state and param_groups. It was given "
        "another one: the whole checkpoint, a scheduler's state, or weights. Scripts that save optimizer "
        "and scheduler under each other's name do that, too.",
        advice="Print the keys of what is passed, and pass the entry with param_groups, usually "
        "checkpoint['optimizer'] or checkpoint['optimizer_state_dict'].",
        tie=_slots,
        when=lambda told: told.scene.step == "load-optimizer" or "param_groups" in told.text,
    ),
    ErrorKind(
        id="optimizer-changed",
        title="The optimizer was pickled whole, by another version of torch",
        pattern=r"state_steps'? argument must contain a list of singleton tensors|"
        r"'(?:Adam\w{0,3}|SGD|RMSprop|Adagrad|Adadelta|ASGD|LBFGS|NAdam|RAdam)' object has no "
        r"attribute "
        r"'(?:_\w{1,60}|defaults)'",
        cause="An optimizer object from a file (or a copy of one) misses what the installed torch expects "
        "of it (step counters are tensors since 1.12): torch.save(optimizer) was used instead of its "
        "state_dict(), or its state was put in by hand.",
        advice="Create the optimizer anew and load state into it: "
        "optimizer.load_state_dict(saved.state_dict()). Save optimizer.state_dict() from now on.",
        tie=_slots,
    ),
    ErrorKind(
        id="optimizer-empty",
        title="The optimizer got no parameters",
        pattern=r"optimizer got an empty parameter list|can'?t optimize a non-leaf|some parameters appear "
        r"in more than one parameter group|"
        r"optimizer can only optimize Tensors|params argument given to the optimizer should be|"
        r"param_group must be a dict|didn'?t specify a value of required optimization parameter",
        cause="The optimizer was not given the parameters of a model: all were filtered out "
        "(requires_grad=False), a generator was used up, the tensors are results of operations (such as "
        "tensor.cuda()) rather than parameters, or one is given twice.",
        advice="Create it from the model after it was moved: torch.optim.Adam(p for p in "
        "model.parameters() if p.requires_grad). Make a loose tensor a parameter where it will stay: "
        "torch.nn.Parameter(tensor.to(device)).",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="scaler-state",
        title="The gradient scaler has no state to load, or was not used",
        pattern=r"source state dict is empty, possibly because it was saved from a disabled|No inf checks "
        r"were recorded|"
        r"unscale_\(\) (?:has already been called|is being called after step)|_scale is None|"
        r"step\(\) has already been called since the last update",
        cause="The checkpoint was saved with the GradScaler disabled (no mixed precision, or on the CPU), "
        "or step() was called without a backward pass through scaler.scale(loss).",
        advice="Load its state only if there is one: if checkpoint['scaler']: "
        "scaler.load_state_dict(checkpoint['scaler']). In the loop: scaler.scale(loss).backward(); "
        "scaler.step(optimizer); scaler.update().",
        tie=ABOUT_CODE,
    ),
    ErrorKind(
        id="scheduler-end",
        title="The scheduler has no steps left",
        pattern=r"Tried to step \d{1,12} times. The specified number of total steps is",
        cause="OneCycleLR knows its number of steps from the start, and the loaded state stands at the end "
        "(or step() is called per batch instead of per epoch).",
        advice="Create the scheduler for the whole run, with total_steps=epochs * len(loader) of old and "
        "new epochs together. To go on with other settings, do not load its state.",
        tie=ABOUT_CODE,
    ),
)
