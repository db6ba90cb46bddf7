from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path


def test_the_desktop_registration_names_its_files_and_is_taken_back(cli, home) -> None:
    installed = cli("desktop", "install")
    assert (installed.code, installed.err) == (0, "")
    paths = [Path(line) for line in installed.out.splitlines()]
    assert paths
    assert all(path.is_relative_to(home) and path.exists() for path in paths)
    removed = cli("desktop", "remove")
    assert removed.code == 0
    assert {Path(line) for line in removed.out.splitlines()} == set(paths)
    assert not any(path.exists() for path in paths)
    again = cli("desktop", "remove")
    assert (again.code, again.out) == (0, "")


def test_a_registration_that_cannot_be_written(cli, home, monkeypatch) -> None:
    (home / "file").touch()
    monkeypatch.setenv("XDG_DATA_HOME", str(home / "file"))
    answer = cli("desktop", "install")
    assert (answer.code, answer.out, answer.err.count("\n")) == (4, "", 1)
