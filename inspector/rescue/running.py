"""Runs a command as if it had been started directly: its streams, its signals and its end are its own.

Ctrl+C reaches it without us, since the terminal tells all programs of the foreground. What is sent to this
process alone (`kill`, a cluster's scheduler) is handed on. Windows has neither: there Ctrl+C reaches both.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Iterator, Mapping, Sequence

from inspector.errors import PlanError

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
    """Hands signals on to a child, those that came while it was started too."""

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
