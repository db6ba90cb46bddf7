"""What a terminal can show: its size, its colors, and whether it knows more than ASCII."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from typing import Literal, NamedTuple, TextIO

from inspector.quoting import IS_WINDOWS

# Consoles of Windows: they obey color codes since Windows 10, once a program has asked for that.

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


Depth = Literal["none", "16", "256", "true"]
Ground = Literal["light", "dark", "unknown"]

LEAST_WIDTH = 20
_SIZE = (80, 24)
_C_LOCALES = frozenset({"C", "POSIX"})
_GLYPHS = "\u25cf\u2714\u2718\u25b2\u2022\u2026\u2500\u2588"


class Look(NamedTuple):
    """What is known of a terminal.

    Attributes:
        ground: Whether its background is light or dark, as far as it says.
    """

    width: int
    height: int
    depth: Depth
    ground: Ground
    is_unicode: bool


def look_of(stream: TextIO, color: str, environment: Mapping[str, str] = os.environ) -> Look:
    """Return what the terminal behind a stream can show, where `--color` says this."""
    columns, lines = shutil.get_terminal_size(_SIZE)
    depth = _depth(color, environment)
    return Look(
        width=max(columns, LEAST_WIDTH),
        height=lines,
        depth=depth if depth != "none" and obeys_codes(stream) else "none",
        ground=_ground(environment.get("COLORFGBG", "")),
        is_unicode=_is_unicode(stream.encoding or "ascii", environment),
    )


def _depth(color: str, environment: Mapping[str, str]) -> Depth:
    """Return how many colors are wanted, and there.

    See https://no-color.org: what is said on the command line counts more than the variable.
    """
    term = environment.get("TERM", "").lower()
    is_unwanted = color == "never" or (color == "auto" and bool(environment.get("NO_COLOR")))
    if is_unwanted or (term == "dumb" and color != "always"):
        return "none"
    has_all = environment.get("COLORTERM", "").lower() in {"truecolor", "24bit"}
    if has_all or term.endswith("-direct") or environment.get("WT_SESSION"):
        return "true"
    return "256" if term.endswith("-256color") else "16"


def _ground(text: str) -> Ground:
    """Read COLORFGBG, which some terminals set to the numbers of their colors: `0;15` is black on white."""
    number = text.rpartition(";")[2]
    if not number.isascii() or not number.isdecimal() or len(number) > 2:
        return "unknown"
    return "light" if int(number) in {7, 15} else "dark"


def _is_unicode(encoding: str, environment: Mapping[str, str]) -> bool:
    """Return whether the signs that are drawn with are shown.

    Python takes the C locale for UTF-8, and says so in LC_CTYPE where nothing speaks against it; who asks
    for that locale means the terminal as well.
    """
    said = environment.get("LC_ALL") or ""
    coerced = environment.get("LC_CTYPE", "") in {"", "C.UTF-8", *_C_LOCALES}
    if said in _C_LOCALES or (not said and coerced and environment.get("LANG") in _C_LOCALES):
        return False
    try:
        _GLYPHS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
