from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import pytest

from inspector.child import Answer
from inspector.errors import ValuesError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.values.asking import ValueReader
from inspector.values.statistics import Oddity, build_statistics, oddities_of, scan_checkpoint
from inspector.worker.tensor_values import answer
from tests.builders.safetensors import row, safetensors
from tests.unit.values.rows import Encoding, checkpoint, stored, tensor

FOUND: dict[str, Any] = {
    "numel": 4,
    "finite": 3,
    "zeros": 1,
    "nan": 1,
    "posinf": 0,
    "neginf": 0,
    "first_nan": [0, 1],
    "first_posinf": None,
    "first_neginf": None,
    "min": 0.0,
    "max": 2.0,
    "mean": 1.0,
    "std": 1.0,
    "norm": 3.0,
    "unique": None,
    "edges": [0.0, 1.0, 3.0],
    "counts": [1, 2],
    "exponent": 0,
    "octaves": [1, 1],
    "dead_rows": 0,
    "of": "all",
}


def test_figures_of_real_numbers() -> None:
    found = build_statistics(FOUND, {"dtype": "float32", "scale": None})
    assert (found.low, found.high, found.first_nan, found.sparsity) == (0.0, 2.0, (0, 1), 0.25)
    assert (found.is_complex, found.is_dequantized, found.stored, found.only_stored) == (
        False,
        False,
        None,
        False,
    )
    assert build_statistics(FOUND | {"numel": 0}, {"dtype": "float32"}).sparsity is None


def test_figures_of_complex_and_quantized_numbers() -> None:
    more = {
        "min": None,
        "max": None,
        "min_abs": 1.0,
        "max_abs": 5.0,
        "mean": None,
        "complex_mean": [1.0, -1.0],
    }
    found = build_statistics(FOUND | more, {"dtype": "complex64", "part": "values"})
    assert (found.low, found.high, found.complex_mean, found.part) == (1.0, 5.0, (1.0, -1.0), "values")
    for how in ({"scale": 0.5}, {"axis": 0}):
        assert build_statistics(FOUND, {"dtype": "qint8", **how}).is_dequantized


def test_a_sparse_tensor_has_figures_of_what_is_stored() -> None:
    found = build_statistics(FOUND | {"stored": FOUND}, {"dtype": "float32"})
    assert found.stored.numel == 4
    assert build_statistics(FOUND | {"of": "stored"}, {"dtype": "float32"}).only_stored


NAN, INF = float("nan"), float("inf")


class Here(ValueReader):
    """Answers in this process, where a test can look in."""

    def __init__(self, piece_s: float = 10) -> None:
        super().__init__()
        self.asked: list[Any] = []

    def answers(self, head: Any, progress: Progress, blocks: Any = (), *, is_short: bool = False) -> Any:
        for block in blocks:
            self.asked += json.loads(block)
        for found, _ in answer(head, iter([json.dumps(self.asked).encode()])):
            if "error" in found:
                raise ValuesError(found["error"]["what"])
            progress.advance(found.get("done", 0))
            yield Answer(head=found, block=b"")


def weights(folder: Path, **tensors: list[float]) -> str:
    """A safetensors file of float32 vectors."""
    header, data = {}, b""
    for name, values in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = row("F32", (len(values) // 2, 2), (len(data), len(data) + len(packed)))
        data += packed
    path = folder / "model.safetensors"
    path.write_bytes(safetensors(header, data))
    return str(path)


def test_what_is_odd_is_found_in_its_place(tmp_path: Path) -> None:
    path = weights(
        tmp_path,
        fine=[1.0, 2.0, -3.0, 0.5],
        diverged=[1.0, NAN, -INF, 2.0],
        zeros=[0.0, -0.0, 0.0, 0.0],
        ones=[1.0] * 4,
        dead=[0.0, 0.0, 1.0, 2.0],
        huge=[1e5, 1.0, 2.0, 3.0],
        single=[7.0, 8.0],
    )
    opened, progress = open_checkpoint(path), Progress()
    with ValueReader() as reader:
        scan = scan_checkpoint(opened, reader, progress)
    assert {opened.tensors[one.row].path: one.oddities for one in scan.tensors if one.oddities} == {
        "diverged": (Oddity.NAN, Oddity.INF),
        "zeros": (Oddity.ZERO,),
        "ones": (Oddity.CONSTANT,),
        "dead": (Oddity.DEAD_ROWS,),
        "huge": (Oddity.HUGE,),
    }
    assert [one.row for one in scan.with_oddity(Oddity.NAN, Oddity.ZERO)] == [1, 2]
    assert progress.done == progress.total == scan.nbytes == 104
    assert scan.unread == []
    assert max(scan.tensors[0].spark) == 8
    assert scan.tensors[1].statistics is not None
    assert scan.tensors[1].statistics.first_neginf == (1, 0)


def test_every_tensor_is_there_whether_it_is_read_or_not(tmp_path: Path) -> None:
    path = tmp_path / "data.bin"
    path.write_bytes(struct.pack("<6f", *range(6)))
    opened = checkpoint(
        tensor("a"),
        tensor("tied"),
        tensor("meta", device="meta"),
        tensor("short", storage="1"),
        tensor("q", dtype="qint8"),
        tensor("q", "scales", part_of=4),
        tensor("wrapper", storage=None),
        tensor("wrapper", "inner", part_of=6, storage="1"),
        stored(file_offset=0),
        stored("1", file_offset=20),
        path=str(path),
        stamp=None,
        encodings=((4, Encoding(scale=0.5, zero_point=0)),),
    )
    reader = Here()
    scan = scan_checkpoint(opened, reader, Progress())
    assert [one.row for one in scan.tensors] == [0, 1, 2, 3, 4, 6, 7]
    assert [request["row"] for request in reader.asked] == [0, 3, 4, 6]
    assert {one.row: one.why.partition(" ")[0] for one in scan.unread} == {
        2: "it",
        3: "the",
        6: "the",
        7: "the",
    }
    assert scan.tensors[1].statistics is scan.tensors[0].statistics


def test_a_file_that_changed_is_not_scanned(tmp_path: Path) -> None:
    opened = open_checkpoint(weights(tmp_path, a=[1.0, 2.0]))
    weights(tmp_path, a=[1.0, 2.0, 3.0, 4.0])
    with pytest.raises(ValuesError, match="changed"):
        scan_checkpoint(opened, Here(), Progress())


def test_only_weights_are_judged_by_zeros() -> None:
    zeros = build_statistics(FOUND | {"zeros": 4, "finite": 4, "nan": 0, "max": 0.0}, {"dtype": "float32"})
    assert oddities_of(tensor(), zeros) == (Oddity.ZERO,)
    assert oddities_of(tensor(role="optimizer"), zeros) == ()
    one = build_statistics(FOUND | {"numel": 1, "finite": 1, "nan": 0}, {"dtype": "float32"})
    assert oddities_of(tensor(), one) == ()


def test_what_is_huge_depends_on_what_it_is_for() -> None:
    large = build_statistics(FOUND | {"min": -1e5, "nan": 0}, {"dtype": "float32"})
    assert oddities_of(tensor(), large) == (Oddity.HUGE,)
    assert oddities_of(tensor(role="optimizer"), large) == ()
    assert oddities_of(tensor(dtype="int64"), large) == ()
    assert (
        oddities_of(
            tensor(role="rng"), build_statistics(FOUND | {"max": 1e20, "nan": 0}, {"dtype": "float32"})
        )
        == ()
    )
    empty = build_statistics(FOUND | {"min": None, "max": None, "nan": 0}, {"dtype": "float32"})
    assert oddities_of(tensor(), empty) == ()
