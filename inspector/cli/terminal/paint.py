"""Colors and signs: the window's colors of devices in what the terminal has, and ASCII where it has no more.

What is said in color is said in words or by a sign as well. Text itself keeps the terminal's own color, and
verdicts take its own green, yellow and red: people choose those so that they can be read.
"""

from __future__ import annotations

import colorsys
import json
import os
import shutil
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal, NamedTuple, TextIO

from inspector.quoting import IS_WINDOWS
from inspector.resources import resource_path
from inspector.units import escape_text

# What a terminal can show: its size, its colors, and whether it knows more than ASCII.

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


RESET = "\x1b[0m"
_STYLES = {
    "bold": "1",
    "dim": "2",
    "heading": "1",
    "file": "1",
    "good": "1;32",
    "caution": "1;33",
    "bad": "1;31",
    "error": "1;31",
    "warning": "1;33",
    "note": "1;34",
    "+": "32",
    "-": "31",
    "~": "33",
    ">": "36",
    "!": "1;31",
    "bar": "36",
    "keyword": "35",
    "string": "32",
    "number": "33",
    "comment": "2",
    "name": "34",
}
_SIGNS = {
    "good": "\u2714",
    "caution": "\u25b2",
    "bad": "\u2718",
    "error": "\u2718",
    "warning": "\u25b2",
    "note": "\u2022",
    "bullet": "-",
    "dot": "\u25cf",
    "no-dot": "\u25cb",
    "rule": "\u2500",
}
_ASCII_SIGNS = {
    "good": "+",
    "caution": "!",
    "bad": "x",
    "error": "x",
    "warning": "!",
    "note": "*",
    "bullet": "-",
    "dot": "o",
    "no-dot": ".",
    "rule": "-",
}
_IN_ASCII = str.maketrans(
    {
        "\u00d7": "x",
        "\u2026": "~",
        "\u2013": "-",
        "\u2014": "-",
        "\u2192": ">",
        "\u2191": "^",
        "\u2193": "v",
        "\u00b7": ".",
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": '"',
        "\u201d": '"',
        "\u2022": "*",
    }
)
"""As wide as what they stand for, so that columns stay aligned."""
_BASIC = ("34", "33", "32", "35", "96", "31", "94", "93")
"""The colors of devices where there are sixteen: blue, orange, green, ... as the themes have them."""
_CUBE = (0, 95, 135, 175, 215, 255)


class Theme(NamedTuple):
    """The colors of devices of one of the window's themes."""

    cpu: str
    devices: tuple[str, ...]
    is_dark: bool


class Paint(NamedTuple):
    """Colors a terminal's text."""

    look: Look
    theme: Theme

    def style(self, text: str, name: str) -> str:
        """Return a text in a style, with nothing in it that the terminal could take for an order."""
        shown = self.text(text)
        code = _STYLES.get(name) if self.look.depth != "none" else None
        return shown if code is None or not shown else f"\x1b[{code}m{shown}{RESET}"

    def text(self, text: str) -> str:
        """Return a text that the terminal shows and does not obey.

        Names are escaped where they come from; this is the last door, and nothing passes by it.
        """
        shown = escape_text(text)
        if self.look.is_unicode or shown.isascii():
            return shown
        return _in_ascii(shown.translate(_IN_ASCII))

    def exactly(self, text: str) -> str:
        """Return a text that is copied from the terminal: nothing in it is replaced by what looks alike."""
        shown = "\t".join(map(escape_text, text.split("\t")))
        return shown if self.look.is_unicode else _in_ascii(shown)

    def code(self, text: str, name: str) -> str:
        """Return a part of code that is copied, in a style."""
        shown, code = self.exactly(text), _STYLES.get(name)
        return shown if code is None or not shown else f"\x1b[{code}m{shown}{RESET}"

    def sign(self, name: str) -> str:
        """Return a sign, in its color."""
        sign = (_SIGNS if self.look.is_unicode else _ASCII_SIGNS)[name]
        return self.style(sign, name)

    def dot(self, color: int) -> str:
        """Return the dot of a device by the number of its color; the CPU and its like have a gray ring."""
        sign = (_SIGNS if self.look.is_unicode else _ASCII_SIGNS)["dot" if color >= 0 else "no-dot"]
        if self.look.depth == "none":
            return sign
        return f"\x1b[{_device_code(self.theme, color, self.look.depth)}m{sign}{RESET}"


def _in_ascii(text: str) -> str:
    return text.encode("ascii", "backslashreplace").decode("ascii")


def paint_for(look: Look) -> Paint:
    """Return the colors for a terminal; where nobody knows its background, those that show on any."""
    return Paint(look, _theme(look.ground))


@lru_cache(maxsize=3)
def _theme(ground: Ground) -> Theme:
    if ground != "unknown":
        data = json.loads(resource_path(f"themes/{ground}.json").read_text(encoding="utf-8"))
        return Theme(data["cpu"], tuple(data["devices"]), data["dark"])
    light, dark = _theme("light"), _theme("dark")
    devices = (max(pair, key=_worst) for pair in zip(light.devices, dark.devices, strict=True))
    return Theme(max(light.cpu, dark.cpu, key=_worst), tuple(devices), is_dark=True)


def _worst(color: str) -> float:
    light = luminance(_rgb(color))
    return min(1.05 / (light + 0.05), (light + 0.05) / 0.05)


def luminance(rgb: tuple[int, int, int]) -> float:
    """Return the relative luminance of a color, as WCAG 2 defines it."""
    parts = [part / 255 for part in rgb]
    red, green, blue = (
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


@lru_cache(maxsize=256)
def _device_code(theme: Theme, color: int, depth: str) -> str:
    if depth == "16":
        return "90" if color < 0 else _BASIC[color % len(_BASIC)]
    rgb = _shaded(theme, color)
    return f"38;2;{rgb[0]};{rgb[1]};{rgb[2]}" if depth == "true" else f"38;5;{nearest_256(rgb)}"


def _shaded(theme: Theme, color: int) -> tuple[int, int, int]:
    """Return a color of a device; after the last one they repeat in another shade, as in the window."""
    if color < 0:
        return _rgb(theme.cpu)
    turn, place = divmod(color, len(theme.devices))
    rgb = _rgb(theme.devices[place])
    if not turn:
        return rgb
    hue, saturation, value = colorsys.rgb_to_hsv(*(part / 255 for part in rgb))
    shade = 1 + 0.28 * min(turn, 3)
    if theme.is_dark:
        saturation, value = max(saturation - max(value * shade - 1, 0), 0), min(value * shade, 1)
    else:
        value /= shade
    red, green, blue = (round(255 * part) for part in colorsys.hsv_to_rgb(hue, saturation, value))
    return red, green, blue


def _rgb(color: str) -> tuple[int, int, int]:
    return int(color[1:3], 16), int(color[3:5], 16), int(color[5:7], 16)


def nearest_256(rgb: tuple[int, int, int]) -> int:
    """Return the color of the usual 256 that is nearest: of the cube, or of the grays."""
    places = [min(range(6), key=lambda place: abs(_CUBE[place] - part)) for part in rgb]
    gray = min(range(24), key=lambda place: sum(abs(8 + 10 * place - part) for part in rgb))
    cube = 16 + 36 * places[0] + 6 * places[1] + places[2]
    cube_off = sum((_CUBE[place] - part) ** 2 for place, part in zip(places, rgb, strict=True))
    gray_off = sum((8 + 10 * gray - part) ** 2 for part in rgb)
    return 232 + gray if gray_off < cube_off else cube
