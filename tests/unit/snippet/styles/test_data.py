"""The style `data`, as text; `tests/torch/test_snippets.py` runs it."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from inspector.target.wish import parse_target
from tests.unit.snippet.rows import THIS, checkpoint, tensor

PAIR = checkpoint(tensor("x", role="other"), tensor("y", role="other"))
LOADER = "torch.utils.data.dataloader.DataLoader"


def data(rows: Checkpoint, target: object = CPU_ONLY, **options: object) -> str:
    return render(rows, style="data", target=target, path="data.pt", **options)


def test_columns_on_the_cpu() -> None:
    assert data(PAIR) == (
        "import torch\nfrom torch.utils.data import DataLoader, TensorDataset\n\n"
        'data = torch.load("data.pt", weights_only=True)\n\n'
        'dataset = TensorDataset(data["x"], data["y"])\n'
        "loader = DataLoader(dataset, batch_size=32, shuffle=True)\n"
    )


def test_columns_on_a_gpu() -> None:
    text = data(PAIR, parse_target("cuda"))
    assert text.endswith('for batch in loader:\n    batch = [part.to("cuda:0") for part in batch]\n')
    assert "map_location" not in text
    text = data(checkpoint(tensor("x", role="other", device="cuda:1")), THIS)
    assert 'torch.load( "data.pt", map_location="cpu", weights_only=True, )' in " ".join(text.split())
    assert text.endswith("    batch = [part.to(device) for part in batch]\n")


def test_user_decides() -> None:
    assert "for batch" not in data(PAIR, THIS, mapping=(("cpu", "cpu"),))
    assert "device =" in data(PAIR, THIS, mapping=(("cuda:0", "cpu"),))


def test_apples_gpu_takes_no_double_precision() -> None:
    rows = checkpoint(tensor("x", role="other", dtype="float64"))
    assert "for batch" not in data(rows, parse_target("mps"))
    assert "mps" not in data(rows, THIS)


def test_samples_of_any_kind() -> None:
    rows = checkpoint(*(tensor(index, "image", role="other") for index in range(9)), root="sequence")
    text = data(rows, parse_target("xpu"))
    assert 'return batch.to("xpu:0")' in text
    assert 'dataset = torch.load("data.pt", weights_only=True)\n\nloader = DataLoader(dataset, ' in text
    assert text.endswith("    batch = move(batch)\n")
    assert "def move" not in data(rows)


def test_objects() -> None:
    names = ("torch.utils.data.dataset.TensorDataset",)
    inside = data(checkpoint(tensor("train", ".tensors", 0, role="other"), names=names))
    assert 'dataset = data["train"]\nloader = DataLoader(dataset, ' in inside
    at_root = data(checkpoint(tensor(".tensors", 0, role="other"), names=names, root="object"))
    assert "dataset = torch.load(" in at_root
    inside = data(checkpoint(tensor("train", ".dataset", 0, role="other"), names=(LOADER,)))
    assert inside.endswith('loader = data["train"]\n')
    at_root = data(checkpoint(tensor(".dataset", 0, role="other"), names=(LOADER,), root="object"))
    assert at_root.endswith('loader = torch.load("data.pt", weights_only=True)\n')
