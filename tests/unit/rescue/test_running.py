from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.rescue import running
from inspector.rescue.running import end_alike, is_in_foreground, run_command

PYTHON = [sys.executable, "-I", "-S", "-c"]


def run(code: str, **environment: str) -> int:
    return run_command([*PYTHON, code], {**os.environ, **environment})


def test_the_end_is_the_commands(tmp_path: Path) -> None:
    code = "import os, sys; sys.exit(int(os.environ['CODE']))"
    assert run(code, CODE="7") == 7
    assert run("import os; os.kill(os.getpid(), 9)") == -9


def test_files_that_the_shell_opened_are_the_commands_too(tmp_path: Path) -> None:
    file = os.open(tmp_path / "data", os.O_RDWR | os.O_CREAT)
    os.set_inheritable(file, True)
    try:
        assert run(f"import os; os.write({file}, b'x')") == 0
    finally:
        os.close(file)
    assert (tmp_path / "data").read_bytes() == b"x"


def test_what_cannot_be_started_is_said(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_bytes(b"\x00")
    program.chmod(0o755)
    with pytest.raises(PlanError, match="the command cannot be started: Exec format error"):
        run_command([str(program)], dict(os.environ))


SENDS = (
    "import os, signal, sys, time\n"
    "number = getattr(signal, os.environ['SIGNAL'])\n"
    "signal.signal(number, lambda *_: sys.exit(9))\n"
    "os.kill(os.getppid(), number)\n"
    "time.sleep(float(os.environ['SECONDS']))\n"
)


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGUSR1", "SIGINT"])
def test_signals_are_handed_on(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "is_in_foreground", lambda: False)
    before = [
        signal.signal(signal.SIGHUP, signal.SIG_DFL),
        signal.signal(signal.SIGINT, signal.default_int_handler),
    ]
    try:
        assert run(SENDS, SIGNAL=name, SECONDS="60") == 9
        assert signal.getsignal(signal.SIGTERM) is not None
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGHUP, before[0])
        signal.signal(signal.SIGINT, before[1])


def test_a_signal_during_the_start_is_handed_on_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    real = subprocess.Popen

    def start(*arguments: object, **options: object) -> subprocess.Popen[bytes]:
        child = real(*arguments, **options)
        os.kill(os.getpid(), signal.SIGUSR1)
        return child

    monkeypatch.setattr(running.subprocess, "Popen", start)
    assert run("import time; time.sleep(60)") == -signal.SIGUSR1


def test_ctrl_c_is_not_handed_on_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "is_in_foreground", lambda: True)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert run(SENDS, SIGNAL="SIGINT", SECONDS="0.2") == 0
    finally:
        signal.signal(signal.SIGINT, before)


def test_what_is_ignored_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run("import signal, sys; sys.exit(signal.getsignal(1) is signal.SIG_IGN)") == 1
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_terminal_tells_its_foreground(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running.os, "open", lambda *_: os.dup(0))
    monkeypatch.setattr(running.os, "tcgetpgrp", lambda _: os.getpgrp())
    assert is_in_foreground()
    monkeypatch.setattr(running.os, "tcgetpgrp", lambda _: 1)
    assert not is_in_foreground()

    def fail(*_: object) -> int:
        raise OSError

    monkeypatch.setattr(running.os, "tcgetpgrp", fail)
    assert not is_in_foreground()
    monkeypatch.setattr(running.os, "open", fail)
    assert not is_in_foreground()
    monkeypatch.delattr(running.os, "tcgetpgrp")
    assert is_in_foreground()  # Windows


def test_an_exit_code_is_handed_on_and_a_signal_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert end_alike(3) == 3
    sent: list[tuple[int, int]] = []
    monkeypatch.setattr(running.os, "kill", lambda pid, number: sent.append((pid, number)))
    assert end_alike(-signal.SIGKILL) == 137
    assert sent == [(os.getpid(), signal.SIGKILL)]


def test_the_process_ends_by_the_signal_without_a_core() -> None:
    code = (
        "import resource\n"
        "from inspector.rescue.running import end_alike\n"
        "real = resource.setrlimit\n"
        "resource.setrlimit = lambda *what: (print(*what, flush=True), real(*what))\n"
        "end_alike(-11)\n"
    )
    done = subprocess.run([sys.executable, "-P", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-11, "4 (0, 0)\n", "")
