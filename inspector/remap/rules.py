"""Map rules as people write them: `cuda:1=cuda:0`, `cuda:*=cpu`, `*=cpu`, `path:optimizer/**@cpu`.

Two more kinds are written like a path: `role:optimizer@cpu` and `dtype:float64@cpu`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from functools import cache

from inspector.errors import PlanError
from inspector.model.checkpoint import ROLES, Checkpoint, Tensor, ValueRow
from inspector.model.roles.devices import DEVICE_TYPES, split_device
from inspector.model.tensors.dtypes import ITEMSIZES
from inspector.records import dataclass, replace
from inspector.units import meant, shown_path, shown_step

_KINDS = frozenset({"path", "role", "dtype"})
_APPLE_NAMES = frozenset({"mps", "mps:0"})
_DESTINATIONS = tuple(kind for kind, row in DEVICE_TYPES.items() if row.holds_data)
_MOST_INDEX = 127  # c10::DeviceIndex has 8 bits
_SPECIAL = re.compile(r"[*?]|\[(?=[*?[]\])")
_EXAMPLE = "write FROM=TO such as '*=cpu' or 'cuda:1=cuda:0', or path:GLOB@TO such as 'path:optimizer/**@cpu'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """One rule; the first that matches a tensor decides where it goes. It asks for one thing."""

    device: str | None = None
    path: str | None = None
    role: str | None = None
    dtype: str | None = None
    to: str

    def matches(
        self, device: str, paths: Iterable[str], *, role: str = "", dtypes: Collection[str] = ()
    ) -> bool:
        """Return whether it applies to a tensor on `device` that is known under these paths and dtypes."""
        if self.device is not None:
            return matches_device(self.device, device)
        if self.path is not None:
            return any(_path_regex(self.path).fullmatch(path) for path in paths)
        return self.role == role if self.role is not None else self.dtype in dtypes


def parse_rule(text: str) -> Rule:
    """Read one rule."""
    kind, colon, rest = text.partition(":")
    if colon and kind in _KINDS:
        what, at, to = rest.rpartition("@")
        if not at or not what:
            raise PlanError(f"the rule {text!r} names no destination", remedy=_EXAMPLE)
        return _rule_of(kind, what, check_destination(to))
    device, equals, to = text.partition("=")
    if not equals or not device:
        raise PlanError(f"the rule {text!r} is not understood", remedy=_EXAMPLE)
    return Rule(device=device, to=check_destination(to))


def _rule_of(kind: str, what: str, to: str) -> Rule:
    if kind == "path":
        return Rule(path=what, to=to)
    known = list(ROLES) if kind == "role" else list(ITEMSIZES)
    if what not in known:
        remedy = f"{meant(what, known)}name one such as {', '.join(known[:7])}"
        raise PlanError(f"there is no {kind} {what!r}", remedy=remedy)
    return Rule(role=what, to=to) if kind == "role" else Rule(dtype=what, to=to)


def format_rule(rule: Rule) -> str:
    """Return a rule as people write it."""
    if rule.device is not None:
        return f"{rule.device}={rule.to}"
    if rule.path is not None:
        return f"path:{rule.path}@{rule.to}"
    return f"role:{rule.role}@{rule.to}" if rule.role is not None else f"dtype:{rule.dtype}@{rule.to}"


def check_destination(device: str) -> str:
    """Return a destination if torch can restore it somewhere.

    torch rejects `cpu:0` and `meta:0`, and a tensor sent to `meta` would lose its data.
    """
    parts = split_device(device)
    row = None if parts is None else DEVICE_TYPES.get(parts[0])
    if parts is None or row is None or not row.holds_data:
        remedy = f"{_meant_device(device)}use cpu, cuda:0, mps, xpu:0, ..."
        raise PlanError(f"{device!r} is not a device to map to", remedy=remedy)
    kind, index = parts
    if index is not None and not row.is_numbered:
        raise PlanError(f"torch refuses the device {device!r}", remedy=f"write {kind}")
    if index is not None and (index > _MOST_INDEX or device != f"{kind}:{index}"):
        raise PlanError(f"torch refuses the device {device!r}", remedy=f"write {kind}:0 or another number")
    return device


def _meant_device(text: str) -> str:
    """Return the question for the device that was meant; `meta` is a type that holds no data, and no slip."""
    word, colon, number = text.partition(":")
    return "" if word in DEVICE_TYPES else meant(word, _DESTINATIONS, f"{{}}{colon}{number}")


def matches_device(pattern: str, device: str) -> bool:
    """Return whether a device pattern covers a device: `*` all, `cuda:*` all of CUDA, others one only."""
    if pattern == "*":
        return True
    if pattern.endswith(":*"):
        kind = pattern.removesuffix(":*")
        return device == kind or device.startswith(f"{kind}:")
    return is_same_device(device, pattern)


class Rules(tuple[Rule, ...]):  # noqa: SLOT001 - a tuple cannot have slots of its own
    """Rules in their order, with a lookup by device: a file can name as many devices as it has tensors."""

    def __init__(self, _: Iterable[Rule] = ()) -> None:
        self._patterns: dict[str, int] = {}
        self._others: list[int] = []
        for place, rule in enumerate(self):
            if rule.device is None:
                self._others.append(place)
            else:
                self._patterns.setdefault(rule.device, place)

    def by_device(self, device: str) -> str | None:
        """Return where a device goes by the rules for devices alone; None where none applies."""
        place = self._find_by_device(device)
        return self[place].to if place < len(self) else None

    def find_first(
        self, device: str, paths: Iterable[str], *, role: str = "", dtypes: Collection[str] = ()
    ) -> Rule | None:
        """Return the first rule that matches such a tensor, or None."""
        by_device = self._find_by_device(device)
        for place in self._others:
            if place > by_device:
                break
            if self[place].matches(device, paths, role=role, dtypes=dtypes):
                return self[place]
        return self[by_device] if by_device < len(self) else None

    def _find_by_device(self, device: str) -> int:
        """Return where the first rule stands whose device pattern covers a device, or the length."""
        return min(self._patterns.get(pattern, len(self)) for pattern in _patterns_of(device))


def _patterns_of(device: str) -> Iterator[str]:
    yield from ("*", device, f"{device}:*")
    if device in _APPLE_NAMES:
        yield from _APPLE_NAMES
    end = device.find(":")
    while end >= 0:
        yield f"{device[:end]}:*"
        end = device.find(":", end + 1)


def is_same_device(one: str, other: str) -> bool:
    """Return whether two texts mean one device: of Apple's GPU, tensors say `mps:0` and storages `mps`."""
    return one == other or {one, other} == _APPLE_NAMES


_WILD = re.compile(r"(\[[*?\[]\]|\*\*/|\*\*|\*|\?)")
_TRANSLATED = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
_NOTHING = "[]"
_LITERALS = {"[*]": "*", "[?]": "?", "[[]": "["}


def literal_pattern(path: str) -> str:
    """Return the pattern that covers this path alone: what means something in patterns stands in brackets.

    An empty key at the top has the empty path, which could not be given: `[]` stands for it.
    """
    return _NOTHING if not path else "[[]]" if path == _NOTHING else _SPECIAL.sub(r"[\g<0>]", path)


def as_meant(patterns: Iterable[str], checkpoint: Checkpoint) -> dict[str, str]:
    """Return patterns as they are meant in a file: a path that is there means itself, even with a star in it.

    So does one in quotes, as an odd path is shown. What was copied as a pattern (`a[*]` for the path `a*`)
    stays one.
    """
    found = {pattern: pattern for pattern in patterns}
    quoted = {pattern for pattern in found if pattern[-1:] == '"' or '"/' in pattern}
    plain = {pattern: path_of(pattern) for pattern in found if _SPECIAL.search(pattern)}
    asked = {*plain, *plain.values(), *quoted}
    rows: list[Tensor | ValueRow] = [*checkpoint.tensors, *checkpoint.values] if asked else []
    paths = {row.path for row in rows if row.path in asked}
    shown = {shown_path(row.path) or shown_step(""): row.path for row in rows} if quoted - paths else {}
    found |= {pattern: literal_pattern(shown[pattern]) for pattern in quoted - paths if pattern in shown}
    return found | {
        pattern: literal_pattern(pattern)
        for pattern, path in plain.items()
        if pattern in paths and path not in paths
    }


def rules_as_meant(rules: Iterable[Rule], checkpoint: Checkpoint) -> Rules:
    """Return rules with their patterns of paths as they are meant in a file, see `as_meant`."""
    given = tuple(rules)
    meant = as_meant((rule.path for rule in given if rule.path is not None), checkpoint)
    return Rules(rule if rule.path is None else replace(rule, path=meant[rule.path]) for rule in given)


def path_of(pattern: str) -> str | None:
    """Return the only path that a pattern matches, or None if it has wildcards."""
    if pattern == _NOTHING:
        return ""
    parts = _WILD.split(pattern)
    if any(part in _TRANSLATED for part in parts):
        return None
    return "".join(_LITERALS.get(part, part) for part in parts)


@cache
def _path_regex(pattern: str) -> re.Pattern[str]:
    """Translate a glob: `**` crosses slashes, `*` and `?` do not; `[*]`, `[?]` and `[[]` mean themselves."""
    if pattern == _NOTHING:
        return re.compile("")
    return re.compile("".join(map(_translated, _WILD.split(pattern))), re.DOTALL)


def _translated(part: str) -> str:
    return _TRANSLATED.get(part) or re.escape(_LITERALS.get(part, part))
