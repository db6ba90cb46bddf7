from __future__ import annotations

from typing import get_args

from inspector.diagnose.beliefs.belief import Truth
from inspector.report.words.beliefs import TRUTH_LABELS


def test_every_answer_has_its_word() -> None:
    assert set(TRUTH_LABELS) == set(get_args(Truth))
