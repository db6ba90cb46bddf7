from __future__ import annotations

import gc
import weakref

import pytest

from inspector.session.cache import remembered
from inspector.session.document import Document
from tests.unit.session.documents import saved_on


def test_an_answer_is_worked_out_once_for_each_document_and_question() -> None:
    asked: list[tuple[int, str]] = []

    @remembered
    def ask(document: Document, question: str) -> str:
        """Print something."""
        asked.append((id(document), question))
        return question.upper()

    first, second = saved_on("cpu"), saved_on("cpu")
    assert [ask(first, "a"), ask(first, "a"), ask(second, "a"), ask(first, "b"), ask(first, "a")] == [
        *("A", "A", "A", "B", "A")
    ]
    assert asked == [(id(first), "a"), (id(second), "a"), (id(first), "b")]
    assert ask.__doc__ == "Print something."


def test_old_answers_make_room() -> None:
    asked: list[int] = []

    @remembered
    def ask(document: Document, question: int) -> int:
        asked.append(question)
        return question

    document = saved_on("cpu")
    for question in (*range(9), 8, 0):
        ask(document, question)
    assert asked == [*range(9), 0]


def test_a_failure_is_not_remembered() -> None:
    answers = iter([ValueError("once"), "fine"])

    @remembered
    def ask(document: Document) -> str:
        answer = next(answers)
        if isinstance(answer, ValueError):
            raise answer
        return answer

    document = saved_on("cpu")
    try:
        ask(document)
    except ValueError:
        assert ask(document) == "fine"


@pytest.mark.wide
def test_answers_are_forgotten_with_their_document() -> None:
    class Answer:
        pass

    @remembered
    def ask(document: Document) -> Answer:
        return Answer()

    document = saved_on("cpu")
    answer = weakref.ref(ask(document))
    assert answer() is not None
    del document
    gc.collect()
    assert answer() is None


def test_a_document_knows_what_is_remembered_of_it() -> None:
    """The answers of a large file end with its rows, in a thread."""
    document = saved_on("cpu")
    length = remembered(lambda of, more: [len(of.checkpoint.tensors), more])
    known = len(document.remembered)

    assert length(document, 1) is length(document, 1)
    length(document, 2)

    assert document.remembered[known:] == [{(1,): length(document, 1), (2,): length(document, 2)}]
