"""Words of a command line that nothing has: what was meant most likely, and which command has it."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterable, Sequence
from importlib import import_module

from inspector.cli.commands import COMMANDS, WINDOW
from inspector.cli.common import PROGRAM
from inspector.units import cut_text, nearest

_MOST_CHARS = 100
_MOST_COMMANDS = 4
_BARE = f"{PROGRAM} without a command"
_NUMBER = re.compile(r"-\d+|-\d*\.\d+")


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


def describe_unknown(word: str, command: str, own: Iterable[str], words: Sequence[str]) -> str:
    """Return what is wrong with an option that a command does not have, and what may have been meant.

    Args:
        command: The name of the command; empty for the window.
    """
    name = word.partition("=")[0]
    said = cut_text(name, _MOST_CHARS)
    what = f"{command} has no option {said}" if command else f"without a command, there is no option {said}"
    return f"{what}{_remedy(name, word, command, tuple(own), words)}"


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
        for name in parser._option_string_actions:  # noqa: SLF001 - there is no other table of them
            found.setdefault(name, []).append(command)
    return found


def _listed(names: Sequence[str]) -> str:
    if len(names) > _MOST_COMMANDS:
        return f"{', '.join(names[:_MOST_COMMANDS])} and {len(names) - _MOST_COMMANDS} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
