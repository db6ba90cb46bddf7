from __future__ import annotations

import ast
from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.snippet.device import choose_device, fixed_device
from inspector.snippet.pickled import agent_code, render_agent
from inspector.snippet.styles.table import render
from inspector.snippet.unopened import render_unopened
from inspector.target.wish import parse_wish
from tests.builders.agents import agent, attributes, pickled
from tests.builders.scripts import evil
from tests.frameworks.cases import FILES

SAC = FILES / "sb3/sac_pendulum.zip"
CPU = parse_wish("cpu").machine
assert CPU is not None
HERE = replace(CPU, id="this")


def test_code_names_the_class_and_the_device() -> None:
    found = open_checkpoint(str(SAC))
    code = render_agent(found, "a'b.zip", fixed_device("cuda:1"))
    ast.parse(code)
    assert "from stable_baselines3 import SAC" in code
    assert """model = SAC.load("a'b.zip", device="cuda:1")""" in code
    assert "only if you trust its source" in code
    assert "import torch" not in code
    chosen = render_agent(found, "a.zip", choose_device(HERE))
    ast.parse(chosen)
    assert "import torch" in chosen
    assert "device=device" in chosen


def test_styles_write_it_for_the_target_or_the_one_device_of_a_mapping() -> None:
    found = open_checkpoint(str(SAC))
    assert 'device="cpu"' in render(found, style=None, target=CPU)
    mapping = (("cpu", "cuda:1"),)
    assert 'device="cuda:1"' in render(found, style="plain", target=CPU, mapping=mapping)
    two = (("cpu", "cuda:1"), ("cuda:0", "cuda:2"))
    assert 'device="cpu"' in render(found, style="plain", target=CPU, mapping=two)


def test_class_that_is_not_known_is_told(tmp_path: Path) -> None:
    code = agent_code("a.zip", fixed_device("cpu"), None)
    assert "put that in the place of PPO" in code
    assert render_unopened("stable-baselines3", "a.zip", CPU) == code
    path = tmp_path / "a.zip"
    path.write_bytes(agent(data=attributes(x=pickled(evil()))))
    with pytest.raises(PlanError, match="loading this file can run commands") as caught:
        render_agent(open_checkpoint(str(path)), "a.zip", fixed_device("cpu"))
    assert "export -o policy.pth" in caught.value.remedy
