from __future__ import annotations

import gc

import pytest

from inspector.gui.collector import CollectorPause


@pytest.fixture(autouse=True)
def _thaw():
    yield
    gc.unfreeze()
    assert gc.isenabled()


def test_nothing_is_collected_inside_and_what_was_made_there_is_left_alone():
    pause = CollectorPause()
    with pause:
        assert not gc.isenabled()
        made = [[] for _ in range(1000)]
    assert gc.isenabled()
    assert gc.get_freeze_count() > len(made)


def test_the_last_one_out_switches_it_on_again():
    pause = CollectorPause()
    with pause:
        with pause:
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


def test_a_mistake_leaves_it_on():
    with pytest.raises(ValueError, match="mistake"), CollectorPause():
        raise ValueError("mistake")
    assert gc.isenabled()
