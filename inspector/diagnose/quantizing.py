"""Weights that a library packed, told by the names and shapes that it gives them: no other says the same.

Layers quantized so have several tensors in the place of `weight`. Each row names where the names were read.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping

from inspector.model.checkpoint import Checkpoint, Tensor
from inspector.records import dataclass

Layer = Mapping[str, Tensor]
"""The tensors of one layer by the last parts of their names."""

_MARKS = ("SCB", "qweight", "weight.quant_state.bitsandbytes__nf4", "weight.quant_state.bitsandbytes__fp4")
_ENDINGS = tuple(f".{mark}" for mark in _MARKS)
_PRETRAINED = "transformers loads the folder with from_pretrained, where {} is installed."


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantizer:
    """One way of packing."""

    name: str
    packed: str
    matches: Callable[[Layer], bool]
    instead: str
    source: str


def _is_int8(layer: Layer) -> bool:
    return "SCB" in layer and "weight" in layer and layer["weight"].dtype == "int8"


def _is_4bit(layer: Layer) -> bool:
    return any(mark in layer for mark in _MARKS[2:])


def _is_gptq(layer: Layer) -> bool:
    """Return whether the numbers of a column are packed, so that there are as many columns as scales."""
    return "g_idx" in layer and _columns(layer, "qweight") in _widths(layer, "scales")


def _is_awq(layer: Layer) -> bool:
    """Return whether the numbers of a row are packed, so that there are as many columns as packed zeros."""
    is_whole = "scales" in layer and "g_idx" not in layer
    return is_whole and _columns(layer, "qweight") in _widths(layer, "qzeros")


def _columns(layer: Layer, name: str) -> int | None:
    """Return the columns of packed numbers; None where there are none."""
    tensor = layer.get(name)
    is_packed = tensor is not None and tensor.dtype == "int32" and len(tensor.shape) == 2
    return tensor.shape[1] if tensor is not None and is_packed else None


def _widths(layer: Layer, name: str) -> tuple[int, ...]:
    """Return the columns of what stands beside them, if it has any."""
    tensor = layer.get(name)
    return tensor.shape[1:] if tensor is not None else ()


QUANTIZERS: tuple[Quantizer, ...] = (
    Quantizer(
        name="bitsandbytes (LLM.int8)",
        packed="int8",
        matches=_is_int8,
        instead=_PRETRAINED.format("bitsandbytes"),
        source="https://github.com/bitsandbytes-foundation/bitsandbytes/blob/main/bitsandbytes/nn/modules.py",
    ),
    Quantizer(
        name="bitsandbytes (4 bits)",
        packed="two numbers a byte",
        matches=_is_4bit,
        instead=_PRETRAINED.format("bitsandbytes"),
        source="https://github.com/bitsandbytes-foundation/bitsandbytes/blob/main/bitsandbytes/functional.py",
    ),
    Quantizer(
        name="GPTQ",
        packed="several numbers in an int32",
        matches=_is_gptq,
        instead=_PRETRAINED.format("gptqmodel"),
        source="https://github.com/AutoGPTQ/AutoGPTQ/blob/main/auto_gptq/nn_modules/qlinear/qlinear_cuda.py",
    ),
    Quantizer(
        name="AWQ",
        packed="several numbers in an int32",
        matches=_is_awq,
        instead=_PRETRAINED.format("autoawq or gptqmodel"),
        source="https://github.com/casper-hansen/AutoAWQ/blob/main/awq/modules/linear/gemm.py",
    ),
)


def find_quantizers(checkpoint: Checkpoint) -> Iterator[tuple[Quantizer, list[str]]]:
    """Yield how weights are packed, each with the tensors that tell it."""
    marked = {path.rpartition(mark)[0] for path, mark in _marked(checkpoint)}
    layers: dict[str, dict[str, Tensor]] = defaultdict(dict)
    for tensor in checkpoint.tensors if marked else ():
        for place, part in _splits(tensor.path):
            if place in marked:
                layers[place][part] = tensor
    for row in QUANTIZERS:
        found = [layer for layer in layers.values() if row.matches(layer)]
        if found:
            yield row, [tensor.path for layer in found for name, tensor in layer.items() if name in _MARKS]


def _marked(checkpoint: Checkpoint) -> Iterator[tuple[str, str]]:
    for tensor in checkpoint.tensors:
        if tensor.path.endswith(_ENDINGS):
            yield tensor.path, next(ending for ending in _ENDINGS if tensor.path.endswith(ending))


def _splits(path: str) -> Iterator[tuple[str, str]]:
    """Yield the ways in which the last parts of a name may be those of a layer: one, or three of 4 bits."""
    place, _, part = path.rpartition(".")
    yield place, part
    if part.startswith("bitsandbytes__"):
        place, _, rest = place.rpartition(".weight.")
        yield place, f"weight.{rest}.{part}"
