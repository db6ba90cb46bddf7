"""A path that no reader takes is named, so that code for it can be given."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.containers.lookalikes import name_unopened
from inspector.containers.opening import read_container
from inspector.errors import CheckpointError, NotACheckpointError
from tests.corpus import CORPUS


def name(path: Path) -> tuple[str, str] | None:
    with pytest.raises(CheckpointError) as caught:
        read_container(os.fspath(path))
    return name_unopened(os.fspath(path), caught.value)


def test_folder_with_an_index_leads_to_that(tmp_path: Path) -> None:
    (tmp_path / "config.json").touch()
    assert name(tmp_path) == ("pretrained", os.fspath(tmp_path))
    (tmp_path / "pytorch_model.bin.index.json").touch()  # unreadable
    assert name(tmp_path) == ("sharded", os.fspath(tmp_path / "pytorch_model.bin.index.json"))
    (tmp_path / "config.json").unlink()  # a download of the weights alone
    assert name(tmp_path) == ("sharded", os.fspath(tmp_path / "pytorch_model.bin.index.json"))


def test_index_that_cannot_be_read_is_named_itself(tmp_path: Path) -> None:
    for file in ("pytorch_model.bin.index.json", "other.safetensors.index.json"):
        path = tmp_path / file
        path.write_text("{")
        assert name(path) == ("sharded", os.fspath(path))


def test_what_has_no_name(tmp_path: Path) -> None:
    assert name(tmp_path) is None
    path = os.fspath(tmp_path / "missing.index.json")
    assert name_unopened(path, NotACheckpointError("missing")) is None


def test_what_is_within_gzip_is_not_named(tmp_path: Path) -> None:
    import gzip

    path = tmp_path / "model.safetensors.gz"
    path.write_bytes(gzip.compress((CORPUS / "safetensors/all.safetensors").read_bytes()))
    assert name(path) is None  # its loader would not open it either
