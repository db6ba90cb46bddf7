"""Foreign text in what people paste: as a literal of Python, a word of a shell, a cell of a spreadsheet.

A name comes from a disk nobody vouches for, and a pasted line is run. So a name is quoted until nothing in it
means anything to the shell, and what no terminal shows is written as an escape.
"""

from __future__ import annotations

import os
import re

PROGRAM = "checkpoint-inspector"
IS_WINDOWS = os.name == "nt"

_PLAIN = re.compile(r"[A-Za-z0-9_+=:,./-]")
_WINDOWS_PLAIN = re.compile(r"[\w+=:./\\-]+")
# PowerShell takes curly quotes for plain ones; cmd replaces what stands between two percent signs.
_WINDOWS_SPECIAL = re.compile('[`$%"\u201c\u201d\u201e]')
_AT_THE_FRONT = ("-", "=")
"""An option to every program, and the path of a program to zsh."""
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""What a cell with a formula begins with, for Japanese and Chinese spreadsheets in full width as well:
https://owasp.org/www-community/attacks/CSV_Injection"""


def python_text(text: str) -> str:
    """Return a text as a literal of Python, in double quotes where it holds none; `repr` escapes the rest."""
    quoted = repr(text)
    return quoted if '"' in text or "'" in text else f'"{quoted[1:-1]}"'


def shell_word(text: str, *, windows: bool = IS_WINDOWS) -> str:
    r"""Return a text as one word of the shell that people have.

    For Linux and macOS that is what every shell takes; only a text with something invisible in it, or with
    bytes that are no characters, needs the `$'\012'` of bash and zsh. For Windows it is a word that both
    PowerShell and cmd take for one, and out of which neither runs anything; a name with `$`, a back-tick or a
    percent sign is right in PowerShell alone.
    """
    if windows:
        return _windows_word(text)
    from shlex import quote  # noqa: PLC0415 - on the way to the window, which quotes nothing

    if not text.isprintable():
        return f"$'{''.join(map(_octal, os.fsencode(text)))}'"
    word = quote(text)
    return f"'{word}'" if word.startswith("=") else word  # to zsh, `=ls` is where the program ls is


def file_word(path: str, *, windows: bool = IS_WINDOWS) -> str:
    """Return the path of a file as one word, which no program takes for an option."""
    return shell_word(f"./{path}" if path.startswith(_AT_THE_FRONT) else path, windows=windows)


def command(*words: str) -> str:
    """Return a line that runs this program with words that are quoted already."""
    return " ".join((PROGRAM, *words))


def cell_text(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula; a number stays one."""
    return f"'{text}" if text.startswith(_FORMULA) and not _is_number(text) else text


def pasted_cell(text: str) -> str:
    """Return a text as a cell among tabs, where a quote at the front would begin one of several lines."""
    shown = cell_text(text.replace("\t", " "))
    return f"'{shown}" if shown.startswith('"') else shown


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _octal(byte: int) -> str:
    char = chr(byte)
    return char if _PLAIN.fullmatch(char) else f"\\{byte:03o}"


def _windows_word(text: str) -> str:
    if _WINDOWS_PLAIN.fullmatch(text) and text.isascii():
        return text
    escaped = _WINDOWS_SPECIAL.sub(r"`\g<0>", text)
    shown = (char if char.isprintable() else f"`u{{{ord(char):x}}}" for char in escaped)
    return f'"{"".join(shown)}"'
