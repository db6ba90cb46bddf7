"""Numbers as arrays; `tests/torch/test_values.py` compares what is read with torch's own values."""

from __future__ import annotations

import struct
from unittest.mock import create_autospec

import numpy as np
import pytest

import inspector
from inspector.child import Answer
from inspector.library.numbers import read_array
from inspector.library.sources import Opened
from inspector.progress import Progress
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from tests.corpus import CORPUS
from tests.unit.remap.samples import mapping, stream, tensor, text, written, zip_of


def test_numbers_of_a_tensor(tmp_path) -> None:
    data = struct.pack("<4f", 1.0, -2.5, 0.0, float("inf"))
    path = written(tmp_path, zip_of(stream(mapping(w=tensor(text("cuda:0")))), {"0": data}))
    found = inspector.open(path)["w"].numpy()
    assert found.dtype == np.float32
    assert found.tolist() == [1.0, -2.5, 0.0, float("inf")]
    found[0] = 7  # it is the caller's own


def test_every_tensor_has_its_shape_or_says_why_not() -> None:
    """Views, scalars, empty ones, and all types: as many as the statistics count, and none greater."""
    wrong, refused, seen = [], set(), set()
    with ValueReader() as reader:
        for name in ("zip/views.pt", "zip/new_dtypes.pt", "zip/sparse.pt", "zip/quantized.pt"):
            opened = Opened(str(CORPUS / name))
            for row, one in enumerate(opened.facts.tensors[:7]):
                try:
                    found = read_array(opened, row, reader)
                except inspector.ValuesError:
                    refused.add(one.layout)
                    continue
                seen.add(found.dtype.str)
                statistics = reader.statistics(Requests(opened.facts), row, Progress())
                is_alike = found.shape == one.shape and np.isnan(found).sum() == statistics.nan
                if not is_alike or (
                    found.size and statistics.high not in {None, np.nanmax(np.abs(found)), np.nanmax(found)}
                ):
                    wrong.append((name, one.path, found.shape))
    assert wrong == []
    assert "sparse_coo" in refused
    assert {"<f4", "<f8", "<i8"} <= seen


def test_more_than_the_memory_holds(demo: inspector.Checkpoint) -> None:
    reader = create_autospec(ValueReader, instance=True)
    reader.answers.return_value = [Answer(head={"descr": "<f4", "shape": [1 << 60]}, block=b"")]
    with pytest.raises(inspector.ValuesError, match="not enough memory"):
        read_array(demo._opened, 0, reader)
