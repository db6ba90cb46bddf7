"""What a rule looks at."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.records import dataclass
from inspector.safety.verdict import SafetyVerdict
from inspector.target.profile import Profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A checkpoint under examination."""

    checkpoint: Checkpoint
    safety: SafetyVerdict
    target: Profile | None


Rule = Callable[[Case], Iterable[Finding]]
