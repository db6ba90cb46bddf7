from __future__ import annotations

import sys
from pathlib import Path

import pytest

from inspector.errors import ExportError, PlanError
from inspector.rescue import running
from inspector.rescue.running import Program, check_python, find_command, hooked
from inspector.target.wish import parse_wish
from tests.sweep import table


@pytest.fixture
def python(tmp_path: Path) -> str:
    """A Python by its own name, wherever the tests run."""
    (tmp_path / "bin").mkdir()
    path = tmp_path / "bin" / "python3"
    path.symlink_to(sys.executable)
    return str(path)


def test_the_program_is_found_as_a_shell_finds_it(python: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(Path(python).parent))
    for name in ("python3", python):
        found = find_command([name, "train.py", "-I", "--epochs", "3"])
        assert found == Program(command=(python, "train.py", "-I", "--epochs", "3"), python=(python,))


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
