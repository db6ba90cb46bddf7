"""One imported name: what importing and calling it can do.

`dangerous.json` names modules that a checkpoint has no honest use for (processes, files, code, the network),
modules that are as dangerous inside of another (`torch.serialization.os.system`), and single functions.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Literal

from inspector.records import dataclass
from inspector.safety.allowlist import default_allow_list
from inspector.safety.python2 import present_name

GlobalVerdict = Literal["tensor", "allowed", "unknown", "dangerous"]


@dataclass(frozen=True, slots=True)
class Dangers:
    """The lists of `dangerous.json`.

    Attributes:
        modules: Top-level modules.
        inside: Modules and attributes anywhere behind the first step of a name.
        names: Dotted names.
    """

    modules: frozenset[str]
    inside: frozenset[str]
    names: frozenset[str]


@cache
def known_dangers() -> Dangers:
    """Read the lists that come with the program."""
    document = json.loads(Path(__file__).with_name("dangerous.json").read_text(encoding="utf-8"))
    return Dangers(*(frozenset(document[part]) for part in ("modules", "inside", "names")))


def judge_global(name: str) -> GlobalVerdict:
    """Judge one dotted name."""
    present = present_name(name)
    if present in default_allow_list().names:
        return "tensor" if present.startswith("torch.") else "allowed"
    return "dangerous" if is_dangerous(name) or is_dangerous(present) else "unknown"


def is_dangerous(name: str) -> bool:
    """Say whether a dotted name gives more than an object of its own kind."""
    dangers = known_dangers()
    first, *steps = name.split(".")
    if first in dangers.modules or name in dangers.names or not dangers.inside.isdisjoint(steps):
        return True
    # `Tensor.__init__.__globals__`; copyreg's own functions are spelled so and harmless.
    return first not in {"copyreg", "copy_reg"} and any(_is_dunder(step) for step in steps)


def _is_dunder(step: str) -> bool:
    return step.startswith("__") and step.endswith("__")
