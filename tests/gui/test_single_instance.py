"""The running program receives the files of later launches, whoever else knocks at its socket."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest
from PySide6.QtNetwork import QLocalServer

from inspector.desktop import handover
from inspector.desktop.handover import Message, ProcessLock, find_endpoint, hand_over
from inspector.gui import single_instance
from inspector.gui.single_instance import InstanceServer, lead_or_hand_over


@pytest.fixture(autouse=True)
def runtime(monkeypatch):
    """A folder of this test alone, with a short name: a socket's path has about a hundred bytes."""
    with tempfile.TemporaryDirectory(prefix="ci-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("DISPLAY", ":7")
        for name in ("WAYLAND_DISPLAY", "XDG_ACTIVATION_TOKEN"):
            monkeypatch.setenv(name, "")
        for name in ("ANSWER_TIMEOUT_S", "START_TIMEOUT_S"):
            monkeypatch.setattr(handover, name, 100.0)  # a busy machine is no program that hangs
        for name in ("MESSAGE_TIMEOUT_MS", "ANSWER_TIMEOUT_MS"):
            monkeypatch.setattr(single_instance, name, 100_000)
        yield Path(folder)


@pytest.fixture
def server(qapp):
    server = InstanceServer()
    assert server.listen()
    yield server
    server.close()


@pytest.fixture
def elsewhere():
    """Run something in a thread, as a second launch would do it in its own process."""
    with ThreadPoolExecutor() as threads:
        yield threads.submit


def send(content: bytes) -> bytes:
    """Send anything at all to the running program, and listen until it has had enough."""
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(100)
        connection.connect(find_endpoint().socket)
        try:
            connection.sendall(content)
            return connection.recv(100)
        except (BrokenPipeError, ConnectionResetError):
            return b""


def wait(qtbot, future: Future):
    qtbot.waitUntil(future.done)
    return future.result()


def test_files_arrive(qtbot, server, elsewhere):
    with qtbot.waitSignal(server.paths_received) as received:
        given = elsewhere(hand_over, ["/a b.pth", "/caf\udce9.pth"])
    assert received.args == [["/a b.pth", "/caf\udce9.pth"]]
    assert wait(qtbot, given)


def test_a_launch_without_files_arrives_too(qtbot, server, elsewhere):
    with qtbot.waitSignal(server.paths_received) as received:
        given = elsewhere(hand_over, [])
    assert received.args == [[]]
    assert wait(qtbot, given)


def test_many_launches_at_the_same_moment_all_arrive(qtbot, server, elsewhere):
    received = []
    server.paths_received.connect(received.extend)
    given = [elsewhere(hand_over, [f"/{number}.pth"]) for number in range(12)]
    assert all(wait(qtbot, one) for one in given)
    assert sorted(received) == sorted(f"/{number}.pth" for number in range(12))


def test_the_token_to_come_to_the_front_is_handed_on(qtbot, server, elsewhere):
    os.environ["XDG_ACTIVATION_TOKEN"] = "mine"
    message = Message(paths=("/a",), activation_token="theirs")
    with qtbot.waitSignal(server.paths_received):
        given = elsewhere(send, message.to_bytes())
    assert wait(qtbot, given) == b"ok\n"
    assert os.environ["XDG_ACTIVATION_TOKEN"] == "theirs"


def test_a_message_may_come_in_pieces(qtbot, server):
    received = []
    server.paths_received.connect(received.append)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(find_endpoint().socket)
        line = Message(paths=("/a",)).to_bytes()
        for start, end in ((0, 5), (5, len(line) - 1)):
            connection.sendall(line[start:end])
            qtbot.waitUntil(lambda end=end: come(server) == [end])
            assert received == []
        connection.sendall(line[-1:])
        qtbot.waitUntil(lambda: bool(received))
    assert received == [["/a"]]


@pytest.mark.parametrize(
    "content", [b"GET / HTTP/1.0\r\n\r\n", b"[]\n", b"x" * (handover.MAX_MESSAGE_NBYTES + 9)]
)
def test_nonsense_is_hung_up_on(qtbot, server, elsewhere, content):
    with qtbot.assertNotEmitted(server.paths_received):
        assert wait(qtbot, elsewhere(send, content)) == b""


def test_silence_is_hung_up_on(qtbot, server, elsewhere, monkeypatch):
    monkeypatch.setattr(single_instance, "MESSAGE_TIMEOUT_MS", 50)
    with qtbot.assertNotEmitted(server.paths_received):
        assert wait(qtbot, elsewhere(send, b'{"paths"')) == b""


def test_who_leaves_early_is_forgotten(qtbot, server, elsewhere):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(find_endpoint().socket)
        qtbot.waitUntil(lambda: len(receptions(server)) == 1)
    qtbot.waitUntil(lambda: not receptions(server))
    assert wait(qtbot, elsewhere(hand_over, ["/a"]))
    qtbot.waitUntil(lambda: not receptions(server))


def test_who_did_not_wait_for_the_answer_shows_the_files_itself(qtbot, server):
    message = Message(paths=("/a",)).to_bytes()
    unwanted = qtbot.assertNotEmitted(server.paths_received, wait=100)
    with unwanted, socket.socket(socket.AF_UNIX) as connection:
        connection.connect(find_endpoint().socket)
        connection.sendall(message)


def receptions(server):
    return server.findChildren(single_instance._Reception)


def come(server):
    """Return how many bytes of each message are there, and wait for the rest of it."""
    return [reception._connection.bytesAvailable() for reception in receptions(server)]


def test_too_many_at_once_are_turned_away(qtbot, server, elsewhere, monkeypatch):
    monkeypatch.setattr(single_instance, "MAX_CONNECTIONS", 1)
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(find_endpoint().socket)
        qtbot.waitUntil(lambda: len(receptions(server)) == 1)
        assert wait(qtbot, elsewhere(send, b"")) == b""
    qtbot.waitUntil(lambda: not receptions(server))


def test_another_user_is_turned_away(qtbot, server, elsewhere, monkeypatch):
    monkeypatch.setattr(single_instance, "is_same_user", lambda connection: False)
    with qtbot.assertNotEmitted(server.paths_received):
        assert wait(qtbot, elsewhere(send, Message(paths=("/a",)).to_bytes())) == b""


def test_on_windows_the_pipe_knows_its_users(server, monkeypatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert single_instance._is_trusted(None)


def test_the_socket_is_closed_to_other_users(server):
    assert Path(find_endpoint().socket).stat().st_mode & 0o077 == 0


def test_only_one_listens(server, qapp):
    second = InstanceServer()
    assert not second.listen()
    server.close()
    assert second.listen()
    second.close()
    assert not hand_over(["/a"])


def test_without_a_private_folder_every_launch_stands_alone(qapp, monkeypatch):
    monkeypatch.setattr(single_instance, "find_endpoint", lambda: None)
    assert not InstanceServer().listen()


def test_a_socket_that_cannot_be_made_gives_the_lock_back(qapp, monkeypatch):
    monkeypatch.setattr(QLocalServer, "listen", lambda self, name: False)
    assert not InstanceServer().listen()
    assert ProcessLock(find_endpoint().lock).try_lock()


@pytest.mark.wide
def test_after_a_crash_the_next_launch_listens(qtbot, elsewhere, runtime):
    code = (
        "import time; from PySide6.QtCore import QCoreApplication as A; a = A([]);"
        "from inspector.gui.single_instance import InstanceServer as S; s = S();"
        "print(s.listen(), flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout.readline() == "True\n"
        assert not InstanceServer().listen()
        child.send_signal(signal.SIGKILL)
    assert Path(find_endpoint().socket).exists()
    server = InstanceServer()
    assert server.listen()
    with qtbot.waitSignal(server.paths_received):
        given = elsewhere(hand_over, ["/a"])
    assert wait(qtbot, given)
    server.close()
    assert not Path(find_endpoint().socket).exists()


# ------------------------------------------------------------------ launches at the same moment


@pytest.mark.wide
def test_the_first_of_two_leads(qtbot, elsewhere):
    first = lead_or_hand_over(["/a"])
    with qtbot.waitSignal(first.paths_received) as received:
        code = "import inspector.gui.single_instance as s; print(s.lead_or_hand_over(['/b']))"
        child = elsewhere(subprocess.check_output, [sys.executable, "-c", code], text=True)
    assert received.args == [["/b"]]
    assert wait(qtbot, child) == "None\n"
    first.close()


def test_a_launch_that_comes_second_is_done(server, monkeypatch):
    monkeypatch.setattr(single_instance, "hand_over", lambda paths: True)
    assert lead_or_hand_over(["/b"]) is None


def test_the_next_launch_leads_once_the_last_window_has_closed(server, monkeypatch):
    def refuse(paths):
        server.close()
        return False

    monkeypatch.setattr(single_instance, "hand_over", refuse)
    successor = lead_or_hand_over(["/b"])
    assert not server.listen()
    successor.close()


def test_a_program_that_hangs_keeps_nobody_from_opening_a_file(qapp, monkeypatch):
    monkeypatch.setattr(single_instance, "TURN_WAIT_S", 0.1)
    lock = ProcessLock(find_endpoint().lock)
    assert lock.try_lock()
    alone = lead_or_hand_over(["/a"])
    assert alone is not None
    alone.close()
    lock.unlock()


@pytest.mark.parametrize("lacks", ["folder", "lock", "socket"])
def test_where_nobody_can_be_met_nobody_is_waited_for(qapp, monkeypatch, runtime, lacks):
    """Each start without a private runtime folder took three seconds."""

    def waited(_seconds: float) -> None:
        raise AssertionError("waited")

    monkeypatch.setattr(single_instance.time, "sleep", waited)
    if lacks == "folder":
        monkeypatch.setattr(single_instance, "find_endpoint", lambda: None)
    elif lacks == "lock":
        monkeypatch.setattr(ProcessLock, "try_lock", lambda self: False)
    else:
        monkeypatch.setattr(QLocalServer, "listen", lambda self, name: False)
    server = lead_or_hand_over(["/x.pth"])
    assert server is not None
    server.close()
    server.deleteLater()
