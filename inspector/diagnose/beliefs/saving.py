"""Beliefs about saving: what a file holds, what of it is lost, and how large it has to be."""

from __future__ import annotations

from inspector.containers.formats import format_of
from inspector.diagnose.beliefs.belief import Answer, Row, Truth
from inspector.diagnose.beliefs.facts import Facts, and_joined, by_dtype, shown, tensors
from inspector.units import format_count, format_nbytes

_HALF = 0.55
"""Up to this share of its size a file counts as half as large: names and other values stay."""
_TO_CPU = "{name: value.cpu() for name, value in model.state_dict().items()}"


def _model_cpu(facts: Facts) -> Answer:
    here = (
        f"This one was saved from {facts.places}, and nothing is lost: map_location moves it while it loads."
        if facts.accelerators
        else "Nothing in this one is on a GPU."
    )
    why = (
        "model.cpu() moves the model that is training, in place: the next batch meets it on the CPU, and the "
        "optimizer's state is still on the GPU. Copy the values instead, or map them when they are loaded."
    )
    return Answer("false", here, why, f"torch.save({_TO_CPU}, {facts.path('-cpu')})")


def _half_size(facts: Facts) -> Answer:
    saved = facts.halved_nbytes(_HALVED)
    if not saved:
        here = f"Its weights are {_dtypes(facts)}: float16 would save nothing."
        return Answer("false", here if facts.weights else _NO_WEIGHTS, _HALF_WHY)
    before = facts.checkpoint.file_nbytes
    after = max(before - saved, 0)
    weights = sum(facts.roles.get(role, 0) for role in _HALVED)
    here = (
        f"In float16 its {format_nbytes(weights)} of weights would be {format_nbytes(weights - saved)}, and "
        f"the file {format_nbytes(after)} instead of {format_nbytes(before)}"
    )
    rest = facts.roles.get("optimizer", 0)
    here += f": {format_nbytes(rest)} of optimizer state stay." if rest else "."
    truth: Truth = "true" if after <= before * _HALF else "depends"
    return Answer(truth, here, _HALF_WHY, _HALF_CODE.format(path=facts.path("-half")))


_HALVED = ("parameter", "buffer", "ema")
_HALF_WHY = (
    "Only float32 and float64 become smaller; integers stay. float16 ends at 65,504 and is coarse: halve the "
    "weights for inference, not the optimizer, which load_state_dict casts to the parameters' type anyway."
)
_HALF_CODE = (
    "half = {{\n    name: value.half() if value.is_floating_point() else value\n"
    "    for name, value in model.state_dict().items()\n}}\ntorch.save(half, {path})"
)


def _dtypes(facts: Facts) -> str:
    found = [f"{shown(dtype)} ({format_nbytes(nbytes)})" for dtype, _, nbytes in by_dtype(facts.weights)]
    return and_joined(found)


_NO_WEIGHTS = "No tensor in it is known to be a weight of a model."


def _whole_model(facts: Facts) -> Answer:
    name = facts.checkpoint.module_class
    if name is not None:
        here = f"This file is a whole {shown(name)}: its classes must be importable, under the same names."
    elif facts.has_module:
        here = "This file holds whole modules: their classes must be importable, under the same names."
    else:
        here = f"This file holds no module, but {tensors(len(facts.weights))} of weights."
        here = here if facts.weights else "This file holds no module."
    why = (
        "A pickled module holds no code, only the names of its classes, and loading it runs what the file "
        "asks for. A state dict loads with weights_only=True into any model that has its names."
    )
    return Answer("false", here, why, _SAVE_WEIGHTS.format(path=facts.path("-weights")))


def _requires_grad(facts: Facts) -> Answer:
    parameters = [row for row in facts.weights if row.role == "parameter"]
    asking = sum(row.requires_grad for row in parameters)
    here = f"Asking for gradients: {asking:,} of its {format_count(len(parameters), 'parameter')}."
    here = here if parameters else _NO_WEIGHTS
    if facts.has_module:
        return Answer("true", here, "A whole module keeps requires_grad of each parameter.")
    why = (
        "state_dict() detaches what it returns, and load_state_dict copies values only: frozen layers are "
        "trained again unless the code freezes them again."
    )
    return Answer("false", here, why, "parameter.requires_grad_(False)  # after load_state_dict")


def _eval_mode(facts: Facts) -> Answer:
    modes = list(facts.values_at(".training"))
    if modes:
        trained = sum(text == "True" for text in modes)
        here = f"In training mode: {trained:,} of its {format_count(len(modes), 'module')}."
        return Answer("true", here, "A whole module keeps its mode; a state dict does not.", "model.eval()")
    why = (
        "The mode is an attribute of the module and no part of a state dict. A new model is in training "
        "mode: dropout drops, and batch norm uses the batch, until eval() is called."
    )
    return Answer("false", "No module in this file has a mode.", why, "model.eval()")


def _gradients(facts: Facts) -> Answer:
    found = sum(1 for row in facts.checkpoint.tensors if row.keys and row.keys[-1] in {"grad", ".grad"})
    here = f"Under the name grad: {tensors(found)}." if found else "There are none in this file."
    why = (
        "Neither state_dict() nor a pickled parameter holds .grad. Save after optimizer.step(), or what was "
        "accumulated is lost."
    )
    return Answer("false", here, why)


def _safetensors(facts: Facts) -> Answer:
    slots = facts.slots
    others = len(facts.checkpoint.values)
    if slots:
        nbytes = format_nbytes(facts.roles.get("optimizer", 0))
        here = (
            f"The {tensors(len(slots))} of optimizer state ({nbytes}) would fit under names of their own; "
            f"the {format_count(others, 'other value')} of the file (learning rates, counters) would not."
        )
    else:
        here = f"It holds no optimizer; {format_count(others, 'value')} besides tensors would be left out."
    why = (
        "safetensors is a flat table of tensors by name, with texts beside it: no numbers, lists or nesting. "
        "An optimizer's tensors fit, its param_groups do not; keep those in another file."
    )
    return Answer("depends", here, why)


def _zip_compresses(facts: Facts) -> Answer:
    here = (
        f"{format_nbytes(facts.checkpoint.file_nbytes)} on disk for {format_nbytes(facts.nbytes)} of tensors."
    )
    why = (
        "torch.save stores every record uncompressed, so that it can be read and mapped in place. Trained "
        "weights hardly shrink anyway: save fewer of them, or smaller types."
    )
    if not format_of(facts.checkpoint.format).has_records:
        return Answer("false", f"{here} It is no zip.", why)
    packed = sum(one.file_offset is None and not one.missing for one in facts.checkpoint.storages)
    if packed:
        here += f" {format_count(packed, 'storage')} of it were compressed by another program."
        return Answer("depends", here, why)
    return Answer("false", here, why)


def _size_of_model(facts: Facts) -> Answer:
    size, weights = facts.checkpoint.file_nbytes, facts.weight_nbytes
    rest = [f"{role} {format_nbytes(facts.roles[role])}" for role in _REST if facts.roles.get(role)]
    here = f"{format_nbytes(weights)} of its {format_nbytes(size)} are weights"
    here += f"; besides them {and_joined(rest)}." if rest else "."
    why = (
        "Adam keeps two numbers beside each parameter, so a training checkpoint has about three times the "
        "size of its model. To pass a model on, save the weights alone."
    )
    if not weights:
        return Answer("depends", _NO_WEIGHTS, why)
    truth: Truth = "true" if weights > _MOST_OF_IT * size else "depends"
    return Answer(truth, here, why, _SAVE_WEIGHTS.format(path=facts.path("-weights")) if rest else "")


_MOST_OF_IT = 0.9
_REST = ("optimizer", "scheduler", "rng", "ema", "other")
_SAVE_WEIGHTS = "torch.save(model.state_dict(), {path})"


SAVING_BELIEFS = (
    Row(id="save-from-cpu", claim="I must save with model.cpu().", answer=_model_cpu),
    Row(id="half-size-as-half", claim="Saved as half, the file has half the size.", answer=_half_size),
    Row(
        id="file-size-is-model-size",
        claim="The size of the file is the size of the model.",
        answer=_size_of_model,
    ),
    Row(
        id="zip-compresses", claim="The file is a zip, so the weights are compressed.", answer=_zip_compresses
    ),
    Row(id="save-whole-model", claim="Saving the whole model is the complete way.", answer=_whole_model),
    Row(
        id="requires-grad-saved",
        claim="Frozen layers stay frozen: requires_grad is saved.",
        answer=_requires_grad,
    ),
    Row(id="eval-mode-saved", claim="eval() is saved along.", answer=_eval_mode),
    Row(id="gradients-saved", claim="Gradients are saved along.", answer=_gradients),
    Row(id="safetensors-no-optimizer", claim="safetensors cannot hold an optimizer.", answer=_safetensors),
)
