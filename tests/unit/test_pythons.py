from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from inspector import pythons
from inspector.errors import CancelledError, PlanError
from inspector.progress import Progress
from inspector.pythons import Installed, Python, ask_python, choose_python, find_pythons, name_python

NO_TORCH = f'#!/bin/sh\nexec "{sys.executable}" -S "$@"\n'  # without the site's packages
ANSWERS = {"with": "2.13.0", "built": "", "without": None, "silent": "silent"}


def environment(folder: Path, text: str = "#!/bin/sh\n", name: str = "bin/python") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """No environment is active, nothing is on the path, and the program is frozen."""
    monkeypatch.delenv("VIRTUAL_ENV")
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr(sys, "frozen", True, raising=False)


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    """Interpreters answer by the name of their environment."""

    def ask(python: Python, _progress: Progress) -> Installed | None:
        torch = ANSWERS[Path(python.path).parent.parent.name]
        return None if torch == "silent" else Installed(version="3.12.1", torch=torch)

    monkeypatch.setattr(pythons, "ask_python", ask)


def test_all_are_found_each_once_and_those_that_count_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    venv, conda, base = tmp_path / "venv", tmp_path / "conda", tmp_path / "base"
    old, new = tmp_path / ".pyenv/versions/3.9.1", tmp_path / ".pyenv/versions/3.13.0"
    for folder in (venv, conda, base, old, new):
        environment(folder)
    (venv / "bin/python3").symlink_to("python")  # the same, under another name
    (tmp_path / ".conda").mkdir()
    listed = f"{base}\n{conda}\nrelative\n{tmp_path / 'gone'}\n\n"
    (tmp_path / ".conda/environments.txt").write_text(listed, encoding="utf-8")
    monkeypatch.setenv("PATH", f"{venv / 'bin'}{os.pathsep}bin{os.pathsep}")
    found = find_pythons({"VIRTUAL_ENV": str(venv), "CONDA_PREFIX": str(conda)}, tmp_path)
    assert [(python.path, python.origin) for python in found] == [
        (str(venv / "bin/python3"), "$VIRTUAL_ENV"),
        (str(conda / "bin/python"), "$CONDA_PREFIX"),
        (sys.executable, "this program's own"),
        (str(base / "bin/python"), "conda"),
        (str(new / "bin/python"), "pyenv"),
        (str(old / "bin/python"), "pyenv"),
    ]


@pytest.mark.usefixtures("bare")
def test_nothing_is_found_where_nothing_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/python").mkdir()  # no program
    assert find_pythons({"VIRTUAL_ENV": str(tmp_path), "CONDA_PREFIX": "bin"}, tmp_path) == ()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert find_pythons() == ()
    with pytest.raises(PlanError, match="no Python was found on this machine"):
        choose_python(None, Progress())


def test_one_is_named_by_path_folder_or_word(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = environment(tmp_path / "venv")
    monkeypatch.setenv("PATH", str(path.parent))
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    for text in (str(path), "./venv", "venv/bin/python", "~/venv", "python"):
        assert name_python(text) == Python(path=str(path), origin="--python"), text
        assert choose_python(text, Progress()).path == str(path)
    (tmp_path / "file").write_text("", encoding="utf-8")
    for text in ("", "other", "venv", "file", "./file", ".", "venv/python", "a\0b/c", "\x1b\n/x"):
        with pytest.raises(PlanError, match="there is no Python '") as caught:
            name_python(text)
        assert caught.value.what.isprintable()


@pytest.mark.usefixtures("bare", "known")
@pytest.mark.parametrize(
    ("active", "python3", "python", "chosen", "origin"),
    [
        ("without", "with", "with", "without", "$CONDA_PREFIX"),  # an active environment is the one that runs
        ("", "with", "without", "with", "python3 on PATH"),
        ("", "built", "with", "built", "python3 on PATH"),
        ("", "without", "with", "with", "python on PATH"),
        ("", "silent", "with", "with", "python on PATH"),
        ("", "without", "silent", "without", "python3 on PATH"),
    ],
)
def test_an_active_environment_counts_then_the_path(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    active: str,
    python3: str,
    python: str,
    chosen: str,
    origin: str,
) -> None:
    environment(tmp_path / "active" / active)
    if active:
        monkeypatch.setenv("CONDA_PREFIX", str(tmp_path / "active" / active))
    folders = [environment(tmp_path / "3" / python3, name="bin/python3").parent]
    folders.append(environment(tmp_path / "2" / python).parent)
    monkeypatch.setenv("PATH", os.pathsep.join(map(str, folders)))
    found = choose_python(None, Progress())
    assert (Path(found.path).parent.parent.name, found.origin) == (chosen, origin)
    assert found.label == f"{found.path} ({origin})"


@pytest.mark.torch
@pytest.mark.usefixtures("bare")
def test_its_own_counts_before_one_without_torch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = environment(tmp_path, NO_TORCH)
    monkeypatch.setenv("PATH", str(path.parent))
    monkeypatch.setattr(sys, "frozen", False)
    assert choose_python(None, Progress()).origin == "this program's own"


@pytest.mark.torch
def test_an_interpreter_is_asked_without_importing_torch(tmp_path: Path) -> None:
    own = ask_python(Python(path=sys.executable, origin=""), Progress())
    assert own.torch is not None
    assert own.version == "{}.{}.{}".format(*sys.version_info)
    bare = ask_python(Python(path=str(environment(tmp_path, NO_TORCH)), origin=""), Progress())
    assert bare == Installed(version=own.version, torch=None)


def test_what_is_no_interpreter_gives_no_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    silent = Python(path=str(environment(tmp_path)), origin="")
    assert ask_python(silent, Progress()) is None
    script = tmp_path / "script.py"
    monkeypatch.setattr(pythons, "worker_script", lambda _name: script)
    own = Python(path=sys.executable, origin="")
    for head in ({}, {"version": 3}, {"version": "3", "torch": 1}):
        script.write_text(f"def answer(head, blocks):\n    yield {head!r}, b''\n", encoding="utf-8")
        assert ask_python(own, Progress()) is None, head
    script.write_text(
        "def answer(head, blocks):\n    yield {'version': '3\\n' * 99, 'torch': '\\x1b'}, b''\n"
    )
    answer = ask_python(own, Progress())
    assert answer.torch == r"\u001b"
    assert len(answer.version) == 100
    assert answer.version.isprintable()


def test_asking_can_be_cancelled() -> None:
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        ask_python(Python(path=sys.executable, origin=""), progress)
