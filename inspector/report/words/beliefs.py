"""The three answers that a belief can get."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.diagnose.beliefs.belief import Truth

TRUTH_LABELS: dict[Truth, str] = {"true": "True", "false": "Not so", "depends": "It depends"}
"""The word for each."""
