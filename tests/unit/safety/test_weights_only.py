"""What torch's restricted unpickler minds, and its opcodes, against torch itself."""

from __future__ import annotations

import inspect
import re

import pytest

from inspector.model.checkpoint import Checkpoint, GlobalUse, KeyFault, Safety, Verb
from inspector.model.programs.uses import PERSISTENT_ID
from inspector.pickles.oddities import OddityKind
from inspector.records import replace
from inspector.safety.names import allow_list, default_allow_list
from inspector.safety.verdict import names_to_allow, refusals, unknown_opcode
from tests.sweep import table
from tests.unit.report.rows import BLANK


def made(
    *uses: tuple[str, str],
    opcodes: tuple[str, ...] = ("STOP",),
    protocol: int = 2,
    form: str = "zip",
    faults: tuple[str, ...] = (),
) -> Checkpoint:
    safety = Safety(opcodes=opcodes, protocol=protocol, oddities=(), unread=(), uses=uses, faults=faults)
    return replace(BLANK, format=form, safety=safety)


@pytest.mark.torch
def test_opcodes_are_those_of_torch() -> None:
    unpickler = pytest.importorskip("torch._weights_only_unpickler")
    source = inspect.getsource(unpickler.Unpickler.load)
    assert set(re.findall(r"\b([A-Z][A-Z0-9_]+)\[0\]", source)) == default_allow_list().opcodes


@table(
    ("checkpoint", "words"),
    [
        (made(opcodes=("FRAME", "STOP"), protocol=4), "opcode FRAME"),
        (made(("m.List", Verb.APPEND), form="tar"), "does not read tar files of torch 0.1"),
        (made(("", Verb.CALL)), "an object without a name"),
        (made((PERSISTENT_ID, Verb.CALL)), "legacy files of modules"),
        (made(("m.List", Verb.APPEND)), "appends to lists only"),
        (made(("m.Dict", Verb.SETITEM)), "plain dicts only"),
        (made(("builtins.set", Verb.MISBUILD)), "no state of builtins.set"),
        (made(("collections.OrderedDict", Verb.MISCALL)), "arguments that it does not take"),
        (made((PERSISTENT_ID, Verb.MISREAD)), "The place of a tensor's bytes"),
        (made(faults=(KeyFault.UNHASHABLE,)), "an unhashable key"),
        (made(faults=(OddityKind.TEXT_INT, KeyFault.ENDLESS)), "torch hangs"),
    ],
)
def test_refused(checkpoint: Checkpoint, words: str) -> None:
    assert words in " ".join(refusals(checkpoint, default_allow_list()))


@table(
    "checkpoint",
    [
        made(),
        made(protocol=1),
        made(("collections.OrderedDict", Verb.SETITEM), ("collections.OrderedDict", Verb.BUILD)),
        made(("__builtin__.set", Verb.CALL), ("m.Net", Verb.BUILD), ("m.Net", Verb.CALL)),
    ],
)
def test_not_refused(checkpoint: Checkpoint) -> None:
    assert list(refusals(checkpoint, default_allow_list())) == []


def test_names_to_allow() -> None:
    checkpoint = replace(
        made(("numpy.dtypes.Float64DType", Verb.BUILD), ("m.Net", Verb.BUILD)),
        globals=tuple(GlobalUse(name=name, count=1) for name in ("m.Net", "__builtin__.set", "numpy.dtype")),
    )
    missing = names_to_allow(checkpoint, default_allow_list())
    assert missing == ("m.Net", "numpy.dtype", "numpy.dtypes.Float64DType")


@table(
    ("checkpoint", "opcode"),
    [
        (made(), ""),
        (made(opcodes=("FRAME", "MEMOIZE"), protocol=4), "FRAME"),
        (made(opcodes=("DUP", "FRAME"), protocol=2), "DUP"),
        (made(opcodes=("MEMOIZE",), protocol=4), "MEMOIZE"),
        (made(opcodes=("LONG", "DUP"), form="legacy"), "LONG"),
        (made(opcodes=("LONG",), form="tar"), ""),
    ],
)
def test_unknown_opcode(checkpoint: Checkpoint, opcode: str) -> None:
    assert unknown_opcode(checkpoint, default_allow_list()) == opcode


def test_older_torch_knows_less() -> None:
    checkpoint = replace(
        made(("_codecs.encode", Verb.BUILD), opcodes=("BINFLOAT",)),
        globals=(GlobalUse(name="_codecs.encode", count=1),),
    )
    assert names_to_allow(checkpoint, allow_list("2.4")) == ("_codecs.encode",)
    assert names_to_allow(checkpoint, allow_list("2.6")) == ()
    assert unknown_opcode(checkpoint, allow_list("1.13")) == "BINFLOAT"
    assert unknown_opcode(checkpoint, allow_list("2.0")) == ""
