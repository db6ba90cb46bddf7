"""The style `plain`, as text; `test_styles_torch.py` runs it."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.resources import demo_path
from inspector.snippet.styles.table import render
from inspector.target.machine.profile import CPU_ONLY, Profile
from inspector.target.machine.wish import parse_target
from tests.unit.snippet.rows import THIS, checkpoint, tensor

WITH_OWN_DEVICE = "torch._utils._rebuild_wrapper_subclass"


def plain(rows: Checkpoint, target: Profile, mapping: tuple[tuple[str, str], ...] = ()) -> str:
    return render(rows, style="plain", target=target, mapping=mapping, path="demo.pth")


def test_demo_on_the_cpu() -> None:
    assert plain(open_checkpoint(str(demo_path())), CPU_ONLY) == (
        "import torch\n\n"
        'checkpoint = torch.load("demo.pth", map_location="cpu", weights_only=True)\n\n'
        "# The model is yours, built as it was when this file was saved.\n"
        'model.load_state_dict(checkpoint["model"])\n'
    )


def test_demo_on_one_gpu() -> None:
    assert plain(open_checkpoint(str(demo_path())), parse_target("cuda")) == (
        "import torch\n\n"
        "checkpoint = torch.load(\n"
        '    "demo.pth", map_location={"cuda:1": "cuda:0"}, weights_only=True\n'
        ")\n\n"
        "# The model is yours, built as it was when this file was saved.\n"
        'model.to("cuda:0")\n'
        'model.load_state_dict(checkpoint["model"])\n'
    )


def test_demo_wherever_the_code_runs() -> None:
    text = plain(open_checkpoint(str(demo_path())), THIS)
    assert text.index("if torch.cuda.is_available():") < text.index("torch.load(")
    assert '"cuda:1": "cuda:1" if torch.cuda.device_count() > 1 else device,' in text
    assert (
        "if torch.cuda.device_count() < 2:  # too few to split it as it was\n    model.to(device)\n" in text
    )


def test_device_is_chosen_only_if_it_is_used() -> None:
    nested = checkpoint(tensor("x", device="cuda:0", role="other"), names=(WITH_OWN_DEVICE,))
    assert "device =" not in plain(nested, THIS)
    assert "device =" in plain(checkpoint(tensor("x", device="cuda:0", role="other")), THIS)
    assert "device =" in plain(checkpoint(tensor("w", device="cuda:0"), names=(WITH_OWN_DEVICE,)), THIS)


def test_whole_module_is_moved_where_map_location_could_not() -> None:
    weight = tensor("net", "._parameters", "w", device="cuda:0")
    assert ".to(" not in plain(checkpoint(weight), parse_target("mps"))
    text = plain(checkpoint(weight, names=(WITH_OWN_DEVICE,)), parse_target("mps"))
    assert text.endswith('model = checkpoint["net"]\nmodel.to("mps")\n')
