"""Checkpoints by the hundred, the same in every run: honest parts mixed, in most of them one thing spoiled.

Each is known by what was spoiled, so that a disagreement with torch names its reason.
"""

from __future__ import annotations

import random
import struct
from collections.abc import Callable

from tests.builders import zips
from tests.builders.legacy import checkpoint as legacy
from tests.builders.pickles import (
    MARK,
    NONE,
    call,
    dict_,
    legacy_storage,
    list_,
    name,
    number,
    op,
    proto,
    storage,
    stream,
    tensor,
    text,
    tuple_,
)
from tests.builders.zips import Record

SEED = 20261101
COUNT = 360
OD = call("collections.OrderedDict")
KINDS = {"Float": 4, "Double": 8, "Half": 2, "Long": 8, "Int": 4, "Short": 2, "Char": 1, "Byte": 1, "Bool": 1}

HONEST: tuple[bytes, ...] = (
    number(7),
    number(70_000),
    number(1 << 40),
    number(-3),
    text("words"),
    text("\u00e9\u20ac"),
    NONE,
    op("NEWTRUE"),
    op("BINFLOAT", bytes(8)),
    op("EMPTY_SET"),
    tuple_(number(1), text("a")),
    list_(number(1), NONE),
    dict_((number(1), text("x")), (tuple_(number(1)), NONE)),
    OD + text("k") + number(1) + op("SETITEM"),
    call("collections.Counter", dict_((text("a"), number(2)))),
    call("__builtin__.set", list_(number(1))),
    call("__builtin__.complex", op("BINFLOAT", bytes(8)), op("BINFLOAT", bytes(8))),
    call("__builtin__.bytearray", call("_codecs.encode", text("ab"), text("latin1"))),
    call("_codecs.encode", text("ab"), text("latin1")),
    call("torch.Size", list_(number(2))),
    call("torch.device", text("cpu")),
    name("torch.float32"),
    name("torch.Tensor"),
    OD + dict_((text("x"), number(1))) + op("BUILD"),
    op("SHORT_BINSTRING", b"\3abc"),
)

OPCODES: dict[str, bytes] = {
    "SHORT_BINUNICODE": op("SHORT_BINUNICODE", b"\1x"),
    "BINUNICODE8": op("BINUNICODE8", struct.pack("<Q", 1) + b"x"),
    "SHORT_BINBYTES": op("SHORT_BINBYTES", b"\1x"),
    "BINBYTES": op("BINBYTES", struct.pack("<I", 1) + b"x"),
    "BYTEARRAY8": op("BYTEARRAY8", struct.pack("<Q", 1) + b"x"),
    "INT": op("INT", b"5\n"),
    "LONG": op("LONG", b"5L\n"),
    "LONG4": op("LONG4", struct.pack("<i", 1) + b"\5"),
    "FLOAT": op("FLOAT", b"1.5\n"),
    "STRING": op("STRING", b"'a'\n"),
    "UNICODE": op("UNICODE", b"a\n"),
    "BINSTRING": op("BINSTRING", struct.pack("<i", 1) + b"x"),
    "POP": number(1) + op("POP") + NONE,
    "DUP": number(1) + op("DUP") + op("TUPLE2"),
    "MEMOIZE": list_() + op("MEMOIZE"),
    "PUT": list_() + op("PUT", b"77\n"),
    "FRAME": op("FRAME", struct.pack("<Q", 1)) + NONE,
    "FROZENSET": MARK + op("FROZENSET"),
    "ADDITEMS": op("EMPTY_SET") + MARK + number(1) + op("ADDITEMS"),
    "LIST": MARK + number(1) + op("LIST"),
    "DICT": MARK + number(1) + NONE + op("DICT"),
    "STACK_GLOBAL": text("torch") + text("float32") + op("STACK_GLOBAL"),
    "NEWOBJ_EX": name("collections.OrderedDict") + tuple_() + dict_() + op("NEWOBJ_EX"),
    "INST": MARK + op("INST", b"collections\nOrderedDict\n"),
    "OBJ": MARK + name("collections.OrderedDict") + op("OBJ"),
}
GLOBALS: dict[str, bytes] = {
    dotted: name(dotted)
    for dotted in (
        *("argparse.Namespace", "mine.Config", "datetime.timedelta", "pathlib.PosixPath", "numpy.dtype"),
        *("builtins.slice", "collections.defaultdict", "torch.nn.modules.linear.Linear", "torch.Generator"),
        *(
            "posix.system",
            "os.getcwd",
            "sys.exit",
            "builtins.eval",
            "__builtin__.getattr",
            "subprocess.Popen",
        ),
        *("torch.load", "torch.hub.load", "functools.partial", "types.FunctionType", "_io.FileIO"),
    )
}
OBJECTS: dict[str, bytes] = {
    "object made": call("mine.Config", number(1)),
    "object made anew": name("mine.Config") + tuple_() + op("NEWOBJ"),
    "object with state": call("mine.Config") + dict_((text("a"), number(1))) + op("BUILD"),
    "object appended to": call("mine.List") + number(1) + op("APPEND"),
    "object with items": call("mine.Dict") + text("k") + number(1) + op("SETITEM"),
    "two classes": list_(call("mine.A"), call("mine.B")),
}
MISUSES: dict[str, bytes] = {
    "append to a dictionary": OD + number(1) + op("APPEND"),
    "append to a tuple": tuple_() + number(1) + op("APPEND"),
    "item of a list": list_() + text("k") + number(1) + op("SETITEM"),
    "item of a set": call("__builtin__.set") + text("k") + number(1) + op("SETITEM"),
    "state of a set": call("__builtin__.set") + dict_((text("a"), NONE)) + op("BUILD"),
    "empty state of a set": call("__builtin__.set") + dict_() + op("BUILD"),
    "state of a list": list_() + dict_() + op("BUILD"),
    "state of a name": name("torch.float32") + dict_() + op("BUILD"),
    "call of a text": text("x") + tuple_() + op("REDUCE"),
    "call of a result": OD + tuple_() + op("REDUCE"),
    "call of a type": call("torch.float32"),
    "call of a storage class": call("torch.FloatStorage"),
    "function made anew": name("_codecs.encode") + tuple_(text("a")) + op("NEWOBJ"),
    "class made anew": name("collections.OrderedDict") + tuple_() + op("NEWOBJ"),
    "odd dictionary": op("EMPTY_DICT") + MARK + number(1) + op("SETITEMS"),
    "list as key": dict_((list_(), NONE)),
    "dictionary as key": dict_((tuple_(dict_()), NONE)),
    "wrong argument of OrderedDict": call("collections.OrderedDict", number(5)),
    "wrong argument of set": call("__builtin__.set", number(5)),
    "wrong argument of Size": call("torch.Size", text("a")),
    "wrong argument of device": call("torch.device", text("nonsense")),
    "wrong argument of complex": call("__builtin__.complex", list_()),
    "arguments that are a list": name("collections.OrderedDict") + list_() + op("REDUCE"),
    "persistent id of a text": text("x") + op("BINPERSID"),
    "persistent id of a module": tuple_(text("module"), number(1)) + op("BINPERSID"),
    "persistent id of nothing": tuple_() + op("BINPERSID"),
    "persistent id without a class": tuple_(text("storage"), NONE, text("0"), text("cpu"), number(2))
    + op("BINPERSID"),
    "memo slot that is empty": op("BINGET", b"\xfe"),
    "stack that is empty": op("TUPLE3") + op("REDUCE") + op("BUILD") * 9,
    "mark that is missing": op("TUPLE") * 9,
    "a byte that is no opcode": b"\xff",
    "text that is no text": op("BINUNICODE", struct.pack("<I", 1) + b"\xff"),
    "old text that is no text": op("SHORT_BINSTRING", b"\1\xff"),
    "name that is no text": op("GLOBAL", b"a\xff\nb\n"),
}


def _view(**lies: bytes) -> bytes:
    given = {"offset": number(0), "size": tuple_(number(2)), "stride": tuple_(number(1)), **lies}
    return call("torch._utils._rebuild_tensor_v2", storage("s"), *given.values(), op("NEWFALSE"), OD)


TENSORS: dict[str, bytes] = {
    "tensor past its storage": _view(size=tuple_(number(3))),
    "tensor with an offset past its storage": _view(offset=number(1)),
    "tensor of a negative size": _view(size=tuple_(number(-1))),
    "tensor of a negative stride": _view(stride=tuple_(number(-1))),
    "tensor of a negative offset": _view(offset=number(-1)),
    "tensor of two sizes and one stride": _view(size=tuple_(number(1), number(2))),
    "tensor of a size that overflows": _view(size=tuple_(number(1 << 62)), stride=tuple_(number(4))),
    "tensor of a size that is a float": _view(size=tuple_(op("BINFLOAT", bytes(8)))),
    "tensor of a step of zero": _view(size=tuple_(number(1 << 40)), stride=tuple_(number(0))),
    "tensor of no elements": _view(size=tuple_(number(0)), offset=number(2)),
    "tensor without arguments": call("torch._utils._rebuild_tensor_v2"),
    "tensor of a text": call("torch._utils._rebuild_tensor_v2", text("x"), *[number(0)] * 5),
}
RECORDS: dict[str, Callable[[list[Record]], list[Record]]] = {
    "record missing": lambda rows: [row for row in rows if not row.name.endswith("data/s")],
    "record too short": lambda rows: _changed(rows, bytes(4)),
    "record too long": lambda rows: _changed(rows, bytes(99)),
    "no version": lambda rows: [row for row in rows if not row.name.endswith("version")],
    "version 99": lambda rows: (
        [row for row in rows if not row.name.endswith("version")] + [_fact("version", b"99\n")]
    ),
    "version 0": lambda rows: (
        [row for row in rows if not row.name.endswith("version")] + [_fact("version", b"0\n")]
    ),
    "byteorder nonsense": lambda rows: [*rows, _fact("byteorder", b"middle")],
    "byteorder big": lambda rows: [*rows, _fact("byteorder", b"big")],
    "another folder": lambda rows: [*rows, Record(name="other/x", data=b"")],
    "two data.pkl": lambda rows: [*rows, rows[0]],
    "DATA.PKL": lambda rows: [*rows, Record(name="archive/DATA.PKL", data=rows[0].data)],
}


def _fact(title: str, data: bytes) -> Record:
    return Record(name=f"archive/{title}", data=data)


def _changed(rows: list[Record], data: bytes) -> list[Record]:
    return [Record(name=row.name, data=data) if row.name.endswith("data/s") else row for row in rows]


SPOILED: dict[str, bytes] = {**OPCODES, **GLOBALS, **OBJECTS, **MISUSES, **TENSORS}


def generated() -> dict[str, bytes]:
    """All files, by a name that says what is spoiled in each."""
    chance = random.Random(SEED)
    plans = ["", *SPOILED, *RECORDS] * (COUNT // (1 + len(SPOILED) + len(RECORDS)) + 1)
    return {f"{at:03}-{plan or 'honest'}": _file(chance, plan) for at, plan in enumerate(plans[:COUNT])}


def _file(chance: random.Random, plan: str) -> bytes:
    is_legacy = plan not in RECORDS and plan not in TENSORS and chance.random() < 0.25
    sizes: dict[str, int] = {}
    parts = [_part(chance, sizes, is_legacy=is_legacy) for _ in range(chance.randint(1, 6))]
    parts = [part for part in parts if part]
    if plan in TENSORS or plan in RECORDS:
        sizes["s"] = 8
        parts.append(tensor(storage("s"), 2))
    if plan in SPOILED:
        parts.insert(chance.randint(0, len(parts)), SPOILED[plan])
    body = dict_(*((text(f"k{at}"), part) for at, part in enumerate(parts)))
    data = stream(proto(chance.choice((2, 2, 3))), body)
    if is_legacy:
        return legacy(data, *((key, nbytes // 4, bytes(nbytes)) for key, nbytes in sorted(sizes.items())))
    rows = [Record(name="archive/data.pkl", data=data)]
    rows += [Record(name=f"archive/data/{key}", data=bytes(nbytes)) for key, nbytes in sizes.items()]
    rows.append(_fact("version", b"3\n"))
    return zips.build_zip(*RECORDS.get(plan, list)(rows))


def _part(chance: random.Random, sizes: dict[str, int], *, is_legacy: bool) -> bytes:
    if chance.random() < 0.6:
        return chance.choice(HONEST)
    key = str(len(sizes))
    numel = chance.randint(1, 4)
    if is_legacy:
        sizes[key] = 4 * numel
        return tensor(legacy_storage(key, numel=numel), numel)
    kind = chance.choice(list(KINDS))
    sizes[key] = KINDS[kind] * numel
    return tensor(storage(key, cls=f"torch.{kind}Storage", numel=numel), numel)
