from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from inspector.containers.collector import collector_paused, keep_from_collector


@pytest.fixture(autouse=True)
def _enabled() -> Iterator[None]:
    gc.enable()
    gc.unfreeze()
    yield
    gc.enable()


def test_collector_rests_within_and_runs_again_behind() -> None:
    with collector_paused():
        assert not gc.isenabled()
        with collector_paused():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


def test_collector_runs_again_after_a_failure() -> None:
    with pytest.raises(RuntimeError), collector_paused():
        raise RuntimeError
    assert gc.isenabled()


def test_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_overlapping_pauses_end_with_the_collector_running() -> None:
    first, second = collector_paused(), collector_paused()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    second.__exit__(None, None, None)
    assert gc.isenabled()


class _Holder:
    """Something that refers to much."""


def _looked_at() -> list[int]:
    """Return how many objects the collector walked over since, in its youngest generation."""
    return [len(gc.get_objects(generation=generation)) for generation in (0, 1)]


def test_what_was_made_meanwhile_is_old_at_once() -> None:
    with collector_paused():
        made = [[number] for number in range(150_000)]
    assert sum(_looked_at()) < 50_000
    assert any(found is made for found in gc.get_objects(generation=2))  # nothing is held from it for good


def test_few_objects_stay_young() -> None:
    gc.collect(0)
    with collector_paused():
        made = [[number] for number in range(100)]
    assert any(found is made for found in gc.get_objects(generation=0))


def test_what_a_holder_refers_to_is_looked_at_again_when_it_is_gone() -> None:
    first, second = _Holder(), _Holder()
    assert gc.get_freeze_count() == 0
    keep_from_collector(first)
    keep_from_collector(second)
    with collector_paused():
        made = [[number] for number in range(150_000)]
    assert gc.get_freeze_count() > len(made)
    del first
    assert gc.get_freeze_count() > len(made)
    del second
    assert gc.get_freeze_count() == 0
