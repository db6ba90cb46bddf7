"""Answers what is asked of the values of tensors.

Head: `what`, the `path` of the file, its `stamp` when it was opened, and what each question needs besides.
Answers: any number of `{"done": bytes}`, and at last `{"found": ...}`, or `{"error": ...}` with the words of
a `CheckpointError`. `scan` takes its tensors from blocks, each a JSON list, and answers with lists.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads would cost memory, and wait for it

from inspector.errors import CheckpointError
from inspector.worker.tensor_bytes import TensorBytes, open_bytes
from inspector.worker.values.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    Head = dict[str, Any]
    Answers = Iterator[tuple[Head, bytes]]

_TELL_NBYTES = 64 << 20


def answer(head: Head, blocks: Iterator[bytes]) -> Answers:
    """Answer one question."""
    try:
        with open_bytes(head["path"], head["stamp"]) as opened:
            last = yield from _QUESTIONS[head["what"]](head, opened, blocks)
    except CheckpointError as error:
        yield {"error": error_words(error)}, b""
    except MemoryError:
        yield {"error": {"what": "there is not enough memory for it", "where": None, "remedy": None}}, b""
    else:
        yield {"found": last}, b""


def error_words(error: CheckpointError) -> dict[str, str | None]:
    """Return what an error says."""
    return {"what": error.what, "where": error.where, "remedy": error.remedy}


def _stats(head: Head, opened: TensorBytes, _blocks: Iterator[bytes]) -> Any:  # noqa: ANN401 - a generator
    statistics = Statistics(head["tensor"], opened)
    waiting = 0
    for nbytes in statistics.steps():
        waiting += nbytes
        if waiting >= _TELL_NBYTES:
            yield {"done": waiting}, b""
            waiting = 0
    return statistics.result()


_QUESTIONS = {"stats": _stats}
