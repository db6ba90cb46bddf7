"""The command line, read: the first word chooses the command, and its module declares the options."""

from __future__ import annotations

import argparse
import os
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from inspector.cli.commands import COMMANDS, WINDOW
from inspector.cli.common import PROGRAM, USAGE, complain
from inspector.overriding import override
from inspector.units import cut_text

_HELP_COLUMN = 28
_MOST_CHARS = 100


class _Help(argparse.HelpFormatter):
    """Leaves room for the longest option, and lines that are indented as they are: examples are pasted."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=_HELP_COLUMN)

    @override
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        lines = (line if line.startswith(" ") else fill(line, width, indent) for line in text.splitlines())
        return "\n".join(lines)


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line like every other error, and takes options by their whole name only.

    An abbreviation would change its meaning, or lose it, with the next option.
    """

    def __init__(self, command: ModuleType, name: str) -> None:
        examples = [f"  {PROGRAM} {line}".rstrip() for line in getattr(command, "EXAMPLES", ())]
        notes = getattr(command, "NOTES", "")
        super().__init__(
            prog=name,
            description=command.SUMMARY,
            epilog="\n".join(["examples:", *examples] * bool(examples) + ["", notes] * bool(notes)),
            allow_abbrev=False,
            formatter_class=_Help,
        )
        command.add_options(self)
        self.set_defaults(run=command.run)

    @override
    def format_help(self) -> str:
        """Name the commands where none was given; they are imported for that alone."""
        text = super().format_help()
        return text if self.prog != PROGRAM else f"{text}\n{_commands()}"

    @override
    def error(self, message: str) -> NoReturn:
        complain(message)
        raise SystemExit(USAGE)


def parse(given: list[str]) -> argparse.Namespace:
    """Read a command line; without a command it means the window.

    Raises:
        SystemExit: The command line is wrong (2), or asked for help (0).
    """
    if given and given[0] in COMMANDS:
        name = given[0]
        return _Parser(import_module(COMMANDS[name]), f"{PROGRAM} {name}").parse_args(given[1:])
    window = _Parser(import_module(WINDOW), PROGRAM)
    if given and _is_mistaken(given[0]):
        window.error(f"there is no command or file {cut_text(given[0], _MOST_CHARS)!r}{_meant(given[0])}")
    return window.parse_args(given)


def _is_mistaken(word: str) -> bool:
    """Return whether the first word is neither an option nor a file: files have a suffix, or are there."""
    return word.isidentifier() and not os.path.lexists(word)


def _meant(word: str) -> str:
    """Return which command may have been meant, or where they are listed."""
    from difflib import get_close_matches

    near = get_close_matches(word, COMMANDS, n=1)
    return f"; did you mean {near[0]}?" if near else f"; {PROGRAM} --help lists the commands"


def _commands() -> str:
    width = max(map(len, COMMANDS)) + 2
    rows = [f"  {name:<{width}}{import_module(module).SUMMARY}" for name, module in COMMANDS.items()]
    return "\n".join(["commands:", *rows, "", f"{PROGRAM} COMMAND --help explains each.", ""])
