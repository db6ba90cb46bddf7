"""What the child answers, asked in this process."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.values.request import Requests
from inspector.worker import tensor_values
from inspector.worker.tensor_values import answer
from tests.builders.safetensors import model


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
