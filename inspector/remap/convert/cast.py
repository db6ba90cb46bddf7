"""Casting by torch itself, in a child process: chunks go over, the same elements in another dtype come back.

How a number is rounded is torch's business, and torch is not imported here: that would take seconds and
hundreds of megabytes for work that reads and writes a megabyte at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Self

from inspector.child import Worker, worker_script
from inspector.errors import ExportError, WorkerError
from inspector.progress import Progress
from inspector.pythons import OPTION, choose_python

SOURCE = "float32"
_TIMEOUT_S = 300.0  # before the first answer torch is imported


class Caster:
    """A child process that casts, started with the first chunk.

    Attributes:
        dtype: The dtype that elements become.
        overflowed: How many finite numbers have become infinite so far.
    """

    def __init__(self, dtype: str, python: str | None = None) -> None:
        """Prepare a caster to a dtype, in the Python that a text names, or the one that counts."""
        self.dtype = dtype
        self.overflowed = 0
        self._python = python
        self._worker: Worker | None = None

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        if self._worker is not None:
            self._worker.end()

    def cast(self, chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
        """Yield chunks of float32 elements in the other dtype."""
        rest = iter(chunks)
        if (first := next(rest, None)) is None:
            return
        python = choose_python(self._python, progress)
        head = {"source": SOURCE, "target": self.dtype}
        self._worker = self._worker or Worker(python=python.path)
        answers = self._worker.request(
            worker_script("cast"), head, chain([first], rest), progress=progress, timeout_s=_TIMEOUT_S
        )
        try:
            for answer in answers:
                self.overflowed += int(answer.head["overflowed"])
                yield answer.block
        except WorkerError as error:
            remedy = f"see whether python -c 'import torch' works, or name another Python with {OPTION}"
            what = "torch failed to cast the weights"
            if error.missing == "torch":
                what = "a cast needs torch, and this Python has none"
            raise ExportError(what, where=python.path, remedy=remedy) from error
