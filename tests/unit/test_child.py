"""The way to a child process; tests/hostile/test_poisoned_folder.py shows what does not run in it."""

from __future__ import annotations

import http.server
import json.tool
import os
import sys
from pathlib import Path

import pytest

from inspector.child import SAFE_FOLDER, ask_child, find_program, python_command, worker_script
from inspector.errors import CancelledError
from inspector.progress import Progress

JSON_TOOL, SERVER = Path(json.tool.__file__), Path(http.server.__file__)


def test_a_worker_is_named_by_its_path_and_started_apart_from_all_folders() -> None:
    script = worker_script("cast")
    assert script.is_file()
    assert python_command(script, "a") == [sys.executable, "-P", str(script), "a"]
    assert Path(SAFE_FOLDER).is_absolute()


def test_a_child_works_in_a_folder_of_the_installation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "where.py"
    script.write_text("import os, sys; print(os.getcwd(), sys.path)", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    said = ask_child(script, timeout_s=60, progress=Progress())
    assert said.startswith(f"{SAFE_FOLDER} [")
    assert str(tmp_path) not in said


def test_a_program_is_looked_for_in_absolute_folders_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
        program = tmp_path / folder / "tool"
        program.write_text("#!/bin/sh\n", encoding="ascii")
        program.chmod(0o755)
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setenv("PATH", os.pathsep.join([".", "", "../here", str(tmp_path)]))
    assert find_program("tool") is None
    monkeypatch.setenv("PATH", os.pathsep.join([".", str(tmp_path / "there")]))
    assert find_program("tool") == str(tmp_path / "there" / "tool")
    monkeypatch.delenv("PATH")
    assert find_program("no such tool") is None


def test_what_a_child_prints_is_given() -> None:
    assert "usage" in ask_child(JSON_TOOL, "--help", timeout_s=60, progress=Progress())


def test_a_child_inherits_what_it_is_handed() -> None:
    there, here = os.pipe()
    os.write(here, b'{"a": 1}')
    os.close(here)
    said = ask_child(JSON_TOOL, f"/dev/fd/{there}", timeout_s=60, progress=Progress(), pass_fds=(there,))
    os.close(there)
    assert '"a": 1' in said


def test_a_child_that_takes_too_long_is_ended() -> None:
    assert ask_child(SERVER, "0", timeout_s=0.3, progress=Progress()) == ""


def test_a_child_ends_with_the_work() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        ask_child(SERVER, "0", timeout_s=60, progress=progress)
