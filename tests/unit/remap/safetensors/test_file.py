from __future__ import annotations

import json
import struct
from pathlib import Path

from inspector.remap import export_form as form_export
from inspector.remap import safetensors as form_tensors
from inspector.remap.forms import Form
from tests.builders import pickles
from tests.sweep import table
from tests.unit.remap.form_samples import Halved, exported, file_of, mapping, numbers, tensor

ZERO, ONE = numbers("0"), numbers("1")


def tensors_of(path: Path) -> dict[str, bytes]:
    data = path.read_bytes()
    (nbytes,) = struct.unpack("<Q", data[:8])
    rows = json.loads(data[8 : 8 + nbytes])
    body = data[8 + nbytes :]
    return {name: body[slice(*row["data_offsets"])] for name, row in rows.items() if name != "__metadata__"}


def transposed(data: bytes, itemsize: int) -> bytes:
    a, b, c, d = (data[place : place + itemsize] for place in range(0, 4 * itemsize, itemsize))
    return a + c + b + d


ROOT = mapping(
    {
        "whole": tensor("0"),
        "turned": tensor("1", geometry="0;2,2;1,2"),
        "part": tensor("0", geometry="1;2;1"),
        "scalar": tensor("1", geometry="3;;"),
        "empty": tensor("1", geometry="0;0,3;3,1"),
        "storage": pickles.storage("1", numel=4),
    }
)


@table("how", [{}, {"legacy": True}, {"deflated": ("data/0", "data/1")}])
def test_tensors_are_written_in_the_order_of_rows(tmp_path, how) -> None:
    destination, _ = exported(file_of(tmp_path, ROOT, **how), Form(shape="safetensors"))
    assert tensors_of(destination) == {
        "whole": ZERO,
        "turned": transposed(ONE, 4),
        "part": ZERO[4:12],
        "scalar": ONE[12:],
        "empty": b"",
        "storage": ONE,
    }


def test_cast_comes_after_the_order(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form_export, "Caster", Halved)
    monkeypatch.setattr(form_tensors, "STEP_NBYTES", 8)
    destination, made = exported(file_of(tmp_path, ROOT), Form(shape="safetensors", cast="float16"))
    assert tensors_of(destination) == {
        "whole": ZERO[::2],
        "turned": transposed(ONE, 4)[::2],
        "part": ZERO[4:12:2],
        "scalar": ONE[12::2],
        "empty": b"",
        "storage": ONE[::2],
    }
    assert made.overflowed == 6
