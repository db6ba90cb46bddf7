"""What the GPU doctor says about a machine."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal

from inspector.model.findings import Severity
from inspector.records import dataclass
from inspector.target.evidence import Evidence

Certainty = Literal["certain", "likely", "possible"]
CERTAINTIES: tuple[Certainty, ...] = ("certain", "likely", "possible")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnosis:
    """One thing that is so, with what shows it and what can be done.

    Attributes:
        severity: `error` when torch cannot use a GPU for it, `warning` when something may fail, else `note`.
        explanation: Why, in plain words for someone who knows only `torch.load`.
        steps: What to do, in order; most are commands to paste.
    """

    id: str
    severity: Severity
    title: str
    explanation: str
    evidence: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()
    certainty: Certainty = "certain"


MachineRule = Callable[[Evidence], Diagnosis | None]
"""Looks at a machine and says one thing about it, or nothing."""


_FACT = re.compile(r"<<(\w+)>>")


def cause(
    id: str,  # noqa: A002 - as the field
    evidence: tuple[str, ...],
    *,
    severity: Severity | None = None,
    certainty: Certainty | None = None,
    **facts: object,
) -> Diagnosis:
    """Return what `causes.toml` says of a cause, with what a rule found in its texts."""
    row = causes()[id]
    return Diagnosis(
        id=id,
        severity=severity or row["severity"],
        title=_filled(row["title"], facts),
        explanation=_filled(row["explanation"], facts),
        evidence=evidence,
        steps=tuple(step for one in row.get("steps", facts.get("steps", ())) for step in _steps(one, facts)),
        certainty=certainty or row.get("certainty", "certain"),
    )


@cache
def causes() -> dict[str, Any]:
    """Read the table."""
    return tomllib.loads(Path(__file__).with_name("causes.toml").read_text(encoding="utf-8"))


def _filled(text: str, facts: dict[str, object]) -> str:
    return _FACT.sub(lambda match: str(facts[match[1]]), text)


def _steps(step: str, facts: dict[str, object]) -> Iterator[str]:
    alone = _FACT.fullmatch(step)
    found = facts[alone[1]] if alone is not None else ""
    if isinstance(found, tuple):
        yield from found
    else:
        yield _filled(step, facts)
