"""Two shards that change places keep all sizes and times: every user of a folder must see it all the same."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.containers.opening import stamp_at
from inspector.diff.compare import ChangedError, Measuring, Wish, compare_paths
from inspector.diff.records import Pair
from inspector.errors import ExportError, ValuesError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.remap import export_form as form_export
from inspector.remap.export_form import export_form
from inspector.remap.forms import Form
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from tests.builders.folders import shard, sharded

FIRST, SECOND = (f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model in two files of one size and one time."""
    files = {FIRST: shard("a.weight"), SECOND: shard("b.weight")}
    assert len(files[FIRST]) == len(files[SECOND])
    sharded(tmp_path / "model", files, {"a.weight": FIRST, "b.weight": SECOND})
    for name in files:
        os.utime(tmp_path / "model" / name, ns=(5, 5))
    return tmp_path / "model"


def swap(folder: Path) -> None:
    (folder / FIRST).rename(folder / "x")
    (folder / SECOND).rename(folder / FIRST)
    (folder / "x").rename(folder / SECOND)


def test_values_are_not_told(folder: Path) -> None:
    opened = Requests(open_checkpoint(str(folder)))
    with ValueReader() as reader:
        assert reader.statistics(opened, 0, Progress()).low is not None
        swap(folder)
        with pytest.raises(ValuesError, match="changed since it was opened"):
            reader.statistics(opened, 0, Progress())


def test_the_window_s_watcher_sees_another_file(folder: Path) -> None:
    found = open_checkpoint(str(folder))
    assert stamp_at(str(folder)) == found.stamp
    swap(folder)
    assert stamp_at(str(folder)) != found.stamp


def test_differences_are_not_measured(folder: Path) -> None:
    measuring = Measuring(compare_paths(str(folder), str(folder), Wish()))
    assert measuring.measure(Pair(0, 0), Progress()).differing == 0
    swap(folder)
    with pytest.raises(ChangedError, match="has changed since it was compared"):
        measuring.measure(Pair(0, 0), Progress())
    measuring.close()


def test_no_copy_appears(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = form_export._write

    def write_and_swap(*arguments: object) -> None:
        write(*arguments)
        swap(folder)

    monkeypatch.setattr(form_export, "_write", write_and_swap)
    with pytest.raises(ExportError, match="changed while it was copied"):
        export_form(str(folder), tmp_path / "out.pt", None, Form(only_weights=True))
    assert not (tmp_path / "out.pt").exists()
