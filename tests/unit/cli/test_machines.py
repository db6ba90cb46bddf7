from __future__ import annotations

import argparse
import venv
from pathlib import Path

import pytest

from inspector.cli.display import Display
from inspector.cli.mapping import add_target_options, profile_of
from inspector.errors import PlanError
from inspector.progress import Progress
from inspector.target import profile_file
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_wish


def options(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    add_target_options(parser, "this")
    return parser.parse_args(given, argparse.Namespace(display=Display()))


def test_this_machine_is_asked_in_the_python_that_was_named(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str | None] = []

    def probe(_progress: Progress, python: str | None) -> Profile:
        asked.append(python)
        return CPU_ONLY

    monkeypatch.setattr(profile_file, "probe_this_machine", probe)
    for given in ((), ("--python", "venv"), ("--target", "cuda", "--python", "venv")):
        found = options(*given)
        profile_of(parse_wish(found.target), found)
    assert asked == [None, "venv"]


def test_a_python_without_torch_is_named(cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    venv.create(tmp_path / "venv", symlinks=True)
    python = tmp_path / "venv/bin/python3"
    answer = cli("target", "--python", tmp_path / "venv")
    assert answer.code == 0
    assert answer.out.startswith("this machine (torch is not installed)\n")
    assert f"  python   {python} (--python)\n" in answer.out
    assert "or name its Python with --python" in answer.out
    assert cli("target", "--python", tmp_path / "gone").code == 2


def test_what_is_no_python_is_wrong_usage(tmp_path: Path) -> None:
    found = options("--python", str(tmp_path))
    with pytest.raises(PlanError, match="there is no Python"):
        profile_of(parse_wish("this"), found)
