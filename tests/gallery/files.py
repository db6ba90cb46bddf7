"""Three files as people have them, small: a language model in training on 4 GPUs, a LoRA, a ResNet to resume.

They are made by torch, whose tensors lie on the CPU: only their location tags are those of GPUs.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import torch

LAYERS, HIDDEN, INNER, VOCABULARY = 8, 192, 512, 6000
GPUS = 4
LORA_LAYERS, LORA_HIDDEN, RANK = 24, 1024, 8
CHANNELS = (32, 64, 128, 256)
SEED = 2026
NAMES = {
    "llm": "step_12000.pt",
    "lora": "adapter_model.bin",
    "resnet": "resnet_resume.pth.tar",
    "later": "resnet_epoch_89.pth.tar",
}
EPOCHS = "epochs"
"""The folder of a series."""


def write_all(folder: Path) -> dict[str, Path]:
    """Write the files and return their places by name."""
    made = (("llm", llm()), ("lora", lora()), ("resnet", resnet(57)), ("later", resnet(89)))
    for name, (checkpoint, places) in made:
        save(checkpoint, places, folder / NAMES[name])
    epochs = folder / EPOCHS
    epochs.mkdir()
    save(*resnet(73), epochs / "epoch_73.pth.tar")
    for name, epoch in (("resnet", 57), ("later", 89)):
        (epochs / f"epoch_{epoch}.pth.tar").hardlink_to(folder / NAMES[name])
    return {name: folder / file for name, file in NAMES.items()}


def save(checkpoint: object, places: dict[int, str], path: Path) -> None:
    """Save as on machines with GPUs: `places` has the tag of each storage by its address."""
    truthful = torch.serialization.location_tag
    with mock.patch.object(
        torch.serialization, "location_tag", lambda each: places.get(each.data_ptr()) or truthful(each)
    ):
        torch.save(checkpoint, path)


def weight(generator: torch.Generator, *shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Draw numbers as training leaves them: nearly normal, and some rows grown."""
    fan_in = max(1, math.prod(shape[1:]))
    gains = 0.4 + torch.rand(shape[0], *[1] * (len(shape) - 1), generator=generator)
    return (torch.randn(shape, generator=generator) * gains / math.sqrt(fan_in)).to(dtype)


def llm() -> tuple[object, dict[int, str]]:
    """Return a training checkpoint in bfloat16 with AdamW, its layers spread over four GPUs."""
    draw = torch.Generator().manual_seed(SEED)
    model = OrderedDict(
        (
            name,
            weight(draw, *shape, dtype=torch.bfloat16)
            if len(shape) > 1
            else torch.ones(shape, dtype=torch.bfloat16),
        )
        for name, shape in llm_shapes()
    )
    names = list(model)
    states = {
        place: {
            "step": torch.tensor(12000.0),
            "exp_avg": weight(draw, *model[name].shape) * 1e-3,
            "exp_avg_sq": weight(draw, *model[name].shape).square() * 1e-6,
        }
        for place, name in enumerate(names)
    }
    group = {
        "lr": 2.4e-4,
        "betas": (0.9, 0.95),
        "eps": 1e-8,
        "weight_decay": 0.1,
        "amsgrad": False,
        "foreach": None,
    }
    checkpoint = {
        "model": model,
        "optimizer": {"state": states, "param_groups": [{**group, "params": list(states)}]},
        "scheduler": {"last_epoch": 12000, "_last_lr": [2.4e-4], "base_lrs": [3e-4]},
        "step": 12000,
        "tokens_seen": 25_165_824_000,
        "config": {"hidden_size": HIDDEN, "num_hidden_layers": LAYERS, "vocab_size": VOCABULARY},
        "rng_state": torch.get_rng_state(),
    }
    places = {}
    for place, name in enumerate(names):
        for each in (model[name], states[place]["exp_avg"], states[place]["exp_avg_sq"]):
            places[each.untyped_storage().data_ptr()] = f"cuda:{gpu_of(name)}"
    return checkpoint, places


def llm_shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names of the parameters with their shapes."""
    yield "model.embed_tokens.weight", (VOCABULARY, HIDDEN)
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}"
        for part in ("q_proj", "k_proj", "v_proj", "o_proj"):
            yield f"{prefix}.self_attn.{part}.weight", (HIDDEN, HIDDEN)
        for part in ("gate_proj", "up_proj"):
            yield f"{prefix}.mlp.{part}.weight", (INNER, HIDDEN)
        yield f"{prefix}.mlp.down_proj.weight", (HIDDEN, INNER)
        for part in ("input_layernorm", "post_attention_layernorm"):
            yield f"{prefix}.{part}.weight", (HIDDEN,)
    yield "model.norm.weight", (HIDDEN,)
    yield "lm_head.weight", (VOCABULARY, HIDDEN)


def gpu_of(name: str) -> int:
    """Return the GPU of a parameter: the layers in equal parts, the embedding first and the head last."""
    parts = name.split(".")
    if "layers" in parts:
        return int(parts[2]) * GPUS // LAYERS
    return 0 if "embed_tokens" in parts else GPUS - 1


def lora() -> tuple[object, dict[int, str]]:
    """Return what PEFT saves of a LoRA: long names, two small matrices for each projection."""
    draw = torch.Generator().manual_seed(SEED + 1)
    state = OrderedDict()
    for layer in range(LORA_LAYERS):
        for part in ("q_proj", "v_proj"):
            prefix = f"base_model.model.model.layers.{layer}.self_attn.{part}"
            state[f"{prefix}.lora_A.weight"] = weight(draw, RANK, LORA_HIDDEN, dtype=torch.float16)
            state[f"{prefix}.lora_B.weight"] = weight(draw, LORA_HIDDEN, RANK, dtype=torch.float16) * 0.1
    return state, {each.untyped_storage().data_ptr(): "cuda:0" for each in state.values()}


def resnet(epoch: int) -> tuple[object, dict[int, str]]:
    """Return what an ImageNet script saves to resume from: all on the second GPU of its machine."""
    draw = torch.Generator().manual_seed(SEED + 2)
    state = OrderedDict()
    for name, shape in resnet_shapes():
        is_count = name.endswith("num_batches_tracked")
        values = torch.tensor(5005 * epoch) if is_count else weight(draw, *shape)
        state[f"module.{name}"] = values.abs() if "var" in name else values
    since = torch.Generator().manual_seed(epoch)  # what has moved after epoch 57
    for name, values in state.items():
        if epoch > 57 and name.startswith(("module.layer4", "module.fc")) and values.is_floating_point():
            values.add_(weight(since, *values.shape), alpha=0.02)
    parameters = [
        each for name, each in state.items() if not name.endswith(("running_mean", "running_var", "tracked"))
    ]
    buffers = {
        place: {"momentum_buffer": weight(draw, *each.shape) * 0.01} for place, each in enumerate(parameters)
    }
    group = {"lr": 0.001, "momentum": 0.9, "dampening": 0, "weight_decay": 1e-4, "nesterov": False}
    checkpoint = {
        "epoch": epoch,
        "arch": "resnet18",
        "state_dict": state,
        "best_acc1": torch.tensor(69.758 + (epoch - 57) / 80),
        "optimizer": {"state": buffers, "param_groups": [{**group, "params": list(buffers)}]},
        "scheduler": {"step_size": 30, "gamma": 0.1, "last_epoch": epoch},
    }
    kept = [*state.values(), checkpoint["best_acc1"], *(each["momentum_buffer"] for each in buffers.values())]
    return checkpoint, {each.untyped_storage().data_ptr(): "cuda:1" for each in kept}


def resnet_shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the names of a ResNet-18 with half of its channels."""
    yield "conv1.weight", (CHANNELS[0], 3, 7, 7)
    yield from norm("bn1", CHANNELS[0])
    before = CHANNELS[0]
    for stage, width in enumerate(CHANNELS, 1):
        for block in range(2):
            prefix = f"layer{stage}.{block}"
            yield f"{prefix}.conv1.weight", (width, before, 3, 3)
            yield from norm(f"{prefix}.bn1", width)
            yield f"{prefix}.conv2.weight", (width, width, 3, 3)
            yield from norm(f"{prefix}.bn2", width)
            if before != width:
                yield f"{prefix}.downsample.0.weight", (width, before, 1, 1)
                yield from norm(f"{prefix}.downsample.1", width)
            before = width
    yield "fc.weight", (1000, before)
    yield "fc.bias", (1000,)


def norm(prefix: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield what a batch norm saves."""
    for part in ("weight", "bias", "running_mean", "running_var"):
        yield f"{prefix}.{part}", (width,)
    yield f"{prefix}.num_batches_tracked", ()
