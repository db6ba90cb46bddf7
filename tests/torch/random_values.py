"""Random checkpoints of all that pickle knows, shared and recursive, saved as by torch or by Python 2."""

from __future__ import annotations

import collections
import dataclasses
import datetime as dt
import decimal
import enum
import fractions
import math
import pathlib
import pickle
import random
import struct
import uuid
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch


class Color(enum.Enum):
    RED = 1
    DARK = "dark red"


class Level(enum.IntFlag):
    LOW = 1
    HIGH = 2


class Pair(NamedTuple):
    left: Any
    right: Any


@dataclasses.dataclass
class Record:
    name: Any
    inside: Any = None


class Plain:
    """Has attributes and nothing else."""


class Slotted:
    """Its state is a pair: no dictionary, and slots."""

    __slots__ = ("one", "two")


class Both(Slotted):
    """Its state is a pair of a dictionary and slots."""


class Keyed:
    """Made by `__newobj_ex__`."""

    def __new__(cls, *args: Any, size: Any) -> Any:
        self = super().__new__(cls)
        self.size, self.args = size, args
        return self

    def __getnewargs_ex__(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        return self.args, {"size": self.size}


class Reduced:
    """Made by a call, then filled with items, pairs and state."""

    def __init__(self, first: Any) -> None:
        self.first, self.items, self.pairs, self.state = first, [], [], None

    def append(self, item: Any) -> None:
        self.items.append(item)

    def extend(self, items: Any) -> None:
        self.items.extend(items)

    def __setitem__(self, key: Any, value: Any) -> None:
        self.pairs.append((key, value))

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __reduce__(self) -> Any:
        return Reduced, (self.first,), self.state, iter(self.items), iter(self.pairs)


class MyList(list[Any]):
    """A list with attributes."""


class MyDict(dict[Any, Any]):
    """A dictionary with attributes."""


class MyInt(int):
    """A number with attributes."""


class Outer:
    """Holds a class that protocol 2 has no name for."""

    class Inner:
        """Named by a path of two steps."""


class Old(bytes):
    """A byte string, to be written as Python 2 wrote a `str`."""


TEXTS = [
    "",
    "a",
    "weight",
    "layer.0.bias",
    "ключ",
    "a/b~",
    "\U0001f40d",
    "line\nline",
    "back\\slash",
    "\ud800",
    "x" * 300,
]
FLOATS = [0.0, -0.0, 1.5, math.inf, -math.inf, 5e-324, 1e308, math.nan]
ODD_NAN = struct.unpack(">d", bytes.fromhex("fff80000deadbeef"))[0]
INTS = [0, 1, -1, 255, 256, 65535, 65536, 2**31 - 1, -(2**31), 2**31, -(2**63), 2**63, 2**2040, 10**50]
INTS.append(-(2**3000))
RAW = [b"", b"plain", b"caf\xe9", bytes(range(256)), b"\xff" * 300, "ключ".encode(), b'it\'s "quoted"\n\\x41']
_DTYPES = "float32 float64 float16 bfloat16 int64 int32 int16 int8 uint8 bool complex64 complex128"
DTYPES = [getattr(torch, name) for name in _DTYPES.split()]


class Maker:
    """Makes one checkpoint.

    Attributes:
        rng: Decides.
        old: Whether byte strings of Python 2 are among the texts.
        protocol: What it is saved in: 0 cannot refer to tensors, and slots need 2.
        legacy: Whether it is saved as a legacy file, which cannot hold all.
    """

    def __init__(self, seed: int, *, old: bool = False, protocol: int = 2, legacy: bool = False) -> None:
        self.rng = random.Random(seed)
        self.old = old
        self.protocol = protocol
        self.legacy = legacy
        self.made: list[Any] = []
        self.storages: list[torch.Tensor] = []

    def checkpoint(self) -> dict[Any, Any]:
        model = collections.OrderedDict(
            (self.text_key(), self.tensor() if self.protocol else 1) for _ in range(self.rng.randint(1, 4))
        )
        if self.old:
            model = dict(model)
        value: dict[Any, Any] = {"model": model, "dropped": [self.value(2), self.value(1)]}
        for number in range(self.rng.randint(2, 6)):
            value[self.key(number)] = self.value(4)
        return value

    def text_key(self) -> Any:
        key = self.rng.choice(TEXTS[1:6]) + str(self.rng.randint(0, 99))
        return Old(key.encode()) if self.old and self.rng.random() < 0.7 else key

    def key(self, number: int) -> Any:
        return self.rng.choice(
            [
                number,
                f"k{number}",
                (number, "t"),
                self.text_key(),
                10.5 + number,
                b"b%d" % number,
                frozenset([number]),
            ]
        )

    def value(self, depth: int) -> Any:
        """Return a new value, or one that there is already."""
        if self.made and self.rng.random() < 0.25:
            return self.rng.choice(self.made)
        makers = _LEAVES if depth <= 0 or self.rng.random() < 0.35 else _NESTED
        if self.protocol and self.rng.random() < 0.2:
            value = self.any_tensor()
        else:
            value = self.rng.choice(makers)(self, depth - 1)
        if len(self.made) < 200:
            self.made.append(value)
        return value

    def values(self, depth: int, most: int = 4) -> list[Any]:
        return [self.value(depth) for _ in range(self.rng.randint(0, most))]

    # --- tensors --------------------------------------------------------------------------------------------

    def base(self) -> torch.Tensor:
        if self.storages and self.rng.random() < 0.4:
            return self.rng.choice(self.storages)
        dtype = self.rng.choice(DTYPES)
        count = self.rng.randint(1, 24)
        raw = bytes(
            self.rng.randrange(2 if dtype == torch.bool else 256) for _ in range(count * dtype.itemsize)
        )
        made = torch.frombuffer(bytearray(raw), dtype=dtype).clone()
        self.storages.append(made)
        return made

    def tensor(self) -> torch.Tensor:
        base = self.base()
        count = base.numel()
        start = self.rng.randrange(count)
        step = self.rng.choice([1, 1, 2, 3])
        made = base[start::step]
        if made.numel() % 2 == 0 and self.rng.random() < 0.5:
            made = made.reshape(2, -1).t() if step == 1 else made.reshape(2, -1)
        return self.rng.choice([base, made, made[:0], made.unsqueeze(0), base[start]])

    def any_tensor(self) -> Any:
        """Return a tensor or storage of any kind; most are plain."""
        return self.rng.choice(_TENSORS)(self)

    def parameter(self) -> Any:
        data = self.tensor().detach().clone().float()
        made = torch.nn.Parameter(data, requires_grad=self.rng.random() < 0.5)
        if self.rng.random() < 0.5:
            made.mark = self.values(0, 2)  # type: ignore[attr-defined]
        return made

    def zip_only(self) -> Any:
        """Return what legacy files cannot hold."""
        if self.legacy:
            return self.tensor()
        return self.rng.choice([self.tensor().untyped_storage(), torch.empty(2, 3, device="meta")])

    # --- what holds others ----------------------------------------------------------------------------------

    def recursive_list(self, depth: int) -> Any:
        made: list[Any] = self.values(depth)
        made.append(self.rng.choice([made, (made,), (made, 1, 2, 3), {"me": made}]))
        return made

    def recursive_object(self, depth: int) -> Any:
        made = self.rng.choice([Plain, Record, Both if self.protocol > 1 else Plain, MyList, MyDict])
        found = made("x") if made is Record else made()
        found.me = self.rng.choice([found, [found], (found, (found,))])
        found.more = self.value(depth)
        return found

    def plain(self, depth: int) -> Any:
        made = Plain()
        for name in ("a", "b", "c")[: self.rng.randint(0, 3)]:
            setattr(made, name, self.value(depth))
        return made

    def slotted(self, depth: int) -> Any:
        if self.protocol < 2:
            return self.plain(depth)
        made = self.rng.choice([Slotted, Both])()
        made.one = self.value(depth)
        if isinstance(made, Both):
            made.extra = self.value(depth)
        return made

    def reduced(self, depth: int) -> Any:
        made = Reduced(self.value(depth))
        made.items, made.state = self.values(depth), self.rng.choice([None, {"s": 1}, (None, {"x": 2}), [1]])
        made.pairs = [(key, self.value(depth)) for key in ("a", "a", 3)[: self.rng.randint(0, 3)]]
        return made

    def derived(self, depth: int) -> Any:
        made: Any = self.rng.choice([MyList(self.values(depth)), MyDict({"k": self.value(depth)}), MyInt(7)])
        made.note = self.value(depth)
        return made

    def array(self, depth: int) -> Any:
        return self.rng.choice(
            [
                _objects(self.values(depth, 2)),
                np.arange(6, dtype=self.rng.choice(["<i4", ">i4", "<f8", "u1"])).reshape(2, 3),
                np.asfortranarray(np.arange(6.0).reshape(2, 3)),
                np.array([(1, 2.5)], dtype=[("a", "i4"), ("b", "f8")]),
                np.array(["ab", "c"]),
                np.array(["2020-01-01"], dtype="M8[D]"),
                np.zeros((0, 3), dtype=bool),
            ]
        )


def _objects(values: list[Any]) -> Any:
    made = np.empty(len(values), dtype=object)
    for number, value in enumerate(values):
        made[number] = value  # NumPy would look into them if it was given them all
    return made


def _mapping(maker: Maker, depth: int) -> dict[Any, Any]:
    return {maker.key(number): maker.value(depth) for number in range(maker.rng.randint(0, 4))}


def _text(maker: Maker, _depth: int) -> Any:
    if maker.old and maker.rng.random() < 0.6:
        return Old(maker.rng.choice(RAW))
    return maker.rng.choice(TEXTS)


def _ordered(maker: Maker, depth: int) -> Any:
    made = collections.OrderedDict(_mapping(maker, depth))
    if maker.rng.random() < 0.3:
        made._metadata = {"version": 2}  # type: ignore[attr-defined]
    return made


def _default(maker: Maker, depth: int) -> Any:
    return collections.defaultdict(maker.rng.choice([list, None, Plain]), _mapping(maker, depth))


Make = Callable[[Maker, int], Any]
_LEAVES: list[Make] = [
    _text,
    _text,
    lambda maker, _: maker.rng.choice([None, True, False, ..., NotImplemented, type(None)]),
    lambda maker, _: maker.rng.choice(INTS),
    lambda maker, _: maker.rng.choice([*FLOATS, ODD_NAN]),
    lambda maker, _: maker.rng.choice(RAW),
    lambda maker, _: bytearray(maker.rng.choice(RAW)),
    lambda maker, _: complex(maker.rng.choice(FLOATS), maker.rng.choice(FLOATS)),
    lambda maker, _: maker.rng.choice(
        [range(3), range(5, -5, -2), decimal.Decimal("1.50"), fractions.Fraction(2, 6)]
    ),
    lambda maker, _: maker.rng.choice(
        [uuid.UUID(int=5), pathlib.PurePosixPath("a/b"), Color.RED, Color.DARK]
    ),
    lambda maker, _: maker.rng.choice([Level.LOW | Level.HIGH, Outer.Inner, Outer.Inner(), len, int, Plain]),
    lambda maker, _: maker.rng.choice(
        [
            dt.datetime(2020, 1, 2, 3, 4, 5, 6, tzinfo=dt.timezone.utc),  # noqa: UP017
            dt.date(1999, 12, 31),
            dt.timedelta(days=-1, microseconds=7),
        ]
    ),
    lambda maker, _: maker.rng.choice(
        [np.float32(1.5), np.int64(-3), np.bool_(True), np.dtype(">i2"), np.str_("s")]
    ),
    lambda maker, _: maker.rng.choice(
        [torch.float16, torch.device("cpu"), torch.device("meta"), torch.Size([2, 3]), torch.strided]
    ),
    lambda maker, _: {maker.rng.choice(INTS), maker.rng.choice(TEXTS), 2.5},
    lambda maker, _: frozenset([maker.rng.choice(INTS), (1, "x"), frozenset()]),
    lambda maker, _: set(),
    lambda maker, depth: maker.array(depth),
]
_NESTED: list[Make] = [
    lambda maker, depth: maker.values(depth),
    lambda maker, depth: maker.values(depth),
    lambda maker, depth: tuple(maker.values(depth)),
    lambda maker, depth: tuple(maker.values(depth, 7)),
    _mapping,
    _mapping,
    _ordered,
    _default,
    lambda maker, depth: collections.deque(maker.values(depth), maker.rng.choice([None, 10])),
    lambda maker, _: collections.Counter("abca"),
    lambda maker, depth: Pair(maker.value(depth), maker.value(depth)),
    lambda maker, depth: Record(maker.value(depth), maker.value(depth)),
    lambda maker, depth: Keyed(maker.value(depth), size=maker.value(depth)),
    lambda maker, depth: SimpleNamespace(a=maker.value(depth)),
    lambda maker, depth: slice(maker.value(depth), 2, None),
    lambda maker, depth: maker.plain(depth),
    lambda maker, depth: maker.slotted(depth),
    lambda maker, depth: maker.reduced(depth),
    lambda maker, depth: maker.derived(depth),
    lambda maker, depth: maker.recursive_list(depth),
    lambda maker, depth: maker.recursive_object(depth),
]


_TENSORS: list[Callable[[Maker], Any]] = [
    Maker.tensor,
    Maker.tensor,
    Maker.tensor,
    Maker.tensor,
    Maker.parameter,
    Maker.parameter,
    Maker.zip_only,
    lambda _: torch.eye(3).to_sparse(),
    lambda _: torch.eye(2).to_sparse_csr(),
    lambda maker: torch.quantize_per_tensor(torch.arange(4.0), 0.1 * maker.rng.randint(1, 5), 3, torch.qint8),
    lambda _: torch.quantize_per_channel(
        torch.ones(2, 2), torch.tensor([0.1, 0.2]), torch.tensor([0, 1]), 0, torch.quint8
    ),
    lambda _: torch.tensor([1.0 + 2j]).conj(),
    lambda maker: maker.tensor().detach().clone().float().requires_grad_(),
]


# --- Python 2 -----------------------------------------------------------------------------------------------


class OldPickler(pickle._Pickler):  # type: ignore[name-defined,misc]
    """Writes texts as Python 2 wrote a `str`: as bytes, in any of its three spellings."""

    def save_old(self, value: Old) -> None:
        raw = bytes(value)
        if len(raw) % 3 == 0:
            text = repr(raw)[1:].encode()
            self.write(b"S" + text + b"\n")
        elif len(raw) < 256:
            self.write(b"U" + bytes([len(raw)]) + raw)
        else:
            self.write(b"T" + struct.pack("<i", len(raw)) + raw)
        self.memoize(value)

    def save_text(self, value: str) -> None:
        """Write the texts of torch itself (tags, keys, attributes) as a Python 2 did."""
        if value.isascii():
            self.write(
                b"U" + bytes([len(value)]) + value.encode()
                if len(value) < 256
                else b"S" + repr(value).encode() + b"\n"
            )
            self.memoize(value)
        else:
            self.save_str(value)

    dispatch: ClassVar[dict[type, Any]] = {
        **pickle._Pickler.dispatch,  # type: ignore[attr-defined]
        Old: save_old,
        str: save_text,
    }


def _dump_old(value: Any, file: Any, protocol: int = 2) -> None:
    OldPickler(file, protocol).dump(value)


OLD_PICKLE = SimpleNamespace(__name__="old", Pickler=OldPickler, dump=_dump_old)
"""What `torch.save` takes as its `pickle_module`."""
