from __future__ import annotations

import gc
import weakref

import pytest

from inspector.gui import tasks
from inspector.gui.tasks import FreezingPause, collect_closed


@pytest.fixture(autouse=True)
def _thaw():
    gc.unfreeze()
    yield
    gc.unfreeze()
    assert gc.isenabled()


def test_nothing_is_collected_inside_and_what_was_made_there_is_left_alone():
    pause = FreezingPause()
    with pause:
        assert not gc.isenabled()
        made = [[] for _ in range(100_000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)


def test_work_that_makes_little_freezes_nothing():
    with FreezingPause():
        gc.collect(0)  # what was made before
        made = [[] for _ in range(100)]
    assert made
    assert gc.get_freeze_count() == 0


def test_one_long_container_is_frozen_as_many_objects_are():
    """A collection of new objects walks over all that such a list refers to: 50 ms at 400,000 tensors."""
    rows = [[] for _ in range(20_000)]
    makers = {
        "list": lambda: list(rows),
        "tuple": lambda: tuple(rows),
        "dict": lambda: {id(row): row for row in rows},
    }
    for name, make in makers.items():
        gc.collect()
        with FreezingPause():
            made = make()
        assert len(made) == len(rows)
        assert gc.get_freeze_count() > 0, name
        assert all(one is not made for one in gc.get_objects()), name
        gc.unfreeze()


class Thing:
    """Refers to itself, as a window and its parts do."""

    def __init__(self) -> None:
        self.itself = self


def test_what_a_closed_window_leaves_is_collected_though_it_was_frozen(monkeypatch):
    thing = Thing()
    seen = weakref.ref(thing)
    gc.freeze()
    del thing
    gc.collect()  # of nothing: all is frozen
    assert seen() is not None
    monkeypatch.setattr(tasks, "_FEW", 0)  # with a large file in another window: that would take long
    collect_closed()
    assert seen() is not None
    monkeypatch.setattr(tasks, "_FEW", 10_000_000)
    with FreezingPause():
        collect_closed()
    assert seen() is not None
    collect_closed()
    assert seen() is None


def test_the_last_one_out_switches_it_on_again():
    pause = FreezingPause()
    with pause:
        with pause:
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_mistake_leaves_it_on():
    with pytest.raises(ValueError, match="mistake"), FreezingPause():
        raise ValueError("mistake")
    assert gc.isenabled()
