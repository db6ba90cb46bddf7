"""Which of the names that a file needs may be offered to be put on torch's list.

Users copy our code without a second look, and what is on that list may be called by any file with any
arguments. So nothing is offered but classes: those of `classes.json`, used as it says, and classes of other
packages, of which the file merely makes objects. That a name is a class cannot be seen from a call of it, so
functions, and classes that are called, are left out; so are torch's and Python's own names but for the
tables, and packages that are full of gadgets. What remains depends on the package it is from, and that is
said.
"""

from __future__ import annotations

from collections.abc import Sequence
from keyword import iskeyword

from inspector.model.checkpoint import Checkpoint
from inspector.pickles.values import package_of, present_name
from inspector.records import dataclass
from inspector.safety.names import (
    default_allow_list,
    judge_global,
    known_classes,
    known_dangers,
    listed,
    standard_modules,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Names in the order in which they were asked for.

    Attributes:
        packages: Packages that have to be the reader's own or trusted for that: they are not in the tables.
        withheld: Names that no text and no code of this program may offer to allow.
    """

    offered: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    withheld: tuple[str, ...] = ()


def offers_for(checkpoint: Checkpoint, names: Sequence[str]) -> Offers:
    """Sort the names that are missing from torch's list, given in their present spelling.

    What a newer torch has on its own list may always be added to that of an older one.
    """
    constructed = frozenset(map(present_name, checkpoint.needs.constructed))
    called = frozenset(map(present_name, checkpoint.needs.called))
    offered = [name for name in names if _may_be_offered(name, constructed, called)]
    known = known_classes().keys() | default_allow_list().names
    packages = dict.fromkeys(package_of(name) for name in offered if name not in known)
    taken = frozenset(offered)
    return Offers(
        offered=tuple(offered),
        packages=tuple(packages),
        withheld=tuple(name for name in names if name not in taken),
    )


def withheld_reason(checkpoint: Checkpoint, names: Sequence[str]) -> str:
    """Return why names are not offered, in one sentence."""
    called = frozenset(map(present_name, checkpoint.needs.called))
    calls = [name for name in names if name in called]
    if calls:
        return f"It calls {listed(calls)} with arguments of its own, which can run code."
    return f"It refers to {listed(names)}, which may be functions, and those can run code."


def _may_be_offered(name: str, constructed: frozenset[str], called: frozenset[str]) -> bool:
    uses = known_classes().get(name)
    if uses == "call" or name in default_allow_list().names:
        return True
    if uses == "new":
        return name not in called
    return name in constructed and _is_of_another_package(name)


def _is_of_another_package(name: str) -> bool:
    """Return whether a name is neither Python's nor torch's, nor of a package known for its gadgets."""
    package = package_of(name)
    if (
        package in standard_modules()
        or package in known_dangers().closed
        or judge_global(name) == "dangerous"
    ):
        return False
    return "." in name and all(_is_plain(step) for step in name.split("."))


def _is_plain(step: str) -> bool:
    # Python reads identifiers in Unicode's NFKC form: one that is not ASCII might become another name.
    return step.isascii() and step.isidentifier() and not iskeyword(step)
