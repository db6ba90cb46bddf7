"""The launcher's busy pointer ends when the files went to another process."""

from __future__ import annotations

import ctypes

import pytest

from inspector.desktop import handover as startup
from inspector.desktop.handover import end_startup_feedback, format_removal


class Function:
    """A function of a C library: it can be called and told its type."""

    def __init__(self, call) -> None:
        self.call = call

    def __call__(self, *arguments):
        return self.call(*arguments)


class Xlib:
    """Stands in for libX11 and keeps what is sent."""

    def __init__(self, *, display: int | None = 4711) -> None:
        self.sent: list[tuple[bytes, int, bytes]] = []
        self.closed = False
        self.atoms: list[bytes] = []
        self.XOpenDisplay = Function(lambda name: display)
        self.XDefaultRootWindow = Function(lambda display: 1)
        self.XCreateSimpleWindow = Function(lambda *arguments: 42)
        self.XInternAtom = Function(self.intern)
        self.XSendEvent = Function(self.send)
        self.XCloseDisplay = Function(self.close)

    def intern(self, display, name: bytes, only_if_exists: int) -> int:
        if name not in self.atoms:
            self.atoms.append(name)
        return self.atoms.index(name)

    def send(self, display, window, propagate, mask, reference) -> None:
        event = reference._obj
        data = ctypes.string_at(ctypes.addressof(event) + type(event).data.offset, 20)
        self.sent.append((self.atoms[event.message_type], event.window, data))

    def close(self, display) -> None:
        self.closed = True


@pytest.fixture
def xlib(monkeypatch) -> Xlib:
    xlib = Xlib()
    monkeypatch.setattr(ctypes, "CDLL", lambda name: xlib)
    monkeypatch.setenv("DESKTOP_STARTUP_ID", "files-1-host_TIME12345")
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    return xlib


def test_the_launch_is_declared_over(xlib):
    assert end_startup_feedback()
    assert xlib.sent == [
        (b"_NET_STARTUP_INFO_BEGIN", 42, b'remove: ID="files-1-'),
        (b"_NET_STARTUP_INFO", 42, b'host_TIME12345"'.ljust(20, b"\0")),
    ]
    assert xlib.closed
    assert not end_startup_feedback()  # an identifier is used once


def test_quotes_are_escaped_and_the_end_is_always_sent():
    assert b"".join(format_removal('a"\\b')) == b'remove: ID="a\\"\\\\b"\0'
    exact = format_removal("1234567")
    assert [len(chunk) for chunk in exact] == [20, 1]


def test_nobody_waits_or_cannot_be_told(xlib, monkeypatch):
    def refuse(name: str) -> None:
        raise OSError(name)

    monkeypatch.setattr(ctypes, "CDLL", refuse)
    assert not end_startup_feedback()  # no library, and the identifier is used up
    assert not end_startup_feedback()
    monkeypatch.setenv("DESKTOP_STARTUP_ID", "x")
    monkeypatch.setattr(ctypes, "CDLL", lambda name: Xlib(display=None))
    assert not end_startup_feedback()
    monkeypatch.setenv("DESKTOP_STARTUP_ID", "x")
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")  # which has its token
    assert not end_startup_feedback()


def test_the_event_is_laid_out_as_xlib_has_it():
    """The data begins where a long may begin; 32-bit platforms have no gap before it."""
    event = startup._ClientMessageEvent
    assert event.data.offset % ctypes.sizeof(ctypes.c_long) == 0
    assert ctypes.sizeof(event) >= 24 * ctypes.sizeof(ctypes.c_long)
