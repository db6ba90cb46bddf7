from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

from inspector.child import Answer
from inspector.errors import ValuesError
from inspector.model.build import open_checkpoint
from inspector.session.export.arrays import npy_header, write_npy, write_safetensors


def test_numpy_reads_what_is_written(tmp_path: Path) -> None:
    for shape in ((), (3,), (2, 3), (10**9, 0)):
        head = Answer(head={"descr": "<f4", "shape": list(shape)}, block=b"")
        data = np.arange(int(np.prod(shape)), dtype="<f4").tobytes()
        path = str(tmp_path / "a.npy")
        assert write_npy(path, [head, Answer(head={"done": 1}, block=data)]) == path
        assert np.load(path).shape == shape
    header = npy_header("<c16", (7,))
    assert len(header) % 64 == 0
    assert np.load(io.BytesIO(header + bytes(7 * 16))).dtype == np.complex128


def test_safetensors_holds_the_elements_as_they_are_stored(tmp_path: Path) -> None:
    path = tmp_path / "a.safetensors"
    answers = [Answer(head={"shape": [2, 1]}, block=b""), Answer(head={"done": 4}, block=b"\x80\x3f\x00\x40")]
    assert write_safetensors(str(path), "a.weight", "bfloat16", answers) == str(path)
    (row,) = open_checkpoint(str(path)).tensors
    assert (row.keys, row.dtype, row.shape) == (("a.weight",), "bfloat16", (2, 1))
    assert path.read_bytes().endswith(b"\x80\x3f\x00\x40")


def test_what_fails_leaves_the_file_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    path.write_bytes(b"before")

    def failing():
        yield Answer(head={"descr": "<f4", "shape": [2]}, block=b"")
        raise ValuesError("the file changed")

    with pytest.raises(ValuesError):
        write_npy(str(path), failing())
    assert path.read_bytes() == b"before"
    assert list(tmp_path.iterdir()) == [path]
