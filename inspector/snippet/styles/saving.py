"""Style `save`: the code that writes the next checkpoint, so that it loads anywhere without advice.

State dicts instead of objects, under the keys of this file and without the names of wrappers, as copies on
the CPU: `model.cpu()` would move the model that is training. `tree_map` copies dictionaries and leaves their
attributes behind, of which only quantized modules need `_metadata`.
"""

from __future__ import annotations

import ntpath
from collections.abc import Iterator

from inspector.model.checkpoint import Key
from inspector.snippet.inventory import Inventory
from inspector.snippet.literals import literal, lookup
from inspector.snippet.models import Keys, Model
from inspector.snippet.request import Request
from inspector.snippet.script import Bracketed, Script, call, format_code
from inspector.snippet.traits import find_data, is_lightning

_PLAIN_VERSIONS = ("1", "2")  # 2 is that of batch norm, which asks only whether its counter is there
_WRAPPED = {"module.": "module", "_orig_mod.": "_orig_mod"}
_Tree = dict[Key, "str | _Tree"]


def render(request: Request) -> str:
    """Write the code that saves what this file holds."""
    path = literal(_beside(request.path))
    if is_lightning(request.checkpoint):
        script = Script(uses_torch=False)
        script.paragraph(
            "# The Trainer knows all that it needs to go on, and writes from rank 0 alone.",
            *call("trainer.save_checkpoint(", path),
        )
        return script.text()
    script = Script()
    script.need("from torch.utils._pytree import tree_map")
    save = Bracketed(head="torch.save(", items=("checkpoint", path), tail=")")
    lines = format_code(save)
    if any("module." in model.prefixes for _, model in request.all_models):
        script.need("import torch.distributed as dist")
        guard = "if not dist.is_initialized() or dist.get_rank() == 0:"
        lines = [guard, *format_code(save, "    ")]
    script.paragraph(*_checkpoint(script, request), *_to_cpu(request), *_metadata(request), *lines)
    return script.text()


def _to_cpu(request: Request) -> Iterator[str]:
    """Yield the lines that copy all tensors to the CPU, as simple as the file allows."""
    copy = "v.cpu()"
    if any(2 * storage.viewed_nbytes < storage.nbytes for storage in request.checkpoint.storages):
        copy = "v.cpu().clone()"  # else all that a small view is a part of is written with it
    if any(tensor.device == "meta" for tensor in request.checkpoint.tensors):
        copy = f"v if v.is_meta else {copy}"  # such a tensor has no data
    if not _has_ties(request):
        items = (f"lambda v: {copy} if torch.is_tensor(v) else v", "checkpoint")
        yield from call("checkpoint = tree_map(", *items)
        return
    yield "copies = {}  # of tensors that share their data, once"
    yield ""
    yield ""
    yield "def to_cpu(v):"
    yield "    if not torch.is_tensor(v):"
    yield "        return v"
    yield "    view = v.data_ptr(), v.shape, v.stride(), v.dtype"
    yield f"    return copies.setdefault(view, {copy})"
    yield ""
    yield ""
    yield "checkpoint = tree_map(to_cpu, checkpoint)"


def _metadata(request: Request) -> Iterator[str]:
    """Yield the lines that keep the versions by which quantized modules read their weights."""
    for name, model in request.all_models:
        place = (*model.keys, "._metadata")
        rows = (row for row in request.checkpoint.values if row.keys[: len(place)] == place)
        if any(row.keys[-1] == "version" and row.text not in _PLAIN_VERSIONS for row in rows):
            kept = f"{_bare(name, model)}.state_dict()._metadata"
            yield f"{lookup('checkpoint', model.keys)}._metadata = {kept}"


def _beside(path: str) -> str:
    """Name the next file: this one is not to be overwritten by a line that was pasted."""
    stem, end = ntpath.splitext(path)
    return f"{stem}_next{end}"


def _checkpoint(script: Script, request: Request) -> Iterator[str]:
    """Yield the lines that gather what is saved, under the keys of the file."""
    if find_data(request.checkpoint) is not None or not (request.all_models or request.parts):
        yield "checkpoint = data  # tensors, numbers and texts only, nothing of a class"
        return
    inventory = request.inventory
    if inventory.numpy_state is not None:
        script.need("import numpy")
        yield "kind, numbers, *rest = numpy.random.get_state()"
    tree: _Tree = {}
    for keys, code in _entries(script, request):
        if not keys:
            yield f"checkpoint = {code}"
            return
        _put(tree, keys, code)
    yield from format_code(_written("checkpoint = ", tree))


def _entries(script: Script, request: Request) -> Iterator[tuple[Keys, str]]:
    for name, model in request.all_models:
        yield model.keys, f"{_bare(name, model)}.state_dict()"
    for part in request.parts:
        yield part.keys, f"{part.name}.state_dict()"
    yield from ((keys, name) for name, keys in request.loose)
    yield from _random_states(script, request.inventory)
    objects = {row.keys[0] for row in request.checkpoint.values if str(row.keys[1:2]).startswith("('.")}
    for name, keys in request.plain:  # an object of a class would have to be allowed at the next load
        yield keys, f"vars({name})" if keys[0] in objects else name


def _random_states(script: Script, inventory: Inventory) -> Iterator[tuple[Keys, str]]:
    if inventory.cpu_state is not None:
        yield inventory.cpu_state, "torch.get_rng_state()"
    if inventory.cuda_states and inventory.cuda_states[0][-1] == 0:
        yield inventory.cuda_states[0][:-1], "torch.cuda.get_rng_state_all()"
    if inventory.python_state is not None:
        script.need("import random")
        yield inventory.python_state, "random.getstate()"
    if inventory.numpy_state is not None:  # as a list: torch has to be told to allow an array
        yield inventory.numpy_state, "(kind, numbers.tolist(), *rest)"


def _bare(name: str, model: Model) -> str:
    """Return the model without what wraps it: the names of its parameters begin with those of wrappers."""
    for prefix in model.prefixes:
        name = f"{name}.{_WRAPPED[prefix]}"
    return name


def _put(tree: _Tree, keys: Keys, code: str) -> None:
    for key in keys[:-1]:
        below = tree.setdefault(key, {})
        if isinstance(below, str):  # something stands there as a whole
            return
        tree = below
    tree.setdefault(keys[-1], code)


def _written(head: str, tree: _Tree) -> Bracketed:
    is_list = list(tree) == list(range(len(tree)))
    items: list[str | Bracketed] = []
    for key, value in tree.items():
        name = "" if is_list else f"{key if isinstance(key, int) else literal(key)}: "
        items.append(name + value if isinstance(value, str) else _written(name, value))
    return Bracketed(head=head + ("[" if is_list else "{"), items=tuple(items), tail="]" if is_list else "}")


def _has_ties(request: Request) -> bool:
    views = [
        (tensor.storage, tensor.storage_offset, str(tensor.shape))
        for tensor in request.checkpoint.tensors
        if tensor.role in {"parameter", "buffer"} and tensor.storage is not None and tensor.nbytes
    ]
    return len(set(views)) < len(views)
