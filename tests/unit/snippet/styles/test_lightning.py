"""The styles for Lightning, as text; `tests/torch/test_snippets_formats.py` runs them."""

from __future__ import annotations

import pytest

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint, ValueRow
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.snippet.rows import THIS, checkpoint, tensor, value

VERSION = value("pytorch-lightning_version", type="str")
PARAMETERS = value("hyper_parameters", "lr")
LAST = 'model = MyModel.load_from_checkpoint("last.ckpt"'


def lightning(
    *weights: str, device: str = "cuda:0", values: tuple[ValueRow, ...] = (), names: tuple[str, ...] = ()
) -> Checkpoint:
    rows = (tensor("state_dict", name, device=device) for name in weights or ("model.w",))
    return checkpoint(*rows, values=(VERSION, *values), names=names, path="last.ckpt")


def write(rows: Checkpoint, target: object = CPU_ONLY, style: str = "lightning", **options: object) -> str:
    return render(rows, style=style, target=target, **options)


def test_with_the_class() -> None:
    assert write(lightning(values=(PARAMETERS,))) == (
        "# MyModel is your LightningModule: its arguments are the hyper-parameters in the file.\n"
        f'{LAST}, map_location="cpu")\n'
        "model.eval()\n"
    )
    assert "add the arguments that it was created with.\n" in write(lightning())


def test_with_the_class_on_other_machines() -> None:
    assert f"{LAST})\n" in write(lightning(), parse_target("cuda"))
    assert f'{LAST}, map_location="mps")\n' in write(lightning(), parse_target("mps"))
    text = write(lightning(), THIS)
    assert text.index("import torch\n") < text.index("device = ") < text.index("map_location=device)\n")
    mapped = write(lightning(device="cuda:1"), THIS, mapping=(("cuda:1", "cuda:0"),))
    assert f'{LAST}, map_location="cuda:0")\n' in mapped
    assert "import torch" not in mapped
    split = lightning("model.w")
    split = checkpoint(*split.tensors, tensor("state_dict", "v", device="cuda:3"), values=(VERSION,))
    assert 'map_location="cpu"' in write(split, parse_target("cuda"), mapping=(("cuda:3", "cpu"),))


def test_names_to_allow_come_first() -> None:
    text = write(lightning(names=("argparse.Namespace",)))
    assert text.startswith("import argparse\n\nimport torch\n\n# This takes torch 2.4 or newer.\ntorch.")
    assert "weights_only" not in text


def test_file_that_torch_refuses() -> None:
    text = write(lightning(names=("functools.partial",)))
    assert "# Before 2.6, Lightning has no weights_only" in text
    assert "weights_only=False" in text


def test_loader_that_may_run_what_torch_refuses_is_not_offered() -> None:
    rows = lightning(names=("os.system",))
    with pytest.raises(PlanError, match="no snippet in the style 'lightning'"):
        write(rows)
    assert "weights_only=True" in write(rows, style="lightning-weights")


def test_torch_without_weights_only() -> None:
    old = Profile(id="this", label="", torch_version="1.12.1")
    text = write(lightning(names=("functools.partial",)), old)
    assert "torch before 1.13 does not check" in text
    assert "weights_only" not in text


def test_without_the_class() -> None:
    assert write(lightning("model.a", "model.b", values=(PARAMETERS,)), style="lightning-weights") == (
        "import torch\n"
        "from torch.nn.modules.utils import consume_prefix_in_state_dict_if_present\n\n"
        'checkpoint = torch.load(\n    "last.ckpt",\n    map_location="cpu",\n    weights_only=True,\n)\n\n'
        'hyper_parameters = checkpoint["hyper_parameters"]  # what the model was created with\n\n'
        "# The model is yours, built as it was when this file was saved.\n"
        'state_dict = checkpoint["state_dict"]\n'
        'consume_prefix_in_state_dict_if_present(state_dict, "model.")\n'
        "model.load_state_dict(state_dict)\n"
    )
    text = write(lightning(), THIS, style="lightning-weights")
    assert text.index("device = ") < text.index("torch.load(") < text.index("model.to(device)")
    assert "hyper" not in text


@table(
    ("names", "stripped"),
    [
        (("net._orig_mod.w", "net._orig_mod.b"), ("net.", "_orig_mod.")),
        (("model.w", "loss.weight"), ()),
        (("head.w",), ()),
        (("module.w",), ("module.",)),
    ],
)
def test_prefixes(names: tuple[str, ...], stripped: tuple[str, ...]) -> None:
    text = write(lightning(*names), style="lightning-weights")
    assert text.count("(state_dict, ") == len(stripped)
    assert all(f'(state_dict, "{prefix}")' in text for prefix in stripped)


def test_odd_state_dict_breaks_nothing() -> None:
    rows = checkpoint(tensor("state_dict"), values=(VERSION,))
    assert "prefix" not in write(rows, style="lightning-weights")
