from __future__ import annotations

import json
import time

import pytest

from inspector.errors import ModelError
from inspector.limits import DEFAULT_LIMITS, Limits, written_chars
from inspector.records import replace
from tests.sweep import table


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


def test_work_is_counted_once_for_everything() -> None:
    first = Limits(parts=10_000).started()
    work = first.counted()
    assert first.started().counted() is work
    work.look(3)
    work.write(5)
    assert (work.parts, work.chars) == (3, 5)
    assert Limits().counted() is not Limits().counted()


def test_too_many_parts_are_refused() -> None:
    work = Limits(parts=20_000).counted()
    work.look(20_000)
    with pytest.raises(ModelError, match="refers to its parts more than 20,000 times"):
        work.look(10_000)


def test_too_many_characters_are_refused() -> None:
    work = Limits(chars=100).counted()
    assert work.has_room(50)
    work.write(100)
    assert not work.has_room(1)
    with pytest.raises(ModelError, match="the names in the checkpoint are too long"):
        work.write(1)


def test_work_asks_now_and_then_whether_to_go_on() -> None:
    asked = []
    work = Limits().counted(lambda: asked.append(work.parts))
    for _ in range(100):
        work.look(1000)
    assert 10 <= len(asked) <= 15


def test_time_ends_work() -> None:
    with pytest.raises(ModelError, match="describing the checkpoint takes longer than -1 s"):
        Limits(seconds=-1.0).counted().look(0)


@table("text", ["a", "\u4e2d", "\U0001f600", "\udc80", "a\u4e2d\x01"])
def test_no_text_is_written_with_more_characters(text: str) -> None:
    assert len(json.dumps(text)) - 2 <= written_chars(text) * (1 if text.isprintable() else 6)
    assert len(json.dumps(text * 9)) - 2 <= 6 * written_chars(text * 9)
