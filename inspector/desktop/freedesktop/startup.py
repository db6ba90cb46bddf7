"""Ends the launcher's "is starting" feedback when files were handed over, and no window of ours will appear.

A launcher that starts us with `StartupNotify` shows a busy pointer until our first window. Wayland settles
that with the activation token; on X11 a program that shows no window has to say so, or the pointer stays busy
for a quarter of a minute.
https://specifications.freedesktop.org/startup-notification-spec/latest/
"""

from __future__ import annotations

import ctypes
import os

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
    """Send the pieces to the root window, from a window of our own that tells one message from another."""
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
