"""Code for agents of Stable-Baselines3, which are loaded by the class that saved them."""

from __future__ import annotations

from inspector.errors import PlanError
from inspector.model.agents import AGENT, Algorithm, algorithm_of
from inspector.model.checkpoint import Checkpoint
from inspector.safety.verdict import judge
from inspector.snippet.device import Device
from inspector.snippet.literals import literal
from inspector.snippet.loaders.pickled import RUNS_CODE
from inspector.snippet.script import Bracketed, Script, format_code

__all__ = ["AGENT", "agent_code", "render_agent"]


def render_agent(checkpoint: Checkpoint, path: str, device: Device) -> str:
    """Write the code that loads an agent on a device."""
    if judge(checkpoint).may_harm:
        raise PlanError(
            "loading this file can run commands, and nothing keeps its loader from that",
            where=checkpoint.path,
            remedy="write its weights alone into a file that can be checked: remap -o policy.pth",
        )
    return agent_code(path, device, algorithm_of(checkpoint))


def agent_code(path: str, device: Device, found: Algorithm | None) -> str:
    """Write the code for an agent of this class; None where nothing tells which it is."""
    script = Script(uses_torch=bool(device.choice))
    name = "PPO" if found is None else found.name
    script.need(f"from {'stable_baselines3' if found is None else found.package} import {name}")
    said = "The file does not say which class saved it: put that in the place of PPO."
    if found is not None:
        said = f"The file does not name its class: by its attributes this is {name}."
    call = Bracketed(head=f"model = {name}.load(", items=(literal(path), f"device={device.code}"), tail=")")
    script.paragraph(*device.choice)
    script.paragraph(f"# {said}", RUNS_CODE, *format_code(call))
    return script.text()
