"""Machines that a checkpoint may be loaded on."""

from __future__ import annotations

from inspector.records import replace
from inspector.target.profile import CPU_ONLY, Profile, preset_of
from inspector.target.wish import parse_target
from tests.sweep import table


@table(
    ("text", "devices"),
    [
        ("cpu", ("cpu",)),
        ("cuda", ("cuda:0", "cpu")),
        ("2xcuda", ("cuda:0", "cuda:1", "cpu")),
        ("3xcuda", ("cuda:0", "cuda:1", "cuda:2", "cpu")),
        ("mps", ("mps", "cpu")),
        ("xpu", ("xpu:0", "cpu")),
        ("rocm", ("cuda:0", "cpu")),
    ],
)
def test_words_for_machines(text: str, devices: tuple[str, ...]) -> None:
    assert parse_target(text).devices == devices


def test_what_a_machine_offers() -> None:
    machine = Profile(
        id="x",
        label="x",
        accelerators=(("cuda", 2), ("mps", 1)),
    )
    assert machine.devices == ("cuda:0", "cuda:1", "mps", "cpu")
    assert machine.offers("cuda", 1)
    assert machine.offers("cuda", None)
    assert not machine.offers("cuda", 2)
    assert machine.offers("mps", None)
    assert machine.offers("meta", None)
    assert not machine.offers("xpu", None)
    assert not CPU_ONLY.offers("cuda", None)
    assert not machine.offers("npu", 0)


def test_where_things_go() -> None:
    two = Profile(id="x", label="x", accelerators=(("cuda", 2),))
    assert two.destination == "cuda:0"
    assert replace(two, wanted="cuda:1").destination == "cuda:1"
    assert CPU_ONLY.destination == "cpu"


def test_machines_by_type_and_number() -> None:
    made = {
        (name, count): preset_of(name, count)
        for name in ("cpu", "cuda", "mps", "xpu", "rocm")
        for count in (1, 2)
    }
    labels = {key: None if machine is None else (machine.id, machine.label) for key, machine in made.items()}
    assert labels == {
        ("cpu", 1): ("cpu", "CPU only"),
        ("cpu", 2): None,
        ("cuda", 1): ("cuda", "1 NVIDIA GPU"),
        ("cuda", 2): ("2xcuda", "2 NVIDIA GPUs"),
        ("mps", 1): ("mps", "Apple silicon"),
        ("mps", 2): None,
        ("xpu", 1): ("xpu", "Intel GPU (XPU)"),
        ("xpu", 2): ("2xxpu", "2 Intel GPUs (XPU)"),
        ("rocm", 1): ("rocm", "1 AMD GPU (ROCm)"),
        ("rocm", 2): ("2xrocm", "2 AMD GPUs (ROCm)"),
    }
    assert [preset_of(name, 1) for name in ("", "tpu", "hpu", "meta")] == [None] * 4
