"""The names of the library: where each is defined.

`inspector.remap` is a package of this program and a function of its library. Importing the package does not
set the attribute, so that it is the function, whoever imports what first.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from inspector.overriding import override

_ROOT = "inspector"
_LIBRARY = f"{_ROOT}.library"
_ERRORS = (
    "CheckpointError ContainerError DamagedError ExportError NotACheckpointError PickleError PlanError "
    "QueryError TooLargeError UnsupportedFormatError ValuesError"
)
HOMES: dict[str, str] = {
    **dict.fromkeys(_ERRORS.split(), f"{_ROOT}.errors"),
    **dict.fromkeys(("Check", "check"), f"{_LIBRARY}.checking"),
    **dict.fromkeys(("Checkpoint", "open"), f"{_LIBRARY}.checkpoint"),
    **dict.fromkeys(("Diff", "diff"), f"{_LIBRARY}.comparing"),
    **dict.fromkeys(("Recovered", "recover"), f"{_LIBRARY}.copies"),
    **dict.fromkeys(("Remapped", "Undone", "remap", "undo"), f"{_LIBRARY}.copies"),
    **dict.fromkeys(("Global", "Safety", "Storage", "Value"), f"{_LIBRARY}.rows"),
    **dict.fromkeys(("Load", "Ran", "run"), f"{_LIBRARY}.programs"),
    **dict.fromkeys(("Scan", "scan"), f"{_LIBRARY}.numbers"),
    "snippet": f"{_LIBRARY}.snippets",
    **dict.fromkeys(("Histogram", "Statistics", "stats"), f"{_LIBRARY}.numbers"),
    "Step": f"{_LIBRARY}.telling",
    "Tensor": f"{_LIBRARY}.rows",
    **dict.fromkeys(("Verified", "verify"), f"{_LIBRARY}.copies"),
    "Optimizer": f"{_ROOT}.model.checkpoint",
    **dict.fromkeys(("Finding", "Fix"), f"{_ROOT}.model.findings"),
    "DeviceTotal": f"{_ROOT}.model.totals",
    "ScriptAnswer": f"{_ROOT}.diagnose.script.answer",
    "LeftOut": f"{_ROOT}.remap.forms",
    "PlanRow": f"{_ROOT}.remap.describe",
}
"""The module that defines each name."""

PACKAGES = frozenset({"diff", "remap", "snippet"})
"""Names of functions that packages have, too."""


class Package(ModuleType):
    """The package `inspector`."""

    @override
    def __setattr__(self, name: str, value: object) -> None:
        if name not in PACKAGES or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


def find(name: str) -> object:
    """Return what a name of the library means; what `from inspector import NAME` and `inspector.NAME` ask.

    Raises:
        AttributeError: The library has no such name.
    """
    package = sys.modules[_ROOT]
    if name not in HOMES:
        raise AttributeError(f"module {_ROOT!r} has no attribute {name!r}", name=name, obj=package)
    found = getattr(import_module(HOMES[name]), name)
    setattr(package, name, found)
    return found


def listed() -> list[str]:
    """Return what `dir(inspector)` shows: what there is, and what would be imported when it is used."""
    return sorted({*vars(sys.modules[_ROOT]), *HOMES})
