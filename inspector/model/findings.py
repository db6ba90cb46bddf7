"""A finding: something about a checkpoint that its owner should know, with the tensors and the remedy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Severity = Literal["error", "warning", "note"]
SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")
MOST_PATHS = 20
"""How many paths a finding names; `count` says how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """What mends a finding: a map rule, as the device map and `remap --map` take it."""

    rule: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One finding.

    Attributes:
        id: Its stable name, see `docs/architecture.md`.
        severity: `error` when loading fails, `warning` when something later may, else `note`.
        title: What, in a few words.
        detail: Why it matters and what to do, in plain words.
        paths: The tensors it speaks of, `MOST_PATHS` at most.
        count: How many there are.
        fix: What mends it, or None.
    """

    id: str
    severity: Severity
    title: str
    detail: str
    paths: tuple[str, ...] = ()
    count: int = 0
    fix: Fix | None = None


def finding(
    id: str,  # noqa: A002 - the contract's word
    severity: Severity,
    title: str,
    detail: str,
    paths: list[str],
    *,
    fix: Fix | None = None,
) -> Finding:
    """Make a finding about these tensors, naming the first few and counting all."""
    return Finding(
        id=id,
        severity=severity,
        title=title,
        detail=detail,
        paths=tuple(paths[:MOST_PATHS]),
        count=len(paths),
        fix=fix,
    )
