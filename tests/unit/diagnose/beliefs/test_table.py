from __future__ import annotations

import ast

from inspector.diagnose.beliefs.table import BELIEFS
from inspector.model.build import open_checkpoint
from inspector.resources import demo_path
from tests.unit.diagnose.beliefs.asking import ask, module, weights
from tests.unit.report.rows import checkpoint, is_harmless


def test_every_belief_has_an_id_of_its_own_and_an_answer_for_every_kind_of_file() -> None:
    assert len({row.id for row in BELIEFS}) == len(BELIEFS) >= 16
    found = []
    for made in (open_checkpoint(demo_path()), weights("a"), module(), checkpoint(), weights("\u202e" * 99)):
        for belief in ask(made).values():
            texts = (belief.claim, belief.here, belief.why)
            whole = all(text.endswith((".", "!")) and is_harmless(text) for text in texts)
            if belief.code and not belief.code.startswith("checkpoint-inspector "):
                ast.parse(belief.code)
            found += [] if whole and len(belief.why) < 280 else [(belief.id, texts)]
    assert found == []
