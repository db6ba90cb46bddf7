"""Tensors that lie about their values: a sentence or the truth, in bounded time and memory, and no crash."""

from __future__ import annotations

import os
import signal
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import ValuesError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.records import replace
from inspector.values.asking import ValueReader
from inspector.values.request import Requests
from inspector.worker.tensor_values import answer
from tests.builders.pickles import call, dict_, list_, name, number, op, state_dict, storage, text, tuple_
from tests.builders.zips import DEFLATED, Record, build_zip, checkpoint

DATA = struct.pack("<4f", 1, 2, 3, 4)


def view(shape: tuple[int, ...], stride: tuple[int, ...], *more: bytes, **of: Any) -> bytes:
    return call(
        "torch._utils._rebuild_tensor_v2",
        storage(numel=4, **of),
        number(0),
        tuple_(*map(number, shape)),
        tuple_(*map(number, stride)),
        op("NEWFALSE"),
        call("collections.OrderedDict"),
        *more,
    )


def sparse(indices: bytes, shape: tuple[int, ...]) -> bytes:
    layout = call("torch.serialization._get_layout", text("torch.sparse_coo"))
    parts = tuple_(indices, view((4,), (1,)), tuple_(*map(number, shape)))
    return call("torch._utils._rebuild_sparse_tensor", layout, parts)


def longs(*shape: int) -> bytes:
    strides = (shape[1], 1)
    return call(
        "torch._utils._rebuild_tensor_v2",
        storage("1", "torch.LongStorage", numel=4),
        number(0),
        tuple_(*map(number, shape)),
        tuple_(*map(number, strides)),
        op("NEWFALSE"),
        call("collections.OrderedDict"),
    )


def quantized(*qparams: bytes) -> bytes:
    return call(
        "torch._utils._rebuild_qtensor",
        storage(cls="torch.QInt8Storage", numel=16),
        number(0),
        tuple_(number(4)),
        tuple_(number(1)),
        tuple_(name("torch.per_tensor_affine"), *qparams),
        op("NEWFALSE"),
        call("collections.OrderedDict"),
    )


def double(value: float) -> bytes:
    return op("BINFLOAT", struct.pack(">d", value))


TRUTHS = {
    "repeated 10^18 times": (view((10**9, 10**9), (0, 0)), {"numel": 10**18, "zeros": 0, "high": 1.0}),
    "repeated in 40 dimensions": (view((2,) * 40, (0,) * 40), {"numel": 1 << 40, "mean": 1.0}),
    "a thousand dimensions of one": (view((1,) * 1000, (7,) * 1000), {"numel": 1, "high": 1.0}),
    "empty and huge": (view((0, 10**15), (1, 1)), {"numel": 0, "low": None}),
    "windows that overlap": (view((2, 3), (1, 1)), {"numel": 6, "high": 4.0}),
    "a scale that is no number": (quantized(double(float("nan")), number(0)), {"nan": 4, "finite": 0}),
    "places far outside": (sparse(longs(1, 4), (2,)), {"only_stored": True, "numel": 4}),
    "a dimension of 10^18": (sparse(longs(1, 4), (10**18,)), {"zeros": 10**18 - 4}),
}
REFUSALS = {
    "past its storage": (view((5,), (1,)), "cannot be true"),
    "past its storage by its stride": (view((2,), (9,)), "cannot be true"),
    "more than 64 bits": (view((1 << 62, 1 << 62), (0, 0)), "cannot be true"),
    "unlike its strides": (view((2, 2), (1,)), "cannot be true"),
    "negated integers": (
        view((4,), (1,), dict_((text("neg"), op("NEWTRUE"))), cls="torch.IntStorage"),
        "negated lazily, which torch never does",
    ),
    "kept in a way of its own": (view((4,), (1,), dict_((text("npu_format"), number(29)))), "an unknown way"),
    "a scale that is a list": (quantized(list_(), number(0)), "an unknown way"),
    "without bytes": (view((4,), (1,), key="9"), "does not hold its bytes"),
}


def written(folder: Path, tensor: bytes) -> str:
    path = folder / "checkpoint.pt"
    indices = struct.pack("<4q", 0, 1, 2, 3)
    path.write_bytes(checkpoint(state_dict(w=tensor), {"0": DATA, "1": indices}))
    return str(path)


def here(path: str) -> dict[str, Any]:
    requests = Requests(open_checkpoint(path))
    head = {"what": "stats", **requests.file, "tensor": requests.of(0)}
    return [found for found, _ in answer(head, iter(()))][-1]


@pytest.fixture(scope="module")
def reader() -> Iterator[ValueReader]:
    with ValueReader() as reader:
        yield reader


def test_the_truth_or_a_sentence(reader: ValueReader, tmp_path: Path) -> None:
    wrong = []
    for title, (tensor, expected) in TRUTHS.items():
        found = reader.statistics(Requests(open_checkpoint(written(tmp_path, tensor))), 0, Progress())
        seen = {field: getattr(found, field) for field in expected}
        wrong += [] if seen == expected else [f"{title}: {seen}"]
    for title, (tensor, expected) in REFUSALS.items():
        try:
            reader.statistics(Requests(open_checkpoint(written(tmp_path, tensor))), 0, Progress())
        except ValuesError as error:
            wrong += [] if expected in error.what else [f"{title}: {error}"]
        else:
            wrong.append(f"{title}: no error")
    assert not wrong


def test_a_request_that_lies_reads_no_memory_of_others(tmp_path: Path) -> None:
    """What the model refuses is refused once more by the child, which lays arrays over memory."""
    opened = open_checkpoint(written(tmp_path, view((4,), (1,))))
    (tensor,) = opened.tensors
    lies = {
        "shape": (tensor._replace(shape=(1 << 40,)), "past the 16 bytes"),
        "stride": (tensor._replace(stride=(1 << 40,)), "past the 16 bytes"),
        "offset": (tensor._replace(storage_offset=4), "past the 16 bytes"),
        "back": (tensor._replace(stride=(-1,), storage_offset=3), "cannot be true"),
        "overlap": (tensor._replace(shape=(1 << 20, 1 << 20), stride=(1, 1)), "overlap"),
    }
    for title, (lie, expected) in lies.items():
        requests = Requests(replace(opened, tensors=(lie,)))
        head = {"what": "stats", **requests.file, "tensor": requests.of(0)}
        *_, (found, _) = answer(head, iter(()))
        assert expected in found["error"]["what"], title


def test_a_record_that_inflates_without_end_is_read_as_far_as_it_says(tmp_path: Path) -> None:
    path = tmp_path / "bomb.pt"
    records = [
        Record(name="archive/data.pkl", data=state_dict(w=view((4,), (1,)))),
        Record(name="archive/data/0", data=DATA + bytes(50 << 20), method=DEFLATED, nbytes=16),
        Record(name="archive/version", data=b"3\n"),
    ]
    path.write_bytes(build_zip(*records))
    assert path.stat().st_size < 1 << 20
    assert here(str(path))["found"]["max"] == 4.0


def test_a_file_that_is_cut_off_meanwhile_is_an_error(tmp_path: Path) -> None:
    path = written(tmp_path, view((4,), (1,)))
    requests = Requests(open_checkpoint(path))
    os.truncate(path, 200)
    head = {"what": "stats", **requests.file, "tensor": requests.of(0)}
    *_, (found, _) = answer(head, iter(()))
    assert "changed" in found["error"]["what"]


def test_a_child_that_is_killed_is_a_sentence_and_the_next_one_answers(
    reader: ValueReader, tmp_path: Path
) -> None:
    opened = open_checkpoint(written(tmp_path, view((4,), (1,))))
    reader.statistics(Requests(opened), 0, Progress())
    pid = reader._worker.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(ValuesError, match="ended before it had answered"):
        reader.statistics(Requests(opened), 0, Progress())
    assert reader.statistics(Requests(opened), 0, Progress()).high == 4.0
