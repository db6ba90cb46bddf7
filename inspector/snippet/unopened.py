"""Code for formats of which nothing is known but the loader.

So it can be given for files that this version does not open, by their format and path alone; what the
listing of a file adds is in `listed`.
"""

from __future__ import annotations

import ntpath
import os.path
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from inspector.containers.lookalikes import name_unopened
from inspector.errors import CheckpointError, PlanError
from inspector.model.agents import AGENT
from inspector.quoting import file_word
from inspector.safety.unread import judge_unread
from inspector.snippet.arrays import NPY, NPZ, arrays_code
from inspector.snippet.device import Device, choose_device, fixed_device
from inspector.snippet.folders import FOLDERS, folder_code
from inspector.snippet.literals import literal
from inspector.snippet.loading import YOURS
from inspector.snippet.pickled import RUNS_CODE, Loading, agent_code, loading_code
from inspector.snippet.script import Script, call
from inspector.snippet.styles.transformers import adapter_code, index_of, training_code, transformers_code
from inspector.snippet.traits import is_adapter_file, is_pretrained
from inspector.target.profile import Profile

_INDEX = ".index.json"
TIED = "tied"
"""A safetensors file that leaves out names of tensors which it keeps under others."""


_Write = Callable[[str, Device], str]


def code_of(
    device: Device, *paragraphs: Iterable[str], needs: Sequence[str] = (), uses_torch: bool = True
) -> str:
    """Write paragraphs of code below the lines that choose a device."""
    script = Script(uses_torch=uses_torch or bool(device.choice))
    for statement in needs:
        script.need(statement)
    for lines in (device.choice, *paragraphs):
        script.paragraph(*lines)
    return script.text()


def _filled(device: Device, call: str, said: str = YOURS) -> tuple[str, ...]:
    return said, *device.move("model"), call


def _torchscript(path: str, device: Device) -> str:
    load = call("model = torch.jit.load(", literal(path), f"map_location={device.code}")
    said = "# torch.jit.load accepts only a single device as map_location."
    return code_of(device, [said, *load, "model.eval()"])


def _pt2(path: str, device: Device) -> str:
    move = () if device.is_cpu else (f"program = move_to_device_pass(program, {device.code})",)
    needs = ["from torch.export.passes import move_to_device_pass"] if move else []
    load = call("program = torch.export.load(", literal(path))
    return code_of(device, [*load, *move, "model = program.module()"], needs=needs)


def _package(path: str, device: Device, inside: str = "model/model.pkl") -> str:
    """Write code for one pickle of a package, which is named by its folder and its file."""
    folder, _, name = inside.rpartition("/")
    items = literal(folder.replace("/", ".")), literal(name), f"map_location={device.code}"
    lines = [
        RUNS_CODE,
        *call("importer = PackageImporter(", literal(path)),
        *call("checkpoint = importer.load_pickle(", *items),
    ]
    return code_of(device, lines, needs=["from torch.package import PackageImporter"], uses_torch=False)


def _safetensors(path: str, device: Device) -> str:
    option = () if device.is_cpu else (f"device={device.code}",)
    return code_of(
        device,
        call("state_dict = load_file(", literal(path), *option),
        _filled(device, "model.load_state_dict(state_dict)"),
        needs=["from safetensors.torch import load_file"],
        uses_torch=False,
    )


def _tied(path: str, device: Device) -> str:
    """Read a file that keeps tensors of several names once: `load_model` gives the model all of them."""
    option = () if device.is_cpu else (f"device={device.code}",)
    lines = [YOURS, *device.move("model"), *call("load_model(", "model", literal(path), *option)]
    return code_of(device, lines, needs=["from safetensors.torch import load_model"], uses_torch=False)


def _sharded(path: str, device: Device) -> str:
    """Read all files that an index names: `huggingface_hub/serialization/_base.py` describes it."""
    path = index_of(path)
    is_safe = path.endswith(f".safetensors{_INDEX}")
    file = 'torch.load(index.with_name(name), map_location="cpu", weights_only=True)'
    needs = ["import json", "from pathlib import Path"]
    if is_safe:
        file = "load_file(index.with_name(name))"
        needs.append("from safetensors.torch import load_file")
    lines = [
        *call("index = Path(", literal(path)),
        'files = set(json.loads(index.read_text())["weight_map"].values())',
        "state_dict = {}",
        "for name in sorted(files):",
        *call("state_dict.update(", file, indent="    "),
    ]
    filled = _filled(device, "model.load_state_dict(state_dict)")
    return code_of(device, lines, filled, needs=needs, uses_torch=not is_safe)


def _gguf(path: str, _: Device) -> str:
    lines = [
        *call("reader = GGUFReader(", literal(path)),
        "state_dict = {",
        "    tensor.name: torch.tensor(dequantize(tensor.data, tensor.tensor_type))",
        "    for tensor in reader.tensors",
        "}",
    ]
    return code_of(ANY, lines, needs=["from gguf import GGUFReader, dequantize"])


def _dcp(path: str, device: Device) -> str:
    path = dcp_folder(path)
    lines = [
        "# This writes one file next to the folder, with everything on the CPU.",
        *call("dcp_to_torch_save(", literal(path), literal(file_beside(path))),
        *call("checkpoint = torch.load(", literal(file_beside(path)), "weights_only=True"),
    ]
    fill = 'model.load_state_dict(checkpoint["model"])  # under the key that was used for saving'
    needs = ["from torch.distributed.checkpoint.format_utils import dcp_to_torch_save"]
    return code_of(device, lines, _filled(device, fill, YOURS_OF_FOLDER), needs=needs)


def _dcp_in_place(path: str, device: Device) -> str:
    """Read into tensors that are there already: any number of ranks may do so, one as well."""
    lines = [
        "# The model is yours, on any number of ranks. Its tensors are filled in place.",
        *device.move("model"),
        'state_dict = {"model": model.state_dict()}  # with the keys that were used for saving',
        *call("dcp.load(", "state_dict", f"checkpoint_id={literal(dcp_folder(path))}"),
        'model.load_state_dict(state_dict["model"])',
    ]
    return code_of(device, lines, needs=["import torch.distributed.checkpoint as dcp"], uses_torch=False)


def dcp_folder(path: str) -> str:
    """Return the folder of a distributed checkpoint that was opened by one of its files."""
    is_file = path.endswith((".metadata", ".distcp"))
    return (os.path.dirname(path) or ".") if is_file else path  # noqa: PTH120 - text, not a place here


def _deepspeed(path: str, device: Device) -> str:
    folder, name = os.path.split(path)
    has_latest = "\0" not in path and os.path.isfile(os.path.join(path, "latest"))  # noqa: PTH113, PTH118 - text
    is_tag = name != "latest" and not has_latest
    root = (folder or ".") if is_tag or name == "latest" else path
    tag = (f"tag={literal(name)}",) if is_tag else ()
    lines = [
        "# This joins the weights of all ranks in full precision, on the CPU.",
        *call("state_dict = get_fp32_state_dict_from_zero_checkpoint(", literal(root), *tag),
    ]
    filled = _filled(device, "model.load_state_dict(state_dict)", YOURS_OF_FOLDER)
    needs = ["from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint"]
    return code_of(device, lines, filled, needs=needs, uses_torch=False)


def _megatron(path: str, _: Device) -> str:
    lines = [
        "# Each rank has a part of its own: Megatron's load_checkpoint hands it to the process of that rank.",
        RUNS_CODE,
        *call("folder = Path(", literal(path)),
        "ranks = {",
        '    file.parent.name: torch.load(file, map_location="cpu", weights_only=False)',
        '    for file in sorted(folder.rglob("model_*rng.pt"))',
        "}",
    ]
    return code_of(ANY, lines, needs=["from pathlib import Path"])


def _distcp(path: str, _: Device) -> str:
    lines = [
        "# The file of one rank holds no names and cannot be loaded alone. First write what is in it:",
        f"# checkpoint-inspector export {file_word(path)} --format same -o {file_word(file_beside(path))}",
        *call("saved = torch.load(", literal(file_beside(path)), 'map_location="cpu"', "weights_only=True"),
    ]
    return code_of(ANY, lines)


def _transformers(path: str, device: Device) -> str:
    is_file = path.endswith((".bin", ".safetensors", _INDEX))
    folder = (os.path.dirname(path) or ".") if is_file else path  # noqa: PTH120 - text, not a place here
    return transformers_code(folder, device)


ANY = fixed_device("cpu")
"""For code that takes no device."""
YOURS_OF_FOLDER = YOURS.replace("this file", "this")
_WAYS: dict[str, dict[str, _Write]] = {
    "torchscript": {"plain": _torchscript},
    "pt2": {"plain": _pt2},
    "package": {"plain": _package},
    "safetensors": {"plain": _safetensors, "transformers": _transformers, "peft": adapter_code},
    TIED: {"plain": _tied, "transformers": _transformers, "peft": adapter_code},
    "sharded": {"plain": _sharded, "transformers": _transformers},
    "folder": {"plain": training_code},
    **{form: {"plain": partial(folder_code, form)} for form in FOLDERS},
    "dcp": {"plain": _dcp, "distributed": _dcp_in_place},
    "deepspeed": {"plain": _deepspeed},
    "megatron": {"plain": _megatron},
    "distcp": {"plain": _distcp},
    "gguf": {"plain": _gguf},
    "pickle": {"plain": lambda path, _: loading_code(Loading(form="pickle"), path)},
    "joblib": {"plain": lambda path, _: loading_code(Loading(form="joblib"), path)},
    NPY: {"plain": partial(arrays_code, NPY)},
    NPZ: {"plain": partial(arrays_code, NPZ)},
    AGENT: {"plain": lambda path, device: agent_code(path, device, None)},
    "pretrained": {"transformers": _transformers},
}
_WITHIN: dict[str, Callable[[str, Device, str], str]] = {"package": _package}
"""What writes code for one of several objects in a file, by its name there."""


def _ways(form: str, path: str) -> dict[str, _Write]:
    """Return what writes each style for a path: two of them go by the name of the file."""
    fits = {"transformers": form == "pretrained" or is_pretrained(path), "peft": is_adapter_file(path)}
    return {style: write for style, write in _WAYS.get(form, {}).items() if fits.get(style, True)}


def unopened_styles(form: str, path: str) -> tuple[str, ...]:
    """List the styles that a format offers for a path, the most usual first; none if it has none."""
    return tuple(_ways(form, path))


def code_for_refused(path: str, error: CheckpointError, target: Profile, *, style: str = "plain") -> str:
    """Return the code that loads a file which was refused, or an empty str where none should be offered.

    None is offered where its format says too little, and where loading it can run commands: pasting the code
    would run them.
    """
    form, loaded = name_unopened(path, error) or ("", path)
    if not unopened_styles(form, loaded):
        return ""
    seen = judge_unread(error) if error.programs else None
    if seen is not None and seen.verdict == "dangerous":
        return ""
    return render_unopened(form, loaded, target, style=style)


def render_unopened(
    form: str,
    path: str,
    target: Profile,
    *,
    style: str = "plain",
    device: Device | None = None,
    inside: str = "",
) -> str:
    """Write the loading code for a file that was not read.

    Args:
        form: The format as in `show --json`, or `TIED`; `pretrained` is a folder of Hugging Face's.
        path: The file or folder; for `sharded` the index.
        target: The machine; with the id `this`, the code finds out when it runs.
        style: The style; `plain` also stands for the only one that there is.
        device: The device that is wanted; None for that of the machine.
        inside: Which of several objects in the file is meant, where that is known.
    """
    ways = _ways(form, path)
    if style == "plain" and style not in ways and ways:
        style = next(iter(ways))
    if style not in ways:
        raise PlanError(
            f"this file offers no snippet in the style {style!r}",
            remedy=f"it offers {', '.join(ways) or 'none'}",
        )
    device, within = device or choose_device(target), _WITHIN.get(form)
    return within(path, device, inside) if inside and within is not None else ways[style](path, device)


def file_beside(path: str) -> str:
    """Return the file of torch that a folder is written to, next to it."""
    return path.rstrip(f"{os.sep}{ntpath.sep}") + ".pth"
