"""Asks a child process about the values of tensors; it stays warm for the next question."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import prod
from typing import Any, Self

from inspector.child import Worker, worker_script
from inspector.errors import ValuesError, WorkerError
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.values.request import Request, Requests
from inspector.values.statistics import Statistics, build_statistics

_TIMEOUT_S = 120.0
_NO_ANSWER = "the values could not be read"


class ValueReader:
    """A child process that reads values, started by the first question."""

    def __init__(self) -> None:
        self._worker = Worker()

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        self.end()

    def end(self) -> None:
        """End the child, if one runs."""
        self._worker.end()

    def statistics(self, checkpoint: Checkpoint, row: int, progress: Progress) -> Statistics:
        """Return the statistics of a tensor, read from just its bytes.

        Raises:
            ValuesError: There are none to be had.
            CancelledError: The work was cancelled.
        """
        requests = Requests(checkpoint)
        request = requests.of(row)
        progress.start("reading values", read_nbytes(request))
        found = self.ask({"what": "stats", **requests.file, "tensor": request}, progress)
        return build_statistics(found, request)

    def ask(self, head: dict[str, Any], progress: Progress, blocks: Iterable[bytes] = ()) -> Any:  # noqa: ANN401 - as JSON has it
        """Ask one question and return what was found.

        Raises:
            ValuesError: It has no answer.
            CancelledError: The work was cancelled.
        """
        found: Any = None
        for answer in self.answers(head, progress, blocks):
            found = answer.get("found", found)
        return found

    def answers(
        self, head: dict[str, Any], progress: Progress, blocks: Iterable[bytes] = ()
    ) -> Iterator[dict[str, Any]]:
        """Ask one question and yield what comes back; errors as above."""
        script = worker_script("tensor_values")
        try:
            for answer in self._worker.request(script, head, blocks, progress=progress, timeout_s=_TIMEOUT_S):
                error = answer.head.get("error")
                if error is not None:
                    raise ValuesError(error["what"], where=error["where"], remedy=error["remedy"])
                progress.advance(answer.head.get("done", 0))
                yield answer.head
        except WorkerError as failure:
            raise ValuesError(_NO_ANSWER, where=failure.what) from failure


def read_nbytes(request: Request) -> int:
    """Return how many bytes are read of a tensor: repeated elements once."""
    sizes = zip(request["shape"], request["stride"], strict=True)
    numel: int = prod(size if step else 1 for size, step in sizes)
    return numel * int(request["itemsize"])
