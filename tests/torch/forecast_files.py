"""Files for the forecast: what torch.save writes of random objects, and what one or two mutations leave.

Everything follows from a seed. An honest file runs nothing but torch's own classes.
"""

from __future__ import annotations

import contextlib
import io
import pickle
import pickletools
import random
import struct
import warnings
import zipfile
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import torch
from torch.testing._internal.two_tensor import TwoTensor

from tests.builders import zips
from tests.builders.pickles import MARK, NONE, call, list_, number, op, text, tuple_
from tests.builders.zips import Record
from tests.hostile.palette import floating
from tests.torch.remapping import tagged

TAGS = (
    *("cpu", "cuda:0", "cuda", "cuda:1", "mps", "meta", "xpu:0", "xla:0", "hpu", "npu:0", "mtia", "cpu:0"),
    *("privateuseone", "nowhere", "cuda:x", "CUDA:0", "", "cuda:-1", "meta:0"),
)
DTYPES = (
    *(torch.float32, torch.float64, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int16),
    *(torch.int8, torch.uint8, torch.bool, torch.complex64, torch.complex128, torch.uint16, torch.uint32),
    *(torch.float8_e4m3fn, torch.float8_e5m2, torch.complex32),
)
NAMES = (
    *("collections OrderedDict", "collections Counter", "builtins set", "builtins complex", "torch Size"),
    *("torch._utils _rebuild_tensor", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_tensor_v3"),
    *("torch._utils _rebuild_parameter", "torch._utils _rebuild_qtensor", "torch FloatStorage"),
    *("torch LongStorage", "torch BoolStorage", "torch QInt8Storage", "torch.storage UntypedStorage"),
    *("torch float32", "torch int64", "torch device", "torch Tensor", "torch FloatTensor", "_codecs encode"),
    *("torch.nn.parameter Parameter", "mine Config", "os system", "torch._utils _rebuild_sparse_tensor"),
)


class Made(NamedTuple):
    """A file: what was done to it, its bytes, and whether that was nothing."""

    title: str
    data: bytes
    honest: bool


def made(count: int, seed: int) -> Iterator[Made]:
    for each in range(count):
        yield _made(random.Random(f"{seed}-{each}"), f"{seed}-{each}")


def _made(chance: random.Random, name: str) -> Made:
    torch.manual_seed(chance.randrange(1 << 30))
    form = chance.choices(("zip", "legacy", "pickle"), (60, 34, 6))[0]
    protocol = chance.choices((2, 0, 1, 3, 4, 5), (70, 3, 5, 8, 8, 6))[0]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = _saved(chance, form, protocol)
    done: list[str] = []
    for _ in range(chance.choices((0, 1, 2), (15, 60, 25))[0]):
        what, data = _SPOILERS[form](chance, data)
        done.append(what)
    return Made(f"{name} {form} {protocol}: {'; '.join(done) or 'honest'}", data, not done)


# --- honest files -------------------------------------------------------------------------------------------


_true_tag = torch.serialization.location_tag


def _saved(chance: random.Random, form: str, protocol: int) -> bytes:
    value = _value(chance)
    out = io.BytesIO()
    if form == "pickle":
        return pickle.dumps(value, protocol)
    tag, share = chance.choice(TAGS), chance.choice((0, 0, 0, 0.3, 1))
    with tagged(lambda storage: tag if chance.random() < share else _true_tag(storage)):
        torch.save(value, out, pickle_protocol=protocol, _use_new_zipfile_serialization=form == "zip")
    return out.getvalue()


def _value(chance: random.Random) -> Any:
    kind = chance.choices(("dict", "list", "one", "module", "optimizer", "shared"), (50, 15, 12, 8, 10, 5))[0]
    if kind == "one":
        return _leaf(chance)
    if kind == "module":
        return chance.choice((_linear, _network))()
    if kind == "optimizer":
        return _optimizer(chance)
    leaves = [_leaf(chance) for _ in range(chance.randint(1, 6))]
    if kind == "shared":
        leaves += [leaves[0], leaves[0]]
    if kind == "list":
        return chance.choice((list, tuple))(leaves)
    named = {f"layer.{place}": leaf for place, leaf in enumerate(leaves)}
    if chance.random() < 0.5:
        named["in"] = {"again": leaves[0], "own": _leaf(chance)}
    return chance.choice((dict, OrderedDict))(named)


def _linear() -> Any:
    return torch.nn.Linear(2, 3)


def _network() -> Any:
    return torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.BatchNorm1d(2))


def _optimizer(chance: random.Random) -> Any:
    model = _network()
    how = chance.choice((torch.optim.Adam, torch.optim.SGD, torch.optim.AdamW, torch.optim.Adagrad))
    optimizer = how(model.parameters(), lr=0.1)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    return {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": chance.randint(0, 9)}


def _leaf(chance: random.Random) -> Any:
    return chance.choices([make for make, _ in _LEAVES], [share for _, share in _LEAVES])[0](chance)


def _tensor(chance: random.Random) -> Any:
    shape = [chance.randint(0, 4) for _ in range(chance.randint(0, 3))]
    return torch.zeros(shape, dtype=chance.choice(DTYPES))


def _view(chance: random.Random) -> Any:
    base = torch.arange(24.0).reshape(4, 6)
    return chance.choice(
        (
            base.t(),
            base[1:3],
            base[:, ::2],
            base[0].expand(3, 6),
            base.flatten()[5:],
            base[2, 3],
            base.view(torch.int32),
        )
    )


def _quantized(chance: random.Random) -> Any:
    if chance.random() < 0.5:
        return torch.quantize_per_tensor(
            torch.randn(2, 3), 0.1, 3, chance.choice((torch.qint8, torch.quint8, torch.qint32))
        )
    return torch.quantize_per_channel(
        torch.randn(2, 3), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.qint8
    )


def _sparse(chance: random.Random) -> Any:
    return chance.choice((torch.Tensor.to_sparse, torch.Tensor.to_sparse_csr, torch.Tensor.to_sparse_csc))(
        torch.eye(3)
    )


def _nested(chance: random.Random) -> Any:
    layout = chance.choice((torch.strided, torch.jagged))
    return torch.nested.nested_tensor([torch.zeros(2, 3), torch.zeros(1, 3)], layout=layout)


_LEAVES: list[tuple[Callable[[random.Random], Any], int]] = [
    (_tensor, 45),
    (_view, 14),
    (lambda chance: torch.nn.Parameter(torch.randn(chance.randint(0, 3), 2)), 10),
    (_quantized, 5),
    (_sparse, 5),
    (_nested, 3),
    (lambda chance: torch.zeros(chance.randint(1, 3), device="meta"), 3),
    (lambda chance: TwoTensor(torch.zeros(2), torch.ones(2)), 1),
    (lambda chance: torch.Generator(), 1),
    (lambda chance: torch.zeros(4).untyped_storage(), 1),
    (lambda chance: torch.zeros(4).storage(), 1),
    (lambda chance: torch.device(chance.choice(("cpu", "cuda:0", "meta"))), 2),
    (lambda chance: chance.choice((torch.float32, torch.Size([2]), {1, 2}, 1j, b"ab", bytearray(b"a"))), 2),
    (
        lambda chance: chance.choice(
            (7, -1, 1 << 40, 0.5, "cpu", None, True, [1, 2], {"a": 1}, Counter("ab"))
        ),
        8,
    ),
    (
        lambda chance: (
            torch.randn(2).conj() if chance.random() < 0.2 else torch.randn(2, dtype=torch.complex64).conj()
        ),
        2,
    ),
]


# --- instructions -------------------------------------------------------------------------------------------


class Step(NamedTuple):
    name: str
    arg: Any
    raw: bytes


def steps_of(data: bytes) -> list[Step]:
    """Take a pickle apart; what is broken already stays one piece at the end."""
    found: list[tuple[str, Any, int]] = []
    with contextlib.suppress(Exception):
        found.extend((code.name, arg, at) for code, arg, at in pickletools.genops(data))
    ends = [at for *_, at in found[1:]]
    last = len(data)
    if found and found[-1][0] == "STOP":
        last = found[-1][2] + 1
    return [Step(name, arg, data[at:end]) for (name, arg, at), end in zip(found, [*ends, last], strict=False)]


_SIZES = (0, 1, 2, 3, 5, -1, -7, 255, 1 << 20, 1 << 31, 1 << 40, 1 << 62, 1 << 63)
_VALUES = (
    *map(number, _SIZES),
    *(NONE, op("NEWTRUE"), op("NEWFALSE"), floating(2.0), text("cpu"), tuple_(), list_(), op("EMPTY_DICT")),
    *(tuple_(number(2)), tuple_(number(1), number(2)), call("collections.OrderedDict")),
)


def _values(chance: random.Random) -> bytes:
    return chance.choice(_VALUES)


def _number(chance: random.Random, step: Step) -> bytes:
    nearby = [number(step.arg + by) for by in (1, -1, 3)] + [number(-step.arg), number(step.arg * 2)]
    return chance.choice((chance.choice(nearby), _values(chance)))


def _text(chance: random.Random, step: Step) -> bytes:
    texts = (chance.choice(TAGS), f"{step.arg}x", "storage", "0", "1")
    return chance.choice((*map(text, texts), _values(chance)))


def _old_text(chance: random.Random, step: Step) -> bytes:
    data = str(step.arg).encode("utf-8", "replace")[:255]
    return op("SHORT_BINSTRING", bytes([len(data)]) + data)


def _global(chance: random.Random, _step: Step) -> bytes:
    return op("GLOBAL", chance.choice(NAMES).replace(" ", "\n").encode() + b"\n")


def _slot(chance: random.Random, step: Step) -> bytes:
    return step.raw[:1] + bytes([chance.choice((0, 1, 2, 5, 200, step.raw[1] ^ 1))]) + step.raw[2:]


_DEEDS = ["REDUCE", "BUILD", "SETITEM", "SETITEMS", "APPEND", "APPENDS", "BINPERSID", "NEWOBJ"]
_NUMBERS = frozenset({"BININT", "BININT1", "BININT2", "LONG1"})
_TEXTS = frozenset({"BINUNICODE", "SHORT_BINUNICODE"})
_EDITS: dict[str, tuple[frozenset[str], Callable[[random.Random, Step], bytes]]] = {
    "number": (_NUMBERS, _number),
    "text": (_TEXTS, _text),
    "old text": (_TEXTS, _old_text),
    "name": (frozenset({"GLOBAL"}), _global),
    "slot": (frozenset({"BINGET", "BINPUT"}), _slot),
    "protocol": (
        frozenset({"PROTO"}),
        lambda chance, _: op("PROTO", bytes([chance.choice((0, 1, 3, 4, 5, 6, 7, 255))])),
    ),
    "constant": (
        frozenset({"NEWTRUE", "NEWFALSE", "NONE", "EMPTY_TUPLE", "EMPTY_DICT"}),
        lambda chance, _: _values(chance),
    ),
    "tuple": (
        frozenset({"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}),
        lambda chance, _: op(chance.choice(("TUPLE1", "TUPLE2", "TUPLE3", "TUPLE", "LIST"))),
    ),
    "deed": (frozenset(_DEEDS), lambda chance, _: op(chance.choice((*_DEEDS, "POP")))),
}
_ANY = (
    *map(op, ["DUP", "POP", "EMPTY_SET", "EMPTY_DICT", "POP_MARK", "MEMOIZE", "REDUCE", "BUILD", "TUPLE1"]),
    *(MARK, NONE, b"\xff", b"\0", b"I1\n", b"L1L\n"),
    *(op("SHORT_BINBYTES", b"\1a"), op("FRAME", b"\x04" + bytes(7))),
)


def spoil_pickle(chance: random.Random, data: bytes) -> tuple[str, bytes]:
    steps = steps_of(data)
    behind = data[sum(len(step.raw) for step in steps) :]
    what = chance.choice(
        (*_EDITS, *_EDITS, "number", "number", "number", "drop", "double", "swap", "insert", "cut", "byte")
    )
    if len(steps) < 4 or what in {"cut", "byte"}:
        return _spoil_bytes(chance, data, what)
    if what in _EDITS:
        names, edit = _EDITS[what]
        places = [place for place, step in enumerate(steps) if step.name in names]
        if not places:
            return _spoil_bytes(chance, data, "byte")
        place = chance.choice(places)
        raw = edit(chance, steps[place])
        title = f"{what} {steps[place].name} {str(steps[place].arg)[:30]!r} as {raw[:24]!r}"
        steps[place] = Step("", None, raw)
    else:
        place = chance.randrange(1, len(steps) - 2)
        here, there = steps[place], steps[place + 1]
        new = {
            "drop": [],
            "double": [here, here],
            "swap": [there, here],
            "insert": [Step("", None, chance.choice(_ANY)), here],
        }
        steps[place : place + 1 + (what == "swap")] = new[what]
        title = f"{what} at {here.name}, {there.name}" + (
            f" {new[what][0].raw!r}" if what == "insert" else ""
        )
    return title, b"".join(step.raw for step in steps) + behind


def _spoil_bytes(chance: random.Random, data: bytes, what: str) -> tuple[str, bytes]:
    if not data:
        return "nothing", data
    place = chance.randrange(len(data))
    if what == "cut":
        return f"cut at {place}", data[:place]
    value = chance.randrange(256)
    return f"byte {place} is {value:#x}", data[:place] + bytes([value]) + data[place + 1 :]


# --- zips ---------------------------------------------------------------------------------------------------


def spoil_zip(chance: random.Random, data: bytes) -> tuple[str, bytes]:
    """Change the pickle in a zip mostly, else one of its records, or the bytes of the file."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            records = [Record(name=one, data=archive.read(one)) for one in archive.namelist()]
    except Exception:  # noqa: BLE001 - spoiled before
        return _spoil_bytes(chance, data, "byte")
    if not records:
        return _spoil_bytes(chance, data, "byte")
    where = chance.choices(("pickle", "record", "file"), (74, 20, 6))[0]
    if where == "file":
        return _spoil_bytes(chance, data, chance.choice(("cut", "byte")))
    place = next((at for at, one in enumerate(records) if str(one.name).endswith("data.pkl")), 0)
    if where == "pickle":
        title, changed = spoil_pickle(chance, records[place].data)
        records[place] = Record(name=records[place].name, data=changed)
        return title, zips.build_zip(*records)
    place = chance.randrange(len(records))
    what = chance.choice(tuple(_RECORDS))
    title = f"{what} {str(records[place].name).partition('/')[2]}"
    records[place : place + 1] = _RECORDS[what](chance, records[place])
    if not records:
        return _spoil_bytes(chance, data, "byte")
    return title, zips.build_zip(*records)


_RECORDS: dict[str, Callable[[random.Random, Record], list[Record]]] = {
    "no": lambda _chance, _one: [],
    "shorter": lambda chance, one: [
        Record(name=one.name, data=one.data[: chance.randrange(len(one.data) + 1)])
    ],
    "longer": lambda chance, one: [Record(name=one.name, data=one.data + bytes(chance.choice((1, 4, 64))))],
    "deflated": lambda _chance, one: [Record(name=one.name, data=one.data, method=8)],
    "renamed": lambda chance, one: [Record(name=f"{one.name}{chance.choice('x0/')}", data=one.data)],
    "upper": lambda _chance, one: [Record(name=str(one.name).upper(), data=one.data)],
    "elsewhere": lambda _chance, one: [Record(name=f"else/{str(one.name).partition('/')[2]}", data=one.data)],
    "twice": lambda _chance, one: [one, Record(name=one.name, data=one.data)],
    "wrong sum": lambda _chance, one: [Record(name=one.name, data=one.data, crc=7)],
    "other": lambda chance, one: [
        Record(name=one.name, data=chance.choice((b"3\n", b"big", b"little", b"11", b"", b"x", b"64")))
    ],
}


# --- legacy files -------------------------------------------------------------------------------------------


def spoil_legacy(chance: random.Random, data: bytes) -> tuple[str, bytes]:
    """Change one of the five pickles, the object's mostly, or a size, or the bytes behind."""
    parts, at = [], 0
    for _ in range(5):
        length = sum(len(step.raw) for step in steps_of(data[at:]))
        parts.append(data[at : at + length])
        at += length
    rest = data[at:]
    where = chance.choices(("object", "head", "keys", "storages"), (76, 6, 8, 10))[0]
    if where == "storages" and len(rest) >= 8:
        what = chance.choice(("cut", "numel", "more", "byte"))
        if what == "numel":
            changed = struct.pack("<q", chance.choice((0, 1, 7, -1, 1 << 40, 1 << 62))) + rest[8:]
        else:
            changed = rest + b"more" if what == "more" else _spoil_bytes(chance, rest, what)[1]
        return f"storages {what}", b"".join(parts) + changed
    number_of = {"object": 3, "keys": 4}.get(where, chance.randrange(3))
    title, parts[number_of] = spoil_pickle(chance, parts[number_of])
    return f"{where} {title}", b"".join(parts) + rest


_SPOILERS = {"zip": spoil_zip, "legacy": spoil_legacy, "pickle": spoil_pickle}
