"""One imported name: what importing and calling it can do.

`dangerous.json` names modules that a checkpoint has no honest use for (processes, files, code, the network),
modules that are as dangerous inside of another (`torch.serialization.os.system`), and what is dangerous in
packages that are not. Of Python's standard library every module counts as dangerous but those that hold
numbers, texts and containers; `classes.json` has the exceptions.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Literal

from inspector.pickles.values import MODULES, present_name
from inspector.records import dataclass
from inspector.safety.allowlist import default_allow_list
from inspector.safety.classes import known_classes, read_table

_MOST_NAMED = 8
GlobalVerdict = Literal["tensor", "allowed", "unknown", "dangerous"]


@dataclass(frozen=True, slots=True)
class Dangers:
    """The lists of `dangerous.json`.

    Attributes:
        inside: Modules and attributes anywhere behind the first step of a name.
        names: Dotted names of modules, classes and functions, with everything below them.
        closed: Packages, not dangerous as such, of which nothing but known classes is ever to be allowed.
    """

    modules: frozenset[str]
    inside: frozenset[str]
    names: frozenset[str]
    closed: frozenset[str]


@cache
def known_dangers() -> Dangers:
    """Read the lists that come with the program."""
    document = read_table("dangerous.json")
    return Dangers(*(frozenset(document[part]) for part in ("modules", "inside", "names", "closed")))


@cache
def standard_modules() -> frozenset[str]:
    """Return the top-level modules of the standard library, of Python 3.11 to 3.14 and 2.7 together.

    `sys.stdlib_module_names` would depend on the Python that runs this program.
    """
    return frozenset(read_table("stdlib.json"))


def judge_global(name: str) -> GlobalVerdict:
    """Judge one dotted name."""
    present = present_name(name)
    if present in default_allow_list().names:
        return "tensor" if present.startswith("torch.") else "allowed"
    return "dangerous" if is_dangerous(name) or is_dangerous(present) else "unknown"


def is_dangerous(name: str) -> bool:
    """Return whether a dotted name gives more than an object of its own kind."""
    if name in known_classes():
        return False
    dangers = known_dangers()
    first, *steps = name.split(".")
    if first in dangers.modules or not dangers.names.isdisjoint(_beginnings(name)):
        return True
    # Modules import each other under private names: `random._os.system`.
    if not dangers.inside.isdisjoint(step.lstrip("_") for step in steps) or not dangers.inside.isdisjoint(
        steps
    ):
        return True
    # `Tensor.__init__.__globals__`; copyreg's own functions are spelled so and harmless.
    return MODULES.get(first, first) != "copyreg" and any(_is_dunder(step) for step in steps)


def _beginnings(name: str) -> Iterator[str]:
    """Return a dotted name and all that it lies in: `a`, `a.b`, `a.b.c`."""
    end = name.find(".")
    while end >= 0:
        yield name[:end]
        end = name.find(".", end + 1)
    yield name


def _is_dunder(step: str) -> bool:
    return step.startswith("__") and step.endswith("__")


def listed(names: Sequence[str]) -> str:
    """Return names as part of a sentence, the first few of many."""
    more = len(names) - _MOST_NAMED
    return ", ".join(names[:_MOST_NAMED]) + (f" and {more:,} more" if more > 0 else "")
