"""A checkpoint is opened from any source of bytes, and from one that was opened before."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.containers.container import Container
from inspector.containers.packed import PackedSource, open_source
from inspector.containers.source import BytesSource, Source
from inspector.errors import CheckpointError, ContainerError
from inspector.model import build
from inspector.model.build import open_checkpoint
from inspector.overriding import override
from inspector.progress import Progress
from inspector.report.jsonable import write_show
from inspector.safety.verdict import judge
from tests.builders.safetensors import row, safetensors
from tests.corpus import CORPUS

FILES = [
    CORPUS / "devices" / "zip_cuda_proto3.pt",
    CORPUS / "devices" / "legacy_mixed8.pt",
    *sorted((CORPUS / "tar").glob("*.pth")),
]


class Remote(Source):
    """What a source of another kind has to implement: bytes by offset, and what tells that they changed."""

    def __init__(self, data: bytes, path: str) -> None:
        self.data = data
        self.version = 1
        super().__init__(path, len(data))

    @override
    def read_at(self, offset: int, nbytes: int) -> bytes:
        return self.data[offset : offset + nbytes]

    @override
    def identity(self) -> tuple[int, int, int]:
        return self.version, len(self.data), 0


def shown(source: Source | str) -> object:
    checkpoint = open_checkpoint(source)
    return "".join(write_show(checkpoint, judge(checkpoint), (), open_seconds=0))


def test_any_source_shows_what_the_file_does() -> None:
    assert len(FILES) == 3
    for path in FILES:
        wanted = shown(str(path))
        remote = Remote(path.read_bytes(), str(path))
        assert shown(remote) == wanted, path.name
        assert shown(remote) == wanted, f"{path.name}, once more"  # what was read before does not count twice


def test_gzip_may_be_inside_of_any_source(tmp_path: Path) -> None:
    packed = gzip.compress(FILES[1].read_bytes())
    path = tmp_path / "in.pt.gz"
    path.write_bytes(packed)
    assert shown(PackedSource(Remote(packed, str(path)))) == shown(str(path))


def test_source_that_was_handed_over_stays_open() -> None:
    with open_source(str(FILES[0])) as source:
        open_checkpoint(source)
        assert source.read(0, 2) == b"PK"


def test_source_is_copied_by_reading_where_nothing_else_works(tmp_path: Path) -> None:
    data = bytes(range(256)) * 9000
    target, progress = tmp_path / "copy", Progress()
    with target.open("wb") as file:
        source = Remote(data, "there")
        assert not source.clone_to(file.fileno())
        assert source.fileno() is None
        source.copy_to(file.fileno(), 1000, len(data) - 1000, progress)
        with pytest.raises(ContainerError, match="ends too early"):
            source.copy_to(file.fileno(), len(data) - 1, 2, progress)
    assert target.read_bytes() == data[1000:]
    assert progress.done == len(data) - 1000


def test_errors_name_the_source() -> None:
    for source in (BytesSource(b"nothing", "memory"), Remote(b"", "memory")):
        with pytest.raises(CheckpointError, match="memory"):
            open_checkpoint(source)


def test_values_are_let_go_of_when_they_have_their_rows(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    roots: list[object] = []
    read = build.read_container

    def watched(*given: Any) -> Container:
        container = read(*given)
        roots.append(container.root)
        return container

    monkeypatch.setattr(build, "read_container", watched)
    named = tmp_path / "x.safetensors"
    named.write_bytes(safetensors({"a": row(), "b": row(offsets=(8, 16))}, 16))
    assert [tensor.path for tensor in open_checkpoint(str(named)).tensors] == ["a", "b"]
    np.save(tmp_path / "x.npy", np.ones(3))
    assert open_checkpoint(str(tmp_path / "x.npy")).root == "value"
    slots = {0: {"exp_avg": torch.ones(2)}}
    torch.save({"a": torch.ones(2), "more": {"state": slots}, "t": (torch.ones(1),)}, tmp_path / "x.pt")
    checkpoint = open_checkpoint(str(tmp_path / "x.pt"))
    assert (checkpoint.root, checkpoint.tuples) == ("mapping", ("t",))
    assert [tensor.path for tensor in checkpoint.tensors] == ["a", "more/state/0/exp_avg", "t/0"]
    pairs = [getattr(root, "pairs", None) for root in roots]
    assert [None if found is None else len(found) for found in pairs] == [0, None, 0]
