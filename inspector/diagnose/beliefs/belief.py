"""A belief about checkpoints, and what becomes of it in the face of one file."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from inspector.diagnose.beliefs.facts import Facts
from inspector.records import dataclass
from inspector.tuples import NamedTuple

Truth = Literal["true", "false", "depends"]


class Answer(NamedTuple):
    """What is so.

    Attributes:
        truth: In one word, for this file.
        here: What this file shows, with its figures.
        why: What is always so, in one or two sentences.
        code: What to write instead; empty where there is nothing to write.
    """

    truth: Truth
    here: str
    why: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One belief in the table of its kind.

    Attributes:
        id: Its stable name.
        claim: The belief in the words of those who hold it.
        answer: What becomes of it for a file.
    """

    id: str
    claim: str
    answer: Callable[[Facts], Answer]


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """A belief and its answer for one file.

    Attributes:
        id: Its stable name.
        claim: The belief in the words of those who hold it.
        truth: In one word, for this file.
        here: What this file shows, with its figures; texts of the file are escaped.
        why: What is always so, in one or two sentences.
        code: What to write instead; empty where there is nothing to write.
    """

    id: str
    claim: str
    truth: Truth
    here: str
    why: str
    code: str
