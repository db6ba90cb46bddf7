"""Style `resume`: go on training where the run stood when the file was saved.

The order matters: `Optimizer.load_state_dict` puts its state where the parameters are at that moment, so the
model is moved first. Everything is loaded to the CPU: the random states and Adam's `step` have to stay
there, and each `load_state_dict` moves the rest by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.snippet.device import RUN_TIME
from inspector.snippet.layout import Script
from inspector.snippet.literals import lookup
from inspector.snippet.loading import write_load, write_models
from inspector.snippet.models import Keys
from inspector.snippet.order import Order, numbered
from inspector.snippet.traits import is_lightning


def render_resume(order: Order) -> str:
    """Write the code that restores a training run."""
    script, placement = Script(), order.placement
    if placement.is_open([device for _, model in order.models for device in model.devices]):
        script.paragraph(*placement.choice)
    if is_lightning(order.checkpoint):
        script.paragraph("# Lightning does all of this itself: trainer.fit(model, ckpt_path=...).")
    all_on_cpu = set(placement.places) <= {"cpu"}
    write_load(script, order, None if all_on_cpu else 'map_location="cpu"')
    write_models(
        script, order, placed=False, comment=f"# Yours, made as for the run that was saved: {_yours(order)}."
    )
    script.paragraph(*_states(order))
    script.paragraph(*_random_states(script, order))
    script.paragraph(*(f"{name} = {lookup(order.root, keys)}" for name, keys in order.contents.counters))
    return script.text()


def _yours(order: Order) -> str:
    """List the variables that the reader has to bring."""
    models = [name for name, model in order.models if not model.is_module]
    *first, last = (*models, *(name for name, _ in states_in(order)))
    return f"{', '.join(first)} and {last}" if first else last


def states_in(order: Order) -> Iterator[tuple[str, Keys]]:
    """Give what has a state dict in the file besides the models: variable and place."""
    contents = order.contents
    yield from zip(numbered("optimizer", len(contents.optimizers)), contents.optimizers, strict=True)
    yield from zip(numbered("scheduler", len(contents.schedulers)), contents.schedulers, strict=True)
    yield from zip(numbered("scaler", len(contents.scalers)), contents.scalers, strict=True)


def _states(order: Order) -> Iterator[str]:
    if any(order.placement.move(name, model.devices) for name, model in order.models):
        yield "# Only now: an optimizer puts its state where the parameters are by then."
    for name, keys in states_in(order):
        yield f"{name}.load_state_dict({lookup(order.root, keys)})"
    if order.contents.averages is not None:
        yield f"averages = {lookup(order.root, order.contents.averages)}  # the averaged weights, on the CPU"


def _random_states(script: Script, order: Order) -> Iterator[str]:
    contents = order.contents
    if contents.cpu_state is not None:
        yield f"torch.set_rng_state({lookup(order.root, contents.cpu_state)})"
    if order.target.id == RUN_TIME or order.target.count("cuda"):
        yield from _cuda_states(order.root, contents.cuda_states)
    if contents.python_state is not None:
        script.need("import random")
        yield f"random.setstate({lookup(order.root, contents.python_state)})"
    if contents.numpy_state is not None:
        script.need("import numpy")
        yield f"numpy.random.set_state({lookup(order.root, contents.numpy_state)})"


def _cuda_states(root: str, places: tuple[Keys, ...]) -> Iterator[str]:
    """Restore the states of as many GPUs as there are."""
    if places and places[0][-1] == 0:  # a list
        yield f"for index in range(min({len(places)}, torch.cuda.device_count())):"
        yield f"    torch.cuda.set_rng_state({lookup(root, places[0][:-1])}[index], index)"
        return
    for index, keys in enumerate(places):
        yield f"if torch.cuda.device_count() > {index}:"
        yield f"    torch.cuda.set_rng_state({lookup(root, keys)}, {index})"
