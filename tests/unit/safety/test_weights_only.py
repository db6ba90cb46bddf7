"""What torch's restricted unpickler minds, and its opcodes, against torch itself."""

from __future__ import annotations

import inspect
import re

import pytest

from inspector.model.checkpoint import Checkpoint, GlobalUse, Safety
from inspector.model.uses import PERSISTENT_ID
from inspector.records import replace
from inspector.safety.weights_only import OPCODES, names_to_allow, refusals
from tests.unit.report.rows import BLANK


def made(
    *uses: tuple[str, str], opcodes: tuple[str, ...] = ("STOP",), protocol: int = 2, form: str = "zip"
) -> Checkpoint:
    return replace(
        BLANK, format=form, safety=Safety(opcodes=opcodes, protocol=protocol, oddities=(), uses=uses)
    )


def test_opcodes_are_those_of_torch() -> None:
    unpickler = pytest.importorskip("torch._weights_only_unpickler")
    source = inspect.getsource(unpickler.Unpickler.load)
    assert set(re.findall(r"\b([A-Z][A-Z0-9_]+)\[0\]", source)) == OPCODES


@pytest.mark.parametrize(
    ("checkpoint", "words"),
    [
        (made(opcodes=("FRAME", "STOP"), protocol=4), "opcode FRAME"),
        (made(protocol=1, form="legacy"), "pickle protocol 1"),
        (made(("", "call")), "what has no name"),
        (made((PERSISTENT_ID, "call")), "legacy files of modules"),
        (made(("m.List", "append")), "appends to lists only"),
        (made(("m.Dict", "setitem")), "plain dictionaries only"),
        (made(("builtins.set", "build")), "no state of builtins.set"),
    ],
)
def test_refused(checkpoint: Checkpoint, words: str) -> None:
    assert words in " ".join(refusals(checkpoint))


@pytest.mark.parametrize(
    "checkpoint",
    [
        made(),
        made(protocol=1),
        made(("collections.OrderedDict", "setitem"), ("collections.OrderedDict", "build")),
        made(("__builtin__.set", "call"), ("m.Net", "build"), ("m.Net", "call")),
    ],
)
def test_not_refused(checkpoint: Checkpoint) -> None:
    assert list(refusals(checkpoint)) == []


def test_names_to_allow() -> None:
    checkpoint = replace(
        made(("numpy.dtypes.Float64DType", "build"), ("m.Net", "build")),
        globals=tuple(GlobalUse(name=name, count=1) for name in ("m.Net", "__builtin__.set", "numpy.dtype")),
    )
    assert names_to_allow(checkpoint) == ("m.Net", "numpy.dtype", "numpy.dtypes.Float64DType")
