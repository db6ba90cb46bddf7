"""The names of the library: where each is defined, and how three of them can be packages as well.

`inspector.remap` is a package of this program and a function of its library. The package is made callable
when it is imported, whoever imports it first, so that both can be had under the one name.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType

from inspector.overriding import override

TYPE_CHECKING = False  # type checkers take it for true
if TYPE_CHECKING:
    from inspect import Signature
    from typing import Any

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
    **dict.fromkeys(("Recovered", "recover"), f"{_LIBRARY}.copies.recovering"),
    **dict.fromkeys(("Remapped", "Undone", "remap", "undo"), f"{_LIBRARY}.copies.remapping"),
    **dict.fromkeys(("Global", "Safety", "Storage", "Value"), f"{_LIBRARY}.rows"),
    **dict.fromkeys(("Load", "Ran", "run"), f"{_LIBRARY}.programs"),
    **dict.fromkeys(("Scan", "scan"), f"{_LIBRARY}.numbers.scanning"),
    "snippet": f"{_LIBRARY}.snippets",
    **dict.fromkeys(("Histogram", "Statistics", "stats"), f"{_LIBRARY}.numbers.statistics"),
    "Step": f"{_LIBRARY}.telling",
    "Tensor": f"{_LIBRARY}.tensor",
    **dict.fromkeys(("Verified", "verify"), f"{_LIBRARY}.copies.verifying"),
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
    """The package `inspector`, whose packages of those names can be called."""

    @override
    def __setattr__(self, name: str, value: object) -> None:
        if name in PACKAGES and isinstance(value, ModuleType):
            value.__class__ = _Callable
        super().__setattr__(name, value)


class _Callable(ModuleType):
    """A package that is a function of the library as well; it has the function's signature and docstring."""

    def __call__(self, *given: object, **named: object) -> object:
        return _function(self)(*given, **named)

    @override
    def __reduce__(self) -> tuple[object, tuple[str]]:
        """Be found by name in another process, as any function is: modules are not pickled."""
        return import_module, (self.__name__,)

    @property
    @override
    def __doc__(self) -> str | None:  # type: ignore[override]
        doc: str | None = _function(self).__doc__
        return doc

    @property
    def __signature__(self) -> Signature:
        from inspect import signature  # noqa: PLC0415 - it takes as long to import as all else here

        return signature(_function(self))


def _function(package: ModuleType) -> Any:  # noqa: ANN401 - each has a signature of its own
    name = package.__name__.rpartition(".")[2]
    return getattr(import_module(HOMES[name]), name)


def find(name: str) -> object:
    """Return what a name of the library means; what `from inspector import NAME` and `inspector.NAME` ask.

    Raises:
        AttributeError: The library has no such name.
    """
    if name in PACKAGES:
        return import_module(f"{_ROOT}.{name}")
    if name not in HOMES:
        raise AttributeError(f"module {_ROOT!r} has no attribute {name!r}", name=name, obj=_package())
    found = getattr(import_module(HOMES[name]), name)
    setattr(_package(), name, found)
    return found


def listed() -> list[str]:
    """Return what `dir(inspector)` shows: what there is, and what would be imported when it is used."""
    return sorted({*vars(_package()), *HOMES})


def _package() -> ModuleType:
    return sys.modules[_ROOT]
