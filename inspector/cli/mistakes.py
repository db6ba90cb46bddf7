"""Mistakes in a command line: words that nothing has, what was meant most likely, and what is missing."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Sequence
from importlib import import_module

from inspector.cli.commands import COMMANDS, WINDOW
from inspector.cli.common import PROGRAM
from inspector.units import cut_text, nearest

_MOST_CHARS = 100
_MOST_COMMANDS = 4
_BARE = f"{PROGRAM} without a command"
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")
_MISSING = re.compile(r"the following arguments are required: ([^,]*).*", re.DOTALL)
_QUESTIONS = {
    "file": "which file?",
    "out": "which copy?",
    "out.png": "which picture?",
    "-o/--output": "where to?",
    "--against": "made from which file?",
    "action": "install or remove?",
    "shell": "which shell?",
}
"""What a command asks for that was not given, by what argparse calls it, in small letters."""
_REWORDED = {
    r"argument (?:-\w/)?(\S+): expected (?:one|at least one) argument": r"\1 needs a value ({line} --help)",
    r"argument (?:-\w/)?(\S+): not allowed with argument (?:-\w/)?(\S+)": (
        r"\1 and \2 contradict each other (leave one out)"
    ),
    r"argument (?:-\w/)?(\S+): ignored explicit argument (.*)": r"\1 takes no value, and \2 was given",
    r"argument (?:-\w/)?(\S+): (.*)": r"\1: \2",
}
"""What argparse says, and what is said instead; the first that fits counts."""


def reword(message: str, line: str, needed: str) -> str:
    """Return what argparse says about a command line as the other errors say it, with what helps.

    Args:
        line: What begins a line of this command.
        needed: What must stand behind it.
    """
    missing = _MISSING.fullmatch(message)
    if missing is not None:
        command, name = line.removeprefix(PROGRAM).strip(), missing[1]
        return f"{command}: {_QUESTIONS.get(name.lower(), f'no {name} was given:')} {line} {needed}"
    for pattern, instead in _REWORDED.items():
        found = re.fullmatch(pattern, message, re.DOTALL)
        if found is not None:
            return found.expand(instead.replace("{line}", line))
    return message


def find_unknown(parser: argparse.ArgumentParser, words: Sequence[str]) -> str | None:
    """Return the first word that looks like an option and is none; None where argparse can go on.

    It is looked for before argparse, which would name what is missing first: `verify a --aginst b`.
    """
    known = parser._option_string_actions  # noqa: SLF001 - there is no other table of them
    has_rest = any(action.nargs == argparse.REMAINDER for action in parser._actions)  # noqa: SLF001 - as above
    rest = iter(words)
    for word in rest:
        if word == "--" or (has_rest and not word.startswith("-")):
            return None
        if not _is_option(word):
            continue
        name, has_value, _ = word.partition("=")
        action = known.get(name) or (None if word.startswith("--") else known.get(word[:2]))
        if action is None:
            return word
        if action.nargs != 0 and not has_value and name in known:
            next(rest, None)  # its value, whatever it begins with: argparse knows what it may be
    return None


def _is_option(word: str) -> bool:
    """Return whether argparse takes a word for an option: no number, no `-`, nothing with a blank."""
    return word.startswith("-") and word != "-" and " " not in word and _NUMBER.fullmatch(word) is None


def describe_unknown(word: str, command: str, parser: argparse.ArgumentParser, words: Sequence[str]) -> str:
    """Return what is wrong with an option that a command does not have, and what may have been meant.

    Args:
        command: The name of the command; empty for the window.
    """
    name = word.partition("=")[0]
    said = cut_text(name, _MOST_CHARS)
    what = f"{command} has no option {said}" if command else f"without a command, there is no option {said}"
    return f"{what}{_remedy(name, word, command, tuple(_shown(parser)), words)}"


def _shown(parser: argparse.ArgumentParser) -> Iterator[str]:
    """Yield the options that help names: nobody is told to write an old spelling."""
    for name, action in parser._option_string_actions.items():  # noqa: SLF001 - there is no other table of them
        if action.help != argparse.SUPPRESS:
            yield name


def _remedy(name: str, word: str, command: str, own: Sequence[str], words: Sequence[str]) -> str:
    if os.path.lexists(word):
        from inspector.quoting import file_word

        return f" (for the file of this name, write {file_word(word)})"
    behind = next((other for other in words if other in COMMANDS), None) if not command else None
    if behind is not None:
        return f" (options stand behind the command: {PROGRAM} {behind} {cut_text(name, _MOST_CHARS)})"
    options = _options_of_all()
    if name in options:
        return f" ({_listed(options[name])} {'has' if len(options[name]) == 1 else 'have'} it)"
    meant = nearest(name, {**dict.fromkeys(own), **options})
    if meant is not None:
        return f"; did you mean {meant}{'' if meant in own else f' of {_listed(options[meant])}'}?"
    return f" ({PROGRAM} {f'{command} ' if command else ''}--help lists them)"


def _options_of_all() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for command, place in {**COMMANDS, _BARE: WINDOW}.items():
        parser = argparse.ArgumentParser(add_help=False)
        import_module(place).add_options(parser)
        for name in _shown(parser):
            found.setdefault(name, []).append(command)
    return found


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_COMMANDS:
        return f"{', '.join(names[:_MOST_COMMANDS])} and {len(names) - _MOST_COMMANDS} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
