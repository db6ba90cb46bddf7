"""Findings about memory: what is said for GPUs, for the CPU, and for what nobody knows."""

from __future__ import annotations

from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Fix
from inspector.records import replace
from inspector.target.profile import Gpu, Profile
from inspector.target.wish import parse_target
from tests.sweep import table
from tests.unit.diagnose.cases import findings
from tests.unit.report.rows import checkpoint, storage, tensor

MB = 1_000_000


def machine(*, gpu: int | None, host: int | None = None, device: str = "cuda:0") -> Profile:
    gpus = (Gpu(device=device, memory_nbytes=gpu),)
    return Profile(
        id="this",
        label="this",
        accelerators=(("cuda", 1), ("xpu", 1), ("mps", 1)),
        gpus=gpus,
        memory_nbytes=host,
    )


def on(device: str, nbytes: int, **fields: object) -> Checkpoint:
    stored = storage("0", device, nbytes)._replace(file_offset=64)
    return checkpoint(stored, tensor("w", device=device, storage="0"), **fields)


@table("device", ["cuda:0", "cuda", "mps", "xpu"])
def test_what_is_too_large_for_a_gpu(device: str) -> None:
    there = {"cuda": "cuda:0", "xpu": "xpu:0"}.get(device, device)
    found = findings(on(device, 2 * MB), machine(gpu=MB, host=100 * MB, device=there))["does-not-fit"]
    assert found.severity == "error"
    assert found.paths == ("w",)
    assert f"torch.load takes 2.0 MB of {there}, which has 1.0 MB: 1.0 MB too much" in found.detail
    assert found.fix == Fix(rule=f"{device}=cpu")  # the name in the file
    assert "does-not-fit" not in findings(on(device, 2 * MB), machine(gpu=3 * MB, device=there))


def test_what_the_cpu_cannot_take_either_is_read_piece_by_piece() -> None:
    found = findings(on("cuda:0", 2 * MB), machine(gpu=MB, host=2 * MB))["does-not-fit"]
    assert found.fix == Fix(option=("mmap", "True"))
    found = findings(on("cuda:0", 2 * MB), machine(gpu=MB, host=None))["does-not-fit"]
    assert found.fix == Fix(rule="cuda:0=cpu")  # mmap would be no help to the GPU
    found = findings(on("cpu", 2 * MB), machine(gpu=None, host=MB))["does-not-fit"]
    assert found.title == "The file does not fit into the memory of the CPU"
    assert found.fix == Fix(option=("mmap", "True"))


def test_mapping_is_not_advised_where_it_fails_or_reads_noise() -> None:
    small = machine(gpu=None, host=MB)
    packed = on("cpu", 2 * MB)
    packed = replace(packed, storages=tuple(row._replace(file_offset=None) for row in packed.storages))
    for made, target in (
        (on("cpu", 2 * MB, format="legacy"), small),
        (packed, small),
        (on("cpu", 2 * MB), replace(small, torch_version="2.0.1")),
    ):
        found = findings(made, target)["does-not-fit"]
        assert found.fix is None
        assert "mmap=True cannot be used with this file." in found.detail


def test_what_fits_twice_needs_no_forecast(monkeypatch) -> None:
    from inspector.diagnose.findings import memory as rules_memory

    asked = []
    monkeypatch.setattr(rules_memory, "forecast", lambda *given: asked.append(given))
    assert "does-not-fit" not in findings(on("cuda:0", 2 * MB), machine(gpu=5 * MB, host=5 * MB))
    assert not asked


def test_what_does_not_load_needs_no_memory() -> None:
    assert "does-not-fit" not in findings(on("cuda:9", 2 * MB), machine(gpu=MB, host=MB))


@table("target", [None, "cuda:2", "cpu"])
def test_nothing_is_said_of_memory_that_is_not_known(target: str | None) -> None:
    assert "does-not-fit" not in findings(on("cuda:0", 1 << 50), target)


def test_all_ranks_for_intel_gpus() -> None:
    two = Profile(id="this", label="this", accelerators=(("xpu", 2),))
    found = findings(on("xpu:0", 100), two)["all-ranks-on-one-device"]
    assert "map_location=f'xpu:{local_rank}'" in found.detail
    assert found.severity == "note"
    assert "all-ranks-on-one-device" not in findings(on("xpu:0", 100), parse_target("xpu"))
    assert "all-ranks-on-one-device" not in findings(on("mps", 100), two)
