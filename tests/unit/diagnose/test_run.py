"""All rules together: worst first, and every file of the corpus survives them."""

from __future__ import annotations

import pytest

from inspector.diagnose.run import diagnose
from inspector.model.build import open_checkpoint
from inspector.model.findings import SEVERITIES
from inspector.safety.verdict import judge
from inspector.target.machine.profile import CPU_ONLY
from tests import corpus

FOLDERS = ("devices/", "old/", "legacy/", "zip/")


@pytest.mark.parametrize(
    "case", [case for case in corpus.cases() if case.name.startswith(FOLDERS)], ids=lambda case: case.name
)
def test_worst_first(case: corpus.Case) -> None:
    checkpoint = open_checkpoint(str(case.path))
    findings = diagnose(checkpoint, judge(checkpoint), CPU_ONLY)
    ranks = [SEVERITIES.index(finding.severity) for finding in findings]
    assert ranks == sorted(ranks)
    for finding in findings:
        assert finding.title
        assert finding.detail
        assert len(finding.paths) <= finding.count
