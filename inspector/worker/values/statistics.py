"""The statistics of one tensor: all its pieces through one summary, and the rows in which nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import Any

import numpy as np

from inspector.worker.decoding import NATIVE, value_of_codes
from inspector.worker.tensor_bytes import TensorBytes
from inspector.worker.values.reading import Request, channels_of, view_of
from inspector.worker.values.sparse import place_of, stored_of, unravelled
from inspector.worker.values.summary import PLACES, FloatSummary, summary_for
from inspector.worker.values.views import Piece, View, pieces

_MOST_ROWS = 1 << 24

Found = dict[str, Any]


class Statistics:
    """Reads a tensor to its end and keeps what was counted."""

    def __init__(self, request: Request, opened: TensorBytes) -> None:
        self._request = request
        self._opened = opened
        self._view = view_of(request)
        self._channels = channels_of(request, opened)
        self._is_one = len(self._channels) == 1
        coded = self._channels[0].coded if self._channels else None
        neg = bool(request.get("neg"))
        numel = self._view.numel // (self._view.repeats or 1)
        counted = summary_for(self._view.dtype, coded, neg=neg, numel=numel)
        self._summary = counted if self._is_one else FloatSummary()
        self._rows = _Rows(self._view)

    def steps(self) -> Iterator[int]:
        """Count piece after piece, and yield how many bytes each had."""
        read = self._opened.read_of(self._request["place"])
        for view, coded in self._channels:
            for piece in pieces(view, read):
                nbytes = piece.codes.nbytes
                if not self._is_one and coded is not None:
                    numbers = coded.numbers(piece.flat)
                    piece = piece._replace(codes=coded.numbers(piece.codes), flat=numbers)  # noqa: PLW2901 - the same elements
                self._summary.add(piece)
                self._rows.add(piece)
                yield nbytes

    def result(self) -> Found:
        """Return all figures, those of a sparse tensor with the zeros that are not stored."""
        stored = self._summary.document(self._view.repeats)
        pair = 2 if self._view.dtype.endswith("_x2") else 1
        found = {"numel": self._view.numel * pair, **stored, "of": "all", "dead_rows": self._rows.dead()}
        if "layout" in self._request:
            found = self._sparse(found)
        else:
            shape = [*self._view.shape]
            for name in PLACES:
                place = found[f"first_{name}"]
                found[f"first_{name}"] = None if place is None else unravelled(place, shape)
        mean = found.get("complex_mean")
        if mean is not None:
            found["complex_mean"] = _turned(mean, self._request)
        return found

    def _sparse(self, found: Found) -> Found:
        places = stored_of(self._request, self._opened)
        shape, values_shape = self._request["whole"], [*self._view.shape]
        first = {
            f"first_{name}": place_of(places, shape, values_shape, found[f"first_{name}"]) for name in PLACES
        }
        stored = {**found, **first, "dead_rows": None}
        missing = prod(shape) - self._view.numel
        if not places.is_once or missing < 0:
            return {**stored, "of": "stored"}
        if missing:
            self._summary.add_zeros(missing)
        whole = self._summary.document(self._view.repeats)
        return {**whole, **first, "numel": prod(shape), "of": "all", "dead_rows": None, "stored": stored}


def _turned(mean: list[float | None], request: Request) -> list[float | None]:
    """Return the mean of complex numbers that are to be conjugated, or negated, when they are used."""
    real, imag = mean
    if request.get("conj") and imag is not None:
        imag = -imag
    if request.get("neg"):
        real, imag = (None if part is None else -part for part in (real, imag))
    return [real, imag]


class _Rows:
    """Which rows, the indices of the first dimension, have an element that is not zero."""

    def __init__(self, view: View) -> None:
        self._dtype, self._is_native = view.dtype, view.dtype in NATIVE
        self._length = prod(view.shape[1:])
        is_small = len(view.shape) > 1 and self._length > 1 and 1 < view.shape[0] <= _MOST_ROWS
        self._alive = np.zeros(view.shape[0], np.bool_) if is_small else None

    def add(self, piece: Piece) -> None:
        if self._alive is None:
            return
        if piece.steps != (1,) or piece.flat.size != piece.codes.size:
            self._alive = None
            return
        flat, end = piece.flat, piece.first + piece.flat.size
        first, last = piece.first // self._length, (end - 1) // self._length
        # Bits of minus zero are not zero: only what NumPy has the type of is quick to tell.
        if self._is_native and np.count_nonzero(flat) == flat.size:
            self._alive[first : last + 1] = True
            return
        starts = np.arange(first, last + 1) * self._length - piece.first
        starts[0] = 0
        self._alive[first : last + 1] |= np.logical_or.reduceat(
            value_of_codes(flat, self._dtype) != 0, starts
        )

    def dead(self) -> int | None:
        return None if self._alive is None else int(self._alive.size - self._alive.sum())
