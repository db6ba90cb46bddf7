"""Style `fsdp`: a model whose parameters are sharded over ranks, from a file that holds them whole.

One rank reads the file, on the CPU, and `torch.distributed.checkpoint.state_dict` sends each rank its shard.
There an optimizer's state goes by the names of parameters, and in the file by their numbers.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.snippet.loading import YOURS, Trust, fill_model, has, load_lines, write_allowed, write_load
from inspector.snippet.request import Part, Request
from inspector.snippet.script import Bracketed, Script, call, format_code
from inspector.snippet.styles.distributed import write_start

_TO_CPU = 'map_location="cpu"'
_BY_NAME = (
    "",
    "def by_name(state, model, optimizer):",
    '    """Key the state of an optimizer by names, as sharded ones are, not by numbers."""',
    "    name_of = {id(p): name for name, p in model.named_parameters()}",
    '    params = [p for group in optimizer.param_groups for p in group["params"]]',
    '    numbers = [i for group in state["param_groups"] for i in group["params"]]',
    "    names = {i: name_of[id(p)] for i, p in zip(numbers, params)}",
    "    groups = [",
    '        {**group, "params": [names[i] for i in group["params"]]}',
    '        for group in state["param_groups"]',
    "    ]",
    '    slots = {names[i]: slot for i, slot in state["state"].items()}',
    '    return {"state": slots, "param_groups": groups}',
    "",
)


def render(request: Request) -> str:
    """Write the code for ranks that hold a shard of the model each."""
    script = Script()
    if not has(request.target, "fully_shard"):
        return _render_wrapped(script, request)
    optimizers = tuple(_with_one_model(request))
    script.need("from torch.distributed.fsdp import fully_shard")
    script.need("from torch.distributed.checkpoint.state_dict import StateDictOptions, set_model_state_dict")
    if optimizers:
        script.need("from torch.distributed.checkpoint.state_dict import set_optimizer_state_dict")
        script.paragraph(*_BY_NAME)
    write_start(script, request.target)
    trust = write_allowed(script, request)
    script.paragraph(
        YOURS,
        "# Shard its large blocks first, as in the run, and make the optimizer after that.",
        *(f"fully_shard({name})" for name, _ in request.models),
    )
    said = Trust(weights_only=trust.weights_only, comments=())
    script.paragraph(
        *trust.comments,
        "# Rank 0 reads the file, and sends the others their shards.",
        *(f"{variable} = {{}}" for variable in _sent(request, optimizers)),
        "if dist.get_rank() == 0:",
        *load_lines(script, request, said, request.placement.to_cpu(), indent="    "),
        *(f"    {line}" for line in _taken(script, request, optimizers)),
        "options = StateDictOptions(full_state_dict=True, broadcast_from_rank0=True)",
        *_set(request, optimizers),
    )
    return script.text()


def _sent(request: Request, optimizers: tuple[tuple[Part, str], ...]) -> Iterator[str]:
    yield from (f"{name}_state" for name, _ in request.models)
    yield from (f"{part.name}_state" for part, _ in optimizers)


def _taken(script: Script, request: Request, optimizers: tuple[tuple[Part, str], ...]) -> Iterator[str]:
    for name, model in request.models:
        *before, last = fill_model(script, request, name, model)
        yield from before
        head = f"{name}.load_state_dict("
        yield f"{name}_state = {last.partition('  #')[0].removeprefix(head).removesuffix(')')}"
    for part, owner in optimizers:
        call = Bracketed(
            head=f"{part.name}_state = by_name(",
            items=(part.state_in(request.root), owner, part.name),
            tail=")",
        )
        yield from format_code(call)


def _set(request: Request, optimizers: tuple[tuple[Part, str], ...]) -> Iterator[str]:
    for name, _ in request.models:
        yield f"set_model_state_dict({name}, {name}_state, options=options)"
    for part, model in optimizers:
        items = (model, part.name, f"{part.name}_state", "options=options")
        yield from call("set_optimizer_state_dict(", *items)


def _with_one_model(request: Request) -> Iterator[tuple[Part, str]]:
    """Yield the optimizers of a single model, with its variable: no sharded state spans several."""
    for part in request.parts:
        if part.kind == "optimizer" and len(part.owned.models) == 1:
            yield part, request.all_models[part.owned.models[0]][0]
        elif part.kind == "optimizer" and not part.owned.models and len(request.models) == 1:
            yield part, request.models[0][0]


def _render_wrapped(script: Script, request: Request) -> str:
    """Write the code for a torch before 2.6, which wraps the model."""
    script.need("from torch.distributed.fsdp import FullyShardedDataParallel")
    write_start(script, request.target)
    write_load(script, request, _TO_CPU if request.placement.to_cpu() else None)
    lines = [YOURS]
    for name, model in request.models:
        lines += fill_model(script, request, name, model)
    device = ", device_id=local_rank" if request.target.count("cuda") else ""
    script.paragraph(
        *lines,
        "# Make the optimizer after wrapping: each rank keeps a shard of the parameters.",
        *(f"{name} = FullyShardedDataParallel({name}{device})" for name, _ in request.models),
    )
    return script.text()
