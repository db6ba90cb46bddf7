"""By how much tensors differ: their elements go to a child process, block by block, which has NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Self

from inspector.child import Worker, worker_script
from inspector.diff.content.arrays import StoredArray
from inspector.diff.content.elements import UNMARKED, Marks, elements_of, read_elements
from inspector.diff.content.equality import side_by_side
from inspector.diff.records import Numbers
from inspector.diff.side import Side
from inspector.errors import ExportError, WorkerError
from inspector.model.checkpoint import Tensor
from inspector.progress import Progress
from inspector.records import dataclass

_TIMEOUT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """What still counts as equal: `|a - b| <= atol + rtol * |b|`, as in `torch.allclose`."""

    rtol: float = 0.0
    atol: float = 0.0


class _Asked(NamedTuple):
    """What two tensors or arrays are: the dtypes of both, the shape of the first, and what it is called."""

    dtypes: tuple[str, str]
    shape: tuple[int, ...]
    path: str


class Differences:
    """Compares numbers of two sides, in one child process that is started by the first pair."""

    def __init__(
        self, a: Side, b: Side, tolerance: Tolerance | None = None, worker: Worker | None = None
    ) -> None:
        """Prepare to compare; `worker` goes on afterwards, as NumPy is slow to import."""
        self._a, self._b = a, b
        self._tolerance = tolerance or Tolerance()
        self._worker = worker or Worker()
        self._is_own = worker is None

    def __enter__(self) -> Self:
        """Use it in a `with` block."""
        return self

    def __exit__(self, *_: object) -> None:
        """End the child, unless it is another's."""
        if self._is_own:
            self._worker.end()

    def compare(
        self,
        one: Tensor,
        other: Tensor,
        progress: Progress,
        marks: tuple[Marks, Marks] = (UNMARKED, UNMARKED),
    ) -> Numbers:
        """Compare two tensors of as many elements.

        Args:
            one: The first.
            other: The second.
            progress: Told of the bytes, asked for cancellation.
            marks: What the elements of each are only said to be.
        """
        first, second = elements_of(one, marks[0]), elements_of(other, marks[1])
        blocks = side_by_side(
            read_elements(self._a, first, progress),
            read_elements(self._b, second, progress),
            (first.itemsize, second.itemsize),
        )
        return self._ask(_Asked((one.dtype, other.dtype), one.shape, one.path), blocks, progress)

    def compare_arrays(self, one: StoredArray, other: StoredArray, path: str, progress: Progress) -> Numbers:
        """Compare two arrays of as many elements."""
        sizes = one.element.itemsize, other.element.itemsize
        blocks = side_by_side(one.blocks(progress), other.blocks(progress), sizes)
        return self._ask(_Asked((one.element.dtype, other.element.dtype), one.shape, path), blocks, progress)

    def _ask(self, asked: _Asked, pairs: Iterator[tuple[bytes, bytes]], progress: Progress) -> Numbers:
        """Have the child compare pairs of blocks."""
        head = {
            "a": asked.dtypes[0],
            "b": asked.dtypes[1],
            "rtol": self._tolerance.rtol,
            "atol": self._tolerance.atol,
        }
        blocks = _in_turn(pairs, progress)
        script = worker_script("difference")
        try:
            answers = list(
                self._worker.request(script, head, blocks, progress=progress, timeout_s=_TIMEOUT_S)
            )
        except WorkerError as error:
            raise ExportError(
                "the numbers cannot be compared",
                where=f"{asked.path}: {error}",
                remedy="see whether python -c 'import numpy' works",
            ) from error
        return _numbers(answers[0].head, asked.shape)


def _in_turn(pairs: Iterator[tuple[bytes, bytes]], progress: Progress) -> Iterator[bytes]:
    for block, other in pairs:
        yield block
        yield other
        progress.advance(len(block))


def _numbers(head: dict[str, Any], shape: tuple[int, ...]) -> Numbers:
    first = head.pop("first")
    return Numbers(first=None if first is None else place_of(first, shape), **head)


def place_of(number: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the place of an element by dimension, from its number in the order of rows."""
    place = []
    for size in reversed(shape):
        number, index = divmod(number, size)
        place.append(index)
    return tuple(reversed(place))
