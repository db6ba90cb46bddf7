from __future__ import annotations

import re

import pytest

from inspector.target.evidence import Evidence, Libcuda, Node, Nvidia, Smi, SmiGpu, TorchDevice
from tests.sweep import table
from tests.unit.diagnose.machines import diagnoses, driver, linux, machine, torch

TWO = driver("550.120", "12.4", SmiGpu(name="L4"), SmiGpu(name="L4"))


@table(
    ("value", "why"),
    [
        ("", "the list is empty"),
        (",0", "the list is empty"),
        ("-1", "a negative number hides all GPUs"),
        ("-1,0", "a negative number hides all GPUs"),
        ("NoDevFiles", "this names no GPU"),
        ("all", "this names no GPU"),
        ("2", "there are 2, so the highest index is 1"),
        ("7,0", "there are 2, so the highest index is 1"),
        ("0,0", "an entry occurs twice, which empties the list"),
        ("GPU-(not found)", "no GPU has this UUID"),
        ("0", None),
        (" 1, 0", None),
        ("0,5", None),
        ("1gpu", None),
        ("GPU-(found)", None),
        ("GPU-(uuid)", None),
        ("MIG-(uuid)", None),
    ],
)
def test_variables_that_hide_every_gpu(value: str, why: str | None) -> None:
    found = machine(nvidia=TWO, environment=(("CUDA_VISIBLE_DEVICES", value),))
    row = diagnoses(found).get("devices-hidden")
    if why is None:
        assert row is None
    else:
        assert row is not None
        assert row.evidence == (f"CUDA_VISIBLE_DEVICES={value}: {why}", "nvidia-smi lists L4, L4")
        assert row.certainty == "certain"


@pytest.mark.torch
@pytest.mark.parametrize("value", ["", ",0", "-1", "all", "2", "7,0", "0,0", "0", " 1, 0", "0,5", "1gpu"])
def test_torch_reads_the_variable_alike(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    cuda = pytest.importorskip("torch.cuda")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", value)
    monkeypatch.setattr(cuda, "_raw_device_count_nvml", lambda: 2)
    found = machine(nvidia=TWO, environment=(("CUDA_VISIBLE_DEVICES", value),))
    assert ("devices-hidden" in diagnoses(found)) == (cuda._device_count_nvml() == 0)


def test_without_nvidia_smi_only_an_empty_list_is_certain() -> None:
    hidden = machine(nvidia=Nvidia(libcuda=Libcuda(found=True)), environment=(("CUDA_VISIBLE_DEVICES", ""),))
    assert diagnoses(hidden)["devices-hidden"].certainty == "certain"
    hidden = machine(environment=(("CUDA_VISIBLE_DEVICES", "-1"),))
    assert diagnoses(hidden)["devices-hidden"].certainty == "likely"
    none = machine(nvidia=Nvidia(smi=Smi(state="missing")), environment=(("CUDA_VISIBLE_DEVICES", "-1"),))
    assert list(diagnoses(none)) == ["no-gpu"]  # there is nothing to hide
    assert "devices-hidden" not in diagnoses(machine(environment=(("CUDA_VISIBLE_DEVICES", "5"),)))


def test_rocm_listens_to_both_variables() -> None:
    rocm = torch("2.3.1", None, hip="6.0")
    for name in ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES"):
        assert diagnoses(machine(torch=rocm, environment=((name, ""),)))["devices-hidden"].title.startswith(
            name
        )
    assert "devices-hidden" not in diagnoses(machine(environment=(("HIP_VISIBLE_DEVICES", ""),)))


def test_variables_are_no_fault_where_torch_works_or_has_no_gpu_code() -> None:
    environment = (("CUDA_VISIBLE_DEVICES", ""),)
    working = machine(torch=torch(cuda_available=True, cuda_count=1), environment=environment)
    assert "devices-hidden" not in diagnoses(working)
    assert "devices-hidden" not in diagnoses(machine(torch=torch("2.5.1", None), environment=environment))


def test_some_gpus_are_hidden() -> None:
    half = torch(cuda_available=True, cuda_count=1)
    found = machine(torch=half, nvidia=TWO, environment=(("CUDA_VISIBLE_DEVICES", "1"),))
    assert diagnoses(found)["some-devices-hidden"].title == "torch sees 1 of 2 GPUs"
    assert "some-devices-hidden" not in diagnoses(machine(torch=half, nvidia=TWO))


@table(
    ("ours", "theirs", "is_met"),
    [
        (("RTX 4090", "GTX 1060"), ("GTX 1060", "RTX 4090"), True),
        (("RTX 4090", "GTX 1060"), ("RTX 4090", "GTX 1060"), False),
        (("L4", "L4"), ("L4", "L4"), False),
        (("RTX 4090",), ("GTX 1060", "RTX 4090"), False),
        (("", "L4"), ("L4", ""), False),
        ((), (), False),
    ],
)
def test_gpus_may_have_other_numbers_in_nvidia_smi(
    ours: tuple[str, ...], theirs: tuple[str, ...], is_met: bool
) -> None:
    devices = tuple(TorchDevice(name=name) for name in ours)
    found = torch(cuda_available=True, cuda_count=len(ours), cuda_devices=devices)
    smi = Smi(state="ok", gpus=tuple(SmiGpu(name=name) for name in theirs))
    row = diagnoses(machine(torch=found, nvidia=Nvidia(smi=smi))).get("gpus-numbered-differently")
    assert (row is not None) is is_met
    if row is not None:
        assert row.evidence == (
            "cuda:0 is RTX 4090, cuda:1 is GTX 1060",
            "nvidia-smi's 0 is GTX 1060, nvidia-smi's 1 is RTX 4090",
            "CUDA_DEVICE_ORDER is not set",
        )


def test_an_order_that_is_set_is_quoted() -> None:
    devices = (TorchDevice(name="B"), TorchDevice(name="A"))
    found = torch(cuda_available=True, cuda_count=2, cuda_devices=devices)
    smi = Smi(state="ok", gpus=(SmiGpu(name="A"), SmiGpu(name="B")))
    set_ = (("CUDA_DEVICE_ORDER", "FASTEST_FIRST"),)
    rows = diagnoses(machine(torch=found, nvidia=Nvidia(smi=smi), environment=set_))
    assert rows["gpus-numbered-differently"].evidence[-1] == "CUDA_DEVICE_ORDER=FASTEST_FIRST"
    chosen = (("CUDA_VISIBLE_DEVICES", "1,0"),)
    rows = diagnoses(machine(torch=found, nvidia=Nvidia(smi=smi), environment=chosen))
    assert "gpus-numbered-differently" not in rows


@table(
    ("found", "is_met"),
    [
        (machine(system=linux(container="docker"), nvidia=Nvidia(kernel_module="550.1")), True),
        (machine(system=linux(container="podman"), cards=("nvidia",)), True),
        (machine(system=linux(container="docker")), False),
        (machine(system=linux(container="docker", wsl=True), cards=("nvidia",)), False),
        (machine(system=linux(container="docker"), nvidia=driver()), False),
        (machine(cards=("nvidia",)), False),
    ],
)
def test_a_container_without_device_files(found: Evidence, is_met: bool) -> None:
    row = diagnoses(found).get("no-device-nodes")
    assert (row is not None) is is_met
    if row is not None:
        assert f"this is a {found.system.container} container" in row.evidence


def test_a_container_tells_what_it_was_given() -> None:
    given = (("NVIDIA_VISIBLE_DEVICES", "void"),)
    found = machine(system=linux(container="kubernetes"), cards=("nvidia",), environment=given)
    assert diagnoses(found)["no-device-nodes"].evidence[-2:] == (
        "NVIDIA_VISIBLE_DEVICES=void",
        "there is no /dev/nvidia0",
    )


@table(
    ("found", "certainty"),
    [
        (machine(system=linux(wsl=True)), "certain"),
        (machine(system=linux(wsl=True), dxg=True), "possible"),
        (machine(system=linux(wsl=True), dxg=True, nvidia=driver()), None),
        (machine(dxg=True), None),
    ],
)
def test_wsl_without_a_gpu(found: Evidence, certainty: str | None) -> None:
    row = diagnoses(found).get("wsl-without-gpu")
    assert (row and row.certainty) == certainty


def test_what_is_uninstalled_in_wsl_leaves_the_tools_for_containers() -> None:
    (step,) = (
        row for row in diagnoses(machine(system=linux(wsl=True)))["wsl-without-gpu"].steps if "apt" in row
    )
    patterns = re.findall("'(.*?)'", step)
    packages = ("libnvidia-compute-550", "nvidia-driver-535-open", "libnvidia-compute-535-server")
    kept = (
        "libnvidia-container1",
        "libnvidia-container-tools",
        "nvidia-container-toolkit",
        "nvidia-cuda-toolkit",
    )
    assert [any(re.search(pattern, name) for pattern in patterns) for name in packages + kept] == [
        True
    ] * 3 + [False] * 4


def test_one_open_gpu_of_a_cluster_is_enough() -> None:
    def some(**usable: bool) -> Nvidia:
        return driver(
            nodes=tuple(Node(path=f"/dev/nvidia{name[1:]}", usable=is_) for name, is_ in usable.items())
        )

    assert "no-permission" not in diagnoses(machine(nvidia=some(_0=False, _1=True, _ctl=True)))
    row = diagnoses(machine(nvidia=some(_0=False, _1=True, _ctl=False)))["no-permission"]
    assert row.evidence[1] == "not readable and writable: /dev/nvidiactl"
    row = diagnoses(machine(nvidia=some(_0=False, _1=False, _ctl=True)))["no-permission"]
    assert row.evidence[1] == "not readable and writable: /dev/nvidia0, /dev/nvidia1"


def test_device_files_that_are_closed() -> None:
    def closed(*names: str) -> Nvidia:
        return driver(nodes=tuple(Node(path=f"/dev/nvidia{name}", usable=False) for name in names))

    row = diagnoses(machine(nvidia=closed("0", "ctl", "-modeset")))["no-permission"]
    assert row.evidence[1] == "not readable and writable: /dev/nvidia0, /dev/nvidiactl"
    assert "no-permission" not in diagnoses(machine(nvidia=closed("-modeset", "-nvswitchctl")))
    working = torch(cuda_available=True, cuda_count=1)
    assert "no-permission" not in diagnoses(machine(torch=working, nvidia=closed("1")))


@table(
    ("capability", "architectures", "id_"),
    [
        ((12, 0), ("sm_80", "sm_90"), "gpu-too-new"),
        ((12, 0), ("sm_80", "compute_90"), None),
        ((6, 1), ("sm_70", "sm_80"), "gpu-too-old"),
        ((8, 0), ("sm_75", "sm_86"), "gpu-too-new"),
        ((3, 5), ("sm_50",), "gpu-too-old"),
        ((8, 9), ("sm_80",), None),
        ((8, 9), (), None),
        ((8, 9), ("gfx90a",), None),
        (None, ("sm_80",), None),
    ],
)
def test_gpus_that_torch_has_no_code_for(
    capability: object, architectures: tuple[str, ...], id_: str | None
) -> None:
    devices = (TorchDevice(name="X", capability=capability),)
    found = torch(cuda_available=True, cuda_count=1, cuda_devices=devices, arch_list=architectures)
    met = {"gpu-too-new", "gpu-too-old"} & set(diagnoses(machine(torch=found)))
    assert met == ({id_} if id_ else set())


@table(
    ("capability", "architectures", "title", "build"),
    [
        ((12, 0), ("sm_80", "sm_90"), "for the new GPU (sm_120)", "The build for CUDA 12.8 has it."),
        ((6, 1), ("sm_75", "sm_90"), "for the old GPU (sm_61)", "The build for CUDA 12.6 has it."),
        ((8, 0), ("sm_75", "sm_86"), "for the GPU (sm_80)", "The build for CUDA 12.6 has it."),
        ((3, 5), ("sm_50",), "for the old GPU (sm_35)", None),
    ],
)
def test_the_build_that_has_the_code_is_named_where_there_is_one(
    capability: tuple[int, int], architectures: tuple[str, ...], title: str, build: str | None
) -> None:
    devices = (TorchDevice(name="X", capability=capability),)
    found = torch(cuda_available=True, cuda_count=1, cuda_devices=devices, arch_list=architectures)
    rows = diagnoses(machine(torch=found, nvidia=driver("550.120", "12.4")))
    row = rows["gpu-too-new"] if "gpu-too-new" in rows else rows["gpu-too-old"]
    assert row.title.endswith(title)
    assert row.explanation.endswith("compiled for other chips." if build is None else f" {build}")
    assert ("previous-versions" in row.steps[0]) is (build is None)


def test_a_gpu_that_only_nvidia_smi_knows() -> None:
    nvidia = driver("550.120", "12.4", SmiGpu(capability=(12, 0)), SmiGpu(name="L4", capability=(8, 9)))
    found = machine(torch=torch(arch_list=("sm_80",)), nvidia=nvidia)
    row = diagnoses(found)["gpu-too-new"]
    assert row.certainty == "likely"
    assert "a GPU is sm_120" in row.evidence
    assert "L4" not in " ".join(row.evidence)


def test_rocm_has_no_such_numbers() -> None:
    found = torch(
        "2.3.1", None, hip="6.0", arch_list=("sm_80",), cuda_devices=(TorchDevice(capability=(9, 0)),)
    )
    assert not {"gpu-too-new", "gpu-too-old"} & set(diagnoses(machine(torch=found)))


def test_a_gpu_that_wsl_blocks_is_said() -> None:
    smi = Smi(state="failed", error="Failed to initialize NVML: GPU access blocked by the operating system")
    found = machine(system=linux(wsl=True), dxg=True, nvidia=Nvidia(smi=smi, libcuda=Libcuda(found=True)))
    assert "the GPU is blocked" in diagnoses(found)["wsl-without-gpu"].evidence
