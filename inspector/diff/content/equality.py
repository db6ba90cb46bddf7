"""Whether two tensors have the same elements: read side by side, up to the first that differs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal, NamedTuple

from inspector.diff.content.bits import differs_in_numbers
from inspector.diff.content.elements import (
    UNMARKED,
    Elements,
    Marks,
    as_meant,
    elements_of,
    read_elements,
    read_span,
)
from inspector.diff.side import Side
from inspector.errors import CancelledError, CheckpointError
from inspector.model.checkpoint import Tensor
from inspector.model.tensors.row_blocks import PLAIN_NBYTES
from inspector.progress import Progress

Answer = Literal["equal", "bits", "differs", "unread"]


class Equality(NamedTuple):
    """What came out.

    Attributes:
        answer: `bits` means the same numbers in other bits.
        why: Why they could not be read.
    """

    answer: Answer
    why: str = ""


class Equalities:
    """Compares the elements of tensors of two sides; tied ones once.

    Attributes:
        nbytes: How many bytes of each were read so far.
    """

    def __init__(self, a: Side, b: Side, progress: Progress) -> None:
        self._a, self._b = a, b
        self._progress = progress
        self._known: dict[tuple[Elements, Elements], Equality] = {}
        self._tied = _tied_keys(a), _tied_keys(b)
        self.nbytes = 0

    def compare(
        self, one: Tensor, other: Tensor, marks: tuple[Marks, Marks] = (UNMARKED, UNMARKED)
    ) -> Equality:
        """Compare two tensors of one dtype and as many elements.

        Args:
            one: The first.
            other: The second.
            marks: What the elements of each are only said to be.
        """
        try:
            first, second = _once(elements_of(one, marks[0]), elements_of(other, marks[1]))
            if first.storage not in self._tied[0] and second.storage not in self._tied[1]:
                return self._compare(first, second, one.dtype)
            known = self._known.get((first, second))
            if known is None:
                known = self._known[first, second] = self._compare(first, second, one.dtype)
        except CancelledError:
            raise
        except CheckpointError as error:
            return Equality("unread", str(error))
        return known

    def _compare(self, one: Elements, other: Elements, dtype: str) -> Equality:
        is_alike = one.view.shape == other.view.shape and one.view.stride == other.view.stride
        if one.nbytes <= PLAIN_NBYTES and one.is_plain and other.is_plain:
            return self._compare_small(one, other, dtype)
        if is_alike and not one.is_plain:
            answer = self._blocks(
                read_span(self._a, one, self._progress), read_span(self._b, other, self._progress), dtype
            )
            if answer.answer == "equal" or one.is_dense:
                return answer
        return self._blocks(
            read_elements(self._a, one, self._progress), read_elements(self._b, other, self._progress), dtype
        )

    def _compare_small(self, one: Elements, other: Elements, dtype: str) -> Equality:
        """Compare what one read takes; files can have a million of these."""
        size = one.itemsize
        block = self._a.reader.read(one.storage, one.view.first * size, one.nbytes)
        another = self._b.reader.read(other.storage, other.view.first * size, other.nbytes)
        if self._a.is_swapped or one.signs:
            block = as_meant(self._a, one, block)
        if self._b.is_swapped or other.signs:
            another = as_meant(self._b, other, another)
        self._count(len(block))
        return judge(block, another, dtype)

    def _blocks(self, blocks: Iterator[bytes], others: Iterator[bytes], dtype: str) -> Equality:
        found = Equality("equal")
        for block, other in side_by_side(blocks, others):
            self._count(len(block))
            answer = judge(block, other, dtype)
            if answer.answer == "differs":
                return answer
            found = answer if answer.answer == "bits" else found
        return found

    def _count(self, nbytes: int) -> None:
        self.nbytes += nbytes
        self._progress.advance(nbytes)


def _once(one: Elements, other: Elements) -> tuple[Elements, Elements]:
    """Return elements that both views repeat in the same way only once: what `expand` made can be endless."""
    if one.view.shape != other.view.shape or one.view.stride != other.view.stride or not one.view.numel:
        return one, other
    steps = zip(one.view.shape, one.view.stride, strict=True)
    shape = tuple(size if step else 1 for size, step in steps)
    return (
        one._replace(view=one.view._replace(shape=shape)),
        other._replace(view=other.view._replace(shape=shape)),
    )


def side_by_side(
    blocks: Iterator[bytes], others: Iterator[bytes], sizes: tuple[int, int] = (1, 1)
) -> Iterator[tuple[bytes, bytes]]:
    """Yield two streams of as many elements, of these sizes in bytes, in blocks of as many elements."""
    ahead = bytearray()
    for block in blocks:
        wanted = len(block) // sizes[0] * sizes[1]
        if not ahead:
            other = next(others)
            if len(other) == wanted:
                yield block, other
                continue
            ahead += other
        while len(ahead) < wanted:
            ahead += next(others)
        yield block, bytes(ahead[:wanted])
        del ahead[:wanted]


def judge(block: bytes, other: bytes, dtype: str) -> Equality:
    """Return whether two blocks of as many elements are equal."""
    if block == other:
        return Equality("equal")
    return Equality("differs" if differs_in_numbers(block, other, dtype) else "bits")


def _tied_keys(side: Side) -> frozenset[str]:
    """Return the storages that several tensors view."""
    return frozenset(storage.key for storage in side.checkpoint.storages if storage.tensors > 1)
