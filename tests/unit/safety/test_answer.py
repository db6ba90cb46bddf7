from __future__ import annotations

from inspector.containers.notes import Note, NoteKind
from inspector.model.checkpoint import Checkpoint
from inspector.safety.names import allow_list, default_allow_list
from inspector.safety.verdict import Answer, answer_for, judge
from tests.builders.pickles import call, list_, name, new, number, op
from tests.sweep import table
from tests.unit.model.making import by_hand, numbers, pairs, view


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
