from __future__ import annotations

import math
import struct

import pytest

import inspector
from tests.unit.remap.samples import mapping, stream, tensor, text, written, zip_of


@pytest.fixture
def path(tmp_path):
    numbers = struct.pack("<4f", 1.0, 2.0, math.nan, 0.0)
    return written(
        tmp_path,
        zip_of(
            stream(mapping(a=mapping(w=tensor(text("cuda:0"))), b=tensor(text("meta"), key="1"))),
            {"0": numbers},
        ),
    )


def test_figures_of_one_tensor(path) -> None:
    (found,) = inspector.stats(path, "a/w")
    assert (found.path, found.dtype, found.shape, found.numel) == ("a/w", "float32", (4,), 4)
    assert (found.min, found.max, found.mean, found.std) == (0.0, 2.0, 1.0, 1.0)
    assert (found.nan, found.posinf, found.neginf, found.zeros, found.first_nan) == (1, 0, 0, 1, (2,))
    assert found.norm == pytest.approx(math.sqrt(5))
    assert sum(found.histogram.counts) == 3
    assert len(found.histogram.edges) == len(found.histogram.counts) + 1
    document = found.to_dict()
    assert document["tensor"] == "a/w"
    for name in ("numel", "min", "max", "mean", "std", "norm", "zeros", "nan"):
        assert document[name] == getattr(found, name)
    assert str(found).startswith("a/w  float32  4\n")
    assert repr(found) == "<Statistics of 'a/w': min=0.0, max=2.0, mean=1.0, std=1.0, nan=1>"


def test_patterns_and_open_checkpoints(demo: inspector.Checkpoint) -> None:
    found = inspector.stats(demo, "model/stem.bn.*", "model/stem.conv.weight")
    assert [one.path for one in found][:2] == ["model/stem.conv.weight", "model/stem.bn.weight"]
    assert len(found) > 4


def test_what_has_no_numbers(path, demo: inspector.Checkpoint) -> None:
    with pytest.raises(inspector.ValuesError):
        inspector.stats(path, "b")
    with pytest.raises(inspector.PlanError, match="no tensor of the file has this path"):
        inspector.stats(demo, "nowhere")


def test_without_numpy_the_error_says_so(demo: inspector.Checkpoint, monkeypatch) -> None:
    monkeypatch.setattr("inspector.values.asking.find_spec", lambda _: None)
    with pytest.raises(inspector.ExportError, match="this needs NumPy"):
        inspector.stats(demo, "model/head.bias")
