"""What loading the one file would import and call that loading the other would not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from inspector.diff.records import NameChange
from inspector.model.checkpoint import Checkpoint
from inspector.model.tensors.numpy_arrays import DATA_MAKERS
from inspector.safety.verdict import SafetyVerdict, judge

_MOST_CALLS = 200
_NEWS = ("dangerous", "unknown")
"""Verdicts of names that say something: which class of storage a pickle names follows from its tensors."""
_CALL = "call"


def compare_programs(a: Checkpoint, b: Checkpoint) -> tuple[tuple[NameChange, ...], tuple[str, str]]:
    """Return what only one of the files imports or calls, what is worst first, and both safety verdicts."""
    first, second = judge(a), judge(b)
    found = [
        *_names(b, second, {use.name for use in a.globals}, "b"),
        *_names(a, first, {use.name for use in b.globals}, "a"),
    ]
    found.sort(key=lambda one: (_NEWS.index(one.verdict), one.only_in == "a"))
    calls = [*_calls(b, a, "b"), *_calls(a, b, "a")]
    return (*found, *calls[:_MOST_CALLS]), (first.verdict, second.verdict)


def _names(
    checkpoint: Checkpoint, safety: SafetyVerdict, others: set[str], only_in: Literal["a", "b"]
) -> Iterator[NameChange]:
    for use, verdict in zip(checkpoint.globals, safety.globals, strict=True):
        if use.name not in others and verdict in _NEWS:
            yield NameChange(use.name, verdict, only_in)


def _calls(checkpoint: Checkpoint, other: Checkpoint, only_in: Literal["a", "b"]) -> Iterator[NameChange]:
    """Yield calls of names that both files call, with arguments that the other never hands them.

    What only spells data is none of them: with other numbers in an array, its bytes are other arguments.
    """
    names = {call.name for call in other.needs.calls} - DATA_MAKERS
    texts = {call.text for call in other.needs.calls}
    for call in checkpoint.needs.calls:
        if call.path is None and call.name in names and call.text not in texts:
            yield NameChange(call.text, _CALL, only_in)
