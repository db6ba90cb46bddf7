from __future__ import annotations

import pytest

from inspector.session.state import State
from inspector.session.targets import CUSTOM, kinds, target_of, targets_of, word_for
from inspector.target.profile import Profile
from inspector.target.wish import parse_target

MAC = Profile(id="this", label="this machine (Apple GPU)", accelerators=(("mps", 1),))


def test_targets_are_this_machine_those_used_before_and_another_one() -> None:
    choices = targets_of(State())
    assert [choice.id for choice in choices] == ["this", CUSTOM]
    assert choices[0].label == "This machine (taken as CPU only)"
    node = Profile(id="/lab/node7.json", label="node7")
    used = State(machines=(node,), profiles=("/lab/node7.json", "2xcuda@24gb", "/lab/b\udcff.json"))
    assert [(choice.id, choice.label) for choice in targets_of(used)][1:-1] == [
        ("/lab/node7.json", "node7"),
        ("2xcuda@24gb", "2 NVIDIA GPUs of 24 GB each"),
        ("/lab/b\udcff.json", "b\\udcff"),
    ]


def test_the_target_is_the_chosen_one_and_this_machine_where_that_is_gone() -> None:
    assert target_of(State(target="this", this_machine=MAC)) is MAC
    assert target_of(State(target="mps", machines=(parse_target("mps"),))).devices == ("mps", "cpu")
    assert target_of(State(target="/gone.json", this_machine=MAC)) is MAC


@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.id)
def test_every_description_is_a_machine(kind) -> None:
    one = parse_target(word_for(kind.id, 1, 24))
    assert (len(one.devices), one.label) != (0, "")
    if kind.is_counted:
        assert len(parse_target(word_for(kind.id, 8, 80)).devices) == 9
        assert parse_target(word_for(kind.id, 2, 0)).gpus == ()


def test_the_kinds_have_names_that_people_use() -> None:
    assert [(kind.id, kind.label) for kind in kinds()] == [
        ("cuda", "NVIDIA GPU"),
        ("mps", "Apple silicon"),
        ("xpu", "Intel GPU (XPU)"),
        ("rocm", "AMD GPU (ROCm)"),
        ("cpu", "CPU only"),
    ]
