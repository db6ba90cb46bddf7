"""Casting by torch itself, in a child process: chunks go over, the same elements in another type come back.

How a number is rounded is torch's business, and torch is not imported here: that would take seconds and
hundreds of megabytes for a piece of work that reads and writes a megabyte at a time.
"""

from __future__ import annotations

import contextlib
import struct
import subprocess
from collections.abc import Iterable, Iterator
from typing import IO, Self, cast

from inspector.child import SAFE_FOLDER, python_command, worker_script
from inspector.errors import ExportError
from inspector.progress import Progress

_HEAD = struct.Struct("<Q")
_REPLY = struct.Struct("<2Q")
SOURCE = "float32"


class Caster:
    """A child process that casts, started with the first chunk.

    Attributes:
        dtype: The type that elements become.
        overflowed: How many finite numbers have become infinite so far.
    """

    def __init__(self, dtype: str) -> None:
        self.dtype = dtype
        self.overflowed = 0
        self._child: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child."""
        if self._child is not None:
            self._child.kill()
            self._child.wait()
            for pipe in self._pipes():
                with contextlib.suppress(BrokenPipeError):  # what was not written will not be
                    pipe.close()

    def cast(self, chunks: Iterable[bytes], progress: Progress) -> Iterator[bytes]:
        """Give chunks of float32 elements in the other type.

        Raises:
            ExportError: torch does not answer.
            CancelledError: The work was cancelled.
        """
        for chunk in chunks:
            progress.advance()
            try:
                data = self._ask(chunk)
            except (OSError, struct.error) as error:
                raise _no_torch() from error
            yield data

    def _ask(self, chunk: bytes) -> bytes:
        inward, outward = self._pipes()
        inward.write(_HEAD.pack(len(chunk)) + chunk)
        inward.flush()
        overflowed, nbytes = _REPLY.unpack(outward.read(_REPLY.size))
        self.overflowed += overflowed
        data = outward.read(nbytes)
        if len(data) < nbytes:
            raise _no_torch()
        return data

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        if self._child is None:
            # The command is made of this interpreter, a fixed script and fixed names.
            self._child = subprocess.Popen(  # noqa: S603
                python_command(worker_script("cast"), SOURCE, self.dtype),
                cwd=SAFE_FOLDER,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        return cast("IO[bytes]", self._child.stdin), cast("IO[bytes]", self._child.stdout)


def _no_torch() -> ExportError:
    remedy = "see whether python -c 'import torch' works"
    return ExportError("torch does not cast the weights", remedy=remedy)
