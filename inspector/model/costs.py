"""What listing a tensor costs: its names and sizes, which a file can refer to again and again."""

from __future__ import annotations

from inspector.limits import written_chars
from inspector.model.checkpoint import Key
from inspector.model.tensors.views import TensorFacts
from inspector.model.values.text import MOST_STEP_CHARS

_FEW_DIMENSIONS = 4
_DIMENSION_CHARS = 20


def cost_of_row(facts: TensorFacts, storage_key: str | None, slot: str | None) -> tuple[int, int]:
    """Return how many sizes and strides there are to look at, 0 for few, and how many characters to write."""
    chars = 0 if storage_key is None else len(storage_key)
    if slot is not None:
        chars += len(slot)
    if not facts.device.isascii():
        chars += written_chars(facts.device)
    dimensions = len(facts.shape) + len(facts.stride or ())
    if dimensions <= 2 * _FEW_DIMENSIONS:
        return 0, chars
    return dimensions, chars + dimensions * _DIMENSION_CHARS


def weight_of_step(key: Key) -> int:
    """Return what one step on the way costs each row below it, beyond its text in the path."""
    if not isinstance(key, str) or (len(key) <= MOST_STEP_CHARS and key.isascii()):
        return 8
    return 8 + len(key) + max(written_chars(key[:MOST_STEP_CHARS]), written_chars(key[-MOST_STEP_CHARS:]))


def excess_of(key: Key) -> int:
    """Return what a key weighs beyond its text in a path, which is cut."""
    return len(key) if isinstance(key, str) and len(key) > MOST_STEP_CHARS else 0
