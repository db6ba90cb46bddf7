"""State dicts of known models as rows, in their true names and sizes: nobody has to store their weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod

from inspector.model.checkpoint import Key, Storage, Tensor
from inspector.model.roles.roles import is_buffer
from tests.unit.report.rows import storage, tensor

Named = Iterable[tuple[str, tuple[int, ...]]]
SIZES = {"float32": 4, "bfloat16": 2, "float16": 2, "int64": 8, "uint8": 1}


def state(named: Named, *home: Key, dtype: str = "float32", role: str = "") -> list[Tensor | Storage]:
    """Return the tensors of a state dict, each with a storage of its own; counters are int64."""
    rows: list[Tensor | Storage] = []
    for name, shape in named:
        own = "int64" if name.endswith(("num_batches_tracked", "n_averaged")) else dtype
        nbytes, key = prod(shape) * SIZES[own], "/".join(map(str, (*home, name)))
        kind = role or ("buffer" if is_buffer(name, own) else "parameter")
        fields = {"shape": shape, "dtype": own, "nbytes": nbytes, "storage": key, "role": kind}
        rows.append(tensor(*home, name, stride=contiguous(shape), **fields))
        rows.append(storage(key, nbytes=nbytes))
    return rows


def contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))


def slots(
    named: Named, *home: Key, names: Iterable[str] = ("exp_avg", "exp_avg_sq")
) -> list[Tensor | Storage]:
    """Return the state that an optimizer keeps of parameters."""
    rows: list[Tensor | Storage] = []
    for number, (name, shape) in enumerate(named):
        for slot in names:
            nbytes, keys = prod(shape) * 4, (*home, "state", number, slot)
            key = "/".join(map(str, keys))
            fields = {"shape": shape, "nbytes": nbytes, "storage": key, "parameter": name, "slot": slot}
            rows.append(tensor(*keys, role="optimizer", **fields))
            rows.append(storage(key, nbytes=nbytes))
    return rows


def linear(name: str, out: int, into: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (out, into)
    yield f"{name}.bias", (out,)


def norm(name: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield f"{name}.weight", (width,)
    yield f"{name}.bias", (width,)


def batch_norm(name: str, width: int) -> Iterator[tuple[str, tuple[int, ...]]]:
    yield from norm(name, width)
    yield f"{name}.running_mean", (width,)
    yield f"{name}.running_var", (width,)
    yield f"{name}.num_batches_tracked", ()


def gpt2(layers: int = 12, width: int = 768) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of transformers' GPT2LMHeadModel but for its head, which is tied."""
    yield "transformer.wte.weight", (50257, width)
    yield "transformer.wpe.weight", (1024, width)
    for number in range(layers):
        at = f"transformer.h.{number}"
        yield from norm(f"{at}.ln_1", width)
        for name, shape in (("attn.c_attn", (width, 3 * width)), ("attn.c_proj", (width, width))):
            yield f"{at}.{name}.weight", shape
            yield f"{at}.{name}.bias", shape[1:]
        yield from norm(f"{at}.ln_2", width)
        for name, shape in (("mlp.c_fc", (width, 4 * width)), ("mlp.c_proj", (4 * width, width))):
            yield f"{at}.{name}.weight", shape
            yield f"{at}.{name}.bias", shape[1:]
    yield from norm("transformer.ln_f", width)


def llama(
    numbers: Iterable[int] = range(32), *, experts: int = 0, is_whole: bool = True
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of Mistral 7B, or of Mixtral 8x7B."""
    if is_whole:
        yield "model.embed_tokens.weight", (32000, 4096)
    for number in numbers:
        at = f"model.layers.{number}"
        for name, shape in (
            ("q", (4096, 4096)),
            ("k", (1024, 4096)),
            ("v", (1024, 4096)),
            ("o", (4096, 4096)),
        ):
            yield f"{at}.self_attn.{name}_proj.weight", shape
        if experts:
            yield f"{at}.block_sparse_moe.gate.weight", (experts, 4096)
        for expert in range(experts):
            for name, shape in (("w1", (14336, 4096)), ("w2", (4096, 14336)), ("w3", (14336, 4096))):
                yield f"{at}.block_sparse_moe.experts.{expert}.{name}.weight", shape
        if not experts:
            for name, shape in (("gate", (14336, 4096)), ("up", (14336, 4096)), ("down", (4096, 14336))):
                yield f"{at}.mlp.{name}_proj.weight", shape
        yield f"{at}.input_layernorm.weight", (4096,)
        yield f"{at}.post_attention_layernorm.weight", (4096,)
    if is_whole:
        yield "model.norm.weight", (4096,)
        yield "lm_head.weight", (32000, 4096)


def resnet(counts: tuple[int, ...], *, is_deep: bool) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of torchvision's ResNets."""
    yield "conv1.weight", (64, 3, 7, 7)
    yield from batch_norm("bn1", 64)
    into, more = 64, 4 if is_deep else 1
    for stage, count in enumerate(counts):
        width = 64 << stage
        for number in range(count):
            at = f"layer{stage + 1}.{number}"
            shapes = [(width, into, 3, 3), (width, width, 3, 3)]
            if is_deep:
                shapes = [(width, into, 1, 1), (width, width, 3, 3), (4 * width, width, 1, 1)]
            for place, shape in enumerate(shapes, start=1):
                yield f"{at}.conv{place}.weight", shape
                yield from batch_norm(f"{at}.bn{place}", shape[0])
            if into != more * width:
                yield f"{at}.downsample.0.weight", (more * width, into, 1, 1)
                yield from batch_norm(f"{at}.downsample.1", more * width)
            into = more * width
    yield from linear("fc", 1000, into)


def lora(layers: int = 12, rank: int = 8, width: int = 768) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The names of an adapter of PEFT for GPT-2."""
    for number in range(layers):
        at = f"base_model.model.transformer.h.{number}.attn.c_attn"
        yield f"{at}.lora_A.weight", (rank, width)
        yield f"{at}.lora_B.weight", (3 * width, rank)
