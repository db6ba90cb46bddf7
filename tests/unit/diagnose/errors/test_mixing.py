"""Messages about tensors on different devices: is it this file that brought two together?"""

from __future__ import annotations

from inspector.model.findings import Fix
from tests.unit.diagnose.explaining import explained, on

SAME = "Expected all tensors to be on the same device, but found at least two devices, cuda:0 and cpu!"
PARALLEL = (
    "module must have its parameters and buffers on device cuda:0 (device_ids[0]) but found one of them on "
    "device: cuda:1"
)


def test_a_file_on_one_device_is_not_to_blame() -> None:
    found = explained(SAME, on(("a", "cuda:0"), ("b", "cuda:0")), id_="same-device")
    assert (found.fits, found.fix) == ("no", None)
    assert "is entirely on cuda:0" in found.here
    assert "holds no tensors" in explained(SAME, on(), id_="same-device").here


def test_data_parallel() -> None:
    found = explained(PARALLEL, on(("a", "cuda:0"), ("b", "cuda:1")), id_="data-parallel-device")
    assert (found.fits, found.paths, found.fix) == ("yes", ("b",), Fix(rule="cuda:1=cuda:0"))
    other = explained(PARALLEL, on(("a", "cuda:0")), id_="data-parallel-device")
    assert other.fits == "no"
    assert "its GPU tensors are on cuda:0" in other.here
    none = explained(PARALLEL, on(("a", "mps")), id_="data-parallel-device")
    assert none.here == "This file holds nothing on cuda:1. Your code put the model there."
    of_cpu = explained(PARALLEL.replace("cuda:1", "cpu"), on(("a", "cpu")), id_="data-parallel-device")
    assert (of_cpu.fits, of_cpu.here.partition(".")[0]) == ("unknown", "This file holds tensors on cpu")
