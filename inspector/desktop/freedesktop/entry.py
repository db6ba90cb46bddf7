"""The texts that name the program: the launcher, the thumbnailer, and the script that the launcher calls.

https://specifications.freedesktop.org/desktop-entry-spec/latest/exec-variables.html
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from inspector.errors import ExportError

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@+=:,./_-")
_ESCAPED_IN_QUOTES = frozenset('"`$\\')
_SHELL = "/bin/sh"
KEPT = "X-CheckpointInspector-Kept"
"""The key of the launcher that keeps what `desktop remove` takes back, see `default_apps`."""


def format_entry(template: str, script: str, kept: str) -> str:
    """Put the script into the launcher; `%F` hands over all selected files at once.

    The shell is named, since scripts cannot be run by themselves where the home is mounted `noexec`. There is
    no `TryExec`: it would make the entry disappear from menus without a word once the program has moved.
    """
    lines = []
    for line in template.splitlines():
        if line.startswith("Exec="):
            lines += [f"Exec={_format_command([_SHELL, script])} %F", f"{KEPT}={kept}"]
        elif not line.startswith("TryExec="):
            lines.append(line)
    return "\n".join(lines) + "\n"


def format_thumbnailer(template: str, command: Sequence[str]) -> str:
    """Put the command line into the thumbnailer, which the desktop ignores once the program is gone."""
    replaced = {"Exec=checkpoint-inspector": f"Exec={_format_command(command)}"}
    lines = []
    for line in template.splitlines():
        if line.startswith("TryExec="):
            lines.append(f"TryExec={escape_value(find_program_word(command))}")
            continue
        first, blank, rest = line.partition(" ")
        lines.append(f"{replaced.get(first, first)}{blank}{rest}")
    return "\n".join(lines) + "\n"


def format_script(template: str, command: Sequence[str]) -> str:
    """Put the command line into the script that the launcher calls."""
    # The later place first: what is put in may hold the name of the other one.
    places = (("@COMMAND@", shlex.join(command)), ("@PROGRAM@", shlex.quote(find_program_word(command))))
    for place, text in places:
        before, _, after = template.partition(place)
        template = f"{before}{text}{after}"
    return template


def find_program_word(command: Sequence[str]) -> str:
    """Return the word of a command line that is the program itself, behind an `env` or so."""
    return next((word for word in command if word.startswith("/")), command[0])


def quote_argument(word: str) -> str:
    """Quote one word of `Exec`; a `%` is doubled, since it introduces field codes even inside quotes."""
    if not word.isprintable():
        raise ExportError(
            "the command line of the launcher holds a control character",
            where=ascii(word),
            remedy="install the program in a folder with a plain name",
        )
    word = word.replace("%", "%%")
    if word and _PLAIN.issuperset(word.replace("%", "")):
        return word
    return '"' + "".join(f"\\{char}" if char in _ESCAPED_IN_QUOTES else char for char in word) + '"'


def escape_value(text: str) -> str:
    """Escape a whole value: the rule for strings comes after the rule for quoting, backslashes double."""
    return text.replace("\\", "\\\\")


def read_own_types(template: str) -> list[str]:
    """Read from the template which file types are ours: the launcher's list is the only one."""
    line = next(line for line in template.splitlines() if line.startswith("MimeType="))
    return [name for name in line.removeprefix("MimeType=").split(";") if name]


def read_kept(launcher: str) -> str:
    """Read from an installed launcher what it keeps for `desktop remove`."""
    found = (line.removeprefix(f"{KEPT}=") for line in launcher.splitlines() if line.startswith(f"{KEPT}="))
    return next(found, "")


def _format_command(command: Sequence[str]) -> str:
    return escape_value(" ".join(map(quote_argument, command)))
