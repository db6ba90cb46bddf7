"""Rules that match nothing in a checkpoint: most likely they are mistyped, so nothing is written by them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence

from inspector.errors import PlanError
from inspector.model.checkpoint import Checkpoint
from inspector.model.roles.device_types import DEVICE_TYPES
from inspector.model.roles.devices import device_order
from inspector.quoting import command, file_word
from inspector.records import replace
from inspector.remap.plan import device_texts
from inspector.remap.rules import Rule, format_rule, literal_pattern, matches_device, rules_as_meant
from inspector.units import cut_text, nearest

_MOST_DEVICES = 6
_MOST_CHARS = 40
_MOST_COMPARED = 100
_WITHOUT_COLON = re.compile(r"([a-z]+)[^a-z0-9]?([0-9]+)", re.IGNORECASE)


def refuse_unmatched(rules: Sequence[Rule], checkpoint: Checkpoint) -> None:
    """Refuse rules that match nothing.

    `*` and a known type with `:*` ask for whatever there is, which may be nothing: a script that maps all its
    files can use them on each.
    """
    devices = device_texts(checkpoint) | {hidden.device for hidden in checkpoint.hidden_devices}
    for rule in rules_as_meant(rules, checkpoint):
        if rule.device is not None:
            _refuse_device(rule, rule.device, devices)
        elif not _matches_row(rule, checkpoint):
            shown = command("show", file_word(checkpoint.path))
            what = next(word for word in ("path", "role", "dtype") if getattr(rule, word) is not None)
            raise PlanError(
                f"the rule matches nothing: no tensor of the file has this {what}",
                where=format_rule(rule),
                remedy=f"{_meant_path(rule, checkpoint)}see what the file holds: {shown}",
            )


def _refuse_device(rule: Rule, pattern: str, devices: Collection[str]) -> None:
    is_open = pattern == "*" or (pattern.endswith(":*") and pattern.removesuffix(":*") in DEVICE_TYPES)
    if is_open or any(matches_device(pattern, device) for device in devices):
        return
    ordered = sorted(devices, key=device_order)
    shown = ", ".join(cut_text(device, _MOST_CHARS) for device in ordered[:_MOST_DEVICES])
    more = f" and {len(ordered) - _MOST_DEVICES:,} more" if len(ordered) > _MOST_DEVICES else ""
    meant = _meant(pattern, devices)
    has = f"the file has {shown}{more}" if ordered else "the file has no tensors"
    raise PlanError(
        f"the rule matches nothing: nothing in the file is on {cut_text(pattern, _MOST_CHARS)!r}",
        where=format_rule(rule),
        remedy=f"did you mean {meant}={rule.to}? {has}" if meant else f"{has}; '*' stands for all of them",
    )


def _meant_path(rule: Rule, checkpoint: Checkpoint) -> str:
    """Return the question for the rule that was meant, where the first step of its path is mistyped."""
    if rule.path is None:
        return ""
    found = meant_path(rule.path, (row.path for row in checkpoint.tensors))
    return "" if found is None else f"did you mean {format_rule(replace(rule, path=found))}? "


def meant_path(pattern: str, paths: Iterable[str]) -> str | None:
    """Return a pattern with another first step, where no path has its own and one has a similar one."""
    first, slash, rest = pattern.partition("/")
    steps = dict.fromkeys(path.partition("/")[0] for path in paths)
    near = None if first in steps else nearest(first, list(steps)[:_MOST_COMPARED])
    return None if near is None else f"{literal_pattern(near)}{slash}{rest}"


def _meant(pattern: str, devices: Collection[str]) -> str | None:
    """Return the device that was meant, as far as a slip of the finger tells."""
    from difflib import get_close_matches  # noqa: PLC0415 - only mistakes need it

    parts = _WITHOUT_COLON.fullmatch(pattern)
    if parts is not None and f"{parts[1].lower()}:{parts[2]}" in devices:
        return f"{parts[1].lower()}:{parts[2]}"
    if pattern.endswith(":*"):
        every = [f"{kind}:*" for kind in DEVICE_TYPES]
    elif pattern.isalpha() and (near := nearest(pattern.lower(), {one.partition(":")[0] for one in devices})):
        return near if near in devices else f"{near}:*"
    else:
        every = sorted(devices, key=device_order)[:_MOST_COMPARED]
    return next(iter(get_close_matches(pattern.lower(), every, 1, 0.7)), None)


def _matches_row(rule: Rule, checkpoint: Checkpoint) -> bool:
    return any(
        rule.matches(row.device, (row.path,), role=row.role, dtypes=(row.dtype,))
        for row in checkpoint.tensors
    )
