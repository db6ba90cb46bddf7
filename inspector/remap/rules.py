"""Map rules as people write them: `cuda:1=cuda:0`, `cuda:*=cpu`, `*=cpu`, `path:optimizer/**@cpu`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from inspector.errors import PlanError
from inspector.model.devices import KNOWN_TYPES, split_device
from inspector.records import dataclass

_WITHOUT_INDEX = frozenset({"cpu", "mps"})
_MOST_INDEX = 127  # c10::DeviceIndex has 8 bits
_EXAMPLE = "write FROM=TO such as '*=cpu' or 'cuda:1=cuda:0', or path:GLOB@TO such as 'path:optimizer/**@cpu'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; the first that matches a tensor decides where it goes.

    Attributes:
        device: Pattern of the device it applies to, or None.
        path: Pattern of the paths it applies to, or None.
        to: The destination.
    """

    device: str | None = None
    path: str | None = None
    to: str

    def matches(self, device: str, paths: Iterable[str]) -> bool:
        """Say whether it applies to a tensor on `device` that is known under these paths."""
        if self.device is not None:
            return matches_device(self.device, device)
        return any(_path_regex(self.path or "").fullmatch(path) for path in paths)


def parse_rule(text: str) -> Rule:
    """Read one rule.

    Raises:
        PlanError: It is malformed, or torch would refuse its destination.
    """
    if text.startswith("path:"):
        pattern, at, to = text.removeprefix("path:").rpartition("@")
        if not at or not pattern:
            raise PlanError(f"the rule {text!r} names no destination", remedy=_EXAMPLE)
        return Rule(path=pattern, to=check_destination(to))
    device, equals, to = text.partition("=")
    if not equals or not device:
        raise PlanError(f"the rule {text!r} is not understood", remedy=_EXAMPLE)
    return Rule(device=device, to=check_destination(to))


def check_destination(device: str) -> str:
    """Give a destination back if torch can restore it somewhere.

    torch rejects `cpu:0` and `meta:0`, and a tensor sent to `meta` would lose its data.

    Raises:
        PlanError: torch would refuse it.
    """
    parts = split_device(device)
    if parts is None or parts[0] not in KNOWN_TYPES or parts[0] == "meta":
        raise PlanError(f"{device!r} is no device to map to", remedy="use cpu, cuda:0, mps, xpu:0, ...")
    kind, index = parts
    if index is not None and kind in _WITHOUT_INDEX:
        raise PlanError(f"torch refuses the device {device!r}", remedy=f"write {kind}")
    if index is not None and (index > _MOST_INDEX or device != f"{kind}:{index}"):
        raise PlanError(f"torch refuses the device {device!r}", remedy=f"write {kind}:0 or another number")
    return device


def matches_device(pattern: str, device: str) -> bool:
    """Say whether a device pattern covers a device: `*` all, `cuda:*` every CUDA device, else itself only."""
    if pattern == "*":
        return True
    if pattern.endswith(":*"):
        kind = pattern.removesuffix(":*")
        return device == kind or device.startswith(f"{kind}:")
    return is_same_device(device, pattern)


def device_destination(rules: Iterable[Rule], device: str) -> str | None:
    """Say where a device goes by the rules for devices alone; None where none applies."""
    return next(
        (rule.to for rule in rules if rule.device is not None and matches_device(rule.device, device)), None
    )


def is_same_device(one: str, other: str) -> bool:
    """Say whether two texts mean one device: a tensor on Apple's GPU is on `mps:0`, its storage on `mps`."""
    return one == other or {one, other} == {"mps", "mps:0"}


@cache
def _path_regex(pattern: str) -> re.Pattern[str]:
    """Translate a glob: `**` crosses slashes, `*` and `?` do not."""
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    translated = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    return re.compile("".join(translated.get(part) or re.escape(part) for part in parts), re.DOTALL)
