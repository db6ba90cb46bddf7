"""torch's restricted unpickler, rule by rule, against torch itself."""

from __future__ import annotations

import argparse
import collections
import contextlib
import datetime as dt
import enum
import io
import pathlib
import warnings
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from inspector.model.build import open_checkpoint
from inspector.safety.names import default_allow_list
from inspector.safety.verdict import judge, names_to_allow, refusals
from tests.builders.pickles import STOP, dict_, list_, name, number, op, proto, text, tuple_
from tests.sweep import table
from tests.unit.model.making import built, call, pairs, saved

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def test_opcodes_are_torchs() -> None:
    import pickle

    from torch import _weights_only_unpickler as unpickler

    known = {
        name_
        for name_ in vars(unpickler)
        if name_.isupper() and isinstance(getattr(pickle, name_, None), bytes)
    }
    assert known == default_allow_list().opcodes


def archive(folder: Path, stream: bytes) -> Path:
    """A genuine archive with another pickle in it."""
    path = folder / "made.pt"
    buffer = io.BytesIO()
    torch.save({"a": torch.zeros(2)}, buffer)
    with zipfile.ZipFile(buffer) as before, zipfile.ZipFile(path, "w") as after:
        for record in before.namelist():
            data = stream if record.endswith("data.pkl") else before.read(record)
            after.writestr(record, data)
    return path


def accepts(path: Path) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            torch.load(path, weights_only=True)
        except Exception:  # noqa: BLE001 - whatever it is, the answer is no
            return False
    return True


OD = call("collections.OrderedDict")
STREAMS: dict[str, bytes] = {
    "numbers": list_(number(1), number(5000), number(70_000), number(1 << 40), op("BINFLOAT", bytes(8))),
    "dictionaries": pairs(
        a=OD + text("k") + number(1) + op("SETITEM"), b=call("collections.Counter", dict_())
    ),
    "set of a list": call("__builtin__.set", list_(number(1))),
    "complex": call("__builtin__.complex", op("BINFLOAT", bytes(8)), op("BINFLOAT", bytes(8))),
    "bytes": call("_codecs.encode", text("x"), text("latin1")),
    "size and device": list_(call("torch.Size", list_(number(2))), call("torch.device", text("cpu"))),
    "state of an ordered dictionary": built(OD, pairs(x=number(1))),
    "type": list_(name("torch.float32")),
    "short string": op("SHORT_BINSTRING", b"\3abc"),
    "empty set": op("EMPTY_SET"),
    "old name": list_(name("__builtin__.set")),
    "unlisted name": list_(name("argparse.Namespace")),
    "blocked module": list_(name("os.getcwd")),
    "state of a set": built(call("__builtin__.set"), pairs(x=number(1))),
    "state of bytes": built(call("_codecs.encode", text("x"), text("latin1")), pairs(x=number(1))),
    "items of a set": call("__builtin__.set") + text("k") + number(1) + op("SETITEM"),
    "append to an ordered dictionary": OD + number(1) + op("APPEND"),
    "append to a counter": call("collections.Counter") + op("MARK") + number(1) + op("APPENDS"),
    "call of a text": text("x") + op("EMPTY_TUPLE") + op("REDUCE"),
    "call of a result": OD + op("EMPTY_TUPLE") + op("REDUCE"),
    "persistent id that is no tuple": text("x") + op("BINPERSID"),
    "empty persistent id": tuple_() + op("BINPERSID"),
    "foreign persistent id": tuple_(text("module"), number(1)) + op("BINPERSID"),
    "memoized": list_(number(1)) + op("MEMOIZE"),
    "popped": number(1) + number(2) + op("POP"),
    "doubled": list_(number(1)) + op("DUP") + op("TUPLE2"),
    "long integer": op("LONG4", (5).to_bytes(4, "little") + b"12345"),
    "text integer": op("INT", b"5\n"),
    "short text": op("SHORT_BINUNICODE", b"\1x"),
    "bytes of protocol 3": op("SHORT_BINBYTES", b"\1x"),
    "frozen set": op("MARK") + op("FROZENSET"),
}


@table("protocol", [2, 3, 4])
@table("what", STREAMS)
def test_verdict_is_torchs(what: str, protocol: int, tmp_path: Path) -> None:
    path = archive(tmp_path, proto(protocol) + STREAMS[what] + STOP)
    assert judge(open_checkpoint(str(path))).weights_only == accepts(path)


@table("zipped", [True, False])
@table("protocol", range(6))
def test_protocols(protocol: int, zipped: bool, tmp_path: Path) -> None:
    checkpoint = saved(
        tmp_path, {"a": 1, "s": "x"}, pickle_protocol=protocol, _use_new_zipfile_serialization=zipped
    )
    assert judge(checkpoint).weights_only == accepts(tmp_path / "file.pt")


# --- names to allow -----------------------------------------------------------------------------------------


class Plain:
    def __init__(self) -> None:
        self.value = 1


class Slotted:
    __slots__ = ("value",)

    def __init__(self) -> None:
        self.value = 1


class Color(enum.Enum):
    RED = 1


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024 - the plain kind is meant


def objects() -> dict[str, Any]:
    np = pytest.importorskip("numpy")
    return {
        "namespace": argparse.Namespace(a=1),
        "plain": Plain(),
        "slotted": Slotted(),
        "named tuple": Point(1, 2),
        "path": pathlib.PurePosixPath("a/b"),
        "date": dt.timedelta(1),
        "module": torch.nn.Sequential(torch.nn.Linear(2, 2)),
        "array": np.zeros(3, np.float32),
        "numbers": [np.float64(1), np.int8(2), np.zeros(2, bool), np.zeros(2, np.uint16)],
        "words": np.array(["a"]),
        "frozen set": frozenset({1}),
        "range": range(3),
        "generator": torch.Generator(),
        "default dictionary": collections.defaultdict(list, a=[1]),
        "deque": collections.deque([1]),
        "enumeration": Color.RED,
        "nothing": {"a": torch.zeros(2)},
    }


@contextlib.contextmanager
def allowed(names: tuple[str, ...]) -> Iterator[None]:
    """Put just these names on torch's list."""
    import importlib

    found = []
    for dotted in names:
        module, _, attribute = dotted.rpartition(".")
        found.append((getattr(importlib.import_module(module), attribute), dotted))
    with torch.serialization.safe_globals(found):
        yield


@table("what", objects())
def test_names_are_just_those_that_are_missing(what: str, tmp_path: Path) -> None:
    checkpoint = saved(tmp_path, {"value": objects()[what]})
    verdict = judge(checkpoint)
    path = tmp_path / "file.pt"
    assert verdict.weights_only == accepts(path) == (what == "nothing")
    with allowed(names_to_allow(checkpoint, default_allow_list())):
        assert accepts(path) == (
            verdict.verdict in {"weights-only", "needs-allow-list"} or what == "enumeration"
        )
    for left_out in verdict.to_allow:
        with allowed(tuple(other for other in verdict.to_allow if other != left_out)):
            assert not accepts(path), left_out


@pytest.mark.filterwarnings("ignore:Couldn't retrieve source code:UserWarning")
def test_legacy_module_cannot_be_allowed(tmp_path: Path) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2))
    checkpoint = saved(tmp_path, module, _use_new_zipfile_serialization=False)
    with allowed(names_to_allow(checkpoint, default_allow_list())):
        assert not accepts(tmp_path / "file.pt")
    assert judge(checkpoint).verdict == "runs-code"
    assert any("legacy files of modules" in reason for reason in refusals(checkpoint, default_allow_list()))
