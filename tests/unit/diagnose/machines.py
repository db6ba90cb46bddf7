"""Small machines for the rules of the GPU doctor."""

from __future__ import annotations

from pathlib import Path

from inspector.doctor.diagnosis import Diagnosis
from inspector.doctor.examine import examine
from inspector.target.evidence import Evidence, Libcuda, Node, Nvidia, Smi, SmiGpu, System, TorchFound
from inspector.target.profile_file import build_profile

PROFILES = Path(__file__).parents[2] / "data" / "profiles"


def torch(version: str = "2.5.1+cu124", cuda: str | None = "12.4", **more: object) -> TorchFound:
    """A torch that finds no GPU."""
    return TorchFound(
        **{"state": "imported", "version": version, "cuda": cuda, "cuda_available": False, **more}
    )


def linux(**more: object) -> System:
    return System(**{"os": "Linux", "release": "6.8.0", "machine": "x86_64", **more})


def driver(version: str = "550.120", cuda: str = "12.4", *gpus: SmiGpu, **more: object) -> Nvidia:
    """A driver that works, with one GPU."""
    smi = Smi(state="ok", exit_code=0, driver=version, cuda=cuda, gpus=gpus or (SmiGpu(name="L4"),))
    nodes = tuple(Node(path=f"/dev/nvidia{name}", usable=True) for name in ("0", "ctl", "-uvm"))
    found = {"smi": smi, "kernel_module": version, "libcuda": Libcuda(found=True, cuda=cuda), "nodes": nodes}
    return Nvidia(**{**found, **more})


def machine(**parts: object) -> Evidence:
    return Evidence(**{"system": linux(), "torch": torch(), **parts})


def diagnoses(found: Evidence) -> dict[str, Diagnosis]:
    rows = examine(build_profile(found, id="x", name="x"))
    named = {row.id: row for row in rows}
    assert len(named) == len(rows)
    return named
