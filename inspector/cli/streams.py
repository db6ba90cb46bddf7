"""`-` in place of a file: standard input as something to read, standard output as something to write.

Formats are read from their end, and a copy is checked before anybody gets it, so neither is a stream: what
comes from a pipe is kept in a file without a name, and what goes to one is written to a file first.
"""

from __future__ import annotations

import argparse
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector.errors import CheckpointError, ContainerError, ExportError, PlanError
from inspector.quoting import IS_WINDOWS

if TYPE_CHECKING:
    from inspector.containers.source import Source

STREAM = "-"
MOST_PIPED_NBYTES = 8 * 10**9
"""How much of a pipe is kept: the folder for temporary files is often in memory, or small."""
_STEP_NBYTES = 1 << 20
_PREFIX = "checkpoint-inspector-"


def is_stream(path: str | None) -> bool:
    return path == STREAM


def refuse_stdin(what: str, *paths: str | None) -> None:
    if any(is_stream(path) for path in paths):
        raise PlanError(f"{what}, and standard input has no name", where=STREAM, remedy="name the file")


def shown_name(path: str, options: argparse.Namespace) -> str:
    """Return what a file is called in the answer: in JSON as it was given, for people by what it is."""
    return "stdin" if is_stream(path) and not options.json else path


def refuse_twice(*paths: str | None) -> None:
    if sum(is_stream(path) for path in paths) > 1:
        raise PlanError("standard input can be read once only", where=STREAM, remedy="name the other file")


# --- standard input -----------------------------------------------------------------------------------------


@contextmanager
def given(path: str, options: argparse.Namespace) -> Iterator[Source | str]:
    """Yield what is read for a path: itself, or for `-` standard input as a source with a name."""
    if not is_stream(path):
        yield path
        return
    from inspector.containers.packed import looked_through
    from inspector.containers.source import FileSource

    with looked_through(FileSource(shown_name(path, options), _stdin_file())) as source:
        yield source


class Given(NamedTuple):
    """Something to read: where it can be opened, again and again, and what it is called in the answer."""

    path: str
    name: str


@contextmanager
def named(path: str, options: argparse.Namespace) -> Iterator[Given]:
    """Yield where a file can be read several times, also by a child process: for `-` a place of its own.

    Errors from within name it as the answer does.
    """
    if not is_stream(path):
        yield Given(path, path)
        return
    fd = _stdin_file()
    try:
        with _place_of(fd) as place:
            found = Given(place, shown_name(path, options))
            try:
                yield found
            except CheckpointError as error:
                rename(error, found)
                raise
    finally:
        os.close(fd)


def rename(error: CheckpointError, given: Given) -> None:
    """Let an error name standard input as the answer does, instead of where it is kept."""
    if given.path != given.name:
        error.what = error.what.replace(given.path, given.name)
        error.where = error.where and error.where.replace(given.path, given.name)
        error.remedy = error.remedy and error.remedy.replace(given.path, STREAM)  # a command to paste


@contextmanager
def _place_of(fd: int) -> Iterator[str]:
    """Yield a path that opens the file of a descriptor; where the system has none, that of a copy."""
    place = f"/proc/{os.getpid()}/fd/{fd}"
    if os.access(place, os.R_OK):
        yield place
        return
    import shutil
    import tempfile

    with removed_at_signals(), tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        copy = Path(folder, "stdin")
        try:
            with os.fdopen(os.dup(fd), "rb") as file, copy.open("xb") as out:
                file.seek(0)
                shutil.copyfileobj(file, out)
        except OSError as error:
            raise _unkept(error, folder) from error
        yield os.fspath(copy)


def _stdin_file() -> int:
    """Return a descriptor of a regular file with what is on standard input, a copy of a pipe."""
    fd = _as_bytes(_stdin())
    if os.isatty(fd):
        raise PlanError("standard input is the terminal", remedy="redirect a file: - < best.pth")
    if stat.S_ISREG(os.fstat(fd).st_mode) and os.lseek(fd, 0, os.SEEK_CUR) == 0:
        return os.dup(fd)
    return _kept(fd)


def _stdin() -> int:
    try:
        return sys.stdin.fileno()
    except (AttributeError, OSError, ValueError) as error:  # None where it was closed before the start
        raise ContainerError("standard input is closed", where=STREAM) from error


def _kept(pipe: int) -> int:
    """Copy a pipe to a file that has no name, so that it is gone however this process ends."""
    import tempfile

    from inspector.containers.copying import write_bytes
    from inspector.units import format_nbytes

    folder = tempfile.gettempdir()
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            nbytes = 0
            while block := os.read(pipe, _STEP_NBYTES):
                nbytes += write_bytes(file.fileno(), block)
                if nbytes > MOST_PIPED_NBYTES:
                    raise ContainerError(
                        "standard input holds more than the "
                        f"{format_nbytes(MOST_PIPED_NBYTES)} that are kept of a pipe",
                        where=STREAM,
                        remedy="redirect a file, which is read in place: - < best.pth",
                    )
            return os.dup(file.fileno())
    except OSError as error:
        raise _unkept(error, folder) from error


def _unkept(error: OSError, folder: str) -> ContainerError:
    what = f"what comes from standard input cannot be kept: {error.strerror or error}"
    return ContainerError(what, where=folder, remedy="TMPDIR names another folder")


# --- standard output ----------------------------------------------------------------------------------------


def refuse_stdout(options: argparse.Namespace) -> None:
    """Refuse to write bytes where nobody can use them: to a terminal, or among the lines of JSON."""
    if sys.__stdout__ is None:
        raise ExportError("standard output is closed", remedy="name a file with -o")
    if sys.stdout.isatty():
        remedy = "redirect it, as in: -o - > copy.pth"
        raise PlanError("a checkpoint is nothing to show on a terminal", remedy=remedy)
    if options.json:
        raise PlanError("the new file and the JSON cannot both go to standard output", remedy="leave one out")


@contextmanager
def streamed(name: str) -> Iterator[Path]:
    """Yield a path for a new file; once it is written and checked, its bytes go to standard output."""
    import tempfile

    from inspector.containers.copying import write_bytes

    with removed_at_signals(), tempfile.TemporaryDirectory(prefix=_PREFIX) as folder:
        path = Path(folder, name)
        try:
            yield path
        except ExportError as error:
            if error.remedy is None and (error.where or "").startswith(folder):
                error.remedy = "TMPDIR names another folder for what is on its way to standard output"
            raise
        with path.open("rb") as file:
            with suppress(OSError):  # Windows keeps the names of open files
                path.unlink()
            sys.stdout.flush()
            try:
                target = _as_bytes(sys.stdout.fileno())
                while block := file.read(_STEP_NBYTES):
                    write_bytes(target, block)
            except OSError as error:
                what = f"the copy cannot be written: {error.strerror or error}"
                raise ExportError(what, where="standard output") from error


def _as_bytes(fd: int) -> int:
    """Return a descriptor that passes bytes as they are: Windows changes line ends otherwise."""
    if IS_WINDOWS:
        from importlib import import_module

        import_module("msvcrt").setmode(fd, getattr(os, "O_BINARY", 0))
    return fd


@contextmanager
def removed_at_signals() -> Iterator[None]:
    """Let the signals that would end this process at once end it through every `finally`."""
    import signal

    def stop(_number: int, _frame: object) -> None:
        raise KeyboardInterrupt

    numbers = [signal.SIGTERM, *([signal.SIGHUP] if hasattr(signal, "SIGHUP") else [])]
    heard = [
        number for number in numbers if signal.getsignal(number) != signal.SIG_IGN
    ]  # `nohup` ignores one
    before = {number: signal.signal(number, stop) for number in heard}
    try:
        yield
    finally:
        for number, handler in before.items():
            with suppress(TypeError):  # one that was not set from Python
                signal.signal(number, handler)
