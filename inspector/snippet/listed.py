"""Code for formats with a loader of their own that follows what the listing knows of the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from inspector.containers.container import OwnLoader
from inspector.containers.element_types import ITEMSIZES, NOT_DEQUANTIZED
from inspector.containers.formats import format_of
from inspector.containers.pt2 import LOAD_NAMED, LOAD_ONE
from inspector.containers.safetensors import BY_DTYPE
from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.model.obstacles import Obstacle, ObstacleKind, find_obstacle
from inspector.model.once import once
from inspector.quoting import file_word
from inspector.safety.verdict import judge
from inspector.snippet.device import Device, choose_device
from inspector.snippet.inventory import take_inventory
from inspector.snippet.literals import literal
from inspector.snippet.loading import YOURS_ALL, fill_model
from inspector.snippet.models import Keys
from inspector.snippet.pickled import RUNS_CODE
from inspector.snippet.placement import place_devices
from inspector.snippet.request import Request, build_request
from inspector.snippet.script import MOST_CHARS, Bracketed, Script, call, format_code
from inspector.snippet.unopened import (
    ANY,
    TIED,
    YOURS_OF_FOLDER,
    code_of,
    dcp_folder,
    file_beside,
    render_unopened,
    unopened_styles,
)
from inspector.target.profile import Profile
from inspector.units import escape_text

# What the code itself takes care of: it opens what is packed, and asks for objects.
_HANDLED = frozenset({ObstacleKind.GZIP, ObstacleKind.OBJECTS, ObstacleKind.VARIANT})
_BY_COPY = {"distcp": True}  # whose code reads a copy in any case
_FILL_MODELS = {"dcp": frozenset({"distributed"})}  # styles that need one
# What stops the loader, and not us.
_CONVERTED = frozenset(
    {
        ObstacleKind.ARCHIVE,
        ObstacleKind.OLDER_VERSION,
        ObstacleKind.TORCH_1_4,
        ObstacleKind.LEGACY_TYPE,
        ObstacleKind.UNIVERSAL,
    }
)
_RUNS_MACHINE_CODE = "# This runs the machine code in the file: load it only if you trust whoever made it."
_MOST_NAMED = 4


@once
def loader_obstacle(checkpoint: Checkpoint) -> Obstacle | None:
    """Return what stops the loader of a file whatever the code says, as `check` tells it."""
    found = None if _BY_COPY.get(checkpoint.format) else find_obstacle(checkpoint)
    return None if found is None or found.kind in _HANDLED else found


def listed_styles(checkpoint: Checkpoint) -> tuple[str, ...]:
    """List the styles of a file whose format has a loader of its own."""
    offered = unopened_styles(checkpoint.format, checkpoint.path)
    filling = _FILL_MODELS.get(checkpoint.format, frozenset())
    if filling and not take_inventory(checkpoint).models:
        offered = tuple(style for style in offered if style not in filling)
    return offered


def render_refused(checkpoint: Checkpoint, path: str, obstacle: Obstacle) -> str:
    """Write code for a file that its loader refuses: by way of a copy, where one can be written."""
    form = format_of(checkpoint.format)
    message = escape_text(obstacle.message.partition(". ")[0]).encode("ascii", "backslashreplace").decode()
    if obstacle.kind not in _CONVERTED or not _is_convertible(checkpoint):
        raise PlanError(f"no code loads this file: {form.loader} says {message}", remedy=obstacle.kind.remedy)
    out = file_beside(path) if checkpoint.parts else f"{path}.copy.pth"
    option = " --format same" + (" --container zip" if form.torch_loads else "")
    is_safe = judge(checkpoint).weights_only
    says = f"# {form.loader} says {message}"
    first, then = f"# checkpoint-inspector export {file_word(path)}", f"-o {file_word(out)}{option}"
    is_long = len(first) + len(then) >= MOST_CHARS
    lines = [
        says if len(says) <= MOST_CHARS else f"{says[: MOST_CHARS - 3]}...",
        "# So first write a file that torch.load takes:",
        *((f"{first} \\", f"#     {then}") if is_long else (f"{first} {then}",)),
        *(() if is_safe else (RUNS_CODE,)),
        *call("checkpoint = torch.load(", literal(out), 'map_location="cpu"', f"weights_only={is_safe}"),
    ]
    return code_of(ANY, lines)


def _is_convertible(checkpoint: Checkpoint) -> bool:
    """Return whether a copy can be written of all tensors."""
    is_whole = not any(row.missing and row.nbytes for row in checkpoint.storages)
    is_known = all(row.dtype in ITEMSIZES and row.problem is None for row in checkpoint.tensors)
    form = format_of(checkpoint.format)
    return is_whole and is_known and (form.torch_loads or form.copied_as != "same")


def render_listed(
    checkpoint: Checkpoint, path: str, target: Profile, *, style: str, device: Device | None
) -> str:
    """Write the code for a file that another loader than `torch.load` reads."""
    if checkpoint.own_loader is not None:
        return _of_own_loader(path, checkpoint.own_loader, target, device or choose_device(target))
    known = _BY_FORMAT.get(checkpoint.format)
    if known is not None:
        return known(checkpoint, path, target, style, device)
    return _unlisted(checkpoint, path, target, style, device)


def _unlisted(checkpoint: Checkpoint, path: str, target: Profile, style: str, device: Device | None) -> str:
    """Write the code that only the format decides."""
    inside = next((str(row.keys[0]) for row in checkpoint.tensors if row.keys), "")
    form = TIED if checkpoint.tied else checkpoint.format
    return render_unopened(form, path, target, style=style, device=device, inside=inside)


def _safetensors(
    checkpoint: Checkpoint, path: str, target: Profile, style: str, device: Device | None
) -> str:
    return _needed_release(checkpoint) + _unlisted(checkpoint, path, target, style, device)


def _needed_release(checkpoint: Checkpoint) -> str:
    """Return a comment on the release of safetensors that reads all types of a file; empty for any."""
    rows = [BY_DTYPE[row.dtype][1] for row in checkpoint.tensors if row.dtype in BY_DTYPE]
    newest = max(rows, key=lambda row: row.since, default=None)
    if newest is None or not newest.since:
        return ""
    return f"# {newest.dtype} needs safetensors {newest.since} or newer.\n"


# --- torch.export -------------------------------------------------------------------------------------------


def _of_own_loader(path: str, own: OwnLoader, target: Profile, device: Device) -> str:
    """Write code for an archive that `torch.export.load` reads nothing of, or not all."""
    module, _, name = own.call.rpartition(".")
    first, *others = map(literal, own.names[:_MOST_NAMED])
    rest = [f"# It also holds {', '.join(others)}{' and more' if len(own.names) > _MOST_NAMED else ''}."]
    if own.is_compiled:
        named = (first,) if own.call == LOAD_NAMED else ()
        needs = [f"from {module} import {name}"] if named else []
        load = call(f"model = {name if named else own.call}(", literal(path), *named)
        lines = [_RUNS_MACHINE_CODE, *(rest if others else ()), *load]
        return code_of(ANY, lines, needs=needs, uses_torch=not named)
    if own.call == LOAD_ONE:
        return render_unopened("pt2", path, target, device=device)
    move = () if device.is_cpu else (f"program = move_to_device_pass(program, {device.code})",)
    needs = ["from torch.export.passes import move_to_device_pass"] if move else []
    lines = [
        *call(f"archive = {name}(", literal(path)),
        *(rest if others else ()),
        f"program = archive.exported_programs[{first}]",
        *move,
        "model = program.module()",
    ]
    needs.append(f"from {module} import {name}")
    return code_of(device, lines, needs=needs, uses_torch=not device.is_cpu)


# --- GGUF ---------------------------------------------------------------------------------------------------


# gguf's names of plain numbers that `dequantize` does not take.
_NAMES = {"float64": "F64", "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64"}


def _gguf(checkpoint: Checkpoint, path: str, target: Profile, _style: str, _device: Device | None) -> str:
    """Write code that asks `gguf` to dequantize what it can, and takes plain numbers as they are."""
    dtypes = {row.dtype for row in checkpoint.tensors}
    plain = sorted(_NAMES[dtype] for dtype in dtypes & _NAMES.keys())
    unknown = sorted(dtype.upper() for dtype in dtypes & NOT_DEQUANTIZED)
    if not plain and not unknown:
        return render_unopened("gguf", path, target)
    lines = [*call("reader = GGUFReader(", literal(path)), "state_dict = {}", "for tensor in reader.tensors:"]
    dequantized = "dequantize(tensor.data, tensor.tensor_type)"
    if unknown:
        lines[:0] = [f"# gguf does not dequantize {', '.join(unknown)}: those tensors are left out."]
        lines += [f"    if tensor.tensor_type.name in {_set_of(unknown)}:", "        continue"]
    if plain:
        lines += [
            f"    if tensor.tensor_type.name in {_set_of(plain)}:",
            "        array = tensor.data",
        ]
        lines += ["    else:", f"        array = {dequantized}"]
    else:
        lines += [f"    array = {dequantized}"]
    lines += ["    state_dict[tensor.name] = torch.tensor(array)"]
    return code_of(ANY, lines, needs=["from gguf import GGUFReader, dequantize"])


def _set_of(names: Sequence[str]) -> str:
    return "{" + ", ".join(map(literal, names)) + "}"


# --- DCP ----------------------------------------------------------------------------------------------------


def _dcp(checkpoint: Checkpoint, path: str, target: Profile, style: str, device: Device | None) -> str:
    """Write code that looks for models under the keys that they were saved under."""
    inventory = take_inventory(checkpoint)
    placement = place_devices(checkpoint, target, (), inventory.models)
    request = build_request(checkpoint, inventory, placement, target, path)
    folder = dcp_folder(path)
    device = device or choose_device(target)
    write = _in_place if style in _FILL_MODELS[checkpoint.format] else _by_one_file
    return write(request, folder, device)


def _by_one_file(request: Request, folder: str, device: Device) -> str:
    script, beside = Script(uses_torch=True), file_beside(folder)
    is_safe = judge(request.checkpoint).weights_only
    script.need("from torch.distributed.checkpoint.format_utils import dcp_to_torch_save")
    script.paragraph(*device.choice)
    script.paragraph(
        *(() if is_safe else (RUNS_CODE,)),
        "# This writes one file next to the folder, with everything on the CPU.",
        *call("dcp_to_torch_save(", literal(folder), literal(beside)),
        *call(f"{request.root} = torch.load(", literal(beside), f"weights_only={is_safe}"),
    )
    lines = [
        line
        for name, model in request.models
        for line in (*device.move(name), *fill_model(script, request, name, model))
    ]
    if lines:
        script.paragraph(YOURS_ALL if len(request.models) > 1 else YOURS_OF_FOLDER, *lines)
    return script.text()


def _in_place(request: Request, folder: str, device: Device) -> str:
    """Read into tensors that are there already: any number of ranks may do so, one as well."""
    script = Script(uses_torch=bool(device.choice))
    script.need("import torch.distributed.checkpoint as dcp")
    script.paragraph(*device.choice)
    models = [(name, model.keys) for name, model in request.models]
    script.paragraph(
        "# The model is yours, on any number of ranks. Its tensors are filled in place.",
        *(line for name, _ in models for line in device.move(name)),
        *format_code(_nested("state_dict = ", models)),
        *call("dcp.load(", "state_dict", f"checkpoint_id={literal(folder)}"),
        *(f"{name}.load_state_dict({_at(keys)})" for name, keys in models),
    )
    return script.text()


def _at(keys: Keys) -> str:
    return "state_dict" + "".join(f"[{literal(str(key))}]" for key in keys)


def _nested(head: str, models: Sequence[tuple[str, Keys]]) -> str | Bracketed:
    """Return a mapping with the state dicts of models under their keys."""
    if len(models) == 1 and not models[0][1]:
        return f"{head}{models[0][0]}.state_dict()"
    below: dict[str, list[tuple[str, Keys]]] = {}
    for name, keys in models:
        if keys:
            below.setdefault(str(keys[0]), []).append((name, keys[1:]))
    items = tuple(_nested(f"{literal(key)}: ", inside) for key, inside in below.items())
    return Bracketed(head=f"{head}{{", items=items, tail="}")


_BY_FORMAT: dict[str, Callable[[Checkpoint, str, Profile, str, Device | None], str]] = {
    "safetensors": _safetensors,
    "gguf": _gguf,
    "dcp": _dcp,
}
"""What writes code for a file of a format that the listing says more of."""
