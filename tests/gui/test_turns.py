from __future__ import annotations

from collections.abc import Iterator

import pytest
from PySide6.QtCore import QObject

from inspector.gui.tasks import Turns


def note(done: list[object], name: str, steps: int) -> Iterator[None]:
    for step in range(steps):
        if step:
            yield
        done.append((name, step))


def test_the_first_step_is_taken_at_once_and_the_others_in_turns(qtbot):
    parent, done = QObject(), []
    turns = Turns(parent)
    turns.begin(note(done, "a", 3))
    assert (done, turns.is_busy) == ([("a", 0)], True)
    qtbot.waitUntil(lambda: not turns.is_busy)
    assert done == [("a", 0), ("a", 1), ("a", 2)]
    turns.begin(note(done, "b", 1))
    assert (done[-1], turns.is_busy) == (("b", 0), False)


def test_new_work_replaces_the_old_and_all_can_be_done_at_once(qtbot):
    parent, done = QObject(), []
    turns = Turns(parent)
    turns.begin(note(done, "a", 3))
    turns.begin(note(done, "b", 3))
    turns.finish()
    assert done == [("a", 0), ("b", 0), ("b", 1), ("b", 2)]
    turns.begin(note(done, "c", 3))
    turns.stop()
    qtbot.wait(5)
    assert done[-1] == ("c", 0)


def test_a_mistake_ends_the_work():
    def broken() -> Iterator[None]:
        raise ValueError("broken")
        yield

    parent = QObject()
    turns = Turns(parent)
    with pytest.raises(ValueError, match="broken"):
        turns.begin(broken())
    assert not turns.is_busy
