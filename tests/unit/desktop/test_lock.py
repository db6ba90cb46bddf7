"""One process holds the lock, and loses it with its life."""

from __future__ import annotations

import os
import subprocess
import sys
import types

import pytest

from inspector.desktop.lock import ProcessLock

HOLD = "import sys, time; from inspector.desktop.lock import ProcessLock as L; l = L(sys.argv[1])\n"


def test_only_one_holds_it(tmp_path):
    path = str(tmp_path / "lock")
    first, second = ProcessLock(path), ProcessLock(path)
    assert first.try_lock()
    assert not second.try_lock()
    first.unlock()
    first.unlock()
    assert second.try_lock()
    second.unlock()


def test_the_file_tells_since_when_it_is_locked(tmp_path):
    path = tmp_path / "lock"
    path.touch()
    os.utime(path, (0, 0))
    holder = ProcessLock(str(path))
    assert holder.try_lock()
    assert path.stat().st_mtime > 0
    holder.unlock()
    assert path.exists()


def test_a_process_that_was_killed_holds_nothing_even_before_it_is_collected(tmp_path):
    path = str(tmp_path / "lock")
    code = HOLD + "print(l.try_lock(), flush=True); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE, text=True)
    with child:
        assert child.stdout.readline() == "True\n"
        assert not ProcessLock(path).try_lock()
        child.kill()
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)  # it is over, and still there as a zombie
        successor = ProcessLock(path)
        assert successor.try_lock()
        successor.unlock()


def test_a_child_does_not_keep_the_lock(tmp_path):
    holder = ProcessLock(str(tmp_path / "lock"))
    assert holder.try_lock()
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        holder.unlock()
        assert holder.try_lock()
        child.communicate(b"\n")
    holder.unlock()


def test_a_folder_that_is_not_there(tmp_path):
    assert not ProcessLock(str(tmp_path / "missing" / "lock")).try_lock()


@pytest.mark.parametrize("held", [False, True])
def test_windows_locks_a_byte(tmp_path, monkeypatch, held):
    def locking(handle, mode, nbytes):
        assert (mode, nbytes) == (2, 1)
        if held:
            raise PermissionError

    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setitem(sys.modules, "msvcrt", types.SimpleNamespace(locking=locking, LK_NBLCK=2))
    holder = ProcessLock(str(tmp_path / "lock"))
    assert holder.try_lock() is not held
    holder.unlock()
