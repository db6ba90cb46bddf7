"""The style `plain`, as text; `test_styles_torch.py` runs it."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.resources import demo_path
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.unit.snippet.rows import THIS, checkpoint, tensor

WITH_OWN_DEVICE = "torch._utils._rebuild_wrapper_subclass"


def plain(rows: Checkpoint, target: Profile, mapping: tuple[tuple[str, str], ...] = ()) -> str:
    return render(rows, style="plain", target=target, mapping=mapping, path="demo.pth")


AVERAGES = (
    "ema = copy.deepcopy(model)\n"
    "# It holds the parameters only: the buffers stay the model's.\n"
    'ema.load_state_dict(checkpoint["ema"], strict=False)\n'
)


def test_demo_on_the_cpu() -> None:
    assert plain(open_checkpoint(str(demo_path())), CPU_ONLY) == (
        "import copy\n\nimport torch\n\n"
        'checkpoint = torch.load(\n    "demo.pth",\n    map_location="cpu",\n    weights_only=True,\n)\n\n'
        "# The model is yours, built as it was when this file was saved.\n"
        f'model.load_state_dict(checkpoint["model"])\n{AVERAGES}'
    )


def test_demo_on_one_gpu() -> None:
    assert plain(open_checkpoint(str(demo_path())), parse_target("cuda")) == (
        "import copy\n\nimport torch\n\n"
        'checkpoint = torch.load(\n    "demo.pth",\n    map_location="cpu",\n    weights_only=True,\n)\n\n'
        "# The model is yours, built as it was when this file was saved.\n"
        f'model.to("cuda:0")\nmodel.load_state_dict(checkpoint["model"])\n{AVERAGES}'
    )


def test_demo_wherever_the_code_runs() -> None:
    text = plain(open_checkpoint(str(demo_path())), THIS)
    assert text.index("if torch.cuda.is_available():") < text.index("torch.load(")
    assert 'map_location="cpu"' in text
    assert "# It was split over devices: where model places its parts itself, do not move it.\n" in text
    assert "\nmodel.to(device)\n" in text


def test_model_goes_to_the_gpu_wherever_it_was_saved() -> None:
    for device in ("cpu", "cuda:0", "cuda:3", "mps", "meta"):
        rows = checkpoint(tensor("net", "w", device=device), tensor("criterion", "pos_weight", role="other"))
        for target, place in (
            (THIS, "device"),
            (parse_target("mps"), 'device = "mps"'),
            (parse_target("xpu"), 'device = "xpu:0"'),
        ):
            text = plain(rows, target)
            assert place in text
            assert text.index("net.to(device)\nnet.load_state_dict(") < text.index("criterion.to(device)\n")
        assert ".to(" not in plain(rows, CPU_ONLY)


def test_wanted_device_is_where_it_goes() -> None:
    rows = checkpoint(tensor("net", "w", device="cuda:0"))
    for word in ("cuda:1", "2xcuda:1"):
        assert '\nnet.to("cuda:1")\n' in plain(rows, parse_target(word))
    whole = checkpoint(tensor("._parameters", "w", device="cuda:0"), root="module")
    assert 'map_location={"cuda:0": "cuda:1"}' in plain(whole, parse_target("2xcuda:1"))
    assert "map_location" not in plain(whole, parse_target("2xcuda"))


def test_tensors_by_themselves_go_beside_the_model() -> None:
    rows = checkpoint(tensor("net", "w"), tensor("mean", role="other", device="cuda:0"))
    assert plain(rows, THIS).endswith('\nmean = checkpoint["mean"].to(device)\n')
    assert plain(rows, CPU_ONLY).endswith('\nmean = checkpoint["mean"]\n')
    assert "mean" not in plain(checkpoint(rows.tensors[1]), THIS)


def test_device_is_chosen_only_if_it_is_used() -> None:
    nested = checkpoint(tensor("x", device="cuda:0", role="other"), names=(WITH_OWN_DEVICE,))
    assert "device =" not in plain(nested, THIS)
    assert "device =" in plain(checkpoint(tensor("x", device="cuda:0", role="other")), THIS)
    assert "device =" in plain(checkpoint(tensor("w", device="cuda:0"), names=(WITH_OWN_DEVICE,)), THIS)


def test_whole_module_is_moved_where_map_location_could_not() -> None:
    weight = tensor("net", "._parameters", "w", device="cuda:0")
    assert ".to(" not in plain(checkpoint(weight), parse_target("mps"))
    text = plain(checkpoint(weight, names=(WITH_OWN_DEVICE,)), parse_target("mps"))
    assert text.endswith('net = checkpoint["net"]\nnet.to("mps")\n')
