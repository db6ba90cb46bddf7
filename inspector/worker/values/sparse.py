"""What is not stored of a sparse tensor: where its elements stand, and the zeros between them."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from inspector.worker.tensor_bytes import TensorBytes
from inspector.worker.values.reading import Request, whole_array

_MOST_INDICES = 1 << 22


class Stored(NamedTuple):
    """Where the stored elements of a sparse tensor belong.

    Attributes:
        is_once: Whether none of them stands at a place where another does; None where that is not known.
        indices: Their places by dimension, or None.
    """

    is_once: bool | None
    indices: npt.NDArray[np.int64] | None


def stored_of(request: Request, opened: TensorBytes) -> Stored:
    """Return where the stored elements of a sparse tensor belong."""
    if request["layout"] != "sparse_coo":
        return Stored(
            is_once=True, indices=None
        )  # torch refuses a place that is named twice in these layouts
    indices = request["indices"]
    if prod(indices["shape"]) > _MOST_INDICES or len(indices["shape"]) != 2:
        return Stored(is_once=None, indices=None)
    found = whole_array(indices, opened, _MOST_INDICES).reshape(indices["shape"]).astype(np.int64)
    sizes = np.array(request["whole"][: len(found)], np.int64)[:, None]
    if len(sizes) < len(found) or ((found < 0) | (found >= sizes)).any():
        return Stored(is_once=None, indices=None)
    size = len(np.unique(found, axis=1).T) if found.size else found.shape[1]
    is_once = size == found.shape[1] and (bool(found.shape[0]) or size < 2)
    return Stored(is_once=is_once, indices=found)


def place_of(
    stored: Stored, shape: list[int], values_shape: list[int], place: int | None
) -> list[int] | None:
    """Return the index in the whole of a stored element; None where that is not known."""
    if place is None or stored.indices is None:
        return None
    index = unravelled(place, values_shape)
    found = [*stored.indices[:, index[0]].tolist(), *index[1:]]
    return found if len(found) == len(shape) else None


def unravelled(place: int, shape: list[int]) -> list[int]:
    """Return the index of an element that is counted in the order of rows."""
    found = []
    for size in reversed(shape):
        place, index = divmod(place, size)
        found.append(index)
    return found[::-1]
