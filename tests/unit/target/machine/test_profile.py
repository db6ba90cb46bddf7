"""Machines that a checkpoint may be loaded on."""

from __future__ import annotations

import pytest

from inspector.errors import ContainerError, PlanError
from inspector.target.machine.profile import CPU_ONLY, Profile, parse_target, presets


@pytest.mark.parametrize(
    ("text", "devices"),
    [
        ("cpu", ("cpu",)),
        ("cuda", ("cuda:0", "cpu")),
        ("cuda:2", ("cuda:0", "cuda:1", "cpu")),
        ("cuda:3", ("cuda:0", "cuda:1", "cuda:2", "cpu")),
        ("mps", ("mps", "cpu")),
        ("xpu", ("xpu:0", "cpu")),
        ("rocm", ("cuda:0", "cpu")),
    ],
)
def test_words_for_machines(text: str, devices: tuple[str, ...]) -> None:
    assert parse_target(text).devices == devices


@pytest.mark.parametrize("text", ["", "gpu", "cuda:0", "cuda:65", "cuda:x", "cuda:\u0663", "tpu:1", "this"])
def test_words_for_none(text: str) -> None:
    with pytest.raises(PlanError, match="unknown target"):
        parse_target(text)


def test_a_word_wins_over_a_file(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("cpu", "cuda:7", "far"):
        (tmp_path / name).write_text('{"checkpoint_inspector_profile": 1}')
    assert parse_target("cpu") is CPU_ONLY
    assert parse_target("cuda:7").accelerators == (("cuda", 7),)
    assert parse_target("far").label == "far (CPU only)"


def test_a_profile_that_is_missing_is_no_wrong_word() -> None:
    with pytest.raises(ContainerError, match="no such file"):
        parse_target("missing.json")


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


def test_ids_of_presets_are_words_for_them() -> None:
    assert [parse_target(preset.id) for preset in presets()] == list(presets())
