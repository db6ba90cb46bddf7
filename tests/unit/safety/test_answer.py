from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Checkpoint, GlobalUse, KeyFault, Safety, Verb
from inspector.model.programs.uses import PERSISTENT_ID
from inspector.pickles.oddities import OddityKind
from inspector.records import replace
from inspector.safety.names import allow_list, default_allow_list
from inspector.safety.verdict import (
    Answer,
    answer_for,
    judge,
    names_to_allow,
    refusals,
    unknown_opcode,
)
from tests.builders.pickles import call, list_, name, new, number, op
from tests.sweep import table
from tests.unit.model.making import by_hand, numbers, pairs, view
from tests.unit.report.rows import BLANK


def answer(checkpoint: Checkpoint) -> Answer:
    return answer_for(checkpoint, default_allow_list())


@table(
    ("checkpoint", "kind", "words"),
    [
        (by_hand(pairs(w=view())), "accepts", "torch 2.13.0 loads it with weights_only=True."),
        (by_hand(new("m.C")), "allow", "until exactly these names are allowed: m.C."),
        (by_hand(name("m.C")), "code", "It refers to m.C, which may be functions"),
        (by_hand(call("m.make")), "code", "It calls m.make with arguments of its own"),
        (by_hand(op("SHORT_BINUNICODE", b"\1x")), "opcode", "does not know the opcode SHORT_BINUNICODE."),
        (by_hand(name("posix.system")), "never", "for good reason. It imports posix.system"),
        (
            by_hand(op("EMPTY_LIST") * 2 + op("EMPTY_TUPLE") + op("REDUCE")),
            "errors",
            "an object without a name",
        ),
        (by_hand(number(1), versions=(("version", "77"),)), "errors", "It says: RuntimeError"),
        (by_hand(view(size=numbers(9))), "errors", "The tensor cannot be built: "),
        (by_hand(pairs(w=view(size=numbers(9)))), "errors", "w cannot be built: "),
        (by_hand(number(1), notes=(Note(NoteKind.SHARED_NAME),)), "ambiguous", "cannot be predicted."),
    ],
)
def test_answers(checkpoint: Checkpoint, kind: str, words: str) -> None:
    found = answer(checkpoint)
    assert found.kind == kind
    assert words in found.sentence
    assert "torch 2.13.0" in found.sentence


def test_answer_keeps_what_it_rests_on() -> None:
    found = answer(by_hand(list_(name("posix.system"), op("SHORT_BINUNICODE", b"\1x"), name("mine.X"))))
    assert (found.kind, found.names, found.opcode) == (
        "never",
        ("posix.system", "mine.X"),
        "SHORT_BINUNICODE",
    )


def test_old_torch_has_no_list_of_the_users() -> None:
    found = answer_for(by_hand(new("m.C")), allow_list("2.3"))
    assert found.kind == "allow"
    assert not found.can_allow
    assert "torch 2.3.1 refuses it" in found.sentence
    assert "only since torch 2.4" in found.sentence


def test_judgement_of_a_named_version() -> None:
    checkpoint = by_hand(name("__builtin__.set"))
    assert judge(checkpoint).answer.kind == "accepts"
    older = judge(checkpoint, "2.5.1")
    assert (older.torch_version, older.answer.kind, older.to_allow) == ("2.5.1", "allow", ("builtins.set",))
    assert judge(checkpoint, "2.6").weights_only


# --- rows -------------------------------------------------------------------------------------------------


def rows(
    *uses: tuple[str, str],
    opcodes: tuple[str, ...] = ("STOP",),
    protocol: int = 2,
    form: str = "zip",
    faults: tuple[str, ...] = (),
) -> Checkpoint:
    safety = Safety(opcodes=opcodes, protocol=protocol, oddities=(), unread=(), uses=uses, faults=faults)
    return replace(BLANK, format=form, safety=safety)


@table(
    ("checkpoint", "words"),
    [
        (rows(opcodes=("FRAME", "STOP"), protocol=4), "opcode FRAME"),
        (rows(("m.List", Verb.APPEND), form="tar"), "does not read tar files of torch 0.1"),
        (rows(("", Verb.CALL)), "an object without a name"),
        (rows((PERSISTENT_ID, Verb.CALL)), "legacy files of modules"),
        (rows(("m.List", Verb.APPEND)), "appends to lists only"),
        (rows(("m.Dict", Verb.SETITEM)), "plain dicts only"),
        (rows(("builtins.set", Verb.MISBUILD)), "no state of builtins.set"),
        (rows(("collections.OrderedDict", Verb.MISCALL)), "may not take the arguments"),
        (rows((PERSISTENT_ID, Verb.MISREAD)), "The place of a tensor's bytes"),
        (rows(faults=(KeyFault.UNHASHABLE,)), "an unhashable key"),
        (rows(faults=(OddityKind.TEXT_INT, KeyFault.ENDLESS)), "torch hangs"),
    ],
)
def test_refused(checkpoint: Checkpoint, words: str) -> None:
    assert words in " ".join(refusals(checkpoint, default_allow_list()))


@table(
    "checkpoint",
    [
        rows(),
        rows(protocol=1),
        rows(("collections.OrderedDict", Verb.SETITEM), ("collections.OrderedDict", Verb.BUILD)),
        rows(("__builtin__.set", Verb.CALL), ("m.Net", Verb.BUILD), ("m.Net", Verb.CALL)),
    ],
)
def test_not_refused(checkpoint: Checkpoint) -> None:
    assert list(refusals(checkpoint, default_allow_list())) == []


def test_names_to_allow() -> None:
    checkpoint = replace(
        rows(("numpy.dtypes.Float64DType", Verb.BUILD), ("m.Net", Verb.BUILD)),
        globals=tuple(GlobalUse(name=name, count=1) for name in ("m.Net", "__builtin__.set", "numpy.dtype")),
    )
    missing = names_to_allow(checkpoint, default_allow_list())
    assert missing == ("m.Net", "numpy.dtype", "numpy.dtypes.Float64DType")


@table(
    ("checkpoint", "opcode"),
    [
        (rows(), ""),
        (rows(opcodes=("FRAME", "MEMOIZE"), protocol=4), "FRAME"),
        (rows(opcodes=("DUP", "FRAME"), protocol=2), "DUP"),
        (rows(opcodes=("MEMOIZE",), protocol=4), "MEMOIZE"),
        (rows(opcodes=("LONG", "DUP"), form="legacy"), "LONG"),
        (rows(opcodes=("LONG",), form="tar"), ""),
    ],
)
def test_unknown_opcode(checkpoint: Checkpoint, opcode: str) -> None:
    assert unknown_opcode(checkpoint, default_allow_list()) == opcode


def test_older_torch_knows_less() -> None:
    checkpoint = replace(
        rows(("_codecs.encode", Verb.BUILD), opcodes=("BINFLOAT",)),
        globals=(GlobalUse(name="_codecs.encode", count=1),),
    )
    assert names_to_allow(checkpoint, allow_list("2.4")) == ("_codecs.encode",)
    assert names_to_allow(checkpoint, allow_list("2.6")) == ()
    assert unknown_opcode(checkpoint, allow_list("1.13")) == "BINFLOAT"
    assert unknown_opcode(checkpoint, allow_list("2.0")) == ""
