"""Messages of optimizers, schedulers and scalers whose state is not complete or of another version."""

from __future__ import annotations

from inspector.diagnose.errors.explanation import Context, ErrorKind, Tied, Told
from inspector.diagnose.errors.ties import ABOUT_CODE
from inspector.diagnose.listing import listed
from inspector.model.findings import Fix

_RESUME = Fix(style="resume")
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

RESUMING_ERRORS: tuple[ErrorKind, ...] = (
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
