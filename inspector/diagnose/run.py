"""All rules together, and how they are asked. A new rule goes into the table of its kind."""

from __future__ import annotations

from inspector.diagnose.accepting import with_accepted_fix
from inspector.diagnose.case import Case, Rule
from inspector.diagnose.findings.code import CODE_RULES
from inspector.diagnose.findings.devices import DEVICE_RULES
from inspector.diagnose.findings.files import FILE_RULES
from inspector.diagnose.findings.memory import MEMORY_RULES
from inspector.diagnose.findings.processes import PROCESS_RULES
from inspector.diagnose.findings.running import RUNNING_RULES
from inspector.diagnose.findings.training import TRAINING_RULES
from inspector.diagnose.findings.wanted import WANTED_RULES
from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import SEVERITIES, Finding
from inspector.safety.verdict import SafetyVerdict
from inspector.target.profile import Profile
from inspector.target.simulate import judge_for

RULES: tuple[Rule, ...] = (
    *FILE_RULES,  # what is missing matters before where it would go
    *WANTED_RULES,
    *DEVICE_RULES,
    *TRAINING_RULES,
    *MEMORY_RULES,
    *PROCESS_RULES,
    *CODE_RULES,
    *RUNNING_RULES,
)


def diagnose(
    checkpoint: Checkpoint, safety: SafetyVerdict, target: Profile | None = None
) -> tuple[Finding, ...]:
    """Return all findings, worst first; within one severity in the order of the rules.

    Args:
        safety: The verdict on its pickles; with a machine, it counts by the list of that machine's torch.
        target: The machine where it is to be loaded, or None.
    """
    case = Case(checkpoint=checkpoint, safety=judge_for(checkpoint, target, safety), target=target)
    found = [with_accepted_fix(one, checkpoint, target) for rule in RULES for one in rule(case)]
    return tuple(sorted(found, key=lambda finding: SEVERITIES.index(finding.severity)))
