"""What will not run on the target: named where it is certain, with what helps; else what is needed."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint, GlobalUse
from inspector.model.findings import Finding, Fix
from inspector.records import replace
from inspector.target.evidence import Evidence, TorchFound
from inspector.target.profile import Profile
from inspector.target.wish import parse_target
from tests.unit.diagnose.cases import findings
from tests.unit.report.rows import checkpoint, storage, tensor


def asking(*names: str, **fields: object) -> Checkpoint:
    return checkpoint(globals=tuple(GlobalUse(name=name, count=1) for name in names), **fields)


def needs(name: str, target: str | Profile | None) -> Finding:
    return findings(asking(name), target)["compiled-package"]


def test_a_package_without_kernels_for_the_target() -> None:
    for target in ("cpu", "mps", "xpu"):
        found = needs("flash_attn.modules.mha.MHA", target)
        assert found.severity == "warning"
        assert found.title == "The file needs flash-attn, which runs on NVIDIA GPUs and AMD GPUs only"
        assert "This file asks for flash_attn.modules.mha.MHA." in found.detail
        assert "ModuleNotFoundError: No module named 'flash_attn_2_cuda'." in found.detail
        assert "attn_implementation='sdpa'" in found.detail


def test_on_the_right_target_it_is_only_needed() -> None:
    for target in ("cuda", "rocm", None):
        found = needs("flash_attn.modules.mha.MHA", target)
        assert (found.severity, found.title) == ("note", "The file needs flash-attn")
        assert found.detail.endswith("compiles it for the torch that is installed.")


def test_what_runs_on_cpus_too_is_left_there() -> None:
    name = "torch.ao.nn.quantized.modules.linear.Linear"
    found = needs(name, "cuda")
    assert found.severity == "note"
    assert "arguments from the 'CUDA' backend. Leave the model on the CPU." in found.detail
    assert "from the 'MPS' backend" in needs(name, "mps").detail
    assert "from the 'CUDA' backend" in needs(name, "rocm").detail
    for target in ("cpu", None):  # it comes with torch
        assert "compiled-package" not in findings(asking(name), target)
    assert "it ends with" not in needs("spconv.pytorch.conv.SubMConv3d", "mps").detail


def test_amd_is_told_by_its_torch() -> None:
    amd = replace(parse_target("cuda"), id="this", evidence=Evidence(torch=TorchFound(hip="6.2")))
    nvidia = replace(amd, evidence=Evidence(torch=TorchFound(cuda="12.4")))
    assert needs("torch2trt.torch2trt.TRTModule", amd).severity == "warning"
    assert needs("torch2trt.torch2trt.TRTModule", nvidia).severity == "note"


def test_nothing_is_known_of_other_devices() -> None:
    other = Profile(id="x", label="x", accelerators=(("hpu", 1),))
    assert needs("flash_attn.modules.mha.MHA", other).severity == "note"


def test_where_nobody_can_say_that_it_fails_nothing_is_said() -> None:
    for target in ("cpu", "mps", "cuda", None):
        found = needs("bitsandbytes.nn.modules.Linear8bitLt", target)
        assert found.severity == "note"
        assert "Release 0.50 runs on CPUs" in found.detail
    assert "torch.nn.LayerNorm takes the weights" in needs("apex.normalization.FusedLayerNorm", "cuda").detail


def test_a_dtype_matters_more_where_the_file_brings_the_model() -> None:
    row = tensor("w", role="parameter", dtype="float64", device="cuda:0", storage="0")
    made = checkpoint(storage("0", "cuda:0", 32), row)
    found = findings(made, "mps")["dtype-unsupported"]
    assert (found.severity, found.paths) == ("note", ("w",))
    assert found.title == "Tensors in float64: Apple GPUs have no such numbers"
    assert "model.float().to('mps')" in found.detail
    assert found.fix == Fix(option=("map_location", "'cpu'"))
    whole = replace(made, module_class="m.Net")
    assert findings(whole, "mps")["dtype-unsupported"].severity == "warning"
    assert "dtype-unsupported" not in findings(made, "cuda")
    assert "dtype-unsupported" not in findings(made)
    on_cpu = checkpoint(storage("0", "cpu", 32), row._replace(device="cpu"))
    assert findings(on_cpu, "mps")["dtype-unsupported"].fix is None  # torch.load puts it there anyway


def test_torchs_name_of_the_dtype_is_quoted() -> None:
    made = checkpoint(tensor("w", role="parameter", dtype="float8_e5m2"))
    assert "Trying to convert Float8_e5m2 to the MPS" in findings(made, "mps")["dtype-unsupported"].detail


def test_quantized_weights_are_named_for_every_target() -> None:
    rows = [
        tensor(f"l.{name}", shape=(8, 8), dtype="int32") for name in ("qweight", "qzeros", "scales", "g_idx")
    ]
    for target in (None, "cpu", "cuda"):
        found = findings(checkpoint(*rows), target)["quantized-weights"]
        assert (found.severity, found.title, found.paths) == (
            "note",
            "Weights quantized by GPTQ",
            ("l.qweight",),
        )
