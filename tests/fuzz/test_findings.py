"""What fuzzing once found, and a little of what it tries, in every run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz.fuzzing import main, seeds
from tests.fuzz.targets import TARGETS
from tests.sweep import table

SAMPLES = sorted((Path(__file__).parents[1] / "data" / "fuzz").glob("*-*"))


@pytest.mark.parametrize("path", SAMPLES, ids=lambda path: path.name)
def test_finding_stays_mended(path: Path) -> None:
    TARGETS[path.name.partition("-")[0]](path.read_bytes())


@table("target", TARGETS)
def test_seeds_hold(target: str) -> None:
    found = seeds(target)
    assert len(found) > 30
    for data in found:
        TARGETS[target](data)


@pytest.mark.parametrize("target", TARGETS)
def test_a_second_of_chance_finds_nothing(
    target: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)  # this process has other tests to do
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert main([target, "0.7", str(tmp_path)]) == 0
    assert list(tmp_path.iterdir()) == []
    assert f"{target}: " in capsys.readouterr().out


def test_a_finding_would_be_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def objects(_data: bytes) -> None:
        raise AssertionError("no")

    monkeypatch.setitem(TARGETS, "zip", objects)
    monkeypatch.setattr("resource.setrlimit", lambda *_: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    main(["zip", "0.2", str(tmp_path)])
    assert len(list(tmp_path.iterdir())) == 1
    assert "FINDING" in capsys.readouterr().out
