"""Documents without NaN and infinities, which Python writes and JSON does not have."""

from __future__ import annotations

import math
from typing import Any


def finite(value: Any) -> Any:  # noqa: ANN401 - whatever JSON has
    """Return a value of a document with null for a number that is none: a distance may overflow."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: finite(one) for key, one in value.items()}
    return [finite(one) for one in value] if isinstance(value, list) else value
