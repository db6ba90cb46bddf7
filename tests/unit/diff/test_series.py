from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest

from inspector.diff import series as module
from inspector.diff.compare import Chosen
from inspector.diff.series import Point, Series, compare_series, series_paths
from inspector.errors import CancelledError, CheckpointError, ContainerError, PlanError
from inspector.progress import Progress
from tests.builders.folders import trainer
from tests.builders.safetensors import row, safetensors
from tests.builders.states import T, save_zip

W = [1.0, 2.0]


def saved(tmp_path: Path, *states: Any) -> list[str]:
    return [save_zip(tmp_path / f"{number}.pt", state) for number, state in enumerate(states)]


def compared(tmp_path: Path, *states: Any) -> Series:
    return compare_series(saved(tmp_path, *states), Progress())


def test_each_file_is_compared_with_the_one_before_and_the_first(tmp_path: Path) -> None:
    names = ({"w": T([3.0, 4.0])}, {"module.w": T([3.0, 5.0])}, {"w": T([0.0, 5.0], dtype="float64")})
    (row,) = compared(tmp_path, *names).rows
    assert (row.path, row.numel) == ("w", 2)
    first, second, third = row.points
    assert first == Point(5.0, None, None)
    assert second is not None
    assert third is not None
    assert (second.norm, second.step, second.drift) == pytest.approx((math.sqrt(34), 1.0, 1.0))
    assert (third.norm, third.step, third.drift) == pytest.approx((5.0, 3.0, math.sqrt(10)))


def test_what_is_missing_of_another_shape_or_not_finite_is_told(tmp_path: Path) -> None:
    a = {
        "gone": T([1.0]),
        "shape": T([1.0, 2.0]),
        "nan": T([1.0, 2.0]),
        "n": T([1], dtype="int64"),
        "m": T([1.0], device="meta"),
    }
    b = {"shape": T([1.0, 2.0, 3.0]), "nan": T([math.nan, 2.0])}
    paths = saved(tmp_path, a, b, {**a, "gone": T([2.0])})
    rows = {row.path: row.points for row in compare_series(paths, Progress()).rows}
    assert set(rows) == {"gone", "shape", "nan"}
    assert rows["gone"] == (Point(1.0, None, None), None, Point(2.0, None, 1.0))
    assert rows["shape"][1] is None
    assert rows["nan"][1] == Point(2.0, 0.0, 0.0, 1, 1)


def test_a_file_that_lost_bytes_has_no_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = saved(tmp_path, {"w": T([1.0]), "v": T([2.0])}, {"w": T([1.0]), "v": T([2.0])})
    data = Path(paths[1]).read_bytes()
    Path(paths[1]).write_bytes(data.replace(b"archive/data/auto1", b"archive/gone/auto1"))
    rows = compare_series(paths, Progress()).rows
    assert [row.points[1] is None for row in rows] == [False, True]

    def cancelled(*_: object) -> None:
        raise CancelledError

    monkeypatch.setattr(module.Differences, "compare_all", cancelled)
    with pytest.raises(CancelledError):
        compare_series(paths, Progress())


def test_a_choice_without_numbers_is_refused(tmp_path: Path) -> None:
    paths = saved(tmp_path, {"w": T([1.0])}, {"w": T([2.0])})
    with pytest.raises(PlanError, match="no such row with numbers"):
        compare_series(paths, Progress(), lambda _: Chosen(frozenset(), frozenset()))


def test_counters_are_told_by_name_and_by_what_they_hold(tmp_path: Path) -> None:
    state = {
        "step": T([3.0]),
        "bn.step": T([2.0]),
        "s.step": T([0.5]),
        "v/step": T([1.0, 2.0]),
        "w": T([4.0]),
    }
    rows = compared(tmp_path, state, {**state, "step": T([9.0])}).rows
    assert {row.path for row in rows if row.is_counter} == {"step", "bn.step"}


def test_single_numbers_beside_a_model_are_no_modules(tmp_path: Path) -> None:
    """Such as the best accuracy that training scripts keep as a tensor."""
    model = {"fc.weight": T(W), "fc.bias": T([0.5]), "logit_scale": T([2.5])}
    state = {"epoch": 3, "arch": "resnet18", "state_dict": model, "best_acc1": T([71.5]), "l": T([0.5, 1.0])}
    rows = compared(tmp_path, state, {**state, "best_acc1": T([74.25])}).rows
    assert {row.path for row in rows if row.is_counter} == {"best_acc1"}
    alone = {"best_acc1": T([71.5])}  # nothing says that it stands beside anything
    assert not any(row.is_counter for row in compared(tmp_path, alone, alone).rows)


def test_a_folder_means_the_checkpoints_in_it_in_their_order(tmp_path: Path) -> None:
    for name in (
        "epoch-10.pt",
        "epoch-2.pt",
        "epoch-1.safetensors",
        "log.txt",
        "epoch-2.pt.json",
        "metrics.pkl",
    ):
        (tmp_path / name).write_bytes(b"")
    names = [os.path.basename(path) for path in series_paths([str(tmp_path)])]  # noqa: PTH119 - texts
    assert names == ["epoch-1.safetensors", "epoch-2.pt", "epoch-10.pt"]
    assert series_paths(["b", "a"]) == ("b", "a")


def test_folders_of_shards_and_what_a_trainer_saved_are_steps_of_a_series(tmp_path: Path) -> None:
    """A trainer's folder holds the last model itself; pickles beside it are no models."""
    for number in (1000, 500):
        trainer(tmp_path / f"checkpoint-{number}")
    (tmp_path / "model.safetensors").write_bytes(safetensors({"w": row()}, bytes(8)))
    (tmp_path / "optimizer.pt").write_bytes(b"")
    (tmp_path / "metrics.pkl").write_bytes(b"\x80\x02}.")
    names = [os.path.basename(path) for path in series_paths([str(tmp_path)])]  # noqa: PTH119 - texts
    assert names == ["checkpoint-500", "checkpoint-1000"]


def test_what_cannot_be_looked_at_in_a_folder_is_a_member_that_is_not_read(tmp_path: Path) -> None:
    paths = saved(tmp_path, {"w": T(W)}, {"w": T(W)})
    (tmp_path / "2.pt").symlink_to("nowhere")
    given = series_paths([str(tmp_path)])
    assert given == (*paths, str(tmp_path / "2.pt"))
    assert [place for place, _ in compare_series(given, Progress()).problems] == [2]


def test_a_folder_that_is_not_there_is_said_to_be_none(tmp_path: Path) -> None:
    with pytest.raises(ContainerError, match="no such file or folder"):
        series_paths([str(tmp_path / "epochs")])


def test_series_of_too_few_or_too_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for given in ([str(tmp_path)], [save_zip(tmp_path / "a.pt", {"w": T(W)})]):
        with pytest.raises(PlanError, match="two checkpoints or more"):
            series_paths(given)
    monkeypatch.setattr(module, "MOST_FILES", 2)
    with pytest.raises(PlanError, match="2 checkpoints at most"):
        series_paths(["a", "b", "c"])


def test_a_folder_of_folders_is_a_series_of_what_is_in_them(tmp_path: Path) -> None:
    for number in (1, 2, 10):
        (tmp_path / f"epoch-{number}").mkdir()
        save_zip(tmp_path / f"epoch-{number}" / "model.pt", {"w": T(W)})
    found = series_paths([str(tmp_path)])
    assert [Path(path).parent.name for path in found] == ["epoch-1", "epoch-2", "epoch-10"]


def test_files_are_numbered_as_they_say_or_as_their_names_do(tmp_path: Path) -> None:
    def numbered(names: list[str], *more: dict[str, Any]) -> tuple[str, tuple[float | None, ...]]:
        paths = [save_zip(tmp_path / name, {"w": T(W), **one}) for name, one in zip(names, more, strict=True)]
        found = compare_series(paths, Progress())
        return found.unit, found.numbers

    names, counted = ["e1.pt", "e2.pt", "e10.pt"], [{"epoch": 4}, {"epoch": 8}, {"epoch": 40}]
    assert numbered(names, *counted) == ("epoch", (4, 8, 40))
    assert numbered(names, {}, {}, {}) == ("name", (1, 2, 10))
    assert numbered(names, {"epoch": 1}, {}, {"epoch": 3}) == ("name", (1, 2, 10))  # not all have one
    assert numbered(["a.pt", "b.pt"], {"epoch": 2}, {"epoch": 2}) == ("", (1, 2))  # nor does it go up
    steps: list[dict[str, Any]] = [{"info": {"global_step": number}, "epoch": 1} for number in (100, 250)]
    assert numbered(["a.pt", "b.pt"], *steps) == ("global_step", (100, 250))
    deep = {"a": {"b": {"epoch": 1}}}
    assert numbered(["x9-s1.pt", "x9-s3.pt"], deep, {"epoch": "two"}) == ("name", (1, 3))


def test_a_member_that_cannot_be_read_is_left_out_and_told(tmp_path: Path) -> None:
    paths = saved(tmp_path, {"w": T([1.0])}, {"w": T([2.0])}, {"w": T([4.0])}, {"w": T([8.0])})
    for place in (0, 2):
        Path(paths[place]).write_text("<!DOCTYPE html>")
    found = compare_series(paths, Progress())
    assert [place for place, _ in found.problems] == [0, 2]
    assert "web page" in found.problems[0][1] or "HTML" in found.problems[0][1]
    (row,) = found.rows
    assert row.points == (None, Point(2.0, None, None), None, Point(8.0, 6.0, 6.0))
    assert found.numbers == (0, 1, 2, 3)
    Path(paths[1]).write_text("")
    with pytest.raises(CheckpointError):  # one is no series
        compare_series(paths, Progress())
