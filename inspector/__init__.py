"""Checkpoint Inspector: opens PyTorch checkpoints without executing them, and fixes the devices they name.

    import inspector

    checkpoint = inspector.open("best.pth")
    checkpoint["model/layer1.weight"].device

`open` and the names in `__all__` are its library, and stay as CHANGELOG.md promises; every other name may
change with each release. Nothing is imported before it is used. docs/library.md describes it.
"""

from __future__ import annotations

import sys

from inspector.library import names

TYPE_CHECKING = False  # type checkers take it for true, and `typing` alone takes longer than all else here
if TYPE_CHECKING:
    from inspector.diagnose.script.answer import ScriptAnswer
    from inspector.errors import (
        CheckpointError,
        ContainerError,
        DamagedError,
        ExportError,
        NotACheckpointError,
        PickleError,
        PlanError,
        QueryError,
        TooLargeError,
        UnsupportedFormatError,
        ValuesError,
    )
    from inspector.library.checking import Check, check
    from inspector.library.checkpoint import Checkpoint
    from inspector.library.checkpoint import open as open  # noqa: A004 - not for `import *`
    from inspector.library.comparing import Diff, diff
    from inspector.library.copies import Recovered, Remapped, Undone, Verified, recover, remap, undo, verify
    from inspector.library.numbers import Histogram, Scan, Statistics, scan, stats
    from inspector.library.programs import Load, Ran, run
    from inspector.library.rows import Global, Safety, Storage, Tensor, Value
    from inspector.library.snippets import snippet
    from inspector.library.telling import Step
    from inspector.model.checkpoint import Optimizer
    from inspector.model.findings import Finding, Fix
    from inspector.model.totals import DeviceTotal
    from inspector.remap.describe import PlanRow
    from inspector.remap.forms import LeftOut

__version__ = "0.1.0"

__all__ = [
    "Check",
    "Checkpoint",
    "CheckpointError",
    "ContainerError",
    "DamagedError",
    "DeviceTotal",
    "Diff",
    "ExportError",
    "Finding",
    "Fix",
    "Global",
    "Histogram",
    "LeftOut",
    "Load",
    "NotACheckpointError",
    "Optimizer",
    "PickleError",
    "PlanError",
    "PlanRow",
    "QueryError",
    "Ran",
    "Recovered",
    "Remapped",
    "Safety",
    "Scan",
    "ScriptAnswer",
    "Statistics",
    "Step",
    "Storage",
    "Tensor",
    "TooLargeError",
    "Undone",
    "UnsupportedFormatError",
    "Value",
    "ValuesError",
    "Verified",
    "__version__",
    "check",
    "diff",
    "recover",
    "remap",
    "run",
    "scan",
    "snippet",
    "stats",
    "undo",
    "verify",
]

__getattr__ = names.find
__dir__ = names.listed
sys.modules[__name__].__class__ = names.Package
