"""Styles for several processes: in `distributed` each rank loads, in `distributed-broadcast` one does.

What a rank loads without `map_location` lands on the GPU where it was saved: on cuda:0, for every rank. And a
model is filled before `DistributedDataParallel` wraps it, since the wrapper renames its parameters.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.model.roles.devices import DEVICE_TYPES, DeviceType, is_accelerator
from inspector.snippet.device import RUN_TIME, questions
from inspector.snippet.literals import literal
from inspector.snippet.loading import YOURS, Trust, fill_model, load_lines, write_allowed, write_load
from inspector.snippet.request import Request
from inspector.snippet.script import Bracketed, Script, format_code
from inspector.target.profile import Profile

_TO_CPU = 'map_location="cpu"'
_WRAP = "DistributedDataParallel"


def render(request: Request) -> str:
    """Write the code for ranks that load the file each."""
    script = Script()
    script.need(f"from torch.nn.parallel import {_WRAP}")
    write_start(script, request.target)
    write_load(script, request, _map_location(request))
    script.paragraph(
        *(() if all(model.is_module for _, model in request.models) else (YOURS,)),
        *(line for name, _ in request.models for line in _fill(script, request, name)),
        *(f"{name} = {_WRAP}({name})" for name, model in request.models if not model.is_loss),
    )
    states = ((part.name, part.state_in(request.root)) for part in request.parts)
    script.paragraph(*(f"{name}.load_state_dict({state})" for name, state in states))
    script.paragraph("# No rank may overwrite the file while another is still reading it.", "dist.barrier()")
    return script.text()


def render_broadcast(request: Request) -> str:
    """Write the code for ranks of which one loads the file, and sends what is in it to the others."""
    script, states = Script(), tuple((part.name, part.state_in(request.root)) for part in request.parts)
    script.need(f"from torch.nn.parallel import {_WRAP}")
    write_start(script, request.target)
    trust = write_allowed(script, request)
    said = Trust(weights_only=trust.weights_only, comments=())
    lines = load_lines(script, request, said, request.placement.to_cpu(), indent="    ")
    for name, model in request.models:
        lines += [f"    {line}" for line in fill_model(script, request, name, model)]
    if states:
        sent = tuple(state for _, state in states)
        lines += format_code(Bracketed(head="states = [", items=sent, tail="]"), "    ")
    moves = [f"{name}.to(device)" for name, _ in request.models if not _is_cpu_only(request.target)]
    script.paragraph(
        YOURS,
        *moves,
        *((f"states = [None] * {len(states)}",) if states else ()),
        *trust.comments,
        "if dist.get_rank() == 0:",
        *lines,
    )
    script.paragraph(
        "# Wrapping a model sends the weights of rank 0 to all ranks.",
        *(f"{name} = {_WRAP}({name})" for name, model in request.models if not model.is_loss),
    )
    if states:
        loads = (f"{name}.load_state_dict(states[{place}])" for place, (name, _) in enumerate(states))
        script.paragraph("dist.broadcast_object_list(states, src=0)", *loads)
    return script.text()


def write_start(script: Script, target: Profile) -> None:
    """Write that each rank takes its device and joins the group."""
    script.need("import torch.distributed as dist")
    lines = ["# Start one process per device: torchrun --nproc-per-node=COUNT script.py"]
    if _is_cpu_only(target):
        script.paragraph(*lines, 'dist.init_process_group("gloo")')
        return
    script.need("import os")
    script.paragraph(*lines, 'local_rank = int(os.environ["LOCAL_RANK"])', *_choice(target))


def _choice(target: Profile) -> Iterator[str]:
    """Return each rank its own device, and the way in which these talk to each other."""
    if target.id != RUN_TIME:
        yield from _device_lines(next(row for row in _with_ranks() if target.count(row.name)), "")
        return
    asked = [(row, question) for row, question in questions(target) if row.collective]
    for place, (row, question) in enumerate(asked):
        yield f"{'elif' if place else 'if'} {question}:"
        yield from _device_lines(row, "    ")
    yield "else:"
    yield '    device = "cpu"'
    yield '    dist.init_process_group("gloo")'


def _with_ranks() -> Iterator[DeviceType]:
    """Yield the device types with a backend for ranks: torch has none for Apple's GPU."""
    return (row for row in DEVICE_TYPES.values() if row.collective)


def _device_lines(row: DeviceType, indent: str) -> Iterator[str]:
    yield f'{indent}device = f"{row.name}:{{local_rank}}"'
    yield f"{indent}torch.{row.name}.set_device(device)"
    yield f'{indent}dist.init_process_group("{row.collective}")'


def _is_cpu_only(target: Profile) -> bool:
    return target.id != RUN_TIME and not any(target.count(row.name) for row in _with_ranks())


def _map_location(request: Request) -> str | Bracketed | None:
    """Send everything to the rank's own device; to the CPU what more than the model's weights is in.

    There `load_state_dict` moves the optimizer's state by itself, and leaves its `step` where it belongs.
    """
    tags = [tag for tag in request.placement.places if tag != "cpu"]
    if not tags:
        return None
    is_simple = not request.parts and all(is_accelerator(tag) for tag in tags)
    if _is_cpu_only(request.target) or request.placement.as_one or not is_simple:
        return _TO_CPU
    items = tuple(f"{literal(tag)}: device" for tag in tags)
    return Bracketed(head="map_location={", items=items, tail="}")


def _fill(script: Script, request: Request, name: str) -> Iterator[str]:
    model = dict(request.models)[name]
    move = () if _is_cpu_only(request.target) else (f"{name}.to(device)",)
    filled = fill_model(script, request, name, model)
    yield from (*filled, *move) if model.is_module else (*move, *filled)
