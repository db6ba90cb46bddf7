"""Map rules for devices and for single branches of a checkpoint, as findings offer them."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from inspector.model.findings import Fix
from inspector.model.roles.devices import is_destination

_NO_GLOB = frozenset("*?")


def devices_fix(devices: Sequence[str], to: str) -> Fix | None:
    """Return the rule that maps these devices, or None for tags that no rule can name."""
    kinds = {name.partition(":")[0] for name in devices}
    if len(kinds) > 1:
        return Fix(rule=f"*={to}")
    pattern = devices[0] if len(devices) == 1 else f"{kinds.pop()}:*"
    writable = pattern and "=" not in pattern and not pattern.startswith("path:")
    return Fix(rule=f"{pattern}={to}") if writable else None


def branch_fix(paths: Collection[str], to: str) -> Fix | None:
    """Return the rule that sends these tensors to a device, or None where one rule cannot name them.

    One tensor is named by its path. Several are named by their last step where they share it, as the slots
    of an optimizer do.
    """
    last = {path.rpartition("/")[2] for path in paths}
    if len(last) != 1 or not is_destination(to):
        return None
    pattern = next(iter(paths)) if len(paths) == 1 else f"**/{last.pop()}"
    wild = _NO_GLOB & set(pattern.removeprefix("**/"))
    return None if wild or not pattern else Fix(rule=f"path:{pattern}@{to}")
