"""What `check` foretells of files made at random, beside torch: see `forecast`; all of them in a sweep."""

from __future__ import annotations

import argparse
import datetime as dt
import io
import os
import pickle
import random
import struct
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.report.words.verdicts import load_verdict
from inspector.safety.verdict import judge
from inspector.safety.words import verdict_words
from inspector.target.call import load_call
from inspector.target.simulate import Judged, first_failure, judge_load
from tests.builders import legacy, zips
from tests.builders.pickles import (
    MARK,
    NONE,
    As,
    call,
    dict_,
    legacy_storage,
    name,
    number,
    op,
    proto,
    state_dict,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.hostile.palette import FALSE, OD, floating, legacy_file, stored, zip_file
from tests.sweep import put_through, tries
from tests.torch.forecast import HERE, LOADS, rows, table
from tests.torch.forecast_files import Made, made
from tests.torch.running import tagged

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
SEED = 20261123


def test_what_is_foretold_of_files_made_at_random(tmp_path: Path) -> None:
    found = rows(made(tries(300, 3000), SEED), tmp_path)
    loads = [row for row in found if row.theirs == LOADS]
    assert len(loads) > 0.1 * len(found)
    assert sum(row.agrees for row in found) >= 0.995 * len(found), table(found)
    assert [row for row in found if row.is_false_promise] == [], table(found)


GEOMETRIES = {
    "past its storage": ((5,), (1,), 0),
    "of 2^40": ((1 << 40,), (1,), 0),
    "of a negative size": ((-1,), (1,), 0),
    "of a negative step": ((4,), (-1,), 0),
    "at a negative place": ((1,), (1,), -1),
    "of half a size": ((2.5,), (1,), 0),
    "at half a place": ((1,), (1,), 0.5),
    "of fewer steps than sizes": ((2, 2), (1,), 0),
}


def impossible(form: str, size: tuple[float, ...], stride: tuple[int, ...], offset: float) -> bytes:
    """A file with one tensor of four floats, seen so."""
    wrap = legacy_file if form == "legacy" else zip_file
    numbers = [
        [floating(one) if isinstance(one, float) else number(one) for one in ones] for ones in (size, stride)
    ]
    where = floating(offset) if isinstance(offset, float) else number(offset)
    given = (
        stored("s-float", legacy=form == "legacy"),
        where,
        tuple_(*numbers[0]),
        tuple_(*numbers[1]),
        FALSE,
        OD,
    )
    return wrap(dict_((text("w"), call("torch._utils._rebuild_tensor_v2", *given))))


@pytest.mark.parametrize("form", ["zip", "legacy"])
def test_tensors_that_cannot_be_are_not_called_loadable(tmp_path: Path, form: str) -> None:
    files = [
        Made(f"0 {form}: {title}", impossible(form, *given), False) for title, given in GEOMETRIES.items()
    ]
    found = rows(files, tmp_path)
    assert len(found) == 2 * len(GEOMETRIES)
    for row in found:
        assert (row.ours != LOADS, row.theirs != LOADS) == (True, True), row
        assert row.same_error, row


def two_ids(first: bytes, second: bytes, **records: bytes) -> bytes:
    """A zip of two tensors, each by an id of its own, with these records."""
    return zips.checkpoint(state_dict(a=tensor(first, 0), b=tensor(second, 0)), records)


def nested(*steps: int, before: bytes = NONE) -> bytes:
    """A zip of a nested tensor of one row, whose strides are a tensor with these steps, behind a value."""
    rows = [storage(key, "torch.LongStorage", numel=4) for key in "12"]
    sizes, strides = (_strided(rows[0], (2, 1), (1, 1)), _strided(rows[1], (2, 1), steps))
    offsets = _strided(storage("3", "torch.LongStorage"), (2,), (1,))
    push = call("torch._utils._rebuild_nested_tensor", tensor(storage(), 2), sizes, strides, offsets)
    records = {"0": bytes(8), "1": bytes(32), "2": bytes(32), "3": bytes(16)}
    return zips.checkpoint(stream(proto(), tuple_(before, push)), records)


def _strided(storage_push: bytes, sizes: tuple[int, ...], steps: tuple[int, ...]) -> bytes:
    given = (storage_push, number(0), tuple_(*map(number, sizes)), tuple_(*map(number, steps)), FALSE, OD)
    return call("torch._utils._rebuild_tensor_v2", *given)


def _sparse_push(*size: int, values: int = 4, row: int = 0, flag: bytes = NONE) -> bytes:
    wide = (values, row) if row else (values,)
    indices = _strided(storage("1", "torch.LongStorage", numel=8), (2, 4), (4, 1))
    parts = tuple_(indices, tensor(storage(numel=12), *wide), tuple_(*map(number, size or (3, 3))), flag)
    layout = call("torch.serialization._get_layout", text("torch.sparse_coo"))
    return call("torch._utils._rebuild_sparse_tensor", layout, parts)


def sparse(*before: bytes, **given: Any) -> bytes:
    """A zip of a tensor of four coordinates in two dimensions, behind other values."""
    size = given.pop("size", ())
    push = tuple_(*before, _sparse_push(*size, **given))
    return zips.checkpoint(stream(proto(), push), {"0": bytes(48), "1": bytes(64)})


def channels(cls: str) -> bytes:
    """A zip of a tensor of two channels, whose scales are of this type."""
    scheme = name("torch.per_channel_affine")
    scales, zeros = tensor(storage("1", cls), 2), tensor(storage("2", "torch.LongStorage"), 2)
    given = (
        number(0),
        tuple_(number(2)),
        tuple_(number(1)),
        tuple_(scheme, scales, zeros, number(0)),
        FALSE,
        OD,
    )
    push = call("torch._utils._rebuild_qtensor", storage(cls="torch.QInt8Storage"), *given)
    nbytes = 16 if "Long" in cls else 8
    return zips.checkpoint(stream(proto(), push), {"0": bytes(2), "1": bytes(nbytes), "2": bytes(16)})


_AFFINE = tuple_(name("torch.per_tensor_affine"), floating(1.0), number(0))
NOT_LOADED = {
    "zip: an empty storage's key again": two_ids(storage(numel=0), storage(numel=4), **{"0": b""}),
    "zip: an empty storage's key again elsewhere": two_ids(
        storage(numel=0), storage(numel=0, location="cuda"), **{"0": b""}
    ),
    "zip: a meta storage's key again": two_ids(
        storage(numel=2, location="meta"), storage(numel=4), **{"0": bytes(8)}
    ),
    "zip: a key that is a number again": two_ids(storage(numel=2), storage(0, numel=4), **{"0": bytes(8)}),
    "legacy: the length of an empty storage cut": legacy.checkpoint(
        state_dict(a=tensor(legacy_storage(numel=0), 0)), ("0", 0, b"")
    )[:-5],
    "legacy: a quantized tensor past its storage": legacy.checkpoint(
        stream(
            proto(),
            call(
                "torch._utils._rebuild_qtensor",
                legacy_storage(cls="torch.QInt32Storage"),
                *(number(0), tuple_(number(6)), tuple_(number(1)), _AFFINE, FALSE, OD),
            ),
        ),
        ("0", 6, bytes(24)),
    ),
    "zip: a nested tensor with a gap between its strides": nested(2, 1),
    "zip: fewer values than indices": sparse(values=2),
    "zip: fewer dimensions than indices": sparse(size=(3,)),
    "zip: values of other dimensions": sparse(size=(3, 3, 2), row=3),
    "zip: a flag that is a number": sparse(flag=number(0)),
    "zip: sizes in a storage of other elements": nested(1, 1, before=tensor(storage("1", numel=8), 2)),
    "legacy: a key twice": legacy.checkpoint(
        state_dict(a=tensor(legacy_storage(), 2)), ("0", 2, bytes(8)), keys=["0", "0"]
    ),
    "zip: steps of channels that are whole numbers": channels("torch.LongStorage"),
    "zip: a nested tensor with a stride too few": nested(1),
}


@pytest.mark.parametrize("title", NOT_LOADED)
def test_a_file_that_stops_is_not_called_loadable(tmp_path: Path, title: str) -> None:
    found = rows([Made(f"0 {title}", NOT_LOADED[title], False)], tmp_path)
    assert len(found) == 2
    for row in found:
        assert (row.ours != LOADS, row.theirs != LOADS) == (True, True), row


def test_what_is_like_them_loads(tmp_path: Path) -> None:
    files = {
        "zip: an empty storage's key again": two_ids(storage(numel=0), storage(numel=0), **{"0": b""}),
        "zip: a key again": two_ids(storage(numel=2), storage(numel=4), **{"0": bytes(8)}),
        "zip: a nested tensor": nested(1, 1),
        "zip: a sparse tensor": sparse(),
        "zip: channels": channels("torch.FloatStorage"),
        "zip: a sparse tensor of rows": sparse(size=(3, 3, 3), row=3, flag=FALSE),
        "legacy: an empty storage": legacy.checkpoint(
            state_dict(a=tensor(legacy_storage(numel=0), 0)), ("0", 0, b"")
        ),
    }
    found = rows([Made(f"0 {title}", data, False) for title, data in files.items()], tmp_path)
    assert {(row.title, row.ours, row.theirs) for row in found} == {
        (f"0 {title}", LOADS, LOADS) for title in files
    }


def frame(nbytes: int) -> bytes:
    return op("FRAME", struct.pack("<Q", nbytes))


UNRESTRICTED = {
    "arguments that a call makes, and no tuple": op("POP")
    + name("collections.OrderedDict")
    + call("collections.OrderedDict")
    + op("REDUCE"),
    "digits that are no number": b"I':1\n",
    "a buffer that is elsewhere": op("NEXT_BUFFER"),
    "a frame that begins within the end of another": frame(7) + frame(1),
}


@pytest.mark.parametrize("title", UNRESTRICTED)
def test_what_stops_only_pythons_own_unpickler(tmp_path: Path, title: str) -> None:
    data = zips.checkpoint(stream(proto(4), NONE, UNRESTRICTED[title]))
    own = next(row for row in rows([Made(f"0 zip: {title}", data, False)], tmp_path) if not row.weights_only)
    assert (own.ours != LOADS, own.theirs != LOADS) == (True, True), own


ORDERS = {
    "an instruction before a name": (op("POP_MARK"), name("net.Net")),
    "a name before an instruction": (name("net.Net"), op("POP_MARK")),
    "an instruction before a storage": (op("POP_MARK"), storage(location="cuda:0")),
    "an instruction behind a storage": (storage(location="cuda:0"), op("POP_MARK")),
    "a name behind a storage": (storage(location="cuda:0"), name("net.Net")),
}


@pytest.mark.parametrize("title", ORDERS)
def test_of_what_stops_it_the_first_is_told(tmp_path: Path, title: str) -> None:
    data = zips.checkpoint(stream(proto(), MARK, MARK, *ORDERS[title], op("TUPLE")), {"0": bytes(8)})
    path = tmp_path / "a.pt"
    path.write_bytes(data)
    found = open_checkpoint(str(path))
    failure = first_failure(found, HERE, load_call(found, judge(found), weights_only=True))
    with pytest.raises((RuntimeError, pickle.UnpicklingError)) as raised:
        torch.load(path, weights_only=True)
    assert failure is not None
    assert failure.message == f"{raised.type.__name__}: {raised.value}"


def test_what_other_readers_would_run_stops_no_load_and_is_dangerous_all_the_same(tmp_path: Path) -> None:
    """An array of objects beside the pickle: numpy.load runs it, torch.load never opens it."""
    data = io.BytesIO()
    np.save(data, np.array([As(os.system, ("true",))], dtype=object), allow_pickle=True)
    state = state_dict(a=tensor(storage(), 2))
    path = tmp_path / "a.pt"
    path.write_bytes(
        zips.checkpoint(state, {"0": bytes(8)}, zips.Record(name="archive/x.npy", data=data.getvalue()))
    )
    assert [*torch.load(path, weights_only=True)] == [*torch.load(path, weights_only=False)] == ["a"]
    found = open_checkpoint(str(path))
    safety = judge(found)
    for weights_only in (True, False):
        assert first_failure(found, HERE, load_call(found, safety, weights_only=weights_only)) is None
    assert safety.verdict == "dangerous"
    assert any("x.npy" in text and "posix.system" in text for text in safety.reasons)
    assert not any("weights_only=False" in text for text in safety.reasons)
    assert verdict_words(safety).startswith("dangerous: archive/x.npy, which numpy.load reads, can run comm")
    said = load_verdict(Judged(checkpoint=found, target=HERE, load=judge_load(found, HERE)), (), "here")
    assert (said.does, said.why) == ("loads", "torch.load runs nothing of that")


ON_CPU, ON_GPU = 8, 24  # bytes, by which a storage gets its tag
THINGS: list[Any] = [
    lambda: torch.zeros(ON_CPU // 4),
    lambda: torch.zeros(ON_CPU // 4),
    lambda: torch.zeros(ON_GPU // 4),
    lambda: torch.nn.Parameter(torch.zeros(ON_GPU // 4)),
    lambda: OrderedDict(w=torch.zeros(ON_CPU // 4)),
    lambda: argparse.Namespace(lr=0.1, weight=torch.zeros(ON_CPU // 4)),
    lambda: dt.timedelta(1),
    lambda: np.zeros(2),
    lambda: np.float64(0.5),
    lambda: torch.nn.Linear(1, 2, bias=False),
    lambda: 7,
]


def some(chance: random.Random) -> dict[str, Any]:
    """A few things in any order, some of them the same, some in one another."""
    made = [chance.choice(THINGS)() for _ in range(chance.randint(2, 6))]
    made.append(chance.choice(made))
    if chance.random() < 0.5:
        made.append({"in": made[1], "own": chance.choice(THINGS)()})
    return {str(number): made[number] for number in chance.sample(range(len(made)), len(made))}


def test_the_first_error_is_the_one_that_is_told(tmp_path: Path) -> None:
    ends: set[str] = set()

    def check(seed: int) -> None:
        path = tmp_path / "file.pt"
        with tagged(lambda storage: "cuda:0" if storage.nbytes() == ON_GPU else "cpu"):
            torch.save(some(random.Random(seed)), path, _use_new_zipfile_serialization=seed % 3 > 0)
        load = judge_load(open_checkpoint(str(path)), HERE)
        try:
            torch.load(io.BytesIO(path.read_bytes()) if seed % 2 else path)
        except Exception as error:  # noqa: BLE001 - whatever torch says
            said = f"{type(error).__name__}: {error}"
            assert load.failure is not None, said
            assert load.failure.message == said
            ends.add(load.failure.finding)
        else:
            assert load.failure is None

    put_through(check, range(tries(150, 2000)))
    assert ends == {"cuda-unavailable", "needs-allow-list", "runs-code"}
