"""What is asked of a checkpoint again and again is worked out once, and goes when the checkpoint goes."""

from __future__ import annotations

import gc
import weakref

from inspector.model.checkpoint import Checkpoint
from inspector.model.once import once
from inspector.records import replace
from tests.unit.report.rows import checkpoint


def test_an_answer_is_worked_out_once_for_each_checkpoint_and_question() -> None:
    asked: list[tuple[str, str]] = []

    @once
    def ask(file: Checkpoint, question: str) -> str:
        """Print something."""
        asked.append((file.path, question))
        return question.upper()

    first = checkpoint()
    second = replace(first, path="second")
    assert [ask(first, "a"), ask(first, "a"), ask(second, "a"), ask(first, "b"), ask(second, "a")] == [
        *("A", "A", "A", "B", "A")
    ]
    assert asked == [(first.path, "a"), ("second", "a"), (first.path, "b")]
    assert ask.__doc__ == "Print something."


def test_old_answers_make_room() -> None:
    asked: list[int] = []

    @once
    def ask(_: Checkpoint, question: int) -> int:
        asked.append(question)
        return question

    file = checkpoint()
    for question in (*range(5), 4, 0):
        ask(file, question)
    assert asked == [0, 1, 2, 3, 4, 0]


def test_answers_go_with_the_checkpoint_and_are_never_those_of_another() -> None:
    class Answer:
        """Something that can be watched."""

    @once
    def ask(_: Checkpoint) -> Answer:
        return Answer()

    for _ in range(50):  # a new one often stands where the last one stood
        file = checkpoint()
        answer = weakref.ref(ask(file))
        assert answer() is ask(file)
        del file
        gc.collect()
        assert answer() is None
