from __future__ import annotations

from inspector.doctor.diagnosis import causes
from inspector.target.evidence import SmiGpu
from tests.sweep import table
from tests.unit.diagnose.machines import diagnoses, driver, machine, torch

COUNT = (
    "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before "
    "calling NumCudaDevices() that might have already set an error? "
)
# What CUDA 12's cudaGetErrorString says, as torch has passed it on since 1.6.
MESSAGES = [
    (
        f"{COUNT}Error 802: system not yet initialized (Triggered internally at ../x.cpp:112.)",
        "fabric-manager",
    ),
    ("cuda runtime error (802) : system not yet initialized at .../THCGeneral.cpp:50", "fabric-manager"),
    (f"{COUNT}Error 804: forward compatibility was attempted on non supported HW", "forward-compatibility"),
    (
        "CUDA initialization: CUDA unknown error - this may be due to an incorrectly set up",
        "cuda-unknown-error",
    ),
    (f"{COUNT}Error 999: unknown error", "cuda-unknown-error"),
    ("CUDA driver initialization failed, you might not have a CUDA gpu.", "cuda-initialization"),
    (f"{COUNT}Error 3: initialization error", "cuda-initialization"),
    (f"{COUNT}Error 101: invalid device ordinal", "cuda-initialization"),
    ("CUDA error: all CUDA-capable devices are busy or unavailable", "gpu-busy"),
    (f"{COUNT}Error 2: out of memory", "gpu-busy"),
]


@table(("message", "id_"), MESSAGES)
def test_complaints_of_cuda_are_known(message: str, id_: str) -> None:
    row = diagnoses(machine(torch=torch(cuda_messages=("a warning", message)), nvidia=driver()))[id_]
    assert row.severity == "error"
    assert row.steps
    assert f"it said: {message}" in row.evidence


def test_every_complaint_is_met() -> None:
    assert {id_ for id_, row in causes().items() if "pattern" in row} == {id_ for _, id_ in MESSAGES}


@table("message", ["", "a warning", f"{COUNT}Error 300: invalid source", "Error 3000: x"])
def test_other_words_are_no_complaint(message: str) -> None:
    found = diagnoses(machine(torch=torch(cuda_messages=(message,)), nvidia=driver()))
    assert set(found) == {"cuda-unexplained"}


def test_a_complaint_of_before_does_not_matter_where_torch_works() -> None:
    found = torch(cuda_available=True, cuda_count=1, cuda_messages=("CUDA unknown error",))
    assert set(diagnoses(machine(torch=found))) == {"gpu-works"}


def test_a_gpu_in_slices() -> None:
    nvidia = driver("550.1", "12.4", SmiGpu(name="A100", mig="Enabled"), SmiGpu(name="L4", mig="[N/A]"))
    row = diagnoses(machine(nvidia=nvidia))["mig-slices"]
    assert (row.severity, row.certainty) == ("error", "likely")
    assert row.evidence[1] == "MIG is on for A100"
    working = diagnoses(machine(nvidia=nvidia, torch=torch(cuda_available=True, cuda_count=1)))
    assert (working["mig-slices"].severity, list(working)) == ("note", ["gpu-works", "mig-slices"])
    assert "mig-slices" not in diagnoses(machine(nvidia=nvidia, torch=torch("2.5.1", None)))
