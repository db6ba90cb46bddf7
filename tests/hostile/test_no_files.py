"""Group 27: what is no file, and files that change under the reader. Each is said in one sentence."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.containers.source import FileSource
from inspector.errors import CheckpointError, ContainerError
from inspector.model.build import open_checkpoint
from tests.builders import zips
from tests.builders.pickles import state_dict, storage, tensor
from tests.sweep import table

HONEST = zips.checkpoint(state_dict(w=tensor(storage(), 2)), {"0": bytes(8)})


def refusal(path: Path | str) -> str:
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(str(path))
    return str(caught.value)


def test_pipe_that_nobody_writes_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt")
    assert "this is not a regular file" in refusal(tmp_path / "pipe.pt")


@table("device", ["/dev/zero", "/dev/null", "/dev/random"])
def test_devices(device: str) -> None:
    assert refusal(device)


def test_folder(tmp_path: Path) -> None:
    assert refusal(tmp_path)


def test_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    path.touch()
    assert "empty" in refusal(path)


def test_missing_file_and_link_to_nothing(tmp_path: Path) -> None:
    (tmp_path / "link.pt").symlink_to(tmp_path / "missing.pt")
    assert refusal(tmp_path / "missing.pt")
    assert refusal(tmp_path / "link.pt")


def test_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "link.pt").symlink_to(tmp_path / "link.pt")
    assert refusal(tmp_path / "link.pt")


def test_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    (tmp_path / "file.pt").write_bytes(HONEST)
    (tmp_path / "link.pt").symlink_to("file.pt")
    assert len(open_checkpoint(str(tmp_path / "link.pt")).tensors) == 1


def test_names_that_are_no_paths() -> None:
    assert refusal("a\0b")
    assert refusal("x" * 5000)
    assert refusal("")


def test_file_that_is_cut_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(HONEST)
    with FileSource(str(path)) as source:
        assert source.nbytes == len(HONEST)
        os.truncate(path, 100)
        assert source.read(0, 50) == HONEST[:50]
        with pytest.raises(ContainerError):
            source.read(90, 50)
