from __future__ import annotations

import random
from functools import partial

import pytest

from inspector.errors import CancelledError
from inspector.model.tensors import row_blocks as module
from inspector.model.tensors.row_blocks import View, row_blocks
from inspector.progress import Progress
from tests.unit.model.tensors.test_elements import straightened

DATA = random.Random(3).randbytes(1 << 12)


def read(data: bytes, offset: int, nbytes: int) -> bytes:
    assert 0 <= offset <= offset + nbytes <= len(data)
    return data[offset : offset + nbytes]


@pytest.mark.parametrize("itemsize", [1, 2, 4, 8, 16])
def test_blocks_are_the_rows_in_their_order_however_they_lie(
    itemsize: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PLAIN_NBYTES", 48)
    monkeypatch.setattr(module, "BAND_NBYTES", 48)
    views = [
        View((), (), 3),
        View((0, 4), (4, 1), 0),
        View((0, 4), (1, 9), 0),
        View((5, 7), (7, 1), 2),
        View((7, 5), (1, 7), 2),  # transposed
        View((3, 4, 5), (1, 3, 12), 1),
        View((3, 4, 5), (20, 1, 4), 0),
        View((4, 3), (0, 2), 1),  # expanded, with gaps
        View((2, 2, 9, 2), (36, 1, 4, 2), 0),
        View((6,), (5,), 0),
    ]
    for view in views:
        blocks = list(row_blocks(view, itemsize, partial(read, DATA), Progress()))
        assert b"".join(blocks) == straightened(DATA, *view, itemsize), view
        assert all(0 < len(block) <= 48 for block in blocks), view
        assert view.reach == (0 if 0 in view.shape else 1 + _last(view) - view.first)


def _last(view: View) -> int:
    return view.first + sum((size - 1) * step for size, step in zip(view.shape, view.stride, strict=True))


@pytest.mark.parametrize("view", [View((4, 4), (4, 1), 0), View((4, 4), (1, 4), 0)])
def test_reading_can_be_cancelled_and_counts_nothing_of_its_own(view: View) -> None:
    progress = Progress()
    blocks = list(row_blocks(view, 4, partial(read, DATA), progress))
    assert len(blocks) == 1
    assert progress.done == 0
    progress.cancel()
    with pytest.raises(CancelledError):
        list(row_blocks(view, 4, partial(read, DATA), progress))
