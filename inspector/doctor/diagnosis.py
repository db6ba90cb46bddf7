"""What the GPU doctor says about a machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

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
