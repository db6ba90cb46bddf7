"""What is asked of the child, and what is refused before it is."""

from __future__ import annotations

import math
import struct
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CancelledError, ValuesError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.values import request as module
from inspector.values.request import Requests, read_scalars
from tests.builders.safetensors import row, safetensors
from tests.unit.values.rows import Encoding, checkpoint, stored, tensor


def asked(*tensors: Any, storages: Any = (), row: int = 0, **more: Any) -> dict[str, Any]:
    return Requests(checkpoint(*tensors, *(storages or (stored(),)), **more)).of(row)


def refused(*tensors: Any, **more: Any) -> str:
    with pytest.raises(ValuesError) as caught:
        asked(*tensors, **more)
    assert caught.value.where == tensors[0].path
    return caught.value.what


def test_the_file_is_named_with_what_it_looked_like() -> None:
    found = Requests(checkpoint(path="/a/b.pt", stamp=(1, 2, 3))).file
    assert found == {"path": "/a/b.pt", "stamp": [1, 2, 3]}
    assert Requests(checkpoint(path="/a/b.pt", stamp=None)).file["stamp"] is None


def test_what_has_no_values_says_why() -> None:
    assert "runs past" in refused(tensor(problem="it runs past its storage"))
    assert "meta device" in refused(tensor(device="meta"))
    assert "does not hold its bytes" in refused(tensor(), storages=(stored(missing=True),))
    assert "does not hold its bytes" in refused(tensor(storage=None))
    assert "int4 elements" in refused(tensor(dtype="int4"))
    assert "q4_0 elements" in refused(tensor(dtype="q4_0"))
    assert "unknown way" in refused(tensor(), encodings=((0, Encoding(is_readable=False)),))


def test_lazy_bits_and_scales_come_along() -> None:
    assert asked(tensor(), encodings=((0, Encoding(conj=True)),))["conj"]
    one = asked(tensor(dtype="qint8"), encodings=((0, Encoding(scale=0.5, zero_point=3)),))
    assert (one["scale"], one["zero_point"]) == (0.5, 3)
    parts = [tensor("w", name, part_of=0, shape=(3,), stride=(1,)) for name in ("scales", "zero_points")]
    channels = asked(tensor(dtype="qint8"), *parts, encodings=((0, Encoding(axis=1)),))
    assert (channels["axis"], channels["scales"]["shape"]) == (1, [3])
    assert "not tensors" in refused(tensor(dtype="qint8"), encodings=((0, Encoding(axis=1)),))


def test_composites_are_read_by_their_parts() -> None:
    values = tensor("w", "values", part_of=0, shape=(4,), stride=(1,))
    indices = tensor("w", "indices", part_of=0, dtype="int64", shape=(2, 4), stride=(4, 1))
    coo = asked(tensor(storage=None, layout="sparse_coo"), indices, values)
    assert (coo["layout"], coo["whole"], coo["shape"], coo["indices"]["dtype"]) == (
        "sparse_coo",
        [2, 3],
        [4],
        "int64",
    )
    csr = asked(tensor(storage=None, layout="sparse_csr"), tensor("w", "crow_indices", part_of=0), values)
    assert "indices" not in csr
    assert asked(tensor(storage=None, layout="jagged"), values)["part"] == "values"
    buffer = tensor("w", "buffer", part_of=0)
    assert asked(tensor(storage=None, layout="nested"), buffer)["part"] == "buffer"


def test_a_wrapper_around_one_plain_tensor_is_that() -> None:
    wrapper = tensor(storage=None, stride=None)
    inner = tensor("w", "._data", part_of=0)
    scale = tensor("w", "._scale", part_of=0, shape=())
    deeper = tensor("w", "._data", ".x", part_of=1)
    assert asked(wrapper, inner, deeper, scale, tensor("x"))["part"] == "._data"
    assert "listed below" in refused(wrapper, inner, tensor("w", "._other", part_of=0))
    local = tensor("w", "._local_tensor", part_of=0, shape=(1, 3))
    assert asked(wrapper, local)["shape"] == [1, 3]


DEMO = Path(__file__).parents[3] / "resources" / "demo" / "demo.pth"


def written(tmp_path: Path, **tensors: tuple[str, tuple[int, ...], bytes]) -> Path:
    header, data = {}, b""
    for name, (dtype, shape, packed) in tensors.items():
        header[name] = row(dtype, shape, (len(data), len(data) + len(packed)))
        data += packed
    path = tmp_path / "m.safetensors"
    path.write_bytes(safetensors(header, data))
    return path


def test_each_type_reads_as_python_writes_it(tmp_path: Path) -> None:
    values = {
        "a": ("F32", (), struct.pack("<f", 0.1)),
        "b": ("F64", (1,), struct.pack("<d", 0.1)),
        "c": ("F16", (1, 1), struct.pack("<e", 0.1)),
        "d": ("I64", (), struct.pack("<q", -(2**63))),
        "e": ("BOOL", (), b"\x02"),
        "f": ("F32", (), struct.pack("<f", math.nan)),
        "g": ("F32", (), struct.pack("<f", 3.4028234663852886e38)),
        "h": ("F16", (), struct.pack("<e", 65504.0)),
        "i": ("F32", (), struct.pack("<f", 20.0)),
        "j": ("U8", (), b"\xff"),
        "k": ("F32", (2,), bytes(8)),
        "n": ("U64", (), b"\xff" * 8),
        "l": ("F32", (), struct.pack("<f", -0.0)),
        "m": ("F32", (), struct.pack("<f", 1.40129846432e-45)),
    }
    opened = open_checkpoint(str(written(tmp_path, **values)))
    found = {opened.tensors[place].path: text for place, text in read_scalars(opened, Progress()).items()}
    assert found == {
        "a": "0.1",
        "b": "0.1",
        "c": "0.1",
        "d": "-9223372036854775808",
        "e": "True",
        "f": "nan",
        "g": "3.4028235e+38",
        "h": "65500.0",
        "i": "20.0",
        "j": "255",
        "l": "-0.0",
        "m": "1e-45",
        "n": "18446744073709551615",
    }


@pytest.mark.torch
def test_step_counters_of_a_checkpoint_are_what_torch_reads() -> None:
    torch = pytest.importorskip("torch")
    opened = open_checkpoint(str(DEMO))
    found = read_scalars(opened, Progress())
    loaded = torch.load(DEMO, map_location="cpu", weights_only=True)
    assert len(found) > 30
    for place, text in found.items():
        value = loaded
        for key in opened.tensors[place].keys:
            value = value[key]
        assert float(text) == value.item(), opened.tensors[place].path


def test_what_cannot_be_read_so_is_left_out(tmp_path: Path, monkeypatch) -> None:
    odd = checkpoint(
        tensor("odd", dtype="quint8", shape=(), stride=()),
        tensor("meta", device="meta", storage=None, shape=(), stride=()),
        tensor("far", shape=(), stride=(), storage_offset=10**9),
        tensor("part", shape=(), stride=(), part_of=0),
        stored("0"),
    )
    assert read_scalars(odd, Progress()) == {}
    path = written(tmp_path, a=("F32", (), bytes(4)), b=("F32", (), bytes(4)))
    opened = open_checkpoint(str(path))
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        read_scalars(opened, progress)
    monkeypatch.setattr(module, "MOST_SCALARS", 1)
    assert read_scalars(opened, Progress()) == {0: "0.0"}
    monkeypatch.setattr(module, "packing", lambda _: "gzip")
    assert read_scalars(opened, Progress()) == {}
    monkeypatch.undo()
    path.write_bytes(path.read_bytes() + b" ")
    assert read_scalars(opened, Progress()) == {}
    path.unlink()
    assert read_scalars(opened, Progress()) == {}


def test_the_bytes_are_read_as_the_file_says() -> None:
    def text(data: bytes, dtype: str = "float32", **fields: object) -> str:
        return module._text(data, {"dtype": dtype, "swapped": False, "neg": False, **fields})

    assert text(struct.pack(">f", 2.5), swapped=True) == "2.5"
    assert text(struct.pack("<f", 2.5), neg=True) == "-2.5"
    assert text(struct.pack("<h", 7), "int16", neg=True) == "-7"
