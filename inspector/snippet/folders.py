"""Code for folders of several objects that one program saved: its own loader takes them all."""

from __future__ import annotations

import os
from collections.abc import Iterator

from inspector.containers.composite import Adapters, Branch, Composite, Diffusers, SpeechBrain
from inspector.containers.folder import Folder
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.snippet.device import Device
from inspector.snippet.literals import literal
from inspector.snippet.request import Names
from inspector.snippet.script import Bracketed, Script, call

_YOURS = "# The objects are yours, built as they were when this was saved."


def folder_code(form: str, path: str, device: Device) -> str:
    """Write the code for a folder of one of these formats."""
    script = Script(uses_torch=bool(device.choice))
    script.paragraph(*device.choice)
    script.paragraph(*FOLDERS[form](script, path, device))
    return script.text()


def _branches(form: Composite, path: str) -> list[Branch]:
    try:
        return [one for one in form.find(Folder(path, path), DEFAULT_LIMITS) if isinstance(one, Branch)]
    except (CheckpointError, OSError, ValueError):
        return []


def _diffusers(script: Script, path: str, device: Device) -> Iterator[str]:
    script.need("from diffusers import DiffusionPipeline")
    variant = next((one.variant for one in _branches(Diffusers(), path) if one.variant), "")
    options = (f"variant={literal(variant)}",) if variant else ()
    yield from call("pipeline = DiffusionPipeline.from_pretrained(", literal(path), *options)
    yield from device.move("pipeline")


def _adapters(script: Script, path: str, device: Device) -> Iterator[str]:
    script.need("from pathlib import Path")
    script.need("from peft import AutoPeftModelForCausalLM")
    yield from call("folder = Path(", literal(path))
    yield "# adapter_config.json names the base model; other tasks have classes of their own."
    yield "model = AutoPeftModelForCausalLM.from_pretrained(folder)"
    for one in _branches(Adapters(), path):
        name = literal(one.name)
        if "/" in one.file:  # the first one is there already
            yield from call("model.load_adapter(", f"folder / {name}", f"adapter_name={name}")
    yield from device.move("model")
    yield "model.eval()"


def _speechbrain(script: Script, path: str, _: Device) -> Iterator[str]:
    script.need("from pathlib import Path")
    script.need("from speechbrain.utils.checkpoints import Checkpointer")
    yield from call("folder = Path(", literal(path))
    yield _YOURS
    given = Names()
    names = SpeechBrain.recoverables(os.listdir(path) if os.path.isdir(path) else ())  # noqa: PTH112, PTH208 - a text
    objects = (f"{literal(name)}: {given.give('model', (name,))}" for name in names)
    listed = Bracketed(head="{", items=tuple(objects), tail="}")
    yield from call("checkpointer = Checkpointer(", "folder.parent", listed)
    yield "checkpointer.recover_if_possible(ckpt_predicate=lambda saved: saved.path == folder)"


def _tensordict(script: Script, path: str, device: Device) -> Iterator[str]:
    script.need("from tensordict import TensorDict")
    yield "# Numbers stay on the disk until they are used. What is no tensor may be a pickle, which is run:"
    yield "# allow_pickle=False refuses that."
    yield from call("saved = TensorDict.load_memmap(", literal(path))
    if not device.is_cpu:
        yield f"saved = saved.to({device.code})"


FOLDERS = {
    "diffusers": _diffusers,
    "speechbrain": _speechbrain,
    "adapters": _adapters,
    "tensordict": _tensordict,
}
"""What writes the code, by format."""
