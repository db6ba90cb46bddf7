"""The numbers of a tensor as a NumPy array, which is imported when somebody asks for one."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from inspector.errors import ValuesError
from inspector.library.opened import Opened
from inspector.progress import Progress
from inspector.values.asking import ValueReader
from inspector.values.request import Requests, read_nbytes

if TYPE_CHECKING:
    from numpy.typing import NDArray

_NO_MEMORY = "there is not enough memory for its numbers"


def read_array(
    opened: Opened, row: int, reader: ValueReader, progress: Progress | None = None
) -> NDArray[Any]:
    """Return all numbers of a tensor by its number, read from just its bytes.

    Raises:
        ValuesError: It has no numbers, or they make no array.
        CheckpointError: The file cannot be read, or changed since it was opened.
    """
    import numpy as np  # noqa: PLC0415 - few ask, and importing the library is to stay light

    checkpoint, progress = opened.located, progress or Progress()
    requests = Requests(checkpoint)
    request = requests.of(row)
    head = {"what": "rows", **requests.file, "tensor": request}
    progress.start("reading values", read_nbytes(request))
    shape, found, done = [0], np.zeros(0), 0
    for answer in reader.answers(head, progress):
        if "descr" in answer.head:
            shape = answer.head["shape"]
            try:
                found = np.empty(prod(shape), np.dtype(answer.head["descr"]))
            except (MemoryError, ValueError):
                raise ValuesError(_NO_MEMORY, where=checkpoint.tensors[row].path) from None
        elif answer.block:
            values = np.frombuffer(answer.block, found.dtype)
            found[done : done + values.size] = values
            done += values.size
    return found.reshape(shape)
