from __future__ import annotations

import pytest

from inspector.errors import CancelledError
from inspector.progress import Progress


def test_progress_starts_with_nothing_done() -> None:
    progress = Progress("reading")
    assert (progress.label, progress.done, progress.total) == ("reading", 0, 0)
    assert progress.fraction is None
    assert not progress.cancelled


def test_fraction_follows_the_work_and_never_passes_one() -> None:
    progress = Progress()
    progress.start("copying", 8)
    assert progress.fraction == 0
    progress.advance(2)
    assert progress.fraction == 0.25
    progress.advance(60)
    assert progress.fraction == 1


def test_cancelling_ends_the_work_at_its_next_step() -> None:
    progress = Progress()
    progress.start("copying", 8)
    progress.cancel()
    progress.cancel()
    assert progress.cancelled
    with pytest.raises(CancelledError):
        progress.advance(4)
    assert progress.done == 0
    with pytest.raises(CancelledError):
        progress.start("checking")


def test_rows_are_counted_while_they_are_gone_through() -> None:
    progress = Progress()
    rows = range(10_000)

    each = progress.over(rows)
    taken = [next(each) for _ in range(5000)]

    assert 5000 <= progress.done < len(rows)
    progress.cancel()
    with pytest.raises(CancelledError):
        list(each)
    assert [*taken, *Progress().over(rows)][: len(rows)] == [*range(5000), *range(5000)]
    assert list(Progress().over([])) == []
