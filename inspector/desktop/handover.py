"""A second launch hands its files to the running program and ends, before anything heavy is imported.

The running program listens at a socket that only its user can reach (`inspector.gui.single_instance`). The
message is one line of JSON, the answer is `ok`. Nothing but the standard library is imported here: a second
double-click costs a few hundredths of a second, where Qt alone takes several tenths.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import socket
import stat
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.desktop import PROGRAM
from inspector.desktop.folders import runtime_folder
from inspector.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

# Ends the launcher's "is starting" feedback when files were handed over, and no window of ours will appear.
#
# A launcher that starts us with `StartupNotify` shows a busy pointer until our first window. Wayland
# settles that with the activation token; on X11 a program that shows no window has to say so, or the
# pointer stays busy for a quarter of a minute.
# https://specifications.freedesktop.org/startup-notification-spec/latest/

_CLIENT_MESSAGE = 33
_PROPERTY_CHANGE_MASK = 1 << 22
_CHUNK_NBYTES = 20
_LIBRARY = "libX11.so.6"


class _Data(ctypes.Union):
    """Twenty bytes, at a place that is right for longs."""

    _fields_ = (("chars", ctypes.c_char * _CHUNK_NBYTES), ("longs", ctypes.c_long * 5))


class _ClientMessageEvent(ctypes.Structure):
    """`XClientMessageEvent` of Xlib.h, padded to the size of `XEvent`."""

    _fields_ = (
        ("type", ctypes.c_int),
        ("serial", ctypes.c_ulong),
        ("send_event", ctypes.c_int),
        ("display", ctypes.c_void_p),
        ("window", ctypes.c_ulong),
        ("message_type", ctypes.c_ulong),
        ("format", ctypes.c_int),
        ("data", _Data),
        ("padding", ctypes.c_long * 24),
    )


def end_startup_feedback() -> bool:
    """Send the desktop the end of this launch; return False when nobody waits or it cannot be sent."""
    startup_id = os.environ.pop("DESKTOP_STARTUP_ID", "")
    if not startup_id or os.environ.get("WAYLAND_DISPLAY"):
        return False
    try:
        xlib = ctypes.CDLL(_LIBRARY)
    except OSError:
        return False
    for name in ("XOpenDisplay", "XDefaultRootWindow", "XCreateSimpleWindow", "XInternAtom"):
        getattr(xlib, name).restype = ctypes.c_void_p if name == "XOpenDisplay" else ctypes.c_ulong
    address = xlib.XOpenDisplay(None)
    if address is None:
        return False
    display = ctypes.c_void_p(address)
    _send(xlib, display, format_removal(startup_id))
    xlib.XCloseDisplay(display)
    return True


def format_removal(startup_id: str) -> list[bytes]:
    """Write the message in pieces of twenty bytes; the zero at its end is part of it."""
    quoted = startup_id.replace("\\", "\\\\").replace('"', '\\"')
    message = os.fsencode(f'remove: ID="{quoted}"') + b"\0"
    return [message[at : at + _CHUNK_NBYTES] for at in range(0, len(message), _CHUNK_NBYTES)]


def _send(xlib: ctypes.CDLL, display: ctypes.c_void_p, chunks: list[bytes]) -> None:
    root = ctypes.c_ulong(xlib.XDefaultRootWindow(display))
    ours = xlib.XCreateSimpleWindow(display, root, -100, -100, 1, 1, 0, ctypes.c_ulong(0), ctypes.c_ulong(0))
    kind = b"_NET_STARTUP_INFO_BEGIN"
    for chunk in chunks:
        event = _ClientMessageEvent(
            type=_CLIENT_MESSAGE,
            display=display,
            window=ours,
            message_type=xlib.XInternAtom(display, kind, 0),
            format=8,
            data=_Data(chars=chunk),
        )
        xlib.XSendEvent(display, root, 0, ctypes.c_long(_PROPERTY_CHANGE_MASK), ctypes.byref(event))
        kind = b"_NET_STARTUP_INFO"


ANSWER = b"ok\n"
MAX_MESSAGE_NBYTES = 1 << 20
MAX_PATHS = 4096
ANSWER_TIMEOUT_S = 3.0
START_TIMEOUT_S = 15.0
"""How long a program may take from its lock to its first event: cold, from a slow disk, on a busy machine."""

_MOST_TOKEN_CHARS = 1000
_LONGEST_SOCKET_PATH = 100
"""Bytes; `sun_path` holds 104 on macOS and the BSDs and 108 on Linux, with the zero at its end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """What a second launch says to the running program.

    Attributes:
        paths: Absolute paths to open; none at all asks for an empty window.
        activation_token: What lets the running program come to the front on Wayland, or empty.
    """

    paths: tuple[str, ...]
    activation_token: str = ""

    def to_bytes(self) -> bytes:
        """Write one line of ASCII; file names that are no UTF-8 travel as lone surrogates."""
        return json.dumps({"paths": self.paths, "activation_token": self.activation_token}).encode() + b"\n"

    @classmethod
    def from_bytes(cls, line: bytes) -> Message | None:
        """Read a line; None when it is not such a message."""
        try:
            said = json.loads(line)
        except (ValueError, RecursionError):
            return None
        if not isinstance(said, dict):
            return None
        paths = said.get("paths")
        token = said.get("activation_token", "")
        if not isinstance(paths, list) or not isinstance(token, str):
            return None
        if len(paths) > MAX_PATHS or not all(map(_is_path, paths)):
            return None
        return cls(paths=tuple(paths), activation_token=token if _is_token(token) else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where the running program of this user and this display listens, and the lock that says who it is."""

    socket: str
    lock: str


def find_endpoint() -> Endpoint | None:
    """Find the place in `$XDG_RUNTIME_DIR`, else in a folder of our own among the temporary files.

    The display is part of the name: a file opened over `ssh -X` must not open a window on the machine's own
    screen. None when no folder is to be had that belongs to this user alone: then every launch stands alone.
    """
    if sys.platform == "win32":
        user = hashlib.sha256(str(Path.home()).encode(errors="replace")).hexdigest()[:16]
        lock = Path(tempfile.gettempdir()) / f"{PROGRAM}.lock"
        return Endpoint(socket=rf"\\.\pipe\{PROGRAM}-{user}", lock=str(lock))
    folder = _private_folder()
    if folder is None:
        return None
    display = os.environ.get("WAYLAND_DISPLAY") or os.environ.get("DISPLAY", "")
    stem = f"{PROGRAM}-{hashlib.sha256(os.fsencode(display)).hexdigest()[:8]}"
    return Endpoint(socket=str(folder / f"{stem}.socket"), lock=str(folder / f"{stem}.lock"))


def hand_over(paths: Sequence[str | os.PathLike[str]]) -> bool:
    """Hand files to the running program; return False when there is none, or it does not answer.

    The paths are made absolute here, since the running program works in another folder.
    """
    endpoint = find_endpoint()
    if endpoint is None or len(paths) > MAX_PATHS:
        return False
    message = Message(
        paths=tuple(os.path.abspath(path) for path in paths),  # noqa: PTH100 - a link stays a link
        activation_token=os.environ.get("XDG_ACTIVATION_TOKEN", ""),
    ).to_bytes()
    if len(message) > MAX_MESSAGE_NBYTES:
        return False
    if sys.platform == "win32":
        taken = _ask_pipe(endpoint.socket, message)
    else:
        taken = _ask_socket(endpoint.socket, message, timeout_s=_patience_s(endpoint))
    if not taken:
        return False
    end_startup_feedback()
    return True


def is_same_user(connection: socket.socket) -> bool:
    """Ask the kernel who is at the other end; where it cannot be asked, the folder's mode has to do."""
    if not hasattr(socket, "SO_PEERCRED"):
        return True
    size = struct.calcsize("3i")
    try:
        _, user, _ = struct.unpack("3i", connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))
    except OSError:
        return False
    return bool(user == os.getuid())


def _patience_s(endpoint: Endpoint) -> float:
    """Wait longer for a program that just starts than for one that should listen, but hangs."""
    try:
        age_s = time.time() - Path(endpoint.lock).stat().st_mtime
    except OSError:
        return ANSWER_TIMEOUT_S
    return START_TIMEOUT_S if age_s < START_TIMEOUT_S else ANSWER_TIMEOUT_S


def _ask_socket(address: str, message: bytes, *, timeout_s: float) -> bool:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(timeout_s)
        try:
            connection.connect(address)
            if not is_same_user(connection):
                return False
            connection.sendall(message)
            with connection.makefile("rb") as answer:
                return answer.readline(len(ANSWER)) == ANSWER
        except OSError:
            return False


def _ask_pipe(address: str, message: bytes) -> bool:
    """Do the same on Windows, where Qt's local server is a named pipe and a pipe opens like a file."""
    try:
        with open(address, "r+b", buffering=0) as pipe:  # noqa: PTH123 - a pipe's name is no path
            pipe.write(message)
            return pipe.read(len(ANSWER)) == ANSWER
    except OSError:
        return False


def _is_path(said: object) -> bool:
    if not isinstance(said, str) or not Path(said).is_absolute() or "\0" in said:
        return False
    try:
        os.fsencode(said)
    except UnicodeEncodeError:  # a surrogate that stands for no byte of a name
        return False
    return True


def _is_token(said: str) -> bool:
    return len(said) <= _MOST_TOKEN_CHARS and said.isascii() and said.isprintable()


def _private_folder() -> Path | None:
    runtime = runtime_folder()
    if runtime is not None and _is_private(runtime):
        if len(os.fsencode(runtime)) <= _LONGEST_SOCKET_PATH - len(f"/{PROGRAM}-01234567.socket"):
            return runtime
        suffix = hashlib.sha256(os.fsencode(runtime)).hexdigest()[:8]
    else:
        suffix = "0"
    folder = Path(tempfile.gettempdir()) / f"{PROGRAM}-{os.getuid()}-{suffix}"
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return None
    return folder if _is_private(folder) else None


def _is_private(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder is a real one, ours, and closed to everyone else: `/tmp` is shared."""
    try:
        state = os.lstat(folder)
    except OSError:
        return False
    return stat.S_ISDIR(state.st_mode) and state.st_uid == os.getuid() and not state.st_mode & 0o077


class ProcessLock:
    """Holds a file locked; the file stays, since removing it would let two processes lock two files.

    The kernel takes the lock back from a process that is gone, however it went. Not `QLockFile`, which asks
    whether the process with the number in the file still runs: another one may have that number now.
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self._handle: int | None = None

    def try_lock(self) -> bool:
        """Lock without waiting; the time of the file says since when it has been locked."""
        try:
            handle = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError:
            return False
        try:
            _lock(handle)
        except OSError:
            os.close(handle)
            return False
        os.utime(self._path)
        self._handle = handle
        return True

    def unlock(self) -> None:
        """Let the next one have it."""
        if self._handle is not None:
            os.close(self._handle)
            self._handle = None


def _lock(handle: int) -> None:
    if sys.platform == "win32":
        import msvcrt  # noqa: PLC0415 - each of the two is there on its own platform only

        msvcrt.locking(handle, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl  # noqa: PLC0415

        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
