"""The launcher: the text of the `.desktop` file.

https://specifications.freedesktop.org/desktop-entry-spec/latest/exec-variables.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.errors import ExportError

if TYPE_CHECKING:
    from collections.abc import Sequence

_PLAIN = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789@+=:,./_-")
_ESCAPED_IN_QUOTES = frozenset('"`$\\')


def format_entry(template: str, command: Sequence[str]) -> str:
    """Put the command line into the template; `%F` hands over all selected files at once.

    `TryExec` makes the entry disappear from menus once the program itself is gone, for instance with the
    virtual environment that it was installed in.
    """
    program = next((word for word in command if word.startswith("/")), command[0])
    # WORKAROUND: GLib looks for the first word of Exec before it undoubles the per cent signs in it, and
    # drops an entry whose program it does not find (g_desktop_app_info_load_from_keyfile)
    command = ["/usr/bin/env", *command] if "%" in command[0] else command
    replaced = {
        "Exec": escape_value(" ".join([*map(quote_argument, command), "%F"])),
        "TryExec": escape_value(program),
    }
    lines = []
    for line in template.splitlines():
        key, equals, _ = line.partition("=")
        lines.append(f"{key}={replaced[key]}" if equals and key in replaced else line)
    return "\n".join(lines) + "\n"


def quote_argument(word: str) -> str:
    """Quote one word of `Exec`; a `%` is doubled, since it introduces field codes even inside quotes.

    Raises:
        ExportError: The word holds a line break or another control character, which no launcher can hold.
    """
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
