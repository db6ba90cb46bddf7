from __future__ import annotations

from pathlib import Path

import pytest

import inspector
from inspector.resources import demo_path
from tests.corpus import CORPUS


def descriptors() -> set[str]:
    return {str(one.readlink()) for one in Path("/proc/self/fd").iterdir() if one.exists()}


def test_paths_of_any_kind_are_opened_and_closed_again() -> None:
    path = demo_path()
    for given in (path, str(path)):
        found = inspector.open(given)
        assert isinstance(found, inspector.Checkpoint)
        assert found.path == str(path)
    assert str(path) not in descriptors()


def test_a_folder_is_a_checkpoint_too() -> None:
    found = inspector.open(CORPUS / "hf_sharded")
    assert found.format == "sharded"
    assert len(found) > 1


def test_what_is_no_checkpoint_is_an_error_of_the_one_tree(tmp_path: Path) -> None:
    (tmp_path / "page.pth").write_bytes(b"<!DOCTYPE html><html></html>")
    for name, kind in (
        ("page.pth", inspector.NotACheckpointError),
        ("missing.pth", inspector.ContainerError),
    ):
        with pytest.raises(kind) as found:
            inspector.open(tmp_path / name)
        assert isinstance(found.value, inspector.CheckpointError)
        assert "\n" not in str(found.value)
    with pytest.raises(TypeError):
        inspector.open(3)  # type: ignore[arg-type]
    with pytest.raises(inspector.CheckpointError):
        inspector.open("a\0b")
