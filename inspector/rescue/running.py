"""Runs somebody's program with a start-up hook that maps its loads.

Nothing is installed. The folder of the hook lies where temporary files lie, belongs to this user alone, holds
copies of `resources/rescue` with what they have to do, and is removed when the command has ended. One part of
it is at the front of PYTHONPATH of every Python below.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from inspector.child import find_program
from inspector.errors import ExportError, PlanError
from inspector.model.roles.devices import DEVICE_TYPES
from inspector.records import dataclass
from inspector.remap.rules import Rule, format_rule
from inspector.rescue.journal import Journal, read_journal
from inspector.resources import RESCUE, resource_path
from inspector.target.wish import Wish

_START = "start"
"""The folder that is on the path: nothing lies in there but what Python imports at its start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hook:
    """The folder while it is there."""

    folder: Path
    environment: Mapping[str, str]

    @property
    def journal(self) -> Path:
        """Where the processes write down what they did."""
        return self.folder / "journal"

    @property
    def module(self) -> str:
        """The name that the hook's start has in each process."""
        return f"_checkpoint_inspector_{self.folder.name.replace('-', '_')}_start"


@contextlib.contextmanager
def hooked(rules: Sequence[tuple[str, str]], target: Wish, *, maps_missing: bool = True) -> Iterator[Hook]:
    """Yield the hook for these rules, and remove it afterwards."""
    try:
        folder = Path(tempfile.mkdtemp(prefix="checkpoint-inspector-run-")).resolve()
    except OSError as error:
        raise ExportError("the folder of the start-up hook cannot be made", where=error.filename) from error
    try:
        try:
            settings = _settings(rules, target, maps_missing=maps_missing)
            _fill(folder, settings)
        except OSError as error:
            raise ExportError("the start-up hook cannot be written", where=str(folder)) from error
        yield Hook(folder=folder, environment=_environment(folder))
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _fill(folder: Path, settings: dict[str, object]) -> None:
    for name in (_START, "parts", "journal"):
        (folder / name).mkdir()
    for path in resource_path(RESCUE).glob("*.py"):
        shutil.copyfile(path, folder / (_START if path.name == "sitecustomize.py" else "parts") / path.name)
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def _settings(rules: Sequence[tuple[str, str]], target: Wish, *, maps_missing: bool) -> dict[str, object]:
    kinds = [row for row in DEVICE_TYPES.values() if row.noun]
    return {
        "rules": rules,
        "maps_missing": maps_missing,
        "target": _target(target),
        "kinds": [row.name for row in kinds],
        "lacks": {row.name: sorted(row.lacks) for row in kinds if row.lacks},
    }


def _target(wish: Wish) -> dict[str, object] | None:
    """Return what counts as being there, where things go, and whether all go there; None for this machine."""
    machine = wish.machine
    if machine is None:
        return (
            None if wish.wanted is None else {"counts": None, "destination": wish.wanted, "takes_all": True}
        )
    target = wish.profile(lambda: machine)
    return {
        "counts": dict(target.accelerators),
        "destination": target.destination,
        "takes_all": target.wanted is not None,
    }


def _environment(folder: Path) -> dict[str, str]:
    """Return our environment with the folder first; an empty PYTHONPATH must not become a dot."""
    before = os.environ.get("PYTHONPATH")
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder / _START), *([before] if before else [])]),
    }


# ------------------------------------------------------------------------------------------------------------
# The command that is to be rescued: its program, its Python, and whether the hook can start there.
#
# Python ignores PYTHONPATH when it is told so (`-I`, `-E`) and imports no `sitecustomize` with `-S`. So the
# Python of the command is asked first, with the same options and environment, and without what lies beside
# it.

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


# ------------------------------------------------------------------------------------------------------------
# Runs a command as if it had been started directly: its streams, its signals and its end are its own.
#
# Ctrl+C reaches it without us, since the terminal tells all programs of the foreground. What is sent to this
# process alone (`kill`, a cluster's scheduler) is handed on. Windows has neither: there Ctrl+C reaches both.

_FROM_TERMINAL = ("SIGINT", "SIGQUIT")
_HANDED_ON = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")


def run_command(command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command to its end, and return its exit code, or the negative of the signal that ended it."""
    with _signals() as relay:
        try:
            # Files that the shell opened for it, such as `<(...)`, are its own too.
            child = subprocess.Popen(command, env=environment, close_fds=False)  # noqa: S603 - that is the task
        except OSError as error:
            raise PlanError(f"the command cannot be started: {error.strerror}", where=command[0]) from error
        relay.adopt(child)
        return child.wait()


class _Relay:
    def __init__(self) -> None:
        self._child: subprocess.Popen[bytes] | None = None
        self._early: list[int] = []
        self._both = is_in_foreground()

    def adopt(self, child: subprocess.Popen[bytes]) -> None:
        """Take the child, now that it was started."""
        self._child = child
        for number in self._early:
            child.send_signal(number)

    def hand_on(self, number: int, _frame: object) -> None:
        """Handle a signal."""
        if self._both and signal.Signals(number).name in _FROM_TERMINAL:
            return
        if self._child is None:
            self._early.append(number)
        else:
            self._child.send_signal(number)


@contextlib.contextmanager
def _signals() -> Iterator[_Relay]:
    """Hand signals on instead of ending by them."""
    relay = _Relay()
    if threading.current_thread() is not threading.main_thread():
        yield relay  # signals are handled by the main thread alone
        return
    numbers = [getattr(signal, name) for name in (*_FROM_TERMINAL, *_HANDED_ON) if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    # What is ignored (`nohup`) the command has to ignore as well: it inherits that.
    caught = [number for number in numbers if before[number] is not signal.SIG_IGN]
    for number in caught:
        signal.signal(number, relay.hand_on)
    try:
        yield relay
    finally:
        for number in caught:
            signal.signal(number, before[number])


def is_in_foreground() -> bool:
    """Return whether the terminal sends Ctrl+C to this process, and so to its children too."""
    if not hasattr(os, "tcgetpgrp"):
        return True
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


def end_alike(code: int) -> int:
    """Return an exit code; a command that a signal ended takes this process along by the same signal."""
    if code >= 0:
        return code
    with contextlib.suppress(ImportError, OSError, ValueError):
        import resource  # noqa: PLC0415 - Windows has none

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # the command wrote its own
    with contextlib.suppress(OSError, ValueError):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    return 128 - code


# --- A command run with its loads mapped: from its words and rules to its exit code and its journal ---------

_COPY = "write a copy with checkpoint-inspector remap"


def run_rescued(
    words: Sequence[str], rules: Sequence[Rule], target: Wish, *, maps_missing: bool
) -> tuple[int, Journal]:
    """Run a command, and return its exit code (or the negative number of a signal) and what was mapped."""
    followed = [_followed(rule) for rule in rules]
    program = find_command(words)
    with hooked(followed, target, maps_missing=maps_missing) as hook:
        check_python(program, hook)
        code = run_command(program.command, hook.environment)
        return code, read_journal(hook.journal)


def _followed(rule: Rule) -> tuple[str, str]:
    """Return a rule as the hook follows it: it sees the device of a storage, and nothing else."""
    if rule.device is None:
        raise PlanError(
            f"run cannot follow {format_rule(rule)!r}: only devices are known while a program loads",
            remedy=f"map devices, as in 'cuda:1=cuda:0', or {_COPY}",
        )
    if rule.device == "cpu":
        raise PlanError(
            "run leaves on the CPU what was saved there: it cannot tell weights from Adam's steps",
            remedy=f"move what is loaded in the program, or {_COPY}",
        )
    return rule.device, rule.to
