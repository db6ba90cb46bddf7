"""Code for formats whose loader is all one has to know: what is in the file makes no difference.

So it can be given for files that this version does not open, by their format and path alone.
"""

from __future__ import annotations

import ntpath
import os.path
from collections.abc import Callable
from functools import partial

from inspector.containers.lookalikes import name_unopened
from inspector.errors import CheckpointError, PlanError
from inspector.quoting import file_word
from inspector.records import dataclass
from inspector.safety.unread import judge_unread
from inspector.snippet.device import Device, choose_device
from inspector.snippet.literals import literal
from inspector.snippet.loaders.agents import AGENT, agent_code
from inspector.snippet.loaders.arrays import NPY, NPZ, arrays_code
from inspector.snippet.loaders.pickled import RUNS_CODE, Loading, loading_code
from inspector.snippet.loading import YOURS
from inspector.snippet.script import Bracketed, Script, format_code
from inspector.snippet.styles.folders import index_of, training_code
from inspector.snippet.styles.peft import adapter_code
from inspector.snippet.styles.transformers import transformers_code
from inspector.snippet.traits import is_adapter_file, is_pretrained
from inspector.target.profile import Profile

_INDEX = ".index.json"
TIED = "tied"
"""A safetensors file that leaves out names of tensors which it keeps under others."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Way:
    """One way of loading a format.

    Attributes:
        write_inside: Writes it for one of several objects in the file, by its name there; None where there is
            one only.
    """

    style: str
    write: Callable[[str, Device], str]
    fits: Callable[[str], bool] = lambda _: True
    write_inside: Callable[[str, Device, str], str] | None = None


def _torchscript(path: str, device: Device) -> str:
    script = Script()
    script.paragraph(*device.choice)
    script.paragraph(
        "# torch.jit.load accepts only a single device as map_location.",
        *_call("model = torch.jit.load(", literal(path), f"map_location={device.code}"),
        "model.eval()",
    )
    return script.text()


def _pt2(path: str, device: Device) -> str:
    script = Script()
    script.paragraph(*device.choice)
    lines = _call("program = torch.export.load(", literal(path))
    if not device.is_cpu:
        script.need("from torch.export.passes import move_to_device_pass")
        lines.append(f"program = move_to_device_pass(program, {device.code})")
    script.paragraph(*lines, "model = program.module()")
    return script.text()


def _package(path: str, device: Device) -> str:
    return _package_inside(path, device, "model/model.pkl")


def _package_inside(path: str, device: Device, inside: str) -> str:
    """Write code for one pickle of a package, which is named by its folder and its file."""
    folder, _, name = inside.rpartition("/")
    script = Script(uses_torch=bool(device.choice))
    script.need("from torch.package import PackageImporter")
    script.paragraph(*device.choice)
    items = literal(folder.replace("/", ".")), literal(name), f"map_location={device.code}"
    script.paragraph(
        RUNS_CODE,
        *_call("importer = PackageImporter(", literal(path)),
        *_call("checkpoint = importer.load_pickle(", *items),
    )
    return script.text()


def _safetensors(path: str, device: Device) -> str:
    script = Script(uses_torch=bool(device.choice))
    script.need("from safetensors.torch import load_file")
    script.paragraph(*device.choice)
    option = () if device.is_cpu else (f"device={device.code}",)
    script.paragraph(*_call("state_dict = load_file(", literal(path), *option))
    script.paragraph(YOURS, *device.move("model"), "model.load_state_dict(state_dict)")
    return script.text()


def _tied(path: str, device: Device) -> str:
    """Read a file that keeps tensors of several names once: `load_model` gives the model all of them."""
    script = Script(uses_torch=bool(device.choice))
    script.need("from safetensors.torch import load_model")
    script.paragraph(*device.choice)
    option = () if device.is_cpu else (f"device={device.code}",)
    script.paragraph(YOURS, *device.move("model"), *_call("load_model(", "model", literal(path), *option))
    return script.text()


def _sharded(path: str, device: Device) -> str:
    """Read all files that an index names: `huggingface_hub/serialization/_base.py` describes it."""
    path = index_of(path)
    is_safe = path.endswith(f".safetensors{_INDEX}")
    script = Script(uses_torch=not is_safe or bool(device.choice))
    script.need("import json")
    script.need("from pathlib import Path")
    script.paragraph(*device.choice)
    if is_safe:
        script.need("from safetensors.torch import load_file")
    file = "load_file(index.with_name(name))"
    if not is_safe:
        file = 'torch.load(index.with_name(name), map_location="cpu", weights_only=True)'
    script.paragraph(
        *_call("index = Path(", literal(path)),
        'files = set(json.loads(index.read_text())["weight_map"].values())',
        "state_dict = {}",
        "for name in sorted(files):",
        *format_code(Bracketed(head="state_dict.update(", items=(file,), tail=")"), "    "),
    )
    script.paragraph(YOURS, *device.move("model"), "model.load_state_dict(state_dict)")
    return script.text()


def _gguf(path: str, _: Device) -> str:
    script = Script()
    script.need("from gguf import GGUFReader, dequantize")
    script.paragraph(
        *_call("reader = GGUFReader(", literal(path)),
        "state_dict = {",
        "    tensor.name: torch.from_numpy(dequantize(tensor.data, tensor.tensor_type))",
        "    for tensor in reader.tensors",
        "}",
    )
    return script.text()


def _dcp(path: str, device: Device) -> str:
    path = _dcp_folder(path)
    script = Script()
    script.need("from torch.distributed.checkpoint.format_utils import dcp_to_torch_save")
    script.paragraph(*device.choice)
    script.paragraph(
        "# This writes one file next to the folder, with everything on the CPU.",
        *_call("dcp_to_torch_save(", literal(path), literal(_beside(path))),
        *_call("checkpoint = torch.load(", literal(_beside(path)), "weights_only=True"),
    )
    script.paragraph(
        YOURS.replace("this file", "this"),
        *device.move("model"),
        'model.load_state_dict(checkpoint["model"])  # under the key that was used for saving',
    )
    return script.text()


def _dcp_in_place(path: str, device: Device) -> str:
    """Read into tensors that are there already: any number of ranks may do so, one as well."""
    path = _dcp_folder(path)
    script = Script(uses_torch=bool(device.choice))
    script.need("import torch.distributed.checkpoint as dcp")
    script.paragraph(*device.choice)
    script.paragraph(
        "# The model is yours, on any number of ranks. Its tensors are filled in place.",
        *device.move("model"),
        'state_dict = {"model": model.state_dict()}  # with the keys that were used for saving',
        *_call("dcp.load(", "state_dict", f"checkpoint_id={literal(path)}"),
        'model.load_state_dict(state_dict["model"])',
    )
    return script.text()


def _dcp_folder(path: str) -> str:
    """Return the folder of a distributed checkpoint that was opened by one of its files."""
    is_file = path.endswith((".metadata", ".distcp"))
    return (os.path.dirname(path) or ".") if is_file else path  # noqa: PTH120 - text, not a place here


def _deepspeed(path: str, device: Device) -> str:
    folder, name = os.path.split(path)
    has_latest = "\0" not in path and os.path.isfile(os.path.join(path, "latest"))  # noqa: PTH113, PTH118 - text
    is_tag = name != "latest" and not has_latest
    root = (folder or ".") if is_tag or name == "latest" else path
    tag = (f"tag={literal(name)}",) if is_tag else ()
    script = Script(uses_torch=bool(device.choice))
    script.need("from deepspeed.utils.zero_to_fp32 import get_fp32_state_dict_from_zero_checkpoint")
    script.paragraph(*device.choice)
    script.paragraph(
        "# This joins the weights of all ranks in full precision, on the CPU.",
        *_call("state_dict = get_fp32_state_dict_from_zero_checkpoint(", literal(root), *tag),
    )
    script.paragraph(
        YOURS.replace("this file", "this"), *device.move("model"), "model.load_state_dict(state_dict)"
    )
    return script.text()


def _megatron(path: str, _: Device) -> str:
    script = Script()
    script.need("from pathlib import Path")
    script.paragraph(
        "# Each rank has a part of its own: Megatron's load_checkpoint hands it to the process of that rank.",
        RUNS_CODE,
        *_call("folder = Path(", literal(path)),
        "ranks = {",
        '    file.parent.name: torch.load(file, map_location="cpu", weights_only=False)',
        '    for file in sorted(folder.rglob("model_*rng.pt"))',
        "}",
    )
    return script.text()


def _distcp(path: str, _: Device) -> str:
    script = Script()
    script.paragraph(
        "# The file of one rank holds no names and cannot be loaded alone. First write what is in it:",
        f"# checkpoint-inspector remap {file_word(path)} -o {file_word(_beside(path))}",
        *_call("saved = torch.load(", literal(_beside(path)), 'map_location="cpu"', "weights_only=True"),
    )
    return script.text()


def _transformers(path: str, device: Device) -> str:
    is_file = path.endswith((".bin", ".safetensors", _INDEX))
    folder = (os.path.dirname(path) or ".") if is_file else path  # noqa: PTH120 - text, not a place here
    return transformers_code(folder, device)


def _agent(path: str, device: Device) -> str:
    return agent_code(path, device, None)


_PRETRAINED = _Way(style="transformers", write=_transformers, fits=is_pretrained)
_ADAPTERS = _Way(style="peft", write=adapter_code, fits=is_adapter_file)
_WAYS: dict[str, tuple[_Way, ...]] = {
    "torchscript": (_Way(style="plain", write=_torchscript),),
    "pt2": (_Way(style="plain", write=_pt2),),
    "package": (_Way(style="plain", write=_package, write_inside=_package_inside),),
    "safetensors": (_Way(style="plain", write=_safetensors), _PRETRAINED, _ADAPTERS),
    TIED: (_Way(style="plain", write=_tied), _PRETRAINED, _ADAPTERS),
    "sharded": (_Way(style="plain", write=_sharded), _PRETRAINED),
    "folder": (_Way(style="plain", write=training_code),),
    "dcp": (_Way(style="plain", write=_dcp), _Way(style="distributed", write=_dcp_in_place)),
    "deepspeed": (_Way(style="plain", write=_deepspeed),),
    "megatron": (_Way(style="plain", write=_megatron),),
    "distcp": (_Way(style="plain", write=_distcp),),
    "gguf": (_Way(style="plain", write=_gguf),),
    "pickle": (_Way(style="plain", write=lambda path, _: loading_code(Loading(form="pickle"), path)),),
    "joblib": (_Way(style="plain", write=lambda path, _: loading_code(Loading(form="joblib"), path)),),
    NPY: (_Way(style="plain", write=partial(arrays_code, NPY)),),
    NPZ: (_Way(style="plain", write=partial(arrays_code, NPZ)),),
    AGENT: (_Way(style="plain", write=_agent),),
    "pretrained": (_Way(style="transformers", write=_transformers),),
}


def unopened_styles(form: str, path: str) -> tuple[str, ...]:
    """List the styles that a format offers for a path, the most usual first; none if it has none."""
    return tuple(way.style for way in _WAYS.get(form, ()) if way.fits(path))


def code_for_refused(path: str, error: CheckpointError, target: Profile, *, style: str = "plain") -> str:
    """Return the code that loads a file which was refused, or an empty str where none should be offered.

    None is offered where its format says too little, and where loading it can run commands: pasting the code
    would run them.

    Args:
        error: Why it was refused, with what was seen of its programs.
        style: The style, as for `render_unopened`.
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
    ways = {way.style: way for way in _WAYS.get(form, ()) if way.fits(path)}
    if style == "plain" and style not in ways and ways:
        style = next(iter(ways))
    if style not in ways:
        raise PlanError(
            f"this file offers no snippet in the style {style!r}",
            remedy=f"it offers {', '.join(ways) or 'none'}",
        )
    way, device = ways[style], device or choose_device(target)
    if inside and way.write_inside is not None:
        return way.write_inside(path, device, inside)
    return way.write(path, device)


def _call(head: str, *items: str, end: str = "") -> list[str]:
    return format_code(Bracketed(head=head, items=items, tail=")"), end=end)


def _beside(path: str) -> str:
    """Name a file beside a folder."""
    return path.rstrip(f"{os.sep}{ntpath.sep}") + ".pth"
