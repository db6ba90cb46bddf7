"""Folders of shards and of trainers, made by hand."""

from __future__ import annotations

import json
from math import prod
from pathlib import Path

from tests.builders.archives import archive
from tests.builders.pickles import (
    call,
    dict_,
    list_,
    number,
    proto,
    state_dict,
    storage,
    stream,
    tensor,
    text,
)
from tests.builders.safetensors import model

WEIGHTS = bytes(range(16))


def shard(*names: str, location: str = "cuda:0") -> bytes:
    """A file of torch.save: a state dict of tensors of four numbers."""
    pushes = {
        name: tensor(storage(str(number), location=location, numel=4), 4) for number, name in enumerate(names)
    }
    return archive(state_dict(**pushes), {str(number): WEIGHTS for number, _ in enumerate(names)})


def sharded(
    folder: Path, files: dict[str, bytes], weight_map: object, *, ending: str = "bin", **metadata: object
) -> Path:
    """Write shards and their index; return the index."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        (folder / name).write_bytes(data)
    index = folder / f"pytorch_model.{ending}.index.json"
    index.write_text(json.dumps({"metadata": metadata, "weight_map": weight_map}))
    return index


def two_shards(folder: Path) -> Path:
    """Write a sound model in two files."""
    names = [f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2)]
    files = {names[0]: shard("a.weight", "a.bias"), names[1]: shard("b.weight")}
    places = {"a.weight": names[0], "a.bias": names[0], "b.weight": names[1]}
    return sharded(folder, files, places, total_size=48)


def optimizer(*shapes: int, location: str = "cuda:0") -> bytes:
    """The state of Adam for parameters of these many numbers, as a stream."""
    slots = [
        (
            number(index),
            dict_((text("exp_avg"), tensor(storage(str(index), location=location, numel=size), size))),
        )
        for index, size in enumerate(shapes)
    ]
    group = dict_((text("lr"), number(1)), (text("params"), list_(*map(number, range(len(shapes))))))
    return stream(proto(), dict_((text("state"), dict_(*slots)), (text("param_groups"), list_(group))))


def trainer(folder: Path, *, arguments: str = "argparse.Namespace", is_safe: bool = True) -> Path:
    """Write what a trainer saves: two weights of different shapes, and an optimizer on a GPU."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_safe:
        (folder / "model.safetensors").write_bytes(model(weight=(4,), bias=(2,)))
    else:
        (folder / "pytorch_model.bin").write_bytes(shard("weight", "bias"))
    data = {"0": WEIGHTS, "1": WEIGHTS[:8] if is_safe else WEIGHTS}
    (folder / "optimizer.pt").write_bytes(archive(optimizer(4, 2 if is_safe else 4), data))
    (folder / "scheduler.pt").write_bytes(
        archive(stream(proto(), dict_((text("last_epoch"), number(3)))), {})
    )
    (folder / "training_args.bin").write_bytes(archive(stream(proto(), call(arguments)), {}))
    (folder / "config.json").write_text(json.dumps({"hidden": 4, "layers": [1, {"a": None}]}))
    return folder


def pipeline(folder: Path, parts: dict[str, dict[str, bytes]], **index: object) -> Path:
    """Write a pipeline of diffusers with these parts; each has the configuration of a model."""
    named = {name: ["diffusers", "UNet2DModel"] for name in parts}
    text = json.dumps({"_class_name": "DDPMPipeline", **named, **index})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model_index.json").write_text(text)
    for name, files in parts.items():
        (folder / name).mkdir(parents=True, exist_ok=True)
        (folder / name / "config.json").write_text("{}")
        for file, data in files.items():
            (folder / name / file).write_bytes(data)
    return folder


def brain(folder: Path) -> Path:
    """Write a checkpoint of SpeechBrain: a model and a counter."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "CKPT.yaml").write_text("# yamllint disable\nloss: 1.5\n")
    (folder / "model.ckpt").write_bytes(shard("weight", "bias", location="cpu"))
    (folder / "counter.ckpt").write_text("3")
    return folder


def adapters(folder: Path) -> Path:
    """Write two adapters of one model, as PEFT does."""
    for place in (folder, folder / "other"):
        place.mkdir(parents=True, exist_ok=True)
        (place / "adapter_config.json").write_text("{}")
        weights = model(**{"q.lora_A.weight": (2,), "q.lora_B.weight": (2,)})
        (place / "adapter_model.safetensors").write_bytes(weights)
    return folder


_TENSORDICT = {"shape": [], "device": "cpu", "_type": "<class 'tensordict._td.TensorDict'>"}


def memmap_row(*shape: int, dtype: str = "torch.float32") -> dict[str, object]:
    """What `meta.json` of a TensorDict says of a tensor."""
    return {"device": "cpu", "shape": shape, "dtype": dtype, "is_nested": False}


def tensordict_meta(folder: Path, **rows: object) -> Path:
    """Write the `meta.json` of a TensorDict."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "meta.json").write_text(json.dumps({**rows, **_TENSORDICT}))
    return folder


def tensordict(folder: Path, **shapes: tuple[int, ...]) -> Path:
    """Write a memory-mapped TensorDict of float32 tensors."""
    tensordict_meta(folder, **{name: memmap_row(*shape) for name, shape in shapes.items()})
    for name, shape in shapes.items():
        (folder / f"{name}.memmap").write_bytes(bytes(4 * prod(shape)))
    return folder
