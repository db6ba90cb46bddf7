"""Where a row stands, as people read it."""

from __future__ import annotations

from inspector.model.checkpoint import Tensor, ValueRow
from inspector.units import shown_path

ROOT = "(root)"


def shown_place(row: Tensor | ValueRow) -> str:
    """Return the path of a row as it is shown: an empty key is a place, and not the root."""
    return shown_path(row.path) or ('""' if row.keys else ROOT)
