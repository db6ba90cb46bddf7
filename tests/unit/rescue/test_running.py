""""""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from inspector.errors import ExportError, PlanError
from inspector.remap.rules import parse_rule
from inspector.rescue import running
from inspector.rescue.running import (
    Program,
    check_python,
    end_alike,
    find_command,
    hooked,
    is_in_foreground,
    run_command,
    run_rescued,
)
from inspector.target.wish import THIS, parse_wish
from tests.sweep import table

HERE = parse_wish("this")


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def test_the_folder_is_private_complete_and_gone_afterwards(temporary: Path) -> None:
    with hooked([("cuda:*", "cpu")], HERE) as made:
        assert stat.S_IMODE(made.folder.stat().st_mode) == 0o700
        files = {
            path.relative_to(made.folder).as_posix() for path in made.folder.rglob("*") if path.is_file()
        }
        assert files == {"start/sitecustomize.py", "parts/calls.py", "parts/rescue.py", "settings.json"}
        assert list(made.journal.iterdir()) == []
        settings = json.loads((made.folder / "settings.json").read_bytes())
    assert settings == {
        "rules": [["cuda:*", "cpu"]],
        "maps_missing": True,
        "target": None,
        "kinds": ["cuda", "mps", "xpu"],
        "lacks": {"mps": ["complex128", "float64"]},
    }
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize(
    ("text", "counts", "destination", "takes_all"),
    [
        ("cuda", {"cuda": 1}, "cuda:0", False),
        ("cpu", {}, "cpu", False),
        ("2xcuda:1", {"cuda": 2}, "cuda:1", True),
        ("this@cuda:1", None, "cuda:1", True),
    ],
)
def test_a_target_brings_its_devices(
    temporary: Path, text: str, counts: object, destination: str, takes_all: bool
) -> None:
    with hooked([], parse_wish(text), maps_missing=False) as made:
        settings = json.loads((made.folder / "settings.json").read_bytes())
    assert settings["target"] == {"counts": counts, "destination": destination, "takes_all": takes_all}
    assert settings["maps_missing"] is False


@pytest.mark.parametrize("before", [None, "", "/a:/b"])
def test_the_folder_is_first_and_an_empty_path_adds_no_working_directory(
    before: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTHONPATH", raising=False)
    if before is not None:
        monkeypatch.setenv("PYTHONPATH", before)
    with hooked([], HERE) as made:
        places = made.environment["PYTHONPATH"].split(os.pathsep)
    assert places == [str(made.folder / "start"), *(["/a", "/b"] if before else [])]
    assert os.environ.get("PYTHONPATH") == before


def test_no_place_for_the_folder_is_said(temporary: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(running, "_fill", fail)
        with pytest.raises(ExportError, match="the start-up hook cannot be written"), hooked([], HERE):
            pass
    assert list(temporary.iterdir()) == []
    monkeypatch.setattr(tempfile, "tempdir", str(temporary / "none"))
    with pytest.raises(ExportError, match="the folder of the start-up hook cannot be made"), hooked([], HERE):
        pass


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python by its own name, wherever the tests run."""
    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin" / "python3"
    path.symlink_to(sys.executable)
    return str(path)


@table("name", ["none-such", "./none-such", "/"])
def test_an_unknown_program_is_wrong_usage(name: str) -> None:
    with pytest.raises(PlanError, match="there is no program"):
        find_command([name])


OPTIONS = [
    ("train.py -I", []),
    ("-u -E train.py", ["-E"]),
    ("-sSE -m train", ["-s", "-S", "-E"]),
    ("-W ignore -I train.py", ["-I"]),
    ("-Wignore -X dev -I -c pass -S", ["-I"]),
    ("-Im train -S", ["-I"]),
    ("-c -I", []),
    ("--check-hash-based-pycs default -I x", []),
    ("- -I", []),
    ("-P x", ["-P"]),
    ("-X", []),
]


@pytest.mark.parametrize(("words", "matter"), OPTIONS)
def test_options_of_python_end_at_the_script(python: str, words: str, matter: list[str]) -> None:
    assert find_command([python, *words.split()]).python == (python, *matter)


@pytest.mark.parametrize(
    ("first", "found"),
    [
        ("#!{python}", ["{python}"]),
        ("#! {python} -sE", ["{python}", "-s", "-E"]),
        ("#!/usr/bin/env python3", ["{python}"]),
        ("#!/usr/bin/env none-such", []),
        ("#!/usr/bin/env -S python3 -I", []),
        ("#!/bin/sh", []),
        ("#!", []),
        ("\x7fELF", []),
    ],
)
def test_the_python_of_a_script_is_that_of_its_first_line(
    python: str, first: str, found: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(Path(python).parent))
    script = Path(python).with_name("torchrun")
    script.write_text(f"{first.format(python=python)}\n")
    script.chmod(0o755)
    wanted = tuple(word.format(python=python) for word in found)
    assert find_command(["torchrun", "-I"]) == Program(command=(str(script), "-I"), python=wanted)


def test_a_program_that_cannot_be_read_is_run_unasked(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    script = Path(python).with_name("tool")
    script.write_text("")
    script.chmod(0o755)

    def fail(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("builtins.open", fail)
    assert find_command([str(script)]).python == ()


def check(*python: str) -> None:
    with hooked([], parse_wish("this")) as hook:
        check_python(Program(command=("x",), python=python), hook)
        assert list(hook.journal.iterdir()) == []  # the question is no run of the program


@pytest.mark.torch
def test_a_python_with_torch_is_well(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text("raise SystemExit(3)")  # beside the program, and never run
    (tmp_path / "importlib").mkdir()
    (tmp_path / "importlib" / "util.py").write_text("raise SystemExit(3)")
    monkeypatch.chdir(tmp_path)
    check(sys.executable)
    check()


@table("option", ["-I", "-E", "-S"])
def test_options_that_keep_the_hook_out_are_named(option: str) -> None:
    with pytest.raises(PlanError, match=f"because of its option {option}"):
        check(sys.executable, option)


def answer(tmp_path: Path, text: str) -> str:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho noise\n{text}\n")
    python.chmod(0o755)
    return str(python)


def test_what_a_python_lacks_is_said(tmp_path: Path) -> None:
    with pytest.raises(ExportError, match=r"^there is no torch in this Python: .*python \(activate"):
        check(answer(tmp_path, "echo ANSWER 3.12 1 0 0 0 0"))
    with pytest.raises(ExportError, match=r"^run needs Python 3\.8 or newer, this is 3\.6: "):
        check(answer(tmp_path, "echo ANSWER 3.6 1 1 0 0 0"))
    with pytest.raises(PlanError, match="this Python does not run the hook that maps loads: "):
        check(answer(tmp_path, "echo ANSWER 3.12 0 1 0 0 0"))


def test_a_python_that_does_not_answer_is_run_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(answer(tmp_path, "exit 3"))
    check(str(tmp_path / "none"))
    monkeypatch.setattr(running, "_TIMEOUT_S", 0.01)
    check(answer(tmp_path, "exec sleep 60"))


PYTHON = [sys.executable, "-I", "-S", "-c"]


def run(code: str, **environment: str) -> int:
    return run_command([*PYTHON, code], {**os.environ, **environment})


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


def test_rules_that_no_hook_can_follow() -> None:
    said = {
        "path:model/**@cpu": "run cannot follow 'path:model/**@cpu': only devices are known",
        "role:optimizer@cpu": "run cannot follow 'role:optimizer@cpu': only devices are known",
        "cpu=cuda:0": "run leaves on the CPU what was saved there",
    }
    for text, sentence in said.items():
        with pytest.raises(PlanError) as raised:
            run_rescued(["true"], [parse_rule(text)], parse_wish(THIS), maps_missing=True)
        assert raised.value.what.startswith(sentence)
        assert "checkpoint-inspector remap" in (raised.value.remedy or "")


def test_the_exit_code_and_what_was_mapped() -> None:
    rules = [parse_rule("cuda:*=cpu")]
    for program, code in (("true", 0), ("false", 1)):
        ended, journal = run_rescued([program], rules, parse_wish(THIS), maps_missing=False)
        assert (ended, journal.calls, journal.processes) == (code, (), 0)
