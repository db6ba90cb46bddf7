"""Writes checkpoints in every form, loads them and compares: `python benchmarks/forms.py [--update]`.

Prints a Markdown table of sizes before and after; `--update` puts it into docs/forms.md.
"""

from __future__ import annotations

import argparse
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import torch
from measure import put
from safetensors.torch import load_file
from torch import nn

from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from inspector.units import format_nbytes

DOCUMENT = Path(__file__).parents[1] / "docs" / "forms.md"
HEAD = (
    "| File | Form | Before | After | Ratio | Tensors | Equal |\n| --- | --- | --- | --- | --- | --- | --- |"
)
Tensors = dict[str, torch.Tensor]


class Row(NamedTuple):
    """One export: the file and the form in words, what is saved, and what must come out."""

    file: str
    words: str
    saved: Any
    form: Form
    expected: Callable[[Any], Tensors]
    legacy: bool = False


class Decoder(nn.Module):
    """A small language model whose output weights are those of its input."""

    def __init__(self, width: int = 256, words: int = 8000, layers: int = 4) -> None:
        super().__init__()
        self.embed = nn.Embedding(words, width)
        layer = nn.TransformerEncoderLayer(width, 4, 4 * width, batch_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("mask", torch.ones(512, 512).tril(), persistent=False)


def training(model: nn.Module, prefix: str = "") -> dict[str, Any]:
    """What a training script saves, after one step."""
    optimizer = torch.optim.AdamW(model.parameters())
    sum(parameter.sum() for parameter in model.parameters()).backward()
    optimizer.step()
    weights = OrderedDict((prefix + name, tensor) for name, tensor in model.state_dict().items())
    ema = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    return {"model": weights, "model_ema": ema, "optimizer": optimizer.state_dict(), "epoch": 3}


def rows() -> Iterator[Row]:
    """Return what is measured."""
    torch.manual_seed(0)
    model = Decoder()
    plain, wrapped = training(model), training(model, "module._orig_mod.")
    weights = model.state_dict()
    everything: Callable[[Any], Tensors] = lambda _: weights  # noqa: E731 - said once for many rows
    half: Callable[[Any], Tensors] = lambda _: {  # noqa: E731
        name: tensor.to(torch.bfloat16) for name, tensor in weights.items()
    }
    only = Form(only_weights=True)
    name = "training checkpoint: AdamW, averaged weights"
    yield Row(name, "weights", plain, only, everything)
    yield Row(
        name, "weights, legacy container", plain, Form(only_weights=True, container="legacy"), everything
    )
    yield Row(
        name, "averaged weights", plain, Form(only_weights=True, ema=True), lambda saved: saved["model_ema"]
    )
    yield Row(name, "weights as bfloat16", plain, Form(only_weights=True, cast="bfloat16"), half)
    yield Row(name, "safetensors", plain, Form(shape="safetensors"), everything)
    yield Row(
        "the same, legacy",
        "weights, zip container",
        plain,
        Form(only_weights=True, container="zip"),
        everything,
        legacy=True,
    )
    yield Row("the same of DDP and torch.compile", "weights without prefixes", wrapped, only, everything)
    yield Row("whole module, tied weights", "state dict", model, Form(shape="state-dict"), everything)
    yield Row("whole module, tied weights", "safetensors", model, Form(shape="safetensors"), everything)
    both = Form(shape="safetensors", cast="bfloat16")
    yield Row("whole module, tied weights", "safetensors as bfloat16", model, both, half)
    data = torch.randn(4_000_000)
    views = {"sample": data[:1000], "overlap": data[500:1500], "rows": data.reshape(2000, 2000)[9:11, :8]}
    yield Row("slices of a large tensor", "compact", views, Form(compact=True), lambda saved: saved)
    turned = {
        "t": torch.randn(2000, 1500).t(),
        "c": torch.randn(64, 64, 9, 9).to(memory_format=torch.channels_last),
    }
    yield Row(
        "transposed and channels-last", "safetensors", turned, Form(shape="safetensors"), lambda saved: saved
    )
    leave = Form(exclude=("optimizer", "model_ema"))
    yield Row(name, "all but optimizer and averages", plain, leave, lambda saved: saved["model"])


def measure(row: Row, folder: Path) -> str:
    """Export, load and compare; give a row of the table."""
    source = folder / "source.pt"
    made = folder / ("made.safetensors" if row.form.shape == "safetensors" else "made.pt")
    torch.save(row.saved, source, _use_new_zipfile_serialization=not row.legacy)
    done = export_form(str(source), made, None, row.form, overwrite=True)
    found: Any = load_file(made) if done.format == "safetensors" else torch.load(made, weights_only=True)
    if "model" in found:
        found = found["model"]
    expected = row.expected(row.saved)
    found |= {name: found[kept] for name, kept in done.tied}
    equal = sum(_is_equal(found.get(name), tensor) for name, tensor in expected.items())
    verdict = "all" if equal == len(expected) == len(found) else f"**{equal} of {len(expected)}**"
    before, after = done.source_nbytes, done.nbytes
    cells = [row.file, row.words, format_nbytes(before), format_nbytes(after), f"{after / before:.3g}"]
    return f"| {' | '.join([*cells, str(done.tensors), verdict])} |"


def _is_equal(found: torch.Tensor | None, wanted: torch.Tensor) -> bool:
    return found is not None and found.dtype == wanted.dtype and torch.equal(found, wanted)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--update", action="store_true", help="put the table into docs/forms.md")
    options = parser.parse_args()
    lines = [HEAD]
    print(HEAD, flush=True)
    with tempfile.TemporaryDirectory(prefix="forms-") as folder:
        for row in rows():
            lines.append(measure(row, Path(folder)))
            print(lines[-1], flush=True)
    if options.update:
        put(DOCUMENT, "sizes", "\n".join(lines))


if __name__ == "__main__":
    main()
