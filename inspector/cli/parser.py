"""The command line, read: the first word chooses the command, and its module declares the options."""

from __future__ import annotations

import argparse
from importlib import import_module
from types import ModuleType
from typing import NoReturn

from inspector.cli.commands import COMMANDS, WINDOW
from inspector.cli.common import PROGRAM, USAGE, complain
from inspector.errors import PlanError
from inspector.overriding import override

_PLANNED = frozenset({"diff", "stats"})


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line like every other error, and takes options by their whole name only.

    An abbreviation would change its meaning, or lose it, with the next option.
    """

    def __init__(self, command: ModuleType, name: str) -> None:
        super().__init__(prog=name, description=command.SUMMARY, allow_abbrev=False)
        command.add_options(self)
        self.set_defaults(run=command.run)

    @override
    def error(self, message: str) -> NoReturn:
        complain(message)
        raise SystemExit(USAGE)


def parse(given: list[str]) -> argparse.Namespace:
    """Read a command line; without a command it means the window.

    Raises:
        PlanError: The command belongs to a later version.
        SystemExit: The command line is wrong (2), or asked for help (0).
    """
    if given and given[0] in _PLANNED:
        raise PlanError(f"this version has no command {given[0]}", remedy=f"see {PROGRAM} --help")
    if given and given[0] in COMMANDS:
        name = given[0]
        return _Parser(import_module(COMMANDS[name]), f"{PROGRAM} {name}").parse_args(given[1:])
    return _Parser(import_module(WINDOW), PROGRAM).parse_args(given)
