"""What torch.jit.load says to tags, on rows; torch is asked in tests/torch/test_torchscript.py."""

from __future__ import annotations

from inspector.target.call import LoadCall, TorchDevice
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.restore import land_exported, land_script
from inspector.target.simulate import Landing

GPUS = Profile(id="cuda:2", label="2 GPUs", accelerators=(("cuda", 2),))


def test_where_tags_land() -> None:
    cases = {
        ("cpu", None, CPU_ONLY): "cpu",
        ("cpu:0", None, CPU_ONLY): "cpu",
        ("meta", None, CPU_ONLY): "meta",
        ("cuda:1", None, GPUS): "cuda:1",
        ("cuda", None, GPUS): "cuda:0",
        ("cuda:5", "cpu", CPU_ONLY): "cpu",
        ("xla:0", "cpu", CPU_ONLY): "cpu",
        ("cpu", "cuda:1", GPUS): "cuda:1",
    }
    assert {case: land_script(*case, 0) for case in cases} == {case: (to, None) for case, to in cases.items()}


def test_what_stops_it() -> None:
    cases = {
        ("cuda:0", None, CPU_ONLY): ("cuda-unavailable", "from the 'CUDA' backend"),
        ("cuda", None, CPU_ONLY): ("cuda-unavailable", "not linked with support for cuda devices"),
        ("cuda:7", None, GPUS): ("cuda-index-out-of-range", "invalid device ordinal"),
        ("mps", None, CPU_ONLY): ("mps-unavailable", "not linked with support for mps devices"),
        ("xpu:0", None, CPU_ONLY): ("xpu-unavailable", "from the 'XPU' backend"),
        ("privateuseone:0", None, CPU_ONLY): ("unknown-device", "from the 'PrivateUse1' backend"),
        ("xla:0", None, CPU_ONLY): ("unknown-device", "however got XLA"),
        ("npu:0", "cpu", CPU_ONLY): ("unknown-device", "at start of device string: npu"),
    }
    wrong = []
    for case, (finding, said) in cases.items():
        place, failure = land_script(*case, 0)
        if place or failure is None or failure[0] != finding or said not in failure[1]:
            wrong.append((case, place, failure))
    assert wrong == []


def test_landing_asks_it_for_torchscript() -> None:
    how = LoadCall(map_location=TorchDevice(text="cpu"), weights_only=False)
    assert Landing("torchscript", CPU_ONLY, how).of_tag("cuda:0") == ("cpu", None)
    failure = Landing("torchscript", CPU_ONLY, LoadCall(weights_only=False)).of_tag("cuda:0")[1]
    assert failure is not None
    assert "empty_strided" in failure[1]


def test_exported_programs_go_where_they_were() -> None:
    assert land_exported("cuda:1", "cpu", GPUS, 0) == ("cuda:1", None)
    assert land_exported("cuda:0", "cpu", CPU_ONLY, 0) == (
        "",
        ("cuda-unavailable", "AssertionError: Torch not compiled with CUDA enabled"),
    )
    assert (
        land_exported("cpu", None, CPU_ONLY, 0) == land_exported("cpu:0", None, CPU_ONLY, 0) == ("cpu", None)
    )
