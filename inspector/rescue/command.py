"""The command that is to be rescued: its program, its Python, and whether the hook can start there.

Python ignores PYTHONPATH when it is told so (`-I`, `-E`) and imports no `sitecustomize` with `-S`. So the
Python of the command is asked first, with the same options and environment, and without what lies beside it.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from inspector.child import find_program
from inspector.errors import ExportError, PlanError
from inspector.records import dataclass
from inspector.rescue.hook import Hook

_PYTHON = re.compile(r"(?:python|pypy)[0-9.]*[tw]?(?:\.exe)?", re.IGNORECASE)
_WITH_VALUE = frozenset("WX")
_ENDS = frozenset("cm")
_MATTERS = frozenset("EISPs")
_OLDEST = (3, 8)
_TIMEOUT_S = 60.0
_MOST_SHEBANG_NBYTES = 512
_QUESTION = (
    "import sys\n"
    "sys.path[:] = [place for place in sys.path if place]\n"  # '' is the working directory
    "import importlib.util\n"
    "flags = sys.flags\n"
    "print('ANSWER', '%d.%d' % sys.version_info[:2], int({module!r} in sys.modules),\n"
    "      int(importlib.util.find_spec('torch') is not None),\n"
    "      flags.isolated, flags.ignore_environment, flags.no_site)\n"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """What will be run.

    Attributes:
        command: The command, its program by path.
        python: The Python that runs it, with those of its options that decide what it imports at its start;
            empty where that is not known (a shell script, `uv`, `conda run`).
    """

    command: tuple[str, ...]
    python: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    version: tuple[int, int]
    has_hook: bool
    has_torch: bool
    ignored_for: str


def find_command(words: Sequence[str]) -> Program:
    """Return the program that a shell would run for these words."""
    name, *arguments = words
    path = name if os.path.dirname(name) else find_program(name)  # noqa: PTH120 - `./x` is no plain name
    if path is None or not os.access(path, os.X_OK) or Path(path).is_dir():
        raise PlanError(f"there is no program {name!r} to run", remedy="write the command behind --")
    if _PYTHON.fullmatch(Path(path).name):
        return Program(command=(path, *arguments), python=(path, *_start_options(arguments)))
    return Program(command=(path, *arguments), python=_shebang(path))


def _start_options(arguments: Sequence[str]) -> tuple[str, ...]:
    """Return which options of Python matter for what it imports by itself: they end at the script."""
    found: list[str] = []
    is_value = False
    for word in arguments:
        if is_value:
            is_value = False
            continue
        if not word.startswith("-") or word in {"-", "--"} or word.startswith("--"):
            break
        letters, last = _letters(word)
        found += [f"-{letter}" for letter in letters if letter in _MATTERS]
        is_value = last in _WITH_VALUE and word.endswith(last)
        if last in _ENDS:
            break
    return tuple(found)


def _letters(word: str) -> tuple[str, str]:
    """Return the flags of one word, and the letter that ends them: what follows it is its value."""
    for place, letter in enumerate(word[1:], 1):
        if letter in _WITH_VALUE | _ENDS:
            return word[1:place], letter
    return word[1:], ""


def _shebang(path: str) -> tuple[str, ...]:
    """Return the Python of a script that names it, as those that pip writes do (`torchrun`)."""
    try:
        with open(path, "rb") as stream:  # noqa: PTH123 - a path as the user wrote it
            first = stream.readline(_MOST_SHEBANG_NBYTES)
    except OSError:
        return ()
    words = first[2:].decode("utf-8", "replace").split()
    if not first.startswith(b"#!") or not words:
        return ()
    if Path(words[0]).name == "env" and len(words) == 2:
        words = [find_program(words[1]) or "", *words[2:]]
    is_python = _PYTHON.fullmatch(Path(words[0]).name) is not None
    return (words[0], *_start_options(words[1:])) if is_python else ()


def check_python(program: Program, hook: Hook) -> None:
    """Check that the hook starts in the Python of a command, and that torch is there."""
    answer = _ask(program.python, hook) if program.python else None
    if answer is None:
        return
    if answer.version < _OLDEST:
        version = ".".join(map(str, answer.version))
        raise ExportError(f"run needs Python 3.8 or newer, this is {version}", where=program.python[0])
    if not answer.has_hook:
        raise PlanError(
            f"this Python does not run the hook that maps loads{answer.ignored_for}",
            where=program.python[0],
            remedy="leave that option out, or make a copy that loads: checkpoint-inspector remap",
        )
    if not answer.has_torch:
        remedy = "activate the environment that has torch, or name its Python"
        raise ExportError("there is no torch in this Python", where=program.python[0], remedy=remedy)


def _ask(python: Sequence[str], hook: Hook) -> _Answer | None:
    """Ask a Python about itself, as it would be started; None where it does not answer."""
    question = _QUESTION.format(module=hook.module)
    said = _output([*python, "-c", question], hook.environment)
    for path in hook.journal.iterdir():
        path.unlink()
    for line in said.splitlines():
        words = line.split()
        if words[:1] == ["ANSWER"] and len(words) == 7:
            major, _, minor = words[1].partition(".")
            flags = zip(("-I", "-E", "-S"), words[4:], strict=True)
            set_flags = [flag for flag, value in flags if value != "0"]
            return _Answer(
                version=(int(major), int(minor)),
                has_hook=words[2] == "1",
                has_torch=words[3] == "1",
                ignored_for=f", because of its option {set_flags[0]}" if set_flags else "",
            )
    return None


def _output(command: Sequence[str], environment: Mapping[str, str]) -> str:
    try:
        done = subprocess.run(  # noqa: S603 - the Python that the user is about to run
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "replace")
