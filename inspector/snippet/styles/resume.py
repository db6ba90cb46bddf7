"""Style `resume`: go on training where the run stood when the file was saved.

The order matters: `Optimizer.load_state_dict` puts its state where the parameters are at that moment, so the
model is moved first. Everything is loaded to the CPU: the random states and Adam's `step` have to stay there,
and each `load_state_dict` moves the rest by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.snippet.device import RUN_TIME
from inspector.snippet.literals import lookup
from inspector.snippet.loading import write_load, write_models
from inspector.snippet.models import Keys
from inspector.snippet.request import Request, numbered
from inspector.snippet.script import Script
from inspector.snippet.traits import is_lightning


def render(request: Request) -> str:
    """Write the code that restores a training run."""
    script, placement = Script(), request.placement
    script.paragraph(*placement.choice_for(request.model_devices))
    if is_lightning(request.checkpoint):
        script.paragraph("# Lightning does all of this itself: trainer.fit(model, ckpt_path=...).")
    write_load(script, request, placement.to_cpu())
    comment = f"# Yours, created as in the run that was saved: {_yours(request)}."
    write_models(script, request, placed=False, comment=comment)
    script.paragraph(*_states(request))
    script.paragraph(*_random_states(script, request))
    script.paragraph(*(f"{name} = {lookup(request.root, keys)}" for name, keys in request.inventory.counters))
    return script.text()


def _yours(request: Request) -> str:
    """List the variables that the reader has to bring."""
    models = [name for name, model in request.models if not model.is_module]
    *first, last = (*models, *(name for name, _ in states_in(request)))
    return f"{', '.join(first)} and {last}" if first else last


def states_in(request: Request) -> Iterator[tuple[str, Keys]]:
    """Return what has a state dict in the file besides the models: variable and place."""
    inventory = request.inventory
    yield from zip(numbered("optimizer", len(inventory.optimizers)), inventory.optimizers, strict=True)
    yield from zip(numbered("scheduler", len(inventory.schedulers)), inventory.schedulers, strict=True)
    yield from zip(numbered("scaler", len(inventory.scalers)), inventory.scalers, strict=True)


def _states(request: Request) -> Iterator[str]:
    if any(request.placement.move(name, model.devices) for name, model in request.models):
        yield "# Only now: an optimizer puts its state where the parameters are."
    for name, keys in states_in(request):
        yield f"{name}.load_state_dict({lookup(request.root, keys)})"
    averages = request.inventory.averages
    if averages is not None:
        yield f"averages = {lookup(request.root, averages)}  # the averaged weights, on the CPU"


def _random_states(script: Script, request: Request) -> Iterator[str]:
    inventory = request.inventory
    if inventory.cpu_state is not None:
        yield f"torch.set_rng_state({lookup(request.root, inventory.cpu_state)})"
    if request.target.id == RUN_TIME or request.target.count("cuda"):
        yield from _cuda_states(request.root, inventory.cuda_states)
    if inventory.python_state is not None:
        script.need("import random")
        yield f"random.setstate({lookup(request.root, inventory.python_state)})"
    if inventory.numpy_state is not None:
        script.need("import numpy")
        yield f"numpy.random.set_state({lookup(request.root, inventory.numpy_state)})"


def _cuda_states(root: str, places: tuple[Keys, ...]) -> Iterator[str]:
    """Restore the states of as many GPUs as there are."""
    if places and places[0][-1] == 0:  # a list
        yield f"for index in range(min({len(places)}, torch.cuda.device_count())):"
        yield f"    torch.cuda.set_rng_state({lookup(root, places[0][:-1])}[index], index)"
        return
    for index, keys in enumerate(places):
        yield f"if torch.cuda.device_count() > {index}:"
        yield f"    torch.cuda.set_rng_state({lookup(root, keys)}, {index})"
