from __future__ import annotations

import pytest

from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.records import replace


def test_every_limit_is_a_bound() -> None:
    values = [getattr(DEFAULT_LIMITS, name) for name in DEFAULT_LIMITS.__record_fields__]
    assert all(value > 0 for value in values)


def test_limits_are_changed_by_replacing_them() -> None:
    with pytest.raises(AttributeError):
        DEFAULT_LIMITS.rows = 1
    assert replace(DEFAULT_LIMITS, rows=1) == Limits(rows=1)


def test_the_largest_genuine_checkpoint_fits() -> None:
    # 100,000 tensors take 3.3 million opcodes and 12 MB of pickle.
    assert DEFAULT_LIMITS.opcodes > 3_300_000
    assert DEFAULT_LIMITS.pickle_nbytes > 12_000_000
    assert DEFAULT_LIMITS.rows > 100_000
