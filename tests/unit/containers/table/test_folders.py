"""Which folder is what: a trainer's before a model's in several files."""

from __future__ import annotations

from pathlib import Path

from inspector.containers.formats import find_format
from inspector.containers.opening import open_path
from inspector.containers.table.folders import FOLDER_ROWS
from tests.builders.folders import trainer, two_shards
from tests.builders.megatron import megatron


def form_of(path: Path) -> str:
    with open_path(str(path)) as source:
        return find_format(source).name


def test_folders_are_told_by_what_is_in_them(tmp_path: Path) -> None:
    assert [row.name for row in FOLDER_ROWS] == ["megatron", "folder", "sharded"]
    index = two_shards(tmp_path / "model")
    assert form_of(index) == form_of(index.parent) == "sharded"
    assert form_of(trainer(tmp_path / "run")) == "folder"
    assert form_of(megatron(tmp_path)) == "megatron"
    (index.parent / "optimizer.pt").touch()
    assert form_of(index.parent) == "folder"
    assert form_of(index) == "sharded"
