"""Files of `torch.save` that stand one behind the other in one file, as the ranks of a save write them."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from inspector.containers.source import Source
from inspector.containers.zip.end import END, END64, END64_SIGNATURE, END_SIGNATURE, LOCATOR64

_LOCAL_SIGNATURE = b"PK\x03\x04"
_TAIL_NBYTES = END64.size + LOCATOR64.size + END.size
_STEP_NBYTES = 1 << 20
_PART_NBYTES = 512  # searching so many bytes takes as long as looking at a part of a pickle


class Span(NamedTuple):
    """Where one of them begins, and how long it is."""

    offset: int
    nbytes: int


class Row(NamedTuple):
    """The zips of a file.

    Attributes:
        spans: Where they are, in order.
        lost: How many bytes stand before the first of them or behind the last, and belong to none.
    """

    spans: tuple[Span, ...]
    lost: int


def ends_in_row(source: Source) -> bool:
    """Return whether a file ends with a zip that another one stands before."""
    last = _span_before(source, source.nbytes)
    return last is not None and last.offset > 0 and _span_before(source, last.offset) is not None


def find_row(source: Source, look: Callable[[int], object]) -> Row:
    """Find the zips of a file: from its end, where it is whole, else by searching from its beginning."""
    spans: list[Span] = []
    end = source.nbytes
    while end:
        look(1)
        span = _span_before(source, end)
        if span is None:
            break
        spans.append(span)
        end = span.offset
    if end == 0 or spans:
        return Row(tuple(reversed(spans)), end)
    spans = _search(source, look)
    return Row(tuple(spans), source.nbytes - (spans[-1].offset + spans[-1].nbytes if spans else 0))


def _span_before(source: Source, end: int) -> Span | None:
    """Return the zip of torch that ends at a place: such a one always has an end record of Zip64."""
    if end < _TAIL_NBYTES:
        return None
    tail = source.read(end - _TAIL_NBYTES, _TAIL_NBYTES)
    if tail[:4] != END64_SIGNATURE or tail[-END.size :][:4] != END_SIGNATURE:
        return None
    nbytes, start = END64.unpack_from(tail)[8:10]
    offset = end - _TAIL_NBYTES - nbytes - start
    if offset < 0 or source.read(offset, 4) != _LOCAL_SIGNATURE:
        return None
    return Span(offset, end - offset)


def _search(source: Source, look: Callable[[int], object]) -> list[Span]:
    """Return the zips at the beginning of a file whose end is lost."""
    spans: list[Span] = []
    pos, reached = 0, 0
    while pos < source.nbytes:
        look(_STEP_NBYTES // _PART_NBYTES)
        block = source.read_upto(pos, _STEP_NBYTES + END.size)
        at = block.find(END_SIGNATURE)
        if at < 0:
            pos += _STEP_NBYTES
            continue
        end = pos + at + END.size
        span = _span_before(source, end) if end <= source.nbytes else None
        if span is not None and span.offset == reached:
            spans.append(span)
            reached = end
            pos = end
        else:
            pos += at + 1
    return spans
