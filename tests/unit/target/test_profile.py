"""Machines that a checkpoint may be loaded on."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inspector.errors import ContainerError, PlanError
from inspector.records import replace
from inspector.target.evidence import Evidence
from inspector.target.profile import (
    CPU_ONLY,
    Gpu,
    Profile,
    presets,
)
from inspector.target.wish import named_machine, parse_target, parse_wish
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


def test_a_word_is_the_id_of_the_machine_that_it_means() -> None:
    for word, label in (
        ("cuda@24gb", "1 NVIDIA GPU of 24 GB"),
        ("8xcuda@141gb", "8 NVIDIA GPUs of 141 GB each"),
        ("cpu@64gb", "CPU only, 64 GB of memory"),
    ):
        machine = named_machine(word)
        assert machine == replace(parse_target(word), id=word)
        assert machine.label == label
    assert [named_machine(preset.id) for preset in presets()] == list(presets())
    assert [named_machine(word) for word in ("this", "", "gpu", "/etc/cuda", "cuda.json")] == [None] * 5


PROFILES = Path(__file__).parents[2] / "data" / "profiles"
GB = 10**9
TWO = Profile(
    id="this",
    label="this machine (2 CUDA GPUs)",
    accelerators=(("cuda", 2),),
    gpus=(Gpu(device="cuda:0", name="A", memory_nbytes=GB), Gpu(device="cuda:1", name="B")),
    evidence=Evidence(),
)

# What is written, the id and the devices but for the CPU, which is wanted, memory in GB.
WORDS = {
    "cpu": ("cpu", 0, None, None),
    "cuda": ("cuda", 1, None, None),
    "CUDA": ("cuda", 1, None, None),
    "1xcuda": ("cuda", 1, None, None),
    "2xcuda": ("2xcuda", 2, None, None),
    "3XCuda": ("3xcuda", 3, None, None),
    "64xcuda": ("64xcuda", 64, None, None),
    "cuda:0": ("cuda", 1, "cuda:0", None),
    "cuda:1": ("2xcuda", 2, "cuda:1", None),
    "cuda:63": ("64xcuda", 64, "cuda:63", None),
    "2xcuda:0": ("2xcuda", 2, "cuda:0", None),
    "4xcuda:1": ("4xcuda", 4, "cuda:1", None),
    "4xcuda@cuda:1": ("4xcuda", 4, "cuda:1", None),
    "4xcuda cuda": ("4xcuda", 4, "cuda:0", None),
    "2xcuda@cpu": ("2xcuda", 2, "cpu", None),
    "cuda:1@cuda:1": ("2xcuda", 2, "cuda:1", None),
    "mps": ("mps", 1, None, None),
    "mps:0": ("mps", 1, "mps", None),
    "xpu": ("xpu", 1, None, None),
    "2xxpu:1": ("2xxpu", 2, "xpu:1", None),
    "rocm": ("rocm", 1, None, None),
    "rocm:1": ("2xrocm", 2, "cuda:1", None),
    "2xrocm@rocm:1": ("2xrocm", 2, "cuda:1", None),
    "cuda@24gb": ("cuda", 1, None, 24),
    "cuda 24gb": ("cuda", 1, None, 24),
    " cuda  @ 24 GB ": ("cuda", 1, None, 24),
    "cuda@24g": ("cuda", 1, None, 24),
    "cuda@1.5tb": ("cuda", 1, None, 1500),
    "cuda@500mb": ("cuda", 1, None, 0.5),
    "cuda@2gib": ("cuda", 1, None, 2 * 1.073741824),
    "cuda@2x80gb": ("2xcuda", 2, None, 80),
    "2xcuda@2x80gb": ("2xcuda", 2, None, 80),
    "cuda:1@80gb": ("2xcuda", 2, "cuda:1", 80),
    "cuda:1@4x80gb": ("4xcuda", 4, "cuda:1", 80),
    "2xcuda cuda:1 24gb": ("2xcuda", 2, "cuda:1", 24),
    "2xcuda@24gb@cuda:1": ("2xcuda", 2, "cuda:1", 24),
    "mps@16gb": ("mps", 1, None, 16),
}
REFUSED = {
    "": "unknown",
    "  ": "unknown",
    "gpu": "unknown",
    "24gb": "unknown",
    "tpu:1": "unknown",
    "cuda:x": "unknown",
    "cuda:\u0663": "unknown",
    "cuda:-1": "unknown",
    "cuda@": "unknown",
    "@24gb": "unknown",
    "cuda@gpu": "unknown",
    "cuda@2xcuda": "unknown",
    "cuda@24gb@12gb": "unknown",
    "2xcuda@cuda:0@cuda:1": "unknown",
    "cuda@mps:1": "unknown",
    "cuda" + "@1gb" * 9: "unknown",
    "cuda:1\n24gb": "unknown",
    "this": "unknown",
    "this:1": "unknown",
    "2xthis": "unknown",
    "0xcuda": "can have 1 to 64 GPUs",
    "65xcuda": "can have 1 to 64 GPUs",
    "cuda:64": "can have 1 to 64 GPUs",
    "2xmps": "can have one mps device",
    "3xcpu": "can have one cpu device",
    "mps:1": "can have one mps device",
    "cpu:1": "can have one cpu device",
    "mps@2x16gb": "can have one mps device",
    "4xcuda@2x80gb": "contradicts itself",
    "cuda:1@cuda:0": "contradicts itself",
    "2xcuda:2": "has no cuda:2",
    "2xcuda:7@cuda:7": "has no cuda:7",
    "cuda:3@2x80gb": "has no cuda:3",
    "cuda@cuda:1": "has no cuda:1",
    "cuda@mps": "has no mps",
    "rocm@xpu:0": "has no xpu:0",
}


def test_words() -> None:
    wrong = {}
    for text, (id_, count, wanted, memory) in WORDS.items():
        found = parse_target(text)
        sizes = {gpu.memory_nbytes for gpu in found.gpus}
        got = (found.id, len(found.devices) - 1, found.wanted, max(sizes, default=None))
        if got != (id_, count, wanted, None if memory is None else int(memory * GB)):
            wrong[text] = got
        assert len(sizes) <= 1
        assert found.destination == (wanted or found.devices[0])
    assert wrong == {}


def test_what_no_machine_is() -> None:
    said = {}
    for text in REFUSED:
        with pytest.raises(PlanError) as error:
            parse_target(text)
        said[text] = error.value.what
        assert error.value.remedy
    assert {text: what for text, what in said.items() if REFUSED[text] not in what} == {}


def test_labels_say_what_there_is() -> None:
    labels = {
        text: parse_target(text).label for text in ("cuda@24gb", "cuda@2x80gib", "mps@16gb", "cpu@1.5tb")
    }
    assert labels == {
        "cuda@24gb": "1 NVIDIA GPU of 24 GB",
        "cuda@2x80gib": "2 NVIDIA GPUs of 80 GiB each",
        "mps@16gb": "Apple silicon of 16 GB",
        "cpu@1.5tb": "CPU only, 1.5 TB of memory",
    }
    assert parse_target("mps@16gb").memory_nbytes == 16 * GB  # its GPU has no memory of its own
    assert parse_target("cpu@1.5tb").memory_nbytes == 1500 * GB
    assert parse_target("cuda@24gb").memory_nbytes is None


def test_a_word_wins_over_a_file_and_a_file_over_its_parts(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cpu", "7xcuda", "far", "far@cuda:1", "two words"):
        (tmp_path / name).write_text('{"checkpoint_inspector_profile": 1}')
    assert parse_target("cpu") is CPU_ONLY
    assert parse_target("7xcuda").accelerators == (("cuda", 7),)
    assert parse_target("far").label == "far (CPU only)"
    assert parse_target("far@cuda:1").label == "far@cuda:1 (CPU only)"
    assert parse_target("two words 8gb").memory_nbytes == 8 * GB
    with pytest.raises(
        PlanError, match=r"the target has no cuda:0: far \(CPU only\) \(its devices are cpu\)"
    ):
        parse_target("far@cuda:0")


def test_a_profile_and_what_is_wanted_of_it(tmp_path) -> None:
    path = tmp_path / "my host.json"
    shutil.copy(PROFILES / "works-4090-with-other-toolkits.json", path)
    found = parse_target(f"{path}@cuda:0@24gb")
    assert (found.id, found.wanted, found.destination) == (str(path), "cuda:0", "cuda:0")
    assert [gpu.memory_nbytes for gpu in found.gpus] == [24 * GB]
    assert found.gpus[0].name
    assert found.evidence is not None
    with pytest.raises(ContainerError, match="no such file"):
        parse_target("missing.json@cuda:1")


def test_this_machine_is_probed_when_it_is_needed() -> None:
    asked: list[str] = []

    def probe() -> Profile:
        asked.append("probe")
        return TWO

    wish = parse_wish("This @ cuda:1 @ 8gb")
    assert asked == []
    found = wish.profile(probe)
    assert asked == ["probe"]
    assert (found.id, found.wanted, [gpu.name for gpu in found.gpus]) == ("this", "cuda:1", ["A", "B"])
    assert [gpu.memory_nbytes for gpu in found.gpus] == [8 * GB, 8 * GB]
    assert parse_wish("cpu").profile(probe) is CPU_ONLY
    assert asked == ["probe"]
    with pytest.raises(PlanError, match="the target has no cuda:2"):
        parse_wish("this@cuda:2").profile(probe)
    with pytest.raises(PlanError, match=r"the target has 2 GPUs, not 4: .*\(say @80gb\)"):
        parse_wish("this@4x80gb").profile(probe)


def test_a_machine_that_was_not_probed_may_have_anything() -> None:
    unseen = Profile(id="this", label="this machine")
    assert parse_wish("this@cuda:1").profile(lambda: unseen).destination == "cuda:1"
    assert parse_wish("this@2x80gb").profile(lambda: unseen).wanted is None


def test_a_variable_that_hides_the_wanted_device_is_named() -> None:
    with pytest.raises(PlanError) as error:
        parse_target(f"{PROFILES / 'works-one-of-two-3090.json'}@cuda:1")
    assert error.value.remedy == "its devices are cuda:0, cpu; CUDA_VISIBLE_DEVICES=1 decides which are seen"
