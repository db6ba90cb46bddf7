from __future__ import annotations

import pytest

from inspector.gui.widgets.progress import Rate, format_seconds
from inspector.progress import Progress


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.2, "1 s"), (8.4, "8 s"), (59, "59 s"), (125, "2 min 5 s"), (3840, "1 h 4 min")],
)
def test_durations_are_told_as_people_do(seconds, told):
    assert format_seconds(seconds) == told


def test_speed_and_time_left_come_with_the_second_look():
    clock, work = Clock(), Progress()
    rate = Rate(clock)
    work.start("copying", 2_000_000_000)
    assert rate.describe(work) == "0 B of 2.0 GB"
    clock.now += 1
    work.advance(500_000_000)
    assert rate.describe(work) == "500 MB of 2.0 GB  \u00b7  500 MB/s  \u00b7  3 s left"
    clock.now += 10
    work.advance(1_500_000_000)
    assert "left" not in rate.describe(work)


def test_a_new_stage_is_measured_anew():
    clock, work = Clock(), Progress()
    rate = Rate(clock)
    work.start("copying", 100)
    rate.describe(work)
    clock.now += 1
    work.advance(100)
    rate.describe(work)
    work.start("comparing", 1000)
    assert rate.describe(work) == "0 B of 1.0 KB"


def test_without_a_total_there_is_nothing_to_tell():
    assert Rate(Clock()).describe(Progress("looking")) == ""


def test_work_that_stands_still_has_no_speed():
    clock, work = Clock(), Progress()
    rate = Rate(clock)
    work.start("copying", 100)
    rate.describe(work)
    clock.now += 2
    assert rate.describe(work) == "0 B of 100 B"


def test_things_that_are_counted_are_no_bytes():
    clock, work = Clock(), Progress()
    rate = Rate(clock)
    work.start("listing", 400_000, is_counted=True)
    assert rate.describe(work) == "0 of 400,000"
    clock.now += 1.0
    work.advance(100_000)
    assert rate.describe(work) == "100,000 of 400,000  \u00b7  3 s left"
