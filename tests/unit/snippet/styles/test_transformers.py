"""The style `transformers`, as text; `tests/torch/test_snippets_formats.py` runs it."""

from __future__ import annotations

from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from inspector.target.wish import parse_target
from tests.unit.snippet.rows import THIS, checkpoint, tensor

ROWS = checkpoint(tensor("l.weight", device="cuda:1"), path="a/b/pytorch_model.bin")


def test_folder_of_the_file() -> None:
    text = render(ROWS, style="transformers", target=CPU_ONLY)
    assert 'folder = "a/b"\n' in text
    assert "model.to(" not in text
    assert 'return_tensors="pt").to(model.device)\n' in text
    assert 'folder = "."\n' in render(ROWS, style="transformers", target=CPU_ONLY, path="pytorch_model.bin")


def test_model_goes_to_the_best_device_wherever_it_was_saved() -> None:
    assert 'model.to("cuda:0")\n' in render(ROWS, style="transformers", target=parse_target("cuda"))
    text = render(ROWS, style="transformers", target=THIS)
    assert text.index("device = ") < text.index("model.to(device)\n")


def test_user_decides() -> None:
    text = render(ROWS, style="transformers", target=THIS, mapping=(("cuda:1", "cpu"),))
    assert "device =" not in text
    assert "model.to(" not in text
