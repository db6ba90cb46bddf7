"""A map and a machine become rules and a plan; `tests/unit/cli/test_mapping.py` has the same by options."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.remap.plan import device_map, plan_for, refuse_other_than_devices, rules_for
from inspector.remap.rules import parse_rule
from inspector.resources import demo_path
from inspector.target.profile import CPU_ONLY, Profile
from tests.unit.remap.samples import CUDA_0, mapping, stream, tensor, text, written, zip_of

MPS = Profile(id="mps", label="a Mac", accelerators=(("mps", 1),))


def no_probe() -> Profile:
    raise AssertionError


def test_without_a_map_and_a_machine_all_goes_to_the_cpu() -> None:
    checkpoint = open_checkpoint(str(demo_path()))
    assert rules_for(checkpoint, (), None) == (parse_rule("*=cpu"),)
    said = (parse_rule("cuda:1=cuda:0"),)
    assert rules_for(checkpoint, said, None) == said
    assert rules_for(checkpoint, said, lambda: CPU_ONLY)[:1] == said
    assert len(rules_for(checkpoint, said, lambda: CPU_ONLY)) == 3


def test_a_rule_that_matches_nothing_is_told_before_a_machine_is_probed() -> None:
    with pytest.raises(PlanError, match="matches nothing"):
        rules_for(open_checkpoint(str(demo_path())), (parse_rule("xpu:0=cpu"),), no_probe)


def test_what_else_moves_is_asked_for(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(stream(mapping(d=CUDA_0, t=tensor(text("cpu")))), {"0": bytes(16)}))
    hidden = open_checkpoint(str(path))
    assert plan_for(hidden, (), None).hidden == {}
    assert plan_for(hidden, (), None, hidden=True).hidden == {0: "cpu"}
    assert plan_for(hidden, (), lambda: MPS, hidden=True).hidden == {0: "mps"}
    demo = open_checkpoint(str(demo_path()))
    every = (parse_rule("*=cuda:0"),)
    assert plan_for(demo, every, None).kept
    assert not plan_for(demo, every, None, move_all=True).kept


def test_loading_code_maps_devices_only() -> None:
    demo = open_checkpoint(str(demo_path()))
    said = (parse_rule("cuda:1=cuda:0"),)
    refuse_other_than_devices(said)
    assert device_map(demo, said) == (("cuda:1", "cuda:0"),)
    with pytest.raises(PlanError, match="not paths"):
        refuse_other_than_devices((*said, parse_rule("path:model/**@cpu")))
    with pytest.raises(PlanError, match="matches nothing"):
        device_map(demo, (parse_rule("xpu:1=cpu"),))
