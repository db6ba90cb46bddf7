from __future__ import annotations

import pytest

import inspector
from tests.unit.remap.samples import mapping, stream, tensor, text, written, zip_of


def test_one_line_with_nothing_invisible(demo: inspector.Checkpoint, tmp_path) -> None:
    assert repr(demo.tensors[0]) == "<Tensor 'model/stem.conv.weight': float32 [8, 3, 3, 3] on cuda:0>"
    body = mapping(**{"a\u202e\n" + 300 * "x": tensor(text("cuda\x1b[0m"))})
    path = written(tmp_path, zip_of(stream(body), {"0": bytes(16)}))
    (hostile,) = inspector.open(path).tensors
    assert repr(hostile).isprintable()
    assert len(repr(hostile)) < 250


def test_its_numbers_are_read_when_they_are_asked_for(demo: inspector.Checkpoint, copy, monkeypatch) -> None:
    found = demo["model/stem.conv.weight"].stats()
    assert (found.numel, found.nan) == (216, 0)
    monkeypatch.chdir(copy.parent)
    here = inspector.open("demo.pth")
    monkeypatch.chdir("/")
    assert here.tensors[0].stats().max == found.max
    copy.write_bytes(copy.read_bytes())
    with pytest.raises(inspector.CheckpointError, match="changed since it was opened"):
        here.tensors[0].stats()
