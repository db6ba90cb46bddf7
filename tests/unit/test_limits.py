from __future__ import annotations

import time

import pytest

from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.records import replace


def test_every_limit_is_a_bound() -> None:
    bounds = [name for name in DEFAULT_LIMITS.__record_fields__ if name != "work"]
    values = [getattr(DEFAULT_LIMITS, name) for name in bounds]
    assert all(value > 0 for value in values)


def test_limits_are_changed_by_replacing_them() -> None:
    with pytest.raises(AttributeError):
        DEFAULT_LIMITS.rows = 1
    assert replace(DEFAULT_LIMITS, rows=1) == Limits(rows=1)


def test_the_largest_genuine_checkpoint_fits() -> None:
    # 350,000 tensors take 10.5 million opcodes, 39 MB of pickle and 3.7 million values.
    assert DEFAULT_LIMITS.opcodes > 10_500_000
    assert DEFAULT_LIMITS.pickle_nbytes > 39_000_000
    assert DEFAULT_LIMITS.values > 3_700_000
    assert min(DEFAULT_LIMITS.rows, DEFAULT_LIMITS.storages) > 350_000


def test_time_runs_once_for_everything() -> None:
    first = Limits(seconds=5.0).started()
    assert time.thread_time() < first.ends_s <= time.thread_time() + 5
    assert first.started().ends_s == first.ends_s
    assert replace(first, seconds=-1.0).started().ends_s < first.ends_s
