"""What the child answers, asked in this process."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from inspector.errors import ValuesError
from inspector.model.build import open_checkpoint
from inspector.records import replace
from inspector.values.request import Requests
from inspector.values.tensor_bytes import open_bytes
from inspector.worker import tensor_values
from inspector.worker.tensor_values import answer
from tests.builders.safetensors import model
from tests.unit.containers.test_gguf import gguf as gguf_file
from tests.unit.containers.test_gguf import tensor as gguf_tensor


def head_of(path: Path, row: int = 0, **more: Any) -> dict[str, Any]:
    requests = Requests(open_checkpoint(str(path)))
    return {"what": "stats", **requests.file, "tensor": requests.of(row)} | more


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "model.safetensors"
    path.write_bytes(model(w=(2, 3)))
    return path


def answers(head: dict[str, Any]) -> list[dict[str, Any]]:
    return [found for found, _ in answer(head, iter(()))]


def test_how_far_it_is_comes_before_the_answer(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (last,) = answers(head_of(path))
    assert last["found"]["max"] == 5.0
    monkeypatch.setattr(tensor_values, "_TELL_NBYTES", 1)
    done, last = answers(head_of(path))
    assert done == {"done": 24}
    assert last["found"]["numel"] == 6


def test_errors_are_words(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    head = head_of(path)
    lying = {**head, "tensor": head["tensor"] | {"shape": [1 << 40, 3]}}
    assert "run past the 24 bytes" in answers(lying)[0]["error"]["what"]
    assert answers(head | {"stamp": [1, 2, 3]})[0]["error"]["remedy"] == "open it again"

    def no_memory(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(tensor_values, "Statistics", no_memory)
    assert "not enough memory" in answers(head)[0]["error"]["what"]


def q8_0(*rows: list[int]) -> bytes:
    """Blocks of 32 numbers: a scale as a half, then the numbers as bytes."""
    return b"".join(np.float16(0.5).tobytes() + np.array(row, np.int8).tobytes() for row in rows)


def stand_in() -> Any:
    """What of the package `gguf` is asked, for the one type that is a line of NumPy."""

    def dequantize(data: Any, kind: str) -> Any:
        assert (kind, data.dtype, data.shape[1]) == ("Q8_0", np.uint8, 34)
        scales = data[:, :2].copy().view(np.float16).astype(np.float32)
        return scales * data[:, 2:].view(np.int8).astype(np.float32)

    return SimpleNamespace(GGMLQuantizationType={"Q8_0": "Q8_0"}, dequantize=dequantize)


@pytest.fixture
def blocks(tmp_path: Path) -> Path:
    path = tmp_path / "a.gguf"
    numbers = [list(range(start, start + 32)) for start in (0, 32, 64, -96)]
    path.write_bytes(gguf_file((gguf_tensor(b"w", (64, 2), 8),), data=q8_0(*numbers)))
    return path


def test_blocks_of_gguf_are_the_numbers_that_its_package_makes(
    blocks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "gguf", stand_in())
    (last,) = answers(head_of(blocks))
    assert (last["found"]["numel"], last["found"]["min"], last["found"]["max"]) == (128, -48.0, 47.5)
    head = head_of(blocks)
    with open_bytes(head["path"], head["stamp"]) as opened:
        read = opened.read_of(head["tensor"]["place"])
        assert np.frombuffer(read(33 * 4, 8), "<f4").tolist() == [16.5, 17.0]  # within the second block
        assert np.frombuffer(read(31 * 4, 8), "<f4").tolist() == [15.5, 16.0]  # of two blocks
        with pytest.raises(ValuesError, match="run past"):
            read(127 * 4, 8)


def test_blocks_without_the_package_are_said(blocks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "gguf", None)
    (last,) = answers(head_of(blocks))
    assert "known to the package gguf, which is not installed" in last["error"]["what"]


def test_blocks_of_another_byte_order_are_not_asked_for(blocks: Path) -> None:
    made = open_checkpoint(str(blocks))
    big = replace(made, versions=(("gguf", "3 (big-endian)"),))
    assert "blocks" in Requests(made).of(0)["place"]
    with pytest.raises(ValuesError, match="not known"):
        Requests(big).of(0)
