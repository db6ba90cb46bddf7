"""Pairs that are measured one after the other, of files that stay open and may change meanwhile."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.diff import compare as module
from inspector.diff.compare import ChangedError, Measuring, Wish, compare_paths
from inspector.diff.records import Pair
from inspector.errors import CancelledError
from inspector.progress import Progress
from tests.builders.states import T, save_zip
from tests.unit.diff.test_compare import V, W


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [save_zip(tmp_path / f"{name}.pt", {"v": T(V), name: T(W), "c": T(W)}) for name in "ab"]


@pytest.fixture
def measuring(paths: list[str]) -> Iterator[Measuring]:
    found = Measuring(compare_paths(*paths, Wish()))
    yield found
    found.close()


def measured(measuring: Measuring, pair: Pair) -> int:
    return measuring.measure(pair, Progress()).differing


def test_files_and_child_are_kept_for_the_next_pair(
    measuring: Measuring, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Any] = []
    real = module.open_both
    monkeypatch.setattr(module, "open_both", lambda *given: opened.append(given) or real(*given))
    assert measured(measuring, Pair(0, 0)) == 0
    child = measuring._worker.pid
    assert measured(measuring, Pair(1, 1)) == 0
    assert measured(measuring, Pair(0, 1)) == 4
    assert len(opened) == 1
    assert child is not None
    assert measuring._worker.pid == child


def test_no_figures_are_told_of_a_file_that_changed(measuring: Measuring, paths: list[str]) -> None:
    assert measured(measuring, Pair(0, 0)) == 0
    data = Path(paths[1]).read_bytes()
    Path(paths[1]).unlink()
    with pytest.raises(ChangedError, match="no longer there"):
        measured(measuring, Pair(0, 0))
    # The names are the same, and so is the size; only the numbers are others.
    save_zip(Path(paths[1]), {"v": T(W), "b": T(W), "c": T(W)})
    assert len(Path(paths[1]).read_bytes()) == len(data)
    with pytest.raises(ChangedError, match="has changed since it was compared") as caught:
        measured(measuring, Pair(0, 0))
    assert caught.value.where == paths[1]
    assert measuring._worker.pid is None


def test_a_file_that_changes_while_it_is_measured_is_told(
    measuring: Measuring, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    real = module.open_both

    def late(*given: Any) -> Any:
        os.utime(paths[0], ns=(1, 1))
        return real(*given)

    with monkeypatch.context() as patch:
        patch.setattr(module, "open_both", late)
        with pytest.raises(ChangedError):
            measured(measuring, Pair(0, 0))


def test_a_file_that_changes_behind_the_last_byte_is_told(
    measuring: Measuring, paths: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def compare(*_: object) -> None:
        os.utime(paths[0], ns=(1, 1))

    monkeypatch.setattr(module.Differences, "compare", compare)
    with pytest.raises(ChangedError):
        measured(measuring, Pair(0, 0))


def test_what_is_closed_answers_nobody(measuring: Measuring, monkeypatch: pytest.MonkeyPatch) -> None:
    measuring._lock.acquire()
    asked = Progress()
    asked.cancel()
    with pytest.raises(CancelledError):  # it waits for the other one
        measuring.measure(Pair(0, 0), asked)
    measuring._lock.release()
    with monkeypatch.context() as patch:  # the window is closed while it computes
        patch.setattr(module.Differences, "compare", lambda *_: measuring.close())
        measuring.measure(Pair(0, 0), Progress())
    assert measuring._sides is None
    with pytest.raises(CancelledError):
        measuring.measure(Pair(0, 0), Progress())
