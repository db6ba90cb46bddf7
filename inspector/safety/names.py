"""One imported name: what importing and calling it can do.

`dangerous.json` names modules that a checkpoint has no honest use for (processes, files, code, the network),
modules that are as dangerous inside of another (`torch.serialization.os.system`), and what is dangerous in
packages that are not. Of Python's standard library every module counts as dangerous but those that hold
numbers, texts and containers; `classes.json` has the exceptions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal

from inspector.pickles.values import MODULES, present_name
from inspector.records import dataclass

# Names that are not on torch's list and whose objects a checkpoint may bring all the same.
#
# `classes.json` is kept by hand: each row has the reason why it is harmless and the source where that was
# read. `torch_classes.json` is written by `packaging/make_classes.py`. Names are whole: nothing is told by
# how a name begins, so that `torch.nn.modules.linear.torch.load` is not taken for a class of torch's.

Uses = Literal["call", "new"]
"""`call`: harmless whatever the file calls it with. `new`: harmless as long as the file does no more than
make an object of it (NEWOBJ, BUILD) or mention it."""


@cache
def known_classes() -> dict[str, Uses]:
    """Read the tables that come with the program: how each name may be used."""
    found: dict[str, Uses] = dict.fromkeys(read_table("torch_classes.json")["names"], "new")
    for row in read_table("classes.json"):
        found |= dict.fromkeys(row["names"], row["uses"])
    return found


def read_table(file: str) -> Any:  # noqa: ANN401 - what JSON holds
    """Return one of the tables beside this module."""
    return json.loads(Path(__file__).with_name(file).read_text(encoding="utf-8"))


# What `torch.load(weights_only=True)` imports by default and which opcodes it knows, release by release.
#
# `packaging/make_allowlist.py` writes the lists from torch itself; the release they speak for is part of
# every verdict. `allowlist.json` holds the one that is asked first, `allowlists.json` how others differ
# from it.

Release = tuple[int, ...]
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){0,2}")
_TAKES_NAMES: Release = (2, 4)
_IS_DEFAULT = (2, 6)


@dataclass(frozen=True, slots=True)
class AllowList:
    """The default list of one torch version.

    Attributes:
        opcodes: The names of the opcodes that it knows; any other ends the load.
    """

    torch_version: str
    names: frozenset[str]
    opcodes: frozenset[str]

    @property
    def takes_names(self) -> bool:
        """Whether names can be added: `torch.serialization.add_safe_globals` came with torch 2.4."""
        return _release(self.torch_version) >= _TAKES_NAMES

    @property
    def is_default(self) -> bool:
        """Whether that torch asks its list unless it is told not to: since torch 2.6."""
        return _release(self.torch_version) >= _IS_DEFAULT


@cache
def default_allow_list() -> AllowList:
    """Read the list that comes with the program."""
    document = read_table("allowlist.json")
    return AllowList(document["torch"], frozenset(document["globals"]), frozenset(document["opcodes"]))


@cache
def allow_list(torch_version: str | None) -> AllowList:
    """Return the list of a torch version, or that of the newest one before it that is known.

    Args:
        torch_version: Such as `2.6.0+cu124`; None, or what is no version, for the one that comes first.
    """
    known = default_allow_list()
    match = None if torch_version is None else _VERSION.match(torch_version)
    if match is None:
        return known
    rows: list[dict[str, Any]] = read_table("allowlists.json")["others"]
    rows.append({"torch": known.torch_version})
    rows.sort(key=lambda row: _release(row["torch"]))
    wanted = _release(match[0])
    # 2.6 means any release of 2.6: the latest of those that are known.
    older = [row for row in rows if _release(row["torch"])[: len(wanted)] <= wanted]
    row = older[-1] if older else rows[0]
    return AllowList(
        torch_version=row["torch"],
        names=known.names - {*row.get("without", ())} | {*row.get("with", ())},
        opcodes=known.opcodes - {*row.get("without_opcodes", ())} | {*row.get("with_opcodes", ())},
    )


def _release(version: str) -> Release:
    return tuple(int(part) for part in version.split("."))


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
