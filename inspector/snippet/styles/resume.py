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
from inspector.snippet.request import Part, Request
from inspector.snippet.script import Script, comment_lines
from inspector.snippet.traits import is_lightning

_MOST_GROUPS = 6
_CAPTURABLE = "# capturable is for CUDA graphs: without CUDA or XPU, step() refuses it."


def render(request: Request) -> str:
    """Write the code that restores a training run."""
    script, placement = Script(), request.placement
    script.paragraph(*placement.choice_for(request.model_devices))
    if is_lightning(request.checkpoint):
        script.paragraph("# Lightning does all of this itself: trainer.fit(model, ckpt_path=...).")
    write_load(script, request, placement.for_copying())
    write_models(script, request, placed=False)
    write_states(script, request)
    script.paragraph(*_random_states(script, request))
    script.paragraph(*(f"{name} = {lookup(request.root, keys)}" for name, keys in request.plain))
    return script.text()


def write_states(script: Script, request: Request) -> None:
    """Write what has a state dict besides the models, each optimizer with its schedulers."""
    if not request.parts:
        return
    is_moved = any(request.placement.move(name, model.devices) for name, model in request.models)
    optimizers = any(part.kind == "optimizer" for part in request.parts)
    after = "and made after the move, as its state goes where the parameters are"
    head = f"# Yours too, {after if is_moved and optimizers else 'created as in the run that was saved'}:"
    lines = [head, *(line for part in request.parts for line in comment_lines(describe(request, part)))]
    for part in request.parts:
        lines.append(f"{part.name}.load_state_dict({part.state_in(request.root)})")
        lines += _without_graphs(request, part)
    script.paragraph(*lines)


def describe(request: Request, part: Part) -> str:
    """Return what a thing with a state dict is made of, for a comment."""
    if part.kind == "scheduler" and part.optimizer is not None:
        optimizers = [other.name for other in request.parts if other.kind == "optimizer"]
        return f"{part.name}, of {optimizers[part.optimizer]}"
    if part.kind == "average":
        return f"{part.name}, which averages the weights"
    if part.kind != "optimizer":
        return part.name
    sizes = ", ".join(map(str, part.groups[:_MOST_GROUPS])) + (
        ", ..." if len(part.groups) > _MOST_GROUPS else ""
    )
    grouped = f", in groups of {sizes}" if len(part.groups) > 1 else ""
    return f"{part.name}{_made_of(request, part)}{grouped}"


def _made_of(request: Request, part: Part) -> str:
    names = [f"{request.all_models[place][0]}.parameters()" for place in part.owned.models]
    if not names:
        return ""
    if len(names) > 1:
        order = "" if part.owned.is_ordered else ", in the order of the run"
        return f", of itertools.chain({', '.join(names)}){order}"
    return f", of some of {names[0]}" if part.owned.is_part else f", of {names[0]}"


def _without_graphs(request: Request, part: Part) -> Iterator[str]:
    """Turn `capturable` off where there is no device for it: the state dict brings it along."""
    target = request.target
    if part.kind != "optimizer" or not _is_capturable(request, part.keys):
        return
    if target.id == RUN_TIME:
        yield _CAPTURABLE
        yield "if not torch.cuda.is_available():"
        yield f"    for group in {part.name}.param_groups:"
        yield '        group["capturable"] = False'
    elif not target.count("cuda") and not target.count("xpu"):
        yield _CAPTURABLE
        yield f"for group in {part.name}.param_groups:"
        yield '    group["capturable"] = False'


def _is_capturable(request: Request, keys: Keys) -> bool:
    return any(
        value.text == "True" and value.keys[-1:] == ("capturable",) and value.keys[: len(keys)] == keys
        for value in request.checkpoint.values
    )


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
    if places and places[0][-1] == 0:  # a list
        yield f"for index in range(min({len(places)}, torch.cuda.device_count())):"
        yield f"    torch.cuda.set_rng_state({lookup(root, places[0][:-1])}[index], index)"
        return
    for index, keys in enumerate(places):
        yield f"if torch.cuda.device_count() > {index}:"
        yield f"    torch.cuda.set_rng_state({lookup(root, keys)}, {index})"
