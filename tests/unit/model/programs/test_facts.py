from __future__ import annotations

import math

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.containers.programs import Program, ProgramKind
from inspector.errors import CheckpointError, PickleError
from inspector.limits import Limits
from inspector.model.checkpoint import KeyFault, Verb
from inspector.model.programs.facts import (
    MOST_OF_ONE_NAME,
    describe_safety,
    list_globals,
    note_program_uses,
    unread_checkpoint,
)
from inspector.model.programs.uses import PERSISTENT_ID, Uses
from inspector.pickles.oddities import Oddity, OddityKind
from tests.builders.pickles import NONE, call, name, number, op, proto, read, storage, text
from tests.work import count_steps


def program(*made: bytes, kind: ProgramKind = "part", is_whole: bool = True) -> Program:
    return Program("mine", kind, read(proto() + b"".join(made)), is_whole)


LOOK = Limits().counted().look
EVIL = call("posix.system", text("id"))


def test_uses_are_those_of_all_programs_that_its_own_loader_runs() -> None:
    uses: Uses = set()
    reach = call("builtins.getattr", name("my.Color"), text("RED"))
    note_program_uses(
        uses,
        [
            program(EVIL),
            program(reach + op("POP") + NONE, kind="nested"),
            program(call("b.F"), kind="rival"),
        ],
        Limits().counted().look,
        math.inf,
    )
    assert uses >= {("posix.system", Verb.CALL), ("my.Color.RED", Verb.GETATTR)}
    assert ("b.F", Verb.CALL) not in uses


def test_no_program_but_the_objects_may_refer_to_storages() -> None:
    for kind, expected in (("part", {(PERSISTENT_ID, Verb.MISREAD)}), ("object", set()), ("nested", set())):
        uses: Uses = set()
        note_program_uses(uses, [program(storage(), kind=kind)], Limits().counted().look, math.inf)
        assert uses == expected


def test_names_are_counted_over_all_programs() -> None:
    rows = list_globals([program(EVIL), program(name("a.B")), program(EVIL)])
    assert [(row.name, row.count) for row in rows] == [("posix.system", 2), ("a.B", 1)]


ODD = Oddity(OddityKind.TEXT_INT, 0)


def test_safety_is_that_of_all_programs() -> None:
    programs = [program(EVIL), program(name("a.B") + op("POP") + NONE)]
    safety = describe_safety(programs, set(), protocol=4, oddities=[ODD], faults={KeyFault.DEEP})
    assert {"POP", "REDUCE", "NONE"} <= set(safety.opcodes)
    assert (safety.protocol, safety.calls_made) == (4, 1)
    assert safety.oddities == (ODD,)
    assert safety.faults == (KeyFault.DEEP, OddityKind.TEXT_INT)
    assert [use.text for use in safety.calls] == ['posix.system("id")']
    assert describe_safety([], set(), protocol=0).calls == ()


def test_file_that_cannot_be_read_is_what_its_programs_do() -> None:
    error = PickleError("it breaks off", where="file.pt")
    assert unread_checkpoint(error) is None
    error.programs = (program(NONE), object())
    assert unread_checkpoint(error) is None
    error.programs = (program(EVIL), program(NONE, is_whole=False))
    seen = unread_checkpoint(error)
    assert ([use.name for use in seen.globals], seen.tensors) == (["posix.system"], ())
    assert seen.notes == (Note(NoteKind.BROKEN_OFF),)


@pytest.mark.wide
def test_of_a_crowd_that_cannot_be_read_the_first_calls_of_each_name_are_looked_at() -> None:
    def steps(count: int) -> int:
        calls = b"".join(call(f"a.f{at % 50}") + op("POP") for at in range(count))
        error = CheckpointError("it is too much")
        error.programs = (program(calls + NONE),)
        found = []
        taken = count_steps(lambda: found.append(unread_checkpoint(error)))
        assert found[0].safety.calls_made == count
        assert len(found[0].safety.calls) == min(count, 200)
        return taken

    steps(10)
    assert steps(20_000) - steps(2_000) < 18_000 * 12


def test_of_many_calls_the_first_of_each_name_are_looked_at_once_an_error_was_met() -> None:
    error = PickleError("it breaks off")
    many = b"".join(call("mine.make", number(place)) + op("POP") for place in range(20))
    error.programs = (program(many + EVIL, is_whole=False),)
    seen = unread_checkpoint(error)
    assert [use.name for use in seen.safety.calls].count("mine.make") == MOST_OF_ONE_NAME
    assert "posix.system" in {use.name for use in seen.safety.calls}
