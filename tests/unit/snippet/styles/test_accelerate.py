"""The style `accelerate`, as text; `test_table_torch.py` runs it."""

from __future__ import annotations

from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from tests.unit.snippet.rows import checkpoint, optimizer, tensor, value

SCALER = (value("amp", "scale"), value("amp", "_growth_tracker"))


def test_model_is_filled_before_it_is_prepared() -> None:
    rows = checkpoint(tensor("net", "w"), values=SCALER, optimizers=(optimizer("opt"),))
    assert render(rows, style="accelerate", target=CPU_ONLY, path="best.pth") == (
        "import torch\nfrom accelerate import Accelerator\n\n"
        "# Start it with: accelerate launch script.py\n"
        "accelerator = Accelerator()\n\n"
        'checkpoint = torch.load("best.pth", weights_only=True)\n\n'
        "# The model is yours, built as it was when this file was saved.\n"
        'net.load_state_dict(checkpoint["net"])\n\n'
        "# opt, of net.parameters()\n"
        "# prepare() wraps the model and moves it; only then states of optimizers are loaded.\n"
        "net, opt = accelerator.prepare(net, opt)\n"
        'opt.load_state_dict(checkpoint["opt"])\n'
        "if accelerator.scaler is not None:\n"
        '    accelerator.scaler.load_state_dict(checkpoint["amp"])\n'
    )


def test_several_models() -> None:
    rows = checkpoint(tensor("a", "w"), tensor("b", "v"))
    text = render(rows, style="accelerate", target=CPU_ONLY)
    assert "# The models are yours, built as they were" in text
    assert text.endswith("a, b = accelerator.prepare(a, b)\n")
