from __future__ import annotations

import pytest

from inspector.errors import PlanError
from inspector.remap.rules import parse_rule
from inspector.rescue.running import run_rescued
from inspector.target.wish import THIS, parse_wish


def test_rules_that_no_hook_can_follow() -> None:
    said = {
        "path:model/**@cpu": "run cannot follow 'path:model/**@cpu': only devices are known",
        "role:optimizer@cpu": "run cannot follow 'role:optimizer@cpu': only devices are known",
        "cpu=cuda:0": "run leaves on the CPU what was saved there",
    }
    for text, sentence in said.items():
        with pytest.raises(PlanError) as raised:
            run_rescued(["true"], [parse_rule(text)], parse_wish(THIS), maps_missing=True)
        assert raised.value.what.startswith(sentence)
        assert "checkpoint-inspector remap" in (raised.value.remedy or "")


def test_the_exit_code_and_what_was_mapped() -> None:
    rules = [parse_rule("cuda:*=cpu")]
    for program, code in (("true", 0), ("false", 1)):
        ended, journal = run_rescued([program], rules, parse_wish(THIS), maps_missing=False)
        assert (ended, journal.calls, journal.processes) == (code, (), 0)
