"""Answers about a document that are worked out once, and forgotten together with the document."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from threading import Lock
from typing import TypeVar, TypeVarTuple
from weakref import WeakKeyDictionary

_MOST_ANSWERS = 8
Subject = TypeVar("Subject")
Answer = TypeVar("Answer")
Asked = TypeVarTuple("Asked")


def remembered(ask: Callable[[Subject, *Asked], Answer]) -> Callable[[Subject, *Asked], Answer]:
    """Remember the last few answers of a function for each document.

    A click asks anew for everything on the screen, and nearly all of it is as it was. An answer must not
    refer to the document itself, or neither would ever be let go.
    """
    known: WeakKeyDictionary[Subject, dict[tuple[object, ...], Answer]] = WeakKeyDictionary()
    lock = Lock()  # a screen may be composed in a worker

    @wraps(ask)
    def recall(document: Subject, *asked: *Asked) -> Answer:
        with lock:
            answers = known.get(document)
            if answers is None:
                answers = known[document] = {}
                getattr(document, "remembered", []).append(answers)
            if asked in answers:
                return answers[asked]
        answer = ask(document, *asked)
        with lock:
            answers[asked] = answer
            if len(answers) > _MOST_ANSWERS:
                del answers[next(iter(answers))]
        return answer

    return recall
