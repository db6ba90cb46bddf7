"""One program for all files of a user: the running side of `inspector.desktop.handover`."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtNetwork import QLocalServer, QLocalSocket

from inspector.desktop.handover import (
    ANSWER,
    MAX_MESSAGE_NBYTES,
    Endpoint,
    Message,
    ProcessLock,
    find_endpoint,
    hand_over,
    is_same_user,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

MESSAGE_TIMEOUT_MS = 2_000
ANSWER_TIMEOUT_MS = 200  # three bytes never wait for a reader, but a named pipe is written in the background
MAX_CONNECTIONS = 16
TURN_WAIT_S = 3.0
"""How long to wait for a program that has the lock but takes no files: it is starting, or about to end."""
RETRY_INTERVAL_S = 0.05


class InstanceServer(QObject):
    """Receives the files of later launches.

    The lock decides which of several launches at the same moment is the one; only its holder may remove the
    socket that a crashed program left behind.

    Signals:
        paths_received: A list of absolute paths to open; an empty list asks for an empty window in front.
    """

    paths_received = Signal(object)  # Signal(list) would lose bytes of names that are not UTF-8

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.has_rival = False
        self._lock: ProcessLock | None = None
        self._server = QLocalServer(self)
        self._server.setSocketOptions(QLocalServer.SocketOption.UserAccessOption)
        self._server.setMaxPendingConnections(MAX_CONNECTIONS)
        self._server.newConnection.connect(self._on_connected)

    def listen(self) -> bool:
        """Become the one program that later launches talk to; False when another one is it already.

        Also False where there is no place for a socket, and so no other program to wait for: see `has_rival`.
        """
        self.has_rival = False
        endpoint = find_endpoint()
        if endpoint is None:
            return False
        lock = ProcessLock(endpoint.lock)
        if not lock.try_lock():
            self.has_rival = Path(endpoint.lock).exists()  # a lock that cannot be made is held by no one
            return False
        self._lock = lock
        if self._listen_at(endpoint):
            return True
        self.close()
        return False

    def close(self) -> None:
        """Stop listening, so that the next launch runs on its own."""
        self._server.close()
        if self._lock is not None:
            self._lock.unlock()
            self._lock = None

    def _listen_at(self, endpoint: Endpoint) -> bool:
        QLocalServer.removeServer(endpoint.socket)
        return self._server.listen(endpoint.socket)

    def _on_connected(self) -> None:
        while (connection := self._server.nextPendingConnection()) is not None:
            if len(self.findChildren(_Reception)) < MAX_CONNECTIONS and _is_trusted(connection):
                _Reception(connection, self)
            else:
                connection.abort()
                connection.deleteLater()


class _Reception(QObject):
    """Reads one message, bounded in size and time: the other side may be broken."""

    def __init__(self, connection: QLocalSocket, server: InstanceServer) -> None:
        super().__init__(server)
        self._connection = connection
        self._paths_received = server.paths_received
        connection.setParent(self)
        connection.setReadBufferSize(MAX_MESSAGE_NBYTES)
        connection.readyRead.connect(self._on_ready_read)
        connection.disconnected.connect(self.deleteLater)
        self._deadline = QTimer(self)
        self._deadline.setSingleShot(True)
        self._deadline.timeout.connect(self._end)
        self._deadline.start(MESSAGE_TIMEOUT_MS)
        self._on_ready_read()  # the message may have come before the signal was connected

    def _on_ready_read(self) -> None:
        if not self._connection.canReadLine():
            if self._connection.bytesAvailable() >= MAX_MESSAGE_NBYTES:
                self._end()
            return
        message = Message.from_bytes(bytes(self._connection.readLine().data()))
        if message is None:
            self._end()
            return
        self._connection.write(ANSWER)
        taken = self._connection.waitForBytesWritten(ANSWER_TIMEOUT_MS)
        self._end()
        if not taken:
            return  # the sender has not waited so long, and opens the files itself
        if message.activation_token:
            # Qt's Wayland plugin takes the next token to raise a window from here
            os.environ["XDG_ACTIVATION_TOKEN"] = message.activation_token
        self._paths_received.emit(list(message.paths))

    def _end(self) -> None:
        self._deadline.stop()
        self._connection.readyRead.disconnect(self._on_ready_read)
        self._connection.disconnectFromServer()


def lead_or_hand_over(paths: Sequence[str | os.PathLike[str]]) -> InstanceServer | None:
    """Become the running program, or hand the files over to it and return None.

    The hand-over without Qt (`inspector.desktop.handover`) has been tried before; this settles launches at
    the same moment, and a launch while the last window closes. A program that holds the lock and does not
    answer must not prevent a file from being opened: then the server is returned without listening.
    """
    server = InstanceServer()
    deadline = time.monotonic() + TURN_WAIT_S
    while not server.listen():
        if hand_over(paths):
            server.deleteLater()
            return None
        if not server.has_rival or time.monotonic() >= deadline:
            break
        time.sleep(RETRY_INTERVAL_S)
    return server


def _is_trusted(connection: QLocalSocket) -> bool:
    if sys.platform == "win32":
        return True  # UserAccessOption is part of the pipe's own access list
    with socket.socket(fileno=os.dup(connection.socketDescriptor())) as peer:
        return is_same_user(peer)
