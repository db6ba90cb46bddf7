"""A second launch hands its files over, and never waits long for anything odd at the other end."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import threading
import types
from contextlib import contextmanager
from pathlib import Path

import pytest

from inspector.desktop import handover
from inspector.desktop.handover import Message, ProcessLock, find_endpoint, hand_over, is_same_user
from tests.sweep import table


@pytest.fixture
def runtime(monkeypatch):
    """A folder of this test alone, with a short name: a socket's path has about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="ci-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("DISPLAY", ":7")
        monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
        monkeypatch.delenv("XDG_ACTIVATION_TOKEN", raising=False)
        monkeypatch.setattr(handover, "ANSWER_TIMEOUT_S", 60.0)  # a busy machine is no program that hangs
        yield Path(folder)


@contextmanager
def answering(answer: bytes | None):
    """Listen as the running program does; None keeps silent."""
    said: list[bytes] = []
    done = threading.Event()
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(find_endpoint().socket)
        server.listen()

        def serve() -> None:
            connection, _ = server.accept()
            with connection, connection.makefile("rb") as lines:
                said.append(lines.readline())
                if answer is None:
                    done.wait(60)
                elif said[-1]:
                    connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield said
        done.set()
        thread.join(60)


def test_files_are_handed_over_as_absolute_paths(runtime, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_ACTIVATION_TOKEN", "token-1")
    with answering(b"ok\n") as said:
        assert hand_over(["a b.pth", Path("/x/../y.pth"), "caf\udce9.pt"])
    assert json.loads(said[0]) == {
        "paths": [f"{tmp_path}/a b.pth", "/y.pth", f"{tmp_path}/caf\udce9.pt"],
        "activation_token": "token-1",
    }


def test_nobody_listens(runtime):
    assert not hand_over(["x.pth"])


def test_a_socket_that_a_crash_left_behind_is_nobody(runtime):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(find_endpoint().socket)
    assert not hand_over(["x.pth"])


@pytest.mark.parametrize("answer", [b"", b"no\n", None])
def test_no_good_answer_is_no_hand_over(runtime, monkeypatch, answer):
    monkeypatch.setattr(handover, "ANSWER_TIMEOUT_S", 0.1)
    with answering(answer):
        assert not hand_over(["x.pth"])


def test_a_program_that_just_starts_is_given_more_time(runtime):
    lock = Path(find_endpoint().lock)
    assert handover._patience_s(find_endpoint()) == handover.ANSWER_TIMEOUT_S
    lock.touch()
    assert handover._patience_s(find_endpoint()) == handover.START_TIMEOUT_S
    os.utime(lock, (0, 0))
    assert handover._patience_s(find_endpoint()) == handover.ANSWER_TIMEOUT_S


def test_a_program_of_another_user_gets_nothing(runtime, monkeypatch):
    monkeypatch.setattr(handover, "is_same_user", lambda connection: False)
    with answering(b"ok\n") as said:
        assert not hand_over(["x.pth"])
    assert said == [b""]


def test_more_than_fits_opens_by_itself(runtime):
    assert not hand_over(["x"] * (handover.MAX_PATHS + 1))
    assert not hand_over(["x" * handover.MAX_MESSAGE_NBYTES])


@table(
    "line",
    [
        b"",
        b"\xff\n",
        b"[]\n",
        b"{}\n",
        b"[" * 100_000,
        b'{"paths": "/a"}\n',
        b'{"paths": [1]}\n',
        b'{"paths": ["relative"]}\n',
        b'{"paths": ["/a\\u0000b"]}\n',
        b'{"paths": ["/a\\ud800b"]}\n',
        b'{"paths": [], "activation_token": 1}\n',
        json.dumps({"paths": ["/a"] * (handover.MAX_PATHS + 1)}).encode(),
    ],
)
def test_what_is_no_message_is_none(line):
    assert Message.from_bytes(line) is None


def test_a_message_comes_back():
    message = Message(paths=("/a b", "/caf\udce9"), activation_token="t")
    line = message.to_bytes()
    assert line.count(b"\n") == 1
    assert Message.from_bytes(line) == message


@table("token", ["a\0b", "\ud800", "caf\xe9", "a\nb", "x" * 1001])
def test_a_token_that_no_environment_takes_is_left_out(token):
    assert Message.from_bytes(Message(paths=("/a",), activation_token=token).to_bytes()) == Message(
        paths=("/a",)
    )


# ------------------------------------------------------------------ the place


def test_the_place_is_the_users_runtime_folder(runtime):
    endpoint = find_endpoint()
    assert Path(endpoint.socket).parent == Path(endpoint.lock).parent == runtime
    assert endpoint == find_endpoint()


def test_each_display_has_a_place_of_its_own(runtime, monkeypatch):
    first = find_endpoint()
    monkeypatch.setenv("DISPLAY", "localhost:10.0")
    second = find_endpoint()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    third = find_endpoint()
    assert len({first.socket, second.socket, third.socket}) == 3


@pytest.fixture
def temporary(runtime, monkeypatch):
    folder = runtime / "tmp"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("value", ["", "relative", "/does/not/exist"])
def test_without_a_runtime_folder_a_private_one_is_made(temporary, monkeypatch, value):
    monkeypatch.setenv("XDG_RUNTIME_DIR", value)
    folder = Path(find_endpoint().socket).parent
    assert folder.parent == temporary
    assert folder.stat().st_mode & 0o777 == 0o700


def test_a_runtime_folder_open_to_others_is_not_used(temporary, runtime):
    runtime.chmod(0o755)
    assert Path(find_endpoint().socket).parent.parent == temporary


def test_a_long_runtime_folder_is_too_much_for_a_socket(temporary, runtime, monkeypatch):
    places = set()
    for letter in "ab":
        long = runtime / (letter * 120)
        long.mkdir(mode=0o700)
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
        places.add(find_endpoint().socket)
    assert len(places) == 2
    assert {Path(place).parent.parent for place in places} == {temporary}


def test_a_folder_that_someone_else_prepared_is_not_used(temporary, monkeypatch):
    monkeypatch.setenv("XDG_RUNTIME_DIR", "")
    trap = temporary / f"checkpoint-inspector-{os.getuid()}-0"
    trap.mkdir(mode=0o777)
    trap.chmod(0o777)
    assert find_endpoint() is None
    assert not hand_over(["x.pth"])
    trap.rmdir()
    trap.symlink_to("/")
    assert find_endpoint() is None
    trap.unlink()
    trap.touch()
    assert find_endpoint() is None


# ------------------------------------------------------------------ who is there


def test_the_kernel_knows_who_is_at_the_other_end(monkeypatch):
    left, right = socket.socketpair()
    with left, right:
        assert is_same_user(left)
        monkeypatch.setattr(os, "getuid", lambda: 12345)
        assert not is_same_user(left)


def test_where_the_kernel_cannot_be_asked(monkeypatch):
    class Connection:
        def getsockopt(self, level: int, name: int, size: int) -> bytes:
            raise OSError

    assert not is_same_user(Connection())
    monkeypatch.delattr(socket, "SO_PEERCRED", raising=False)
    assert is_same_user(Connection())


# ------------------------------------------------------------------ Windows


def test_a_pipe_is_asked_on_windows(runtime, monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "win32")
    endpoint = find_endpoint()
    assert endpoint.socket.startswith(r"\\.\pipe\checkpoint-inspector-")
    assert not hand_over(["x.pth"])


@pytest.mark.parametrize(("answer", "expected"), [(b"ok\n", True), (b"no\n", False)])
def test_a_pipe_opens_like_a_file(tmp_path, answer, expected):
    message = b"message\n"
    path = tmp_path / "pipe"
    path.write_bytes(b"." * len(message) + answer)
    assert handover._ask_pipe(str(path), message) is expected
    assert path.read_bytes() == message + answer


# ------------------------------------------------------------------ the price


def test_nothing_heavy_is_imported():
    """Qt alone would cost several tenths of a second for each further double-click."""
    code = "import sys, inspector.desktop.handover; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout
    assert not {"PySide6", "numpy", "torch", "pyqtgraph", "asyncio"} & set(modules.split())


HOLD = "import sys, time; from inspector.desktop.handover import ProcessLock as L; l = L(sys.argv[1])\n"


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
