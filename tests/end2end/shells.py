"""Real shells in a pseudo-terminal, at which somebody presses Tab."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
from pathlib import Path
from typing import Self

SILENCE_S = 60
"""A shell that says nothing for so long hangs."""
_ORDERS = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b[()][0-9A-B]|\x1b[=>]|\x1b\][^\x07]*\x07|[\x07\x08\r]")
STARTS = {
    "bash": (
        "--norc --noprofile -i",
        "PS1='READY> '; bind 'set show-all-if-ambiguous on'",
        "bind 'set page-completions off'; bind 'set completion-query-items 0'",
    ),
    "zsh": ("-f -i", "PS1='READY> '; LISTMAX=9999; unsetopt promptsp"),
    "fish": (
        "--no-config --private -i",
        "set fish_autosuggestion_enabled 0; function fish_prompt; echo -n 'READY> '; end",
    ),
}
"""How each is started, and what it is told first: one prompt for all, and nothing that asks or pages."""


class Shell:
    """One shell that has read a completion script."""

    def __init__(self, program: str, script: Path, folder: Path) -> None:
        words, *first = STARTS[Path(program).name]
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            environment = {
                "PATH": os.environ["PATH"],
                "HOME": str(folder),
                "TERM": "xterm",
                "LC_ALL": "C.UTF-8",
            }
            os.execve(program, [program, *words.split()], environment)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", 400, 160, 0, 0))
        self._seen = ""
        for line in (*first, f"source {script}"):
            self._write(f"{line}\r")
        self._begin_line()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        os.kill(self.pid, signal.SIGKILL)
        os.close(self._fd)
        os.waitpid(self.pid, 0)

    def press_tab(self, line: str, *expected: str) -> str:
        """Type a line and Tab, wait until all that is expected is on the screen, and return what came."""
        self._seen = ""
        self._write(f"{line}\t")
        self._wait_for(*expected)
        shown, self._seen = self._seen, ""
        self._begin_line()
        return shown

    def _begin_line(self) -> None:
        """Empty the line, and wait for the answer to another one: what came before belongs to the first."""
        self._write('\x15echo NEXT"LINE"\r')
        self._wait_for("NEXTLINE")

    def _write(self, text: str) -> None:
        os.write(self._fd, text.encode())

    def _wait_for(self, *expected: str) -> None:
        while not all(text in self._seen for text in expected):
            if not select.select([self._fd], [], [], SILENCE_S)[0]:
                missing = [text for text in expected if text not in self._seen]
                raise TimeoutError(f"{missing} never appeared: {self._seen}")
            self._seen += _ORDERS.sub("", os.read(self._fd, 1 << 16).decode("utf-8", "replace"))
