"""The answers to common beliefs as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from inspector.report.text import wrapped_lines
from inspector.report.words.beliefs import TRUTH_LABELS

if TYPE_CHECKING:
    from inspector.diagnose.beliefs.belief import Belief

_INDENT = "     "


def belief_lines(beliefs: Sequence[Belief]) -> Iterator[str]:
    """Yield the answers: the belief with its word, what this file shows, what is always so, what to write."""
    yield "Beliefs, answered from this file"
    for belief in beliefs:
        yield f'  {TRUTH_LABELS[belief.truth]}: "{belief.claim}"'
        yield from wrapped_lines(f"{belief.here} {belief.why}", _INDENT)
        yield from (
            f"{_INDENT}=> {line}" if place == 0 else f"{_INDENT}   {line}" for place, line in _code(belief)
        )


def _code(belief: Belief) -> Iterator[tuple[int, str]]:
    return enumerate(belief.code.split("\n")) if belief.code else iter(())
