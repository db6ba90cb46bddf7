"""The pager: what is longer than the screen, read page by page."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import subprocess
import sys
from contextlib import suppress
from typing import IO, TextIO, cast

from inspector.child import find_program
from inspector.cli.common import say

_USUAL = ("less", "-FRX")
_NONE = frozenset({"", "cat"})


def pager_command() -> tuple[str, ...]:
    """Return the pager that the user chose, or `less` if it is there; empty for none.

    A chosen `less` is told to show colors; what else it does, its user decides.
    """
    if os.environ.get("TERM") == "dumb":
        return ()  # less would stop, and warn, at once
    chosen = os.environ.get("PAGER")
    if chosen is None:
        return _found(_USUAL)
    try:
        words = tuple(shlex.split(chosen))
    except ValueError:
        return _found(_USUAL)
    if not words or words[0] in _NONE:
        return ()
    name = os.path.basename(words[0])  # noqa: PTH119 - a word, perhaps no path
    return _found((*words, "-R") if name in {"less", "less.exe"} else words)


def _found(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the command by its absolute path: what a relative one leads to lies beside the checkpoint."""
    name = words[0]
    program = shutil.which(name) if os.path.isabs(name) else find_program(name)  # noqa: PTH117 - a word
    return () if program is None else (program, *words[1:])


class Pager:
    """A pager that runs.

    One that is missing, or that its user leaves early, is no error. Ctrl+C belongs to it while it runs, and
    what is written to stderr waits until it is gone.
    """

    def __init__(self, words: tuple[str, ...], stream: TextIO) -> None:
        environment = dict(os.environ)
        environment.setdefault("LESS", "FRX")
        self._process: subprocess.Popen[str] | None = None
        self._is_left = False
        self._errors = sys.stderr
        with suppress(OSError):
            self._process = subprocess.Popen(  # noqa: S603 - the user's own pager
                words,
                stdin=subprocess.PIPE,
                env=environment,
                encoding=stream.encoding,
                errors="backslashreplace",
            )
            sys.stderr = io.StringIO()

    def write(self, text: str) -> bool:
        """Pass a text on; return whether anybody still reads."""
        if self._process is None:
            say(text)
        elif not self._is_left:
            try:
                self._pipe.write(text)
                self._pipe.flush()
            except BrokenPipeError:
                self._is_left = True
        return not self._is_left

    @property
    def _pipe(self) -> IO[str]:
        return cast("IO[str]", cast("subprocess.Popen[str]", self._process).stdin)

    def close(self) -> None:
        """Wait until its user has seen enough, then write the messages that came meanwhile."""
        if self._process is None:
            return
        with suppress(BrokenPipeError):
            self._pipe.close()
        while True:
            try:
                self._process.wait()
                break
            except KeyboardInterrupt:
                continue
        held, sys.stderr = cast("io.StringIO", sys.stderr), self._errors
        sys.stderr.write(held.getvalue())


def can_page() -> bool:
    """Return whether somebody is there who can turn pages."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
