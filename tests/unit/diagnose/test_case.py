"""What a rule looks at."""

from __future__ import annotations

import pytest

from inspector.diagnose.case import Case
from inspector.safety.verdict import judge
from tests.unit.diagnose.cases import PLAIN


def test_a_case_is_frozen() -> None:
    case = Case(checkpoint=PLAIN, safety=judge(PLAIN), target=None)
    with pytest.raises(AttributeError):
        case.target = None  # type: ignore[misc]
    assert case.checkpoint is PLAIN
