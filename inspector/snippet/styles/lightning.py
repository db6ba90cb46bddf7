"""Styles for a checkpoint of Lightning's Trainer: `lightning` with its class, `lightning-weights` without it.

`load_from_checkpoint` makes the module of the hyper-parameters in the file and moves all of it to the device
of its first weight (`lightning/pytorch/core/saving.py`), so that one device is all it can be told.
"""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.snippet.literals import literal
from inspector.snippet.loading import YOURS, Trust, strip_prefix, write_allowed, write_load
from inspector.snippet.models import Model
from inspector.snippet.request import Request
from inspector.snippet.script import Bracketed, Script, format_code

_ATTRIBUTES = frozenset({"model", "_model", "net", "network", "backbone", "_forward_module"})
"""What a LightningModule calls the model that it wraps; its name stands before those of the weights."""
_FROM_FILE = "# MyModel is your LightningModule: its arguments are the hyper-parameters in the file."
_TO_BE_GIVEN = "# MyModel is your LightningModule: add the arguments that it was created with."
_OPTION_IS_NEW = "# Before 2.6, Lightning has no weights_only and loads as with False: omit it there."


def render(request: Request) -> str:
    """Write the code for who has the module's class."""
    saved = _weights(request.checkpoint).devices
    device = request.placement.whole(saved)
    stays = device.code == literal(saved[0]) if len(saved) == 1 else False
    script = Script(uses_torch=not stays and bool(device.choice))
    if not stays:
        script.paragraph(*device.choice)
    trust = write_allowed(script, request)
    options = [] if stays else [f"map_location={device.code}"]
    if trust.comments and trust.weights_only is not None:
        options.append(f"weights_only={trust.weights_only}")
    head = "model = MyModel.load_from_checkpoint("
    call = Bracketed(head=head, items=(literal(request.path), *options), tail=")")
    named = _FROM_FILE if _has_hyper_parameters(request.checkpoint) else _TO_BE_GIVEN
    script.paragraph(*_warning(trust), named, *format_code(call), "model.eval()")
    return script.text()


def _warning(trust: Trust) -> tuple[str, ...]:
    said = (_OPTION_IS_NEW,) if trust.weights_only is not None else ()
    return (*trust.comments, *said) if trust.comments else ()


def render_weights(request: Request) -> str:
    """Write the code for who has only the model within, or wants only that."""
    script, placement = Script(), request.placement
    weights = _weights(request.checkpoint)
    script.paragraph(*placement.choice_for(weights.devices))
    write_load(script, request, placement.for_copying(), root="checkpoint")
    if _has_hyper_parameters(request.checkpoint):
        script.paragraph(
            'hyper_parameters = checkpoint["hyper_parameters"]  # what the model was created with'
        )
    prefixes = _prefixes(weights)
    filled = ["model.load_state_dict(state_dict)"]
    if prefixes:
        filled = [*(strip_prefix(script, request.target, prefix) for prefix in prefixes), *filled]
    move = placement.move("model", weights.devices)
    script.paragraph(YOURS, *move, 'state_dict = checkpoint["state_dict"]', *filled)
    return script.text()


def _weights(checkpoint: Checkpoint) -> Model:
    """Return the module's state dict, which stands under the same key in every file of Lightning's."""
    tensors = [tensor for tensor in checkpoint.tensors if tensor.keys[:1] == ("state_dict",)]
    return Model(
        keys=("state_dict",),
        is_module=False,
        devices=tuple(dict.fromkeys(tensor.device for tensor in tensors)),
        names=tuple(str(tensor.keys[1]) for tensor in tensors if len(tensor.keys) > 1),
        is_mixed=False,
    )


def _prefixes(weights: Model) -> tuple[str, ...]:
    """Return what stands before every name: the attribute that holds the model, then what wraps that."""
    first = next(iter(weights.names), "").partition(".")[0]
    prefix = f"{first}."
    if first not in _ATTRIBUTES or not all(name.startswith(prefix) for name in weights.names):
        return weights.prefixes
    inner = replace(weights, names=tuple(name.removeprefix(prefix) for name in weights.names))
    return (prefix, *inner.prefixes)


def _has_hyper_parameters(checkpoint: Checkpoint) -> bool:
    return any(value.keys[:1] == ("hyper_parameters",) for value in checkpoint.values)
