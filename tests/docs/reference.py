"""The reference of the command line, made from the options that the commands declare."""

from __future__ import annotations

import argparse
import itertools
import re
from collections.abc import Iterable, Iterator
from importlib import import_module

from inspector.cli.commands import COMMANDS, WINDOW
from inspector.cli.commands.completion import SHORT_NAME
from inspector.cli.display import add_display_options
from inspector.cli.parser import parser_of
from tests.docs.pages import DOCS, plain

PROGRAM = "checkpoint-inspector"
PAGE = DOCS / "cli.md"
INTRODUCTION = f"""\
# Command line

`{PROGRAM}` without a command opens the window. Each command below has the same text under
`{PROGRAM} COMMAND --help`. `{SHORT_NAME}` and `python -m inspector` are the same program.

This page is made from the program's own parsers by `python -m tests.docs`; a test compares the two.

Answers go to stdout, messages to stderr. With `--json`, stdout holds [JSON](json.md) and nothing else.
An error is one line, `{PROGRAM}: error: WHAT: WHERE`.

## Exit codes

| code | meaning |
| --- | --- |
| 0 | done |
| 1 | done, and the answer is "no": it would not load, it is not safe, the files differ |
| 2 | the command line is wrong |
| 3 | the input cannot be read |
| 4 | the output cannot be written, or not be checked as asked; nothing half-written is left |
| 130 | interrupted |

`run` ends with the exit code of the program that it ran.
"""
NOT_RUN = {
    "": "it opens a window",
    "run": "it needs torch and a program of yours",
    "desktop": "it changes the desktop of the user",
    "screenshot": "it opens a window",
    "target --python": "it names an environment of yours",
    "remap - -o - < best.pth |": "it needs another machine",
}
"""Why examples are not run with the page, by how they begin."""


def page() -> str:
    """Return the page."""
    parts = [INTRODUCTION, *_options_of_all(), *_command("", WINDOW)]
    for name, module in COMMANDS.items():
        parts += _command(name, module)
    return "\n".join(parts)


def _options_of_all() -> Iterator[str]:
    yield "## Options of every command\n"
    yield _table(_rows(_display_parser()))
    unused = [name for name, module in COMMANDS.items() if getattr(import_module(module), "IS_PLAIN", False)]
    listed = ", ".join(f"`{name}`" for name in unused)
    yield f"`--color` and `--no-pager` change nothing in {listed}: they lay nothing out.\n"


def _display_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(add_help=False)
    add_display_options(parser)
    return parser


def _shared() -> frozenset[str]:
    return frozenset(action.dest for action in _display_parser()._actions)


def _table(rows: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"| {left} | {right} |\n" for left, right in rows)
    return f"| word or option | meaning |\n| --- | --- |\n{lines}"


def _command(name: str, place: str) -> Iterator[str]:
    module = import_module(place)
    title = f"{PROGRAM} {name}".rstrip()
    parser = parser_of(name)
    yield f"## {name or 'The window'}\n"
    yield f"{module.SUMMARY}\n"
    yield f"```text\n{_usage(parser, title)}\n```\n"
    if rows := list(_rows(parser, _shared())):
        yield _table(rows)
    if notes := getattr(module, "NOTES", ""):
        yield _notes(notes)
    yield from _examples(name, getattr(module, "EXAMPLES", ()))


def _usage(parser: argparse.ArgumentParser, title: str) -> str:
    """Return the usage on one line for each group of words that belong together, at most 100 wide."""
    parser.prog = title
    words = " ".join(parser.format_usage().removeprefix("usage: ").split()).replace("[-h] ", "")
    for action in _display_parser()._actions:
        words = re.sub(rf"\[{re.escape(action.option_strings[0])}( [^]]*)?\] ?", "", words)
    lines, indent = [""], " " * (len(title) + 1)
    for part in _parts(words):
        if lines[-1] and len(lines[-1]) + len(part) >= 100:
            lines.append(indent + part)
        else:
            lines[-1] = f"{lines[-1]} {part}".lstrip() if len(lines) == 1 else f"{lines[-1]} {part}"
    return "\n".join(lines)


def _parts(usage: str) -> Iterator[str]:
    """Yield the words of a usage, what stands in brackets as one."""
    depth, part = 0, ""
    for word in usage.split():
        part = f"{part} {word}".lstrip()
        depth += word.count("[") - word.count("]")
        if depth == 0:
            yield part
            part = ""


def _rows(parser: argparse.ArgumentParser, shared: frozenset[str] = frozenset()) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if action.help == argparse.SUPPRESS or action.dest in shared | {"help"}:
            continue
        yield _left(action), _right(parser, action)


def _left(action: argparse.Action) -> str:
    value = action.metavar or ("{" + ",".join(map(str, action.choices)) + "}" if action.choices else "")
    value = value if isinstance(value, str) else " ".join(value)
    if not action.option_strings:
        return f"`{value or action.dest}`"
    return ", ".join(f"`{option} {value}`".replace(" `", "`") for option in action.option_strings)


def _right(parser: argparse.ArgumentParser, action: argparse.Action) -> str:
    text = parser._get_formatter()._expand_help(action) if action.help else ""
    if action.choices and isinstance(action.metavar, str) and action.metavar not in {"{}", ""}:
        text = f"{text}; one of {', '.join(f'`{each}`' for each in action.choices)}"
    is_said = action.default in (None, False, argparse.SUPPRESS, [], "") or "default" in text
    text = text if is_said else f"{text}; default: `{action.default}`"
    return plain(text)


def _notes(notes: str) -> str:
    """Return the notes of a command; lines that are indented there stay as they are."""
    parts = []
    for is_apart, lines in itertools.groupby(notes.split("\n"), key=lambda line: line.startswith("  ")):
        text = "\n".join(line.removeprefix("  ") for line in lines)
        parts.append(f"```text\n{text}\n```\n" if is_apart else f"{plain(text)}\n")
    return "\n".join(parts)


def _examples(name: str, examples: tuple[str, ...]) -> Iterator[str]:
    """Yield the examples as blocks; those that are not run stand in one of their own."""
    groups: dict[str, list[str]] = {}
    for line in examples:
        groups.setdefault(_reason(name, line), []).append(line)
    for reason, lines in groups.items():
        mark = (
            f"not run: {reason}" if reason else f"exit: {' '.join(str(CODES.get(each, 0)) for each in lines)}"
        )
        commands = "\n".join(f"$ {PROGRAM} {line}".rstrip() for line in lines)
        yield f"<!-- {mark} -->\n```console\n{commands}\n```\n"


def _reason(name: str, line: str) -> str:
    return next(
        (why for start, why in NOT_RUN.items() if start == name or (start and line.startswith(start))), ""
    )


CODES = {
    'show best.pth --filter "device:cuda:1 size>10MB"': 1,
    "check best.pth": 1,
    "check - < best.pth": 1,
    "check runs/ --target cpu --format concise": 1,
    "check best.pth --filter role:optimizer": 1,
    "check best.pth --target cuda@24gb": 1,
    "check best.pth --error-file traceback.txt": 1,
    "check best.pth --script train.py": 1,
    'check best.pth --script train.py --args "--resume best.pth --gpu 0"': 1,
    "diff epoch-1.pth epoch-2.pth": 1,
    "diff model.safetensors best.pth --compare numbers --filter role:parameter": 1,
}
"""Examples that end with another code than 0 in the folder of samples."""
