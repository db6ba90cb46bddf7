"""The command `help`: what a command does and takes, as its `--help` says it."""

from __future__ import annotations

import argparse

from inspector.cli.common import DONE, PROGRAM, say
from inspector.errors import PlanError
from inspector.units import cut_text, nearest

SUMMARY = "Explain a command, or list all of them."
EXAMPLES = ("help", "help remap")
IS_PLAIN = True
_MOST_CHARS = 100


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", nargs="?", metavar="COMMAND", help="the command to explain")


def run(options: argparse.Namespace) -> int:
    from inspector.cli.commands import COMMANDS
    from inspector.cli.parser import parser_of

    name = options.command or ""
    if name and name not in COMMANDS:
        near = nearest(name, COMMANDS)
        remedy = f"did you mean {near}?" if near else f"{PROGRAM} help lists the commands"
        raise PlanError(f"there is no command {cut_text(name, _MOST_CHARS)!r}", remedy=remedy)
    say(parser_of(name).format_help())
    return DONE
