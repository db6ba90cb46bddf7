"""Values of one element, against what Python packs."""

from __future__ import annotations

import math
import struct
from pathlib import Path

import pytest

from inspector.errors import CancelledError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.values import request as module
from inspector.values.request import read_scalars
from tests.builders.safetensors import row, safetensors
from tests.unit.values.rows import checkpoint, stored, tensor

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
