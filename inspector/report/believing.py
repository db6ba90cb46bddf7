"""The answers to common beliefs as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from inspector.report.page.blocks import Line, prose
from inspector.report.words.beliefs import TRUTH_LABELS

if TYPE_CHECKING:
    from inspector.diagnose.beliefs.belief import Belief

_INDENT = "     "


def belief_lines(beliefs: Sequence[Belief]) -> Iterator[Line]:
    """Yield the answers: the belief with its word, what this file shows, what is always so, what to write."""
    yield Line("Beliefs, answered from this file", "heading")
    for belief in beliefs:
        yield Line(f'{TRUTH_LABELS[belief.truth]}: "{belief.claim}"', indent="  ")
        yield from prose(f"{belief.here} {belief.why}", _INDENT)
        for place, line in _code(belief):
            yield Line(line, "code", f"{_INDENT}   " if place else f"{_INDENT}=> ")


def _code(belief: Belief) -> Iterator[tuple[int, str]]:
    return enumerate(belief.code.split("\n")) if belief.code else iter(())
