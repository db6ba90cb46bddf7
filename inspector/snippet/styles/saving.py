"""Style `save`: the code that writes the next checkpoint, so that it loads anywhere without advice.

State dicts instead of objects, copied to the CPU while the model that trains stays where it is, under the
keys of this file, without the names of wrappers, and written beside the old file before it replaces it.
"""

from __future__ import annotations

import ntpath
from collections.abc import Iterator

from inspector.model.checkpoint import Key
from inspector.snippet.datasets import find_data
from inspector.snippet.inventory import Inventory
from inspector.snippet.literals import literal
from inspector.snippet.models import Keys, Model
from inspector.snippet.request import Request
from inspector.snippet.script import Bracketed, Script, format_code
from inspector.snippet.traits import is_lightning

_PLAIN_HEAD = (
    "",
    "def to_cpu(value):",
    '    """Copy a state dict to the CPU: model.cpu() would move the model that is training."""',
)
_SHARED_HEAD = (
    "shared = {}",
    "",
    "",
    "def to_cpu(value):",
    '    """Copy a state dict to the CPU, tensors that share their data once: model.cpu()',
    '    would move the model that is training."""',
)
_NO_DATA = (
    "    if torch.is_tensor(value) and value.is_meta:",
    "        return value  # it has no data",
)
_PLAIN_COPY = (
    "    if torch.is_tensor(value):",
    "        return value.detach().cpu()",
)
_CLONED_COPY = (
    "    if torch.is_tensor(value):",
    "        return value.detach().cpu().clone()  # without what it is a small part of",
)
_SHARED_COPY = (
    "    if torch.is_tensor(value):",
    "        view = value.data_ptr(), value.shape, value.stride(), value.dtype",
    "        if value.numel() == 0 or view not in shared:",
    "            shared[view] = value.detach().cpu().clone()",
    "        return shared[view]",
)
_REST = (
    "    if isinstance(value, dict):",
    "        copied = copy.copy(value)  # with what belongs to it, such as _metadata",
    "        copied.update((key, to_cpu(item)) for key, item in value.items())",
    "        return copied",
    "    if type(value) in (list, tuple):",
    "        return type(value)([to_cpu(item) for item in value])",
    "    return value",
    "",
)
_WRAPPED = {"module.": "module", "_orig_mod.": "_orig_mod"}
_Tree = dict[Key, "str | _Tree"]


def render(request: Request) -> str:
    """Write the code that saves what this file holds."""
    script = Script()
    script.need("import copy")
    script.need("import os")
    path = literal(_beside(request.path))
    if is_lightning(request.checkpoint):
        script = Script(uses_torch=False)
        script.paragraph(
            "# The Trainer knows all that it needs to go on, and writes from rank 0 alone.",
            *format_code(Bracketed(head="trainer.save_checkpoint(", items=(path,), tail=")")),
        )
        return script.text()
    script.paragraph(*_to_cpu(request))
    script.paragraph(*_checkpoint(script, request))
    script.paragraph(
        "# Only rank 0 writes. If it is stopped meanwhile, the old file stays whole.",
        f"path = {path}",
        'torch.save(checkpoint, path + ".tmp")',
        'os.replace(path + ".tmp", path)',
    )
    return script.text()


def _to_cpu(request: Request) -> tuple[str, ...]:
    """Return the function that copies a state dict to the CPU, as simple as the file allows."""
    no_data = _NO_DATA if any(tensor.device == "meta" for tensor in request.checkpoint.tensors) else ()
    if _has_ties(request):
        return (*_SHARED_HEAD, *no_data, *_SHARED_COPY, *_REST)
    return (*_PLAIN_HEAD, *no_data, *(_CLONED_COPY if _has_waste(request) else _PLAIN_COPY), *_REST)


def _beside(path: str) -> str:
    """Name the next file: this one is not to be overwritten by a line that was pasted."""
    stem, end = ntpath.splitext(path)
    return f"{stem}_next{end}"


def _checkpoint(script: Script, request: Request) -> Iterator[str]:
    """Yield the lines that gather what is saved, under the keys of the file."""
    if find_data(request.checkpoint) is not None or not (request.all_models or request.parts):
        yield "checkpoint = to_cpu(data)  # tensors, numbers and texts only, nothing of a class"
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
        yield model.keys, f"to_cpu({_bare(name, model)}.state_dict())"
    for part in request.parts:
        yield part.keys, f"to_cpu({part.name}.state_dict())"
    for name, keys in request.loose:
        yield keys, f"to_cpu({name})"
    yield from _random_states(script, request.inventory)
    yield from ((keys, name) for name, keys in request.inventory.counters)


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
    """Return mappings and lists as they are nested in the file."""
    is_list = list(tree) == list(range(len(tree)))
    items: list[str | Bracketed] = []
    for key, value in tree.items():
        name = "" if is_list else f"{key if isinstance(key, int) else literal(key)}: "
        items.append(name + value if isinstance(value, str) else _written(name, value))
    return Bracketed(head=head + ("[" if is_list else "{"), items=tuple(items), tail="]" if is_list else "}")


def _has_ties(request: Request) -> bool:
    """Return whether several tensors of the models are the same data."""
    views = [
        (tensor.storage, tensor.storage_offset, str(tensor.shape))
        for tensor in request.checkpoint.tensors
        if tensor.role in {"parameter", "buffer"} and tensor.storage is not None and tensor.nbytes
    ]
    return len(set(views)) < len(views)


def _has_waste(request: Request) -> bool:
    """Return whether tensors are small views of what is stored, all of which is written with them."""
    return any(2 * storage.viewed_nbytes < storage.nbytes for storage in request.checkpoint.storages)
