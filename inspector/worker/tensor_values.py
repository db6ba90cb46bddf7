"""Answers what is asked of the values of tensors.

Head: `what`, the `path` of the file, its `stamp` when it was opened, and what each question needs besides.
Answers: any number of `{"done": bytes}`, and at last `{"found": ...}`, or `{"error": ...}` with the words of
a `CheckpointError`. `scan` takes its tensors from blocks, each a JSON list, and answers with lists.
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads would cost memory, and wait for it

from inspector.errors import CheckpointError
from inspector.values.tensor_bytes import TensorBytes, open_bytes
from inspector.worker.values.slices import Plane, cells, picture, ranks, saved_rows
from inspector.worker.values.statistics import Statistics

if TYPE_CHECKING:
    from collections.abc import Iterator

    Head = dict[str, Any]
    Answers = Iterator[tuple[Head, bytes]]

_TELL_NBYTES = 64 << 20
_TELL_S = 0.1
_MOST_ROWS = 256  # in one answer
_SPARKS, _HEIGHT = 16, 8


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


def _scan(_head: Head, opened: TensorBytes, blocks: Iterator[bytes]) -> Any:  # noqa: ANN401 - the same
    rows: list[Head] = []
    done, told = 0, time.monotonic()
    for block in blocks:
        for request in json.loads(block):
            for nbytes in scanned(request, opened, rows):
                done += nbytes
                if time.monotonic() - told > _TELL_S or len(rows) >= _MOST_ROWS:
                    yield {"done": done, "rows": rows}, b""
                    rows.clear()  # the list that the tensor which is being read goes into
                    done, told = 0, time.monotonic()
    yield {"done": done, "rows": rows}, b""


def scanned(request: Head, opened: TensorBytes, rows: list[Head]) -> Iterator[int]:
    """Add the figures of a tensor to a list, or why there are none; yield how many bytes were read."""
    try:
        statistics = Statistics(request, opened)
        yield from statistics.steps()
        found = statistics.result()
    except CheckpointError as error:
        rows.append({"row": request["row"], "error": error_words(error)})
    else:
        stored = found.pop("stored", None)
        found["counts"] = sparkline((stored or found)["counts"])
        rows.append({"row": request["row"], "found": {**found, "edges": [], "octaves": []}})
    yield 0


def sparkline(counts: list[int]) -> list[int]:
    """Return a histogram as a few heights from 0 to 8; what is not empty is not 0."""
    size = -(-len(counts) // _SPARKS) or 1
    sums = [sum(counts[start : start + size]) for start in range(0, len(counts), size)]
    most = max(sums, default=0)
    return [-(-_HEIGHT * count // most) if count else 0 for count in sums]


def _slice(head: Head, opened: TensorBytes, _blocks: Iterator[bytes]) -> Any:  # noqa: ANN401 - the same
    yield from ()
    return picture(Plane(head["tensor"], opened, head["choice"]), (head["most"][0], head["most"][1]))


def _cells(head: Head, opened: TensorBytes, _blocks: Iterator[bytes]) -> Any:  # noqa: ANN401 - the same
    yield from ()
    plane = Plane(head["tensor"], opened, head["choice"])
    return cells(plane, range(*head["rows"]), range(*head["columns"]), head["digits"])


def _rows(head: Head, opened: TensorBytes, _blocks: Iterator[bytes]) -> Any:  # noqa: ANN401 - the same
    yield from saved_rows(head["tensor"], opened, is_stored=head.get("is_stored", False))


def _rank(head: Head, opened: TensorBytes, _blocks: Iterator[bytes]) -> Any:  # noqa: ANN401 - the same
    found: Head = {}
    for found in ranks(head["tensor"], opened):
        if "done" in found:
            yield found, b""
    return found["found"]


_QUESTIONS = {
    "stats": _stats,
    "rank": _rank,
    "scan": _scan,
    "slice": _slice,
    "cells": _cells,
    "rows": _rows,
}
