"""Words around the answers to beliefs; the answers are in `diagnose/beliefs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.diagnose.beliefs.belief import Truth

TRUTH_LABELS: dict[Truth, str] = {"true": "True", "false": "Not so", "depends": "It depends"}
"""The word for each."""

IN_THIS_FILE = "In this file"
INSTEAD = "Write:"
ABOUT = "What people believe about checkpoints, answered from this file and for the chosen target."
