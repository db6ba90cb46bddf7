"""The command line, read: the first word chooses the command, and its module declares the options."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, NoReturn

from inspector.cli.commands import COMMANDS, WINDOW
from inspector.cli.common import PROGRAM, USAGE, complain, say
from inspector.cli.display import add_display_options
from inspector.overriding import override
from inspector.units import cut_text, nearest

_HELP_COLUMN = 28
_NARROW, _HELP_COLUMN_NARROW = 70, 20
_MOST_CHARS, _MOST_WORDS = 100, 4
_REPEATED = re.compile(r"(\S+) \[\1 \.\.\.\]")
_ANY_WIDTH = 80
"""While options are declared, nothing is laid out, and what asks the terminal takes long to import."""
SHORT = {"--map": "-m", "--target": "-t", "--json": "-j", "--dry-run": "-n", "--force": "-f"}
"""Short names of the options that are typed most, wherever a command has one of them."""


def _joined(words: Sequence[str]) -> list[str]:
    """Join `--args` and its words: argparse takes one that begins with a dash for an option of ours."""
    joined = list(words)
    for place in reversed([place for place, word in enumerate(joined[:-1]) if word == "--args"]):
        joined[place : place + 2] = [f"--args={joined[place + 1]}"]
    return joined


class _Help(argparse.HelpFormatter):
    def __init__(self, prog: str, width: int | None = None) -> None:
        super().__init__(prog, max_help_position=_HELP_COLUMN, width=width)
        if self._width < _NARROW:
            self._max_help_position = _HELP_COLUMN_NARROW

    @override
    def _fill_text(self, text: str, width: int, indent: str) -> str:
        fill = super()._fill_text
        lines = (line if line.startswith(" ") else fill(line, width, indent) for line in text.splitlines())
        return "\n".join(lines)

    @override
    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings or action.nargs == 0:
            return super()._format_action_invocation(action)
        taken = self._format_args(action, self._get_default_metavar_for_optional(action))
        return f"{', '.join(action.option_strings)} {taken}"


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line like every other error, and takes options by their whole name only.

    An abbreviation would change its meaning, or lose it, with the next option.
    """

    def __init__(self, *, command: ModuleType, prog: str) -> None:
        examples = [f"  {PROGRAM} {line}".rstrip() for line in getattr(command, "EXAMPLES", ())]
        notes = getattr(command, "NOTES", "")
        super().__init__(
            prog=prog,
            description=command.SUMMARY,
            epilog="\n".join(["examples:", *examples] * bool(examples) + ["", notes] * bool(notes)),
            allow_abbrev=False,
            formatter_class=partial(_Help, width=_ANY_WIDTH),
        )
        self._positionals.title = "arguments"
        command.add_options(self)
        if prog != PROGRAM:
            add_display_options(self, is_plain=getattr(command, "IS_PLAIN", False))
        self._shorten()
        self.set_defaults(run=command.run)
        self.formatter_class = _Help

    def _shorten(self) -> None:
        for action in self._actions:
            short = SHORT.get(action.option_strings[0]) if action.option_strings else None
            if short is not None:
                action.option_strings = [short, *action.option_strings]
                self._option_string_actions[short] = action

    @override
    def format_help(self) -> str:
        """Begin with what must be given: options stand below, with what they are for.

        Where no command was given, all are named; they are imported for that alone.
        """
        self.usage = self._shortest_usage().replace("%", "%%")
        text = super().format_help()
        self.usage = None
        return text if self.prog != PROGRAM else f"{text}\n{_commands()}"

    def _shortest_usage(self) -> str:
        more = "" if self.prog != PROGRAM else f"\n       {PROGRAM} COMMAND [options] ..."
        return f"{self.prog} [options] {self.needed()}".rstrip() + more

    def needed(self) -> str:
        """Return the words that must be given."""
        words = [self._words([action for action in self._actions if not action.option_strings])]
        words += [self._words([action for action in self._get_optional_actions() if action.required])]
        places = [group._group_actions[0] for group in self._mutually_exclusive_groups]  # noqa: SLF001 - as above
        output = next((action for action in places if action.dest == "output"), None)
        if output is not None:  # one of several places, and the one that most people mean
            words = [words[0].removesuffix("..."), f"-o {output.metavar}"]
        return " ".join(filter(None, words))

    def _words(self, actions: Sequence[argparse.Action]) -> str:
        formatter = self._get_formatter()
        formatter.add_usage(None, actions, [], prefix="")
        words = " ".join(formatter.format_help().split()).removeprefix(self.prog).strip()
        words = _REPEATED.sub(r"\1...", words)
        return words if words != "..." else str(actions[-1].metavar)  # of REMAINDER, argparse says no more

    def read(self, command: str, words: Sequence[str]) -> argparse.Namespace:
        """Return the options of a command; one that it does not have is told before anything else."""
        words = _joined(words)
        # Most lines hold none, and what finds out takes a few milliseconds to import.
        if any(word.startswith("-") for word in words):
            from inspector.cli.mistakes import describe_unknown, find_unknown

            unknown = find_unknown(self, words)
            if unknown is not None:
                self.error(describe_unknown(unknown, command, self, words))
        options, rest = self.parse_known_args(words)
        if rest:
            said = ", ".join(repr(cut_text(word, _MOST_CHARS)) for word in rest[:_MOST_WORDS])
            self.error(
                f"{command or 'the window'} has no use for {said} ({self.prog} --help says what it takes)"
            )
        return options

    @override
    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Refuse a word that is none of the choices, in the same words under every Python."""
        if action.choices is None or value in action.choices:
            return
        near = nearest(str(value), map(str, action.choices))
        known = ", ".join(map(str, action.choices))
        meant = f"did you mean {near}? it can be {known}" if near else f"it can be {known}"
        said = cut_text(str(value), _MOST_CHARS)
        if action.option_strings:
            raise argparse.ArgumentError(action, f"there is no {said!r} ({meant})")
        raise argparse.ArgumentError(None, f"{self.prog.rpartition(' ')[2]} takes no {said!r} ({meant})")

    @override
    def _print_message(self, message: str, file: Any = None) -> None:
        """Write help as any other answer: a full disk is an error, and argparse would say nothing."""
        say(message)

    @override
    def error(self, message: str) -> NoReturn:
        from inspector.cli.mistakes import reword

        complain(reword(message, self.prog, self.needed()))
        raise SystemExit(USAGE)


def parse(given: list[str]) -> argparse.Namespace:
    given = _with_files(given)
    name = given[0] if given and given[0] in COMMANDS else ""
    parser = parser_of(name)
    if name == "run" and "--" not in given and os.path.lexists(name):
        parser.error("run is a file here as well: write ./run for it, or run -- COMMAND to run a command")
    if name:
        return parser.read(name, given[1:])
    if given and _is_mistaken(given[0]):
        parser.error(f"there is no command or file {cut_text(given[0], _MOST_CHARS)!r}{_meant(given[0])}")
    options = parser.read(name, given)
    late = next((word for word in given[1:] if word in COMMANDS and not os.path.lexists(word)), None)
    if late is not None and "--" not in given:
        parser.error(f"the command comes first: {PROGRAM} {late}; for a file of this name, write ./{late}")
    return options


def _with_files(given: list[str]) -> list[str]:
    """Return the words with `./` before each that looks like an option and is a file, as `*` may bring."""
    end = given.index("--") if "--" in given and not os.path.lexists("--") else len(given)
    return [
        f"./{word}"
        if word.startswith("-") and word != "-" and number < end and os.path.lexists(word)
        else word
        for number, word in enumerate(given)
    ]


def parser_of(name: str) -> _Parser:
    """Return the parser of one command, or of the window if the name is empty; no other is imported."""
    return _Parser(command=import_module(COMMANDS.get(name, WINDOW)), prog=f"{PROGRAM} {name}".rstrip())


def parser_tree() -> argparse.ArgumentParser:
    """Return all commands as sub-parsers of one parser: what manuals and completions are made from.

    The program itself reads one command at a time, so that each imports nothing of the others.
    """
    tree = parser_of("")
    commands = tree.add_subparsers(title="commands", metavar="COMMAND", parser_class=_Parser)
    for name, place in COMMANDS.items():
        command = import_module(place)
        commands.add_parser(name, help=command.SUMMARY, command=command, prog=f"{PROGRAM} {name}")
    return tree


def _is_mistaken(word: str) -> bool:
    """Return whether the first word is neither an option nor a file: files have a suffix, or are there."""
    return word.isidentifier() and not os.path.lexists(word)


def _meant(word: str) -> str:
    near = nearest(word.lower(), COMMANDS)
    return f"; did you mean {near}?" if near else f"; {PROGRAM} --help lists the commands"


def _commands() -> str:
    width = max(map(len, COMMANDS)) + 2
    rows = [f"  {name:<{width}}{import_module(module).SUMMARY}" for name, module in COMMANDS.items()]
    if sys.stdout.isatty():
        import shutil
        import textwrap

        room, indent = max(shutil.get_terminal_size().columns - 2, 2 * width), " " * (width + 2)
        rows = [textwrap.fill(row, room, subsequent_indent=indent, break_on_hyphens=False) for row in rows]
    return "\n".join(["commands:", *rows, "", f"{PROGRAM} COMMAND --help explains each.", ""])
