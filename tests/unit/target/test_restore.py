"""torch's errors for one device, against torch itself where this machine can raise them."""

from __future__ import annotations

import pytest

from inspector.containers.persistent_ids import NO_DEVICE, own_location
from inspector.records import replace
from inspector.target.call import LoadCall, TorchDevice
from inspector.target.evidence import Evidence, TorchFound
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.restore import (
    generator_failure,
    land_exported,
    land_script,
    landing_place,
    restore_failure,
    send_failure,
)
from inspector.target.simulate import Landing
from tests.sweep import table
from tests.torches import here

torch = pytest.importorskip("torch")

NVIDIA = Profile(id="cuda:2", label="2 GPUs", accelerators=(("cuda", 2),))
INTEL = Profile(id="xpu", label="Intel", accelerators=(("xpu", 1),))
APPLE = Profile(id="mps", label="Apple", accelerators=(("mps", 1),))


def said_by_torch(tag: str) -> str | None:
    try:
        torch.serialization.default_restore_location(torch.UntypedStorage(1), tag)
    except Exception as error:  # noqa: BLE001 - whatever torch raises is what is compared
        return f"{type(error).__name__}: {error}"
    return None


TAGS = (
    "cpu cuda cuda:0 cuda:7 cuda:127 cuda:128 cuda:255 cuda:256 cuda0 cuda: cuda:-1 cuda:x cuda:01 "
    "cuda:99999999999999 mps mps:0 xpu xpu:0 hpu hpu:0 mtia mtia:0 privateuseone privateuseone:0 xla:0 npu:0 "
    "ipu cpu:0 meta meta:0 nothing"
)


def test_restoring_on_a_cpu() -> None:
    for tag in (*TAGS.split(), ""):
        ours, theirs = restore_failure(tag, here()), said_by_torch(tag)
        assert (ours is None) == (theirs is None), (tag, ours, theirs)
        assert ours is None or (theirs or "").split("\n", 1)[0].startswith(ours[1]), (tag, ours, theirs)


@table(
    ("tag", "target", "finding", "words"),
    [
        ("cuda:1", NVIDIA, None, ""),
        ("cuda", NVIDIA, None, ""),
        ("cuda:2", NVIDIA, "cuda-index-out-of-range", "on CUDA device 2 but torch.cuda.device_count() is 2"),
        ("xpu:0", INTEL, None, ""),
        ("xpu:1", INTEL, "xpu-unavailable", "on XPU device 1 but torch.xpu.device_count() is 1"),
        ("mps", APPLE, None, ""),
        ("mps", NVIDIA, "mps-unavailable", "Storage device not recognized: mps"),
        ("meta", NVIDIA, None, ""),
    ],
)
def test_restoring_elsewhere(tag: str, target: Profile, finding: str | None, words: str) -> None:
    failure = restore_failure(tag, target)
    assert (None if failure is None else failure[0]) == finding
    assert failure is None or words in failure[1]


def sent_by_torch(device: str) -> str | None:
    try:
        torch.zeros(1).to(device)
    except Exception as error:  # noqa: BLE001 - whatever torch raises is what is compared
        return f"{type(error).__name__}: {error}"
    return None


def test_sending_on_a_cpu() -> None:
    for device in ("cpu", "cuda:0", "xpu:0", "mps", "xla:0", "nonsense"):
        ours, theirs = send_failure(device, here()), sent_by_torch(device)
        assert (ours is None) == (theirs is None), (device, ours, theirs)
        assert ours is None or (theirs or "").startswith(ours[1][:60]), (device, ours, theirs)


def test_a_build_with_cuda_asks_for_the_driver_first() -> None:
    pip = replace(CPU_ONLY, torch_version="2.13.0+cu130")
    for failure in (send_failure, generator_failure):
        assert failure("cuda:0", pip) != failure("cuda:0", CPU_ONLY)
        assert failure("xpu:0", pip) == failure("xpu:0", CPU_ONLY)


def test_sending_elsewhere() -> None:
    assert send_failure("cuda:1", NVIDIA) is None
    assert send_failure("privateuseone:0", CPU_ONLY) == (
        "unknown-device",
        "ModuleNotFoundError: No module named 'torch.privateuseone'",
    )


@table(
    ("device", "finding"),
    [
        ("cpu", None),
        ("cuda:0", "cuda-unavailable"),
        ("xpu:0", "xpu-unavailable"),
        ("xla:0", "unknown-device"),
        ("mps", "mps-unavailable"),
        ("mtia:0", "unknown-device"),
        ("meta", "unknown-device"),
        ("npu:0", "unknown-device"),
    ],
)
def test_generators(device: str, finding: str | None) -> None:
    failure = generator_failure(device, CPU_ONLY)
    assert (None if failure is None else failure[0]) == finding


@table("device", ["cpu", "cuda:0", "xpu:0", "mps", "meta", "xla:0"])
def test_generators_against_torch(device: str) -> None:
    failure = generator_failure(device, here())
    try:
        torch.Generator(device)
    except Exception as error:  # noqa: BLE001 - whatever torch raises is what is compared
        assert f"{type(error).__name__}: {error}".startswith(failure[1][:50])  # noqa: PT017
    else:
        assert failure is None


NO_DRIVER = "Found no NVIDIA driver on your system. Please check that you have an NVIDIA GPU"
NO_GPU = "No CUDA GPUs are available"


@table(
    ("version", "message", "made"),
    [
        ("2.13.0", NO_DRIVER, "AcceleratorError: CUDA error: CUDA driver version is insufficient"),
        ("2.7.1", NO_DRIVER, "RuntimeError: CUDA error: CUDA driver version is insufficient"),
        ("2.13.0", NO_GPU, "AcceleratorError: CUDA error: no CUDA-capable device is detected"),
    ],
)
def test_a_build_for_cuda_without_a_gpu(version: str, message: str, made: str) -> None:
    """The last message is what was raised; else the words are those of a build without CUDA."""
    found = TorchFound(cuda="13.0", cuda_available=False, cuda_messages=("a warning", message))
    machine = replace(CPU_ONLY, torch_version=version, evidence=Evidence(torch=found))
    assert send_failure("cuda:0", machine) == ("cuda-unavailable", f"RuntimeError: {message}")
    assert (generator_failure("cuda:0", machine) or ("", ""))[1].startswith(made)
    for index, said in (("", made), (":0", f"RuntimeError: {message}")):
        assert (land_script(f"cuda{index}", None, machine, 0)[1] or ("", ""))[1].startswith(said)
    exported = land_exported("cuda:0", None, machine, 0)[1] or ("", "")
    assert exported[1].startswith("RuntimeError: We ran into an error")
    assert send_failure("xpu:0", machine) == send_failure("xpu:0", CPU_ONLY)
    for other in (replace(found, cuda=None), replace(found, cuda_available=True)):
        without = replace(machine, evidence=Evidence(torch=other))
        assert send_failure("cuda:0", without) == send_failure("cuda:0", CPU_ONLY)


# --- other releases: texts read in their sources, see `inspector.target.versions` ---------------------------


@table(
    ("version", "tag", "words"),
    [
        ("1.0.1", "cuda:0", "please use torch.load with map_location='cpu' to map your storages to the CPU."),
        ("1.2.0", "cuda:0", "please use torch.load with map_location=torch.device('cpu') to map your"),
        ("1.10.0", "mps", "restore data location of torch.FloatStorage (tagged with mps)"),
        ("1.11.0", "npu:0", "restore data location of torch._UntypedStorage (tagged with npu:0)"),
        ("1.12.1", "meta", "restore data location of torch.storage._UntypedStorage (tagged with meta)"),
        ("2.0.1", "mps:0", "restore data location of torch.storage.UntypedStorage (tagged with mps:0)"),
        ("2.0.1", "hpu", "restore data location of torch.storage.UntypedStorage (tagged with hpu)"),
        ("2.1.2", "npu:0", "AssertionError: HPU device module is not loaded"),
        ("2.3.1", "hpu:0", "AssertionError: HPU device module is not loaded"),
        ("2.3.1", "npu:0", "restore data location of torch.storage.UntypedStorage (tagged with npu:0)"),
        ("2.3.1", "privateuseone:0", "torch.storage._StorageBase.privateuseone() or"),
        ("2.3.1", "xpu:0", "restore data location of torch.storage.UntypedStorage (tagged with xpu:0)"),
        ("2.4.1", "xpu:0", "Attempting to deserialize object on a XPU device but torch.xpu.is_available()"),
        ("2.4.1", "hpu:0", "The HPU device module is not registered."),
        ("2.9.1", "mtia:0", "restore data location of torch.storage.UntypedStorage (tagged with mtia:0)"),
        ("2.10.0", "mtia:0", "Attempting to deserialize object on a MTIA device but"),
    ],
)
def test_words_of_other_releases(version: str, tag: str, words: str) -> None:
    failure = restore_failure(tag, Profile(id="x", label="x", torch_version=version))
    assert words in failure[1]


@table(
    ("version", "tag", "held"),
    [("1.13.1", "meta", ()), ("1.13.1", "mps", (("mps", 1),)), ("2.1.2", "mps:0", (("mps", 1),))],
)
def test_first_releases_that_restore(version: str, tag: str, held: tuple[tuple[str, int], ...]) -> None:
    assert restore_failure(tag, Profile(id="x", label="x", torch_version=version, accelerators=held)) is None


@table(
    ("tag", "place"),
    [
        ("cpu", "cpu"),
        ("meta:0", "meta"),
        ("mps:0", "mps"),
        ("cuda", "cuda:3"),
        ("cuda:1", "cuda:1"),
        ("cuda:255", "cuda:3"),
        ("xpu", "xpu:3"),
        ("npu:0", "npu:0"),
    ],
)
def test_places(tag: str, place: str) -> None:
    assert landing_place(tag, 3) == place


def test_no_device_is_restored_nowhere_and_a_tag_of_that_word_is_none() -> None:
    assert restore_failure(NO_DEVICE, CPU_ONLY) is None
    assert restore_failure(own_location(NO_DEVICE), CPU_ONLY) is not None
    assert own_location("cuda:0") == "cuda:0"


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
