"""Consoles of Windows: they obey color codes since Windows 10, once a program has asked for that."""

from __future__ import annotations

from typing import TextIO

from inspector.quoting import IS_WINDOWS

_HANDLES = {1: -11, 2: -12}
_OBEYS_CODES = 4
"""ENABLE_VIRTUAL_TERMINAL_PROCESSING, https://learn.microsoft.com/windows/console/setconsolemode."""


def obeys_codes(stream: TextIO) -> bool:
    """Return whether what a stream leads to takes color codes; a console of Windows is asked to."""
    if not IS_WINDOWS:
        return True
    import ctypes

    try:
        kernel = vars(ctypes)["windll"].kernel32
        handle = kernel.GetStdHandle(_HANDLES[stream.fileno()])
        mode = ctypes.c_ulong()
        if not kernel.GetConsoleMode(handle, ctypes.byref(mode)):
            return True  # no console: a terminal of another kind, such as mintty
        return bool(kernel.SetConsoleMode(handle, mode.value | _OBEYS_CODES))
    except (OSError, KeyError, AttributeError):
        return False
