"""Which window shows a file is found out without the main thread waiting for a disk."""

from __future__ import annotations

from threading import Event, current_thread, main_thread
from threading import enumerate as enumerate_threads

import pytest

from inspector.gui import app as recognizing
from inspector.gui.app import recognize


@pytest.fixture
def hung(monkeypatch):
    """A disk that answers nothing until it is let go."""
    free, asked = Event(), []

    def is_same(path, other):
        asked.append((path, other, current_thread() is main_thread()))
        assert free.wait(60)
        return True

    monkeypatch.setattr(recognizing, "is_same_file", is_same)
    monkeypatch.setattr(recognizing, "PATIENCE_MS", 1)
    yield asked, free
    free.set()


def test_a_disk_that_hangs_holds_no_window_up(qtbot, hung):
    asked, free = hung
    told = []
    recognize(["/net/a.pth", "/b.pth"], ["/b.pth"], told.append)
    assert told == []  # the call returned, and waits for nobody
    qtbot.waitUntil(lambda: bool(told))
    assert told == [(None, 0)]
    free.set()
    qtbot.waitUntil(lambda: not any(thread.name == "checkpoint-work" for thread in enumerate_threads()))
    qtbot.wait(1)
    assert len(told) == 1  # what comes too late is dropped
    assert asked == [("/b.pth", "/net/a.pth", False)]  # and the next path is not asked for


def test_names_that_say_it_all_ask_no_disk(hung):
    asked, _ = hung
    told = []
    recognize(["/a.pth", "/b.pth"], ["/b.pth", "/a.pth", "/a.pth"], told.append)
    recognize(["/a.pth"], [], told.append)
    assert told == [(1, 0), (None,)]
    assert asked == []


def test_two_names_of_a_file_are_one(qtbot, tmp_path, monkeypatch):
    monkeypatch.setattr(recognizing, "PATIENCE_MS", 100_000)
    path, link, other = (tmp_path / name for name in ("a.pth", "link.pth", "other.pth"))
    path.write_bytes(b"")
    other.write_bytes(b"")
    link.symlink_to(path)
    told = []
    shown = [str(other), str(path)]
    recognize([str(link), str(tmp_path / "none"), "no\0name"], shown, told.append)
    qtbot.waitUntil(lambda: bool(told))
    assert told == [(1, None, None)]


def test_a_thread_that_fails_answers_with_what_the_names_say(qtbot, monkeypatch):
    def fail(*_):
        raise RuntimeError("no disk")

    monkeypatch.setattr(recognizing, "is_same_file", fail)
    told = []
    recognize(["/a.pth", "/b.pth"], ["/b.pth"], told.append)
    qtbot.waitUntil(lambda: bool(told))
    assert told == [(None, 0)]
