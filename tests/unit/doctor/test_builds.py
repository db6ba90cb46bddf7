"""Which build of torch is recommended for which machine."""

from __future__ import annotations

import pytest

from inspector.doctor.builds import BUILDS, JETSON_PAGE, PREVIOUS, build_for, install_steps, jetpack_of
from inspector.target.evidence import Evidence, Python, SmiGpu, System
from tests.sweep import table
from tests.unit.diagnose.machines import driver, linux, machine

WHEELS = "https://download.pytorch.org/whl/"
ARM = linux(machine="aarch64")
PY38, PY39, PY314 = (Python(version=version, bits=64) for version in ("3.8.20", "3.9.21", "3.14.0"))
CONDA = (("conda:pytorch", ("2.5.1 cpu",)), ("torch", ("2.5.1",)))


def with_gpus(cuda: str | None, *capabilities: tuple[int, int], **parts: object) -> Evidence:
    gpus = [SmiGpu(capability=capability) for capability in capabilities]
    return machine(**({"nvidia": driver("1", cuda, *gpus)} if cuda else {}), **parts)


def jetson(release: str, *capabilities: tuple[int, int]) -> Evidence:
    return with_gpus("12.6", *capabilities, system=linux(machine="aarch64", release=release))


@table(
    ("found", "build"),
    [
        (with_gpus("13.0", (8, 6)), "cu130"),
        (with_gpus("13.1", (8, 6)), "cu130"),
        (with_gpus("12.2", (8, 6)), "cu126"),
        (with_gpus("11.4", (8, 6)), "cu118"),
        (with_gpus("12.8", (6, 1)), "cu126"),
        (with_gpus("13.0", (7, 0)), "cu126"),
        (with_gpus("13.0", (6, 1), (8, 6)), "cu126"),
        (with_gpus("12.9", (12, 0)), "cu128"),
        (with_gpus("11.8", (12, 0)), None),
        (with_gpus("13.0", (6, 1), (12, 0)), None),
        (with_gpus("11.4", (3, 7)), "cu118"),
        (with_gpus("13.0", (3, 5)), None),
        (with_gpus("10.2"), None),
        (machine(), "cu130"),
        (with_gpus("13.0", (9, 0), system=ARM), "cu130"),
        (with_gpus("13.0", (12, 1), system=ARM), "cu130"),
        (with_gpus("13.0", (11, 0), system=ARM), "cu130"),
        (with_gpus("13.0", (11, 0)), None),
        (with_gpus("12.4", (9, 0), system=ARM), "cu126"),
        (with_gpus("12.4", (7, 5), system=ARM), None),
        (with_gpus("11.8", (8, 0), system=ARM), None),
        (with_gpus("13.0", (8, 6), system=System(os="Windows", machine="AMD64")), "cu130"),
        (with_gpus("13.0", (8, 6), system=System(os="Windows", machine="ARM64")), None),
        (with_gpus("13.0", (8, 6), python=PY39), "cu126"),
        (with_gpus("13.0", (8, 6), python=PY38), "cu118"),
        (with_gpus("11.8", (8, 6), python=PY314), None),
        (with_gpus("12.8", (12, 0), python=PY314), "cu128"),
        (with_gpus("13.0", (8, 6), python=Python(version="3.11.9", bits=32)), None),
    ],
)
def test_the_newest_torch_for_all_gpus_the_driver_and_python(found: Evidence, build: str | None) -> None:
    chosen = build_for(found)
    assert (chosen and chosen.tag) == build


@pytest.mark.torch
def test_what_builds_were_compiled_for_is_what_torch_says() -> None:
    cuda = pytest.importorskip("torch.cuda")
    table = getattr(cuda, "PYTORCH_RELEASES_CODE_CC", {})
    told = {release: {arch: sorted(rows) for arch, rows in by.items()} for release, by in table.items()}
    compared = [build for build in BUILDS if f"{build.cuda[0]}.{build.cuda[1]}" in told]
    for build in compared:
        ours = {"x86_64": build.x86, "aarch64": build.arm}
        numbers = {arch: sorted(int(name[3:]) for name in names) for arch, names in ours.items()}
        assert numbers == told[f"{build.cuda[0]}.{build.cuda[1]}"], build.tag
    assert len(compared) >= 2 or not told


@table(
    ("found", "step"),
    [
        (with_gpus("13.0"), f"pip install --force-reinstall torch --index-url {WHEELS}cu130"),
        (
            with_gpus("13.0", packages=(("torchvision", ("0.20",)), ("torch", ("2.5",)), ("torchaudio", ()))),
            f"pip install --force-reinstall torch torchvision torchaudio --index-url {WHEELS}cu130",
        ),
        (
            with_gpus("11.4", (3, 5), python=PY38),
            f"{PREVIOUS}   # a release built for sm_35, CUDA 11.4 or older, Python 3.8.20",
        ),
        (
            machine(python=Python(version="3.7.1")),
            f"{PREVIOUS}   # a release built for Python 3.7.1",
        ),
        (
            with_gpus("13.0", system=System(os="Windows", machine="ARM64")),
            f"{PREVIOUS}   # Windows on Arm has no build with CUDA: use WSL or another machine",
        ),
        (
            machine(python=Python(bits=32)),
            f"{PREVIOUS}   # torch needs a Python of 64 bits",
        ),
    ],
)
def test_how_it_is_installed(found: Evidence, step: str) -> None:
    assert install_steps(found) == (step,)


def test_what_conda_installed_conda_replaces() -> None:
    assert install_steps(with_gpus("12.4", (8, 6), packages=CONDA)) == (
        "conda install -c conda-forge pytorch-gpu",
        f"or in a new environment: pip install torch --index-url {WHEELS}cu126",
    )


@table(
    ("release", "jetpack", "index"),
    [
        ("4.9.337-tegra", 4, None),
        ("5.10.120-tegra", 5, None),
        ("5.15.148-tegra", 6, "https://pypi.jetson-ai-lab.io/jp6/cu126"),
        ("6.8.12-tegra", 7, f"{WHEELS}cu130   # on a Jetson Thor"),
        ("7.1.0-tegra", None, None),
        ("tegra", None, None),
    ],
)
def test_a_jetson_takes_the_builds_of_its_jetpack(
    release: str, jetpack: int | None, index: str | None
) -> None:
    found = jetson(release, (8, 7))
    assert jetpack_of(found) == jetpack
    steps = install_steps(found)
    assert steps[-1].startswith(JETSON_PAGE)
    assert steps[:-1] == (
        () if index is None else (f"pip install --force-reinstall torch --index-url {index}",)
    )
