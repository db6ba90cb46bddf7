"""Answers about a checkpoint that are worked out once, and forgotten together with it.

Findings, forecast, map and code all ask the same of a hundred thousand rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TypeVar, TypeVarTuple
from weakref import ref

from inspector.model.checkpoint import Checkpoint

_MOST_ANSWERS = 4
Answer = TypeVar("Answer")
Asked = TypeVarTuple("Asked")


def once(ask: Callable[[Checkpoint, *Asked], Answer]) -> Callable[[Checkpoint, *Asked], Answer]:
    """Remember the last few answers of a function for each checkpoint.

    Checkpoints are told apart by identity, since comparing all rows is slow. An answer must not refer to the
    checkpoint itself, or neither would ever be let go; and nobody may change it.
    """
    known: dict[int, tuple[ref[Checkpoint], dict[tuple[object, ...], Answer]]] = {}

    @wraps(ask)
    def recall(checkpoint: Checkpoint, *asked: *Asked) -> Answer:
        number = id(checkpoint)
        found = known.get(number)
        if found is None or found[0]() is not checkpoint:
            found = known[number] = ref(checkpoint, lambda _: known.pop(number, None)), {}
        answers = found[1]
        if asked in answers:
            return answers[asked]
        answer = answers[asked] = ask(checkpoint, *asked)
        for old in list(answers)[:-_MOST_ANSWERS]:
            answers.pop(old, None)
        return answer

    return recall
