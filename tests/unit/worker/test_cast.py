"""Casting in the worker, which runs as a child process and may import torch."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
import torch

from inspector.worker.cast import answer

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    threads = torch.get_num_threads()
    yield
    torch.set_num_threads(threads)


def test_elements_are_rounded_as_torch_does() -> None:
    values = [1.0, 0.1, 65520.0, float("inf"), float("nan"), -1e30]
    blocks = iter([struct.pack("<6f", *values), struct.pack("<f", 1.0)])
    assert list(answer({"source": "float32", "target": "float16"}, blocks)) == [
        ({"overflowed": 2}, torch.tensor(values).half().numpy().tobytes()),
        ({"overflowed": 0}, struct.pack("<H", 0x3C00)),
    ]


def test_bfloat16_which_numpy_lacks() -> None:
    blocks = iter([struct.pack("<2f", 1.0, 3e38)])
    assert list(answer({"source": "float32", "target": "bfloat16"}, blocks)) == [
        ({"overflowed": 0}, struct.pack("<2H", 0x3F80, 0x7F62))
    ]
