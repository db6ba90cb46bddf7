"""The GPU doctor on machines as people reported them, each with the diagnosis that helped."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from inspector.doctor.diagnosis import causes
from inspector.doctor.examine import examine
from inspector.model.findings import SEVERITIES
from inspector.records import replace
from inspector.target.evidence import Evidence, Python, TorchDevice, TorchFound
from inspector.target.profile import presets
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.diagnose.machines import PROFILES, diagnoses, driver, linux, machine, torch

PYTORCH = "https://github.com/pytorch/pytorch/issues/"


@dataclass(frozen=True, kw_only=True)
class Report:
    """A profile, the diagnoses it must get (worst first), words of the first one, and who met it."""

    name: str
    ids: list[str]
    certainty: str = "certain"
    says: str
    step: str | None
    source: str = ""


REPORTS = [
    Report(
        name="works-4090-with-other-toolkits",
        ids=["gpu-works", "toolkit-does-not-matter"],
        says="cuda:0",
        step=None,
    ),
    Report(
        name="works-gb10-newer-than-its-code",
        ids=["gpu-works"],
        says="cuda:0",
        step=None,
        source=f"{PYTORCH}172629",
    ),
    Report(name="works-apple-m2", ids=["gpu-works"], says="mps", step=None),
    Report(name="works-one-of-two-3090", ids=["gpu-works", "some-devices-hidden"], says="cuda:0", step=None),
    Report(
        name="no-gpu-at-all", ids=["no-gpu"], says="Nothing is broken", step=None, source=f"{PYTORCH}74733"
    ),
    Report(name="cpu-only-windows", ids=["cpu-only-torch"], says="no GPU code", step="whl/cu1(26|28)"),
    Report(name="cpu-only-conda", ids=["cpu-only-torch"], says="no GPU code", step="whl/cu126"),
    Report(name="no-driver-ubuntu", ids=["no-driver"], says="NVIDIA's driver", step="ubuntu-drivers install"),
    Report(
        name="driver-not-running-new-kernel",
        ids=["driver-not-running"],
        says="kernel update",
        step="modprobe nvidia",
        source=f"{PYTORCH}67991",
    ),
    Report(
        name="driver-too-old-470",
        ids=["driver-too-old"],
        says="a state dict contains no CUDA version",
        step="525.60.13 or newer",
        source="https://github.com/weaviate/Verba/issues/72",
    ),
    Report(
        name="driver-too-old-for-cuda-13",
        ids=["driver-too-old"],
        says="built for CUDA 13.0",
        step="580 or newer",
        source="https://github.com/pytorch/pytorch/pull/162531",
    ),
    Report(
        name="driver-mismatch",
        ids=["driver-mismatch"],
        says="another version",
        step="reboot",
        source="https://github.com/mozilla/translations/issues/1167",
    ),
    Report(
        name="hidden-by-empty-variable",
        ids=["devices-hidden"],
        says="none is left",
        step="unset CUDA_VISIBLE_DEVICES",
    ),
    Report(name="hidden-by-index-out-of-range", ids=["devices-hidden"], says="counted from 0", step="=0"),
    Report(
        name="docker-without-gpus", ids=["no-device-nodes"], says="not passed", step="docker run --gpus all"
    ),
    Report(
        name="gpu-too-new-5080-windows",
        ids=["gpu-too-new"],
        says="no kernel image is available",
        step="whl/cu128",
        source="https://github.com/RetroUpgrade-YouTube/Hi3DGen_1Click_installer/issues/5",
    ),
    Report(
        name="gpu-too-old-1080",
        ids=["gpu-too-old"],
        says="no kernel image is available",
        step="whl/cu126",
        source="https://github.com/pytorch/pytorch/pull/158700",
    ),
    Report(
        name="forward-compatibility-3090",
        ids=["forward-compatibility", "toolkit-does-not-matter"],
        says="cuda-compat",
        step="update the NVIDIA driver",
        source="https://github.com/PKU-YuanGroup/Video-LLaVA/issues/22",
    ),
    Report(
        name="fabric-manager-h200",
        ids=["fabric-manager"],
        says="NVSwitch",
        step="nvidia-fabricmanager",
        source="https://github.com/huggingface/huggingface_hub/issues/4128",
    ),
    Report(
        name="wsl-blocked",
        ids=["wsl-without-gpu"],
        says="Do not install a Linux driver inside WSL",
        step="wsl --update",
        source="https://github.com/microsoft/WSL/issues/9938",
    ),
    Report(
        name="unknown-error-after-sleep",
        ids=["cuda-unknown-error"],
        certainty="likely",
        says="suspended",
        step="modprobe nvidia_uvm",
        source=f"{PYTORCH}159954",
    ),
    Report(
        name="no-permission-cluster",
        ids=["no-permission"],
        says="may not open its device files",
        step="--gres=gpu:1",
    ),
    Report(
        name="mig-without-slice",
        ids=["mig-slices"],
        certainty="likely",
        says="instance",
        step="MIG-",
        source=f"{PYTORCH}95784",
    ),
    Report(
        name="rocm-no-permission",
        ids=["rocm-no-permission"],
        says="render",
        step="usermod -aG render,video",
        source="https://github.com/ROCm/legacy-rocm-build/issues/2838",
    ),
    Report(
        name="rocm-gpu-unsupported",
        ids=["rocm-gpu-unsupported"],
        certainty="likely",
        says="compiled for other chips",
        step="HSA_OVERRIDE_GFX_VERSION=10.3.0",
        source="https://github.com/lllyasviel/Fooocus/issues/1079",
    ),
    Report(name="mps-rosetta", ids=["mps-rosetta"], says="Rosetta", step="arm64", source=f"{PYTORCH}146236"),
    Report(
        name="mps-macos-too-old",
        ids=["mps-macos-too-old"],
        says="macOS 12.3",
        step="12.3",
        source=f"{PYTORCH}78343",
    ),
    Report(
        name="xpu-container-without-device",
        ids=["xpu-driver-missing"],
        certainty="likely",
        says="render node was not found",
        step="--device /dev/dri",
        source="https://github.com/open-edge-platform/geti/issues/5387",
    ),
    Report(
        name="jetson-cpu-torch",
        ids=["jetson-cpu-torch"],
        says="builds for each JetPack",
        step="jp6/cu126",
        source="https://forums.developer.nvidia.com/t/72048",
    ),
    Report(
        name="jetson-build-for-servers",
        ids=["gpu-too-new"],
        says="compiled for other chips",
        step="jp6/cu126",
        source="https://github.com/conda-forge/pytorch-cpu-feedstock/issues/303",
    ),
    Report(
        name="jetson-thor-cu128",
        ids=["gpu-too-new"],
        says="compiled for other chips",
        step="whl/cu130",
        source="https://github.com/OpenRAL/openral/pull/167",
    ),
    Report(
        name="gb200-torch-of-pypi",
        ids=["cpu-only-torch"],
        says="no GPU code",
        step="whl/cu130",
        source=f"{PYTORCH}168065",
    ),
    Report(
        name="mps-macos-12-torch-2.5",
        ids=["mps-macos-too-old"],
        says="macOS 13.0",
        step="13.0",
        source=f"{PYTORCH}139425",
    ),
    Report(name="torch-broken-windows", ids=["torch-broken"], says="Visual C++ runtime", step="vc_redist"),
    Report(
        name="torch-missing",
        ids=["torch-missing"],
        says="another environment",
        step="pip install torch --index-url",
    ),
    Report(
        name="several-torches",
        ids=["several-torches", "gpu-works"],
        certainty="likely",
        says="order of sys.path",
        step="pip uninstall",
    ),
]


def test_a_recorded_machine_gets_its_diagnosis() -> None:
    for report in REPORTS:
        found = examine(parse_target(str(PROFILES / f"{report.name}.json")))
        assert [diagnosis.id for diagnosis in found] == report.ids, report.name
        first = found[0]
        assert first.certainty == report.certainty, report.name
        assert report.says in first.explanation, report.name
        assert first.evidence, report.name
        if report.step is None:
            assert (first.severity, first.steps) == ("note", ()), report.name
        else:
            assert first.severity in {"error", "warning"}, report.name
            assert re.search(report.step, "\n".join(first.steps)), report.name


def test_every_recorded_machine_is_in_the_table() -> None:
    assert sorted(report.name for report in REPORTS) == sorted(path.stem for path in PROFILES.glob("*.json"))


def test_recorded_machines_tell_nobody_s_name() -> None:
    private = re.compile(
        r"/home/|/Users/|\\\\Users|(GPU|MIG)-[0-9a-f]{4}|\d+\.\d+\.\d+\.\d+[^-\d.]|serial|uuid\""
    )
    for path in sorted(PROFILES.glob("*.json")):
        text = path.read_text()
        assert not private.search(text), path.stem
        assert text == json.dumps(json.loads(text), indent=1) + "\n", path.stem


def test_every_diagnosis_is_met_by_some_test() -> None:
    """A new rule comes with a machine that has it: here, or in the tests of its own module."""
    tests = "".join(file.read_text() for file in Path(__file__).parent.glob("test_*.py"))
    assert {name for name in causes() if f'"{name}"' not in tests} == set()


def test_a_machine_that_nobody_probed_has_nothing_to_examine() -> None:
    assert [examine(preset) for preset in presets()] == [()] * len(presets())


def test_the_worst_comes_first_and_then_the_surest() -> None:
    messages = ("CUDA unknown error", "The NVIDIA driver on your system is too old (found version 11040)")
    found = machine(torch=torch(cuda_messages=messages), nvidia=driver("470.1"), toolkits=("9.0",))
    rows = list(diagnoses(found).values())
    ranks = [(SEVERITIES.index(row.severity), row.certainty != "certain") for row in rows]
    assert ranks == sorted(ranks)
    assert [row.id for row in rows] == ["driver-too-old", "cuda-unknown-error", "toolkit-does-not-matter"]


def test_what_fits_no_rule_says_what_was_looked_at() -> None:
    found = diagnoses(machine(nvidia=driver(), torch=torch(cuda_messages=("something new",))))
    (row,) = found.values()
    assert (row.id, row.severity, row.certainty) == ("cuda-unexplained", "error", "possible")
    assert "it said: something new" in row.evidence
    assert "nvidia-smi" in row.steps


def test_a_container_may_hide_a_gpu_of_its_host() -> None:
    row = diagnoses(machine(system=linux(container="docker")))["no-gpu"]
    assert "--gpus all" in row.explanation
    assert row.certainty == "likely"


def test_a_gaudi_is_a_gpu() -> None:
    row = diagnoses(machine(torch=torch("2.5.1", None, hpu=True)))["gpu-works"]
    assert "Gaudi" in row.explanation


def test_gpus_are_listed_with_their_memory() -> None:
    devices = (TorchDevice(name="L4", memory_nbytes=24 << 30), TorchDevice())
    found = machine(torch=torch(cuda_available=True, cuda_count=2, cuda_devices=devices))
    assert diagnoses(found)["gpu-works"].evidence[1:] == ("cuda:0: L4, 25.8 GB", "cuda:1: no name")


@table(
    ("state", "says"),
    [
        ("failed", "raises an error"),
        ("crashed", "crashes Python"),
        ("timeout", "does not finish"),
    ],
)
def test_a_torch_that_does_not_start(state: str, says: str) -> None:
    found = TorchFound(state=state, error="because")
    row = diagnoses(machine(torch=found, python=Python(version="3.11.9")))["torch-broken"]
    assert says in row.explanation
    assert row.evidence == ("Python 3.11.9", "it said: because")
    assert not any("vc_redist" in step for step in row.steps)


@table(
    ("python", "says"),
    [
        (Python(version="3.11.9", implementation="CPython", bits=64), None),
        (Python(version="3.14.0", implementation="CPython", bits=64), None),
        (Python(), None),
        (Python(version="3.11.9", bits=32), "32 bits"),
        (Python(version="3.10.14", implementation="PyPy", bits=64), "PyPy"),
        (Python(version="3.15.0", implementation="CPython", bits=64), "builds up to 3.14"),
    ],
)
def test_pythons_that_no_torch_is_built_for(python: Python, says: str | None) -> None:
    row = diagnoses(machine(torch=TorchFound(state="missing"), python=python))["torch-missing"]
    assert row.explanation.endswith("runs your program.") is (says is None)
    assert says is None or says in row.explanation


@table(
    ("found", "step"),
    [
        (machine(), "pip install torch"),
        (machine(cards=("amd",)), "pip install torch"),
        (machine(cards=("nvidia",)), "pip install torch --index-url https://download.pytorch.org/whl/cu130"),
        (
            machine(system=linux(machine="aarch64", release="5.15.1-tegra")),
            "pip install torch --index-url https://pypi.jetson-ai-lab.io/jp6/cu126",
        ),
    ],
)
def test_a_first_torch_is_one_for_the_gpu(found: Evidence, step: str) -> None:
    """On Windows and Arm, PyPI has builds without CUDA only, or had."""
    row = diagnoses(replace(found, torch=TorchFound(state="missing")))["torch-missing"]
    assert row.steps[1] == step


@table(
    ("packages", "step"),
    [
        ((), "pip install --force-reinstall torch"),
        ((("torch", ("2.5.1",)),), "pip install --force-reinstall torch==2.5.1"),
        (
            (("torch", ("2.5.1+cu121",)),),
            "pip install --force-reinstall torch==2.5.1 --index-url https://download.pytorch.org/whl/cu121",
        ),
        (
            (("torch", ("2.6.0+rocm6.2.4",)),),
            "pip install --force-reinstall torch==2.6.0 --index-url https://download.pytorch.org/whl/rocm6.2.4",
        ),
        ((("torch", ("2.5; rm -rf ~",)),), "pip install --force-reinstall torch"),
        ((("torch", ("2.5.0a0+872d972e41.nv24.8",)),), "pip install --force-reinstall torch"),
        ((("conda:pytorch", ("2.5.1 x",)), ("torch", ("2.5.1",))), "conda install --force-reinstall pytorch"),
    ],
)
def test_the_same_build_is_installed_again(
    packages: tuple[tuple[str, tuple[str, ...]], ...], step: str
) -> None:
    """From PyPI, Windows would get a torch without CUDA in place of a broken one with it."""
    found = machine(torch=TorchFound(state="crashed"), packages=packages)
    assert step in diagnoses(found)["torch-broken"].steps


@table(
    ("packages", "is_met"),
    [
        ((("torch", ("2.5.1",)),), False),
        ((("torch", ("2.4.0", "2.5.1")),), True),
        ((("conda:pytorch", ("2.5.1 py3.11_cuda12.4_cudnn9.1.0_0",)), ("torch", ("2.5.1",))), False),
        ((("conda:pytorch", ("2.5.1 py3.11_cpu_0",)), ("torch", ("2.4.0+cu121",))), True),
        ((("torch", ("",)), ("conda:pytorch", ("",))), False),
        ((("torchvision", ("1", "2")),), False),
    ],
)
def test_several_torches(packages: tuple[tuple[str, tuple[str, ...]], ...], is_met: bool) -> None:
    assert ("several-torches" in diagnoses(machine(packages=packages))) is is_met


@table(
    ("cuda", "toolkits", "nvcc", "is_met"),
    [
        ("12.4", (), None, False),
        ("12.4", ("12.4",), "12.4", False),
        ("12.4", ("11.8", "12.4"), None, True),
        ("12.4", (), "11.8", True),
        (None, ("11.8",), None, False),
    ],
)
def test_a_toolkit_does_not_matter(
    cuda: str | None, toolkits: tuple[str, ...], nvcc: str | None, is_met: bool
) -> None:
    found = machine(torch=torch(cuda=cuda), toolkits=toolkits, nvcc=nvcc)
    assert ("toolkit-does-not-matter" in diagnoses(found)) is is_met


@table(
    ("version", "packages", "is_met"),
    [
        ("2.5.1+cu124", (), True),
        ("2.5.1", (("conda:pytorch", ("2.5.1",)),), True),
        ("2.5.0a0+872d972e41.nv24.8", (), False),
        ("2.5.1", (), False),
    ],
)
def test_a_toolkit_matters_to_builds_that_use_it(
    version: str, packages: tuple[tuple[str, tuple[str, ...]], ...], is_met: bool
) -> None:
    """NVIDIA's for Jetson and those of Linux distributions bring no CUDA libraries."""
    found = machine(torch=torch(version), packages=packages, toolkits=("11.8",))
    assert ("toolkit-does-not-matter" in diagnoses(found)) is is_met
