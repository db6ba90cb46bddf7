from __future__ import annotations

import pytest

from inspector.containers.programs import Program, ProgramKind, Programs, count_globals
from inspector.errors import PickleError
from inspector.pickles.machine import Machine
from inspector.pickles.values import Global
from tests.builders.pickles import NONE, call, name, op, proto, stream, tuple_

EVIL = call("posix.system")


def run(programs: Programs, data: bytes, title: str = "object", kind: ProgramKind = "object") -> None:
    programs.run(Machine(data, name=title), title, kind)


def test_nothing_read_is_no_program() -> None:
    assert Programs().all() == ()


def test_programs_stand_in_the_order_in_which_they_were_read() -> None:
    programs = Programs()
    run(programs, stream(NONE), "magic number", "part")
    run(programs, stream(EVIL))
    run(programs, stream(NONE), kind="rival")
    assert [(one.name, one.kind, one.is_whole) for one in programs.all()] == [
        ("magic number", "part", True),
        ("object", "object", True),
        ("object", "rival", True),
    ]


def test_stream_that_breaks_off_is_kept_as_far_as_it_was_read() -> None:
    programs = Programs()
    with pytest.raises(PickleError, match="breaks off"):
        run(programs, proto() + EVIL + op("MARK") + name("torch.device"))
    (program,) = programs.all()
    assert not program.is_whole
    assert [node.dotted for node in program.stream.globals] == ["posix.system", "torch.device"]
    made, left = program.stream.root
    assert made is program.stream.calls[0]
    assert isinstance(left, Global)


def test_streams_of_one_name_are_one_program() -> None:
    programs = Programs()
    for data in (stream(EVIL), stream(name("torch.device")), stream(EVIL, op("POP"), NONE)):
        run(programs, data, "storages", "part")
    (program,) = programs.all()
    assert len(program.stream.calls) == 2
    assert len(program.stream.root) == 3
    assert count_globals([program]) == {"posix.system": 2, "torch.device": 1}


def test_names_are_counted_over_all_programs() -> None:
    streams = [
        Machine(data, name="x").run() for data in (stream(EVIL), stream(call("os.system")), stream(EVIL))
    ]
    programs = [Program("x", "part", one) for one in streams]
    assert list(count_globals(programs).items()) == [("posix.system", 2), ("os.system", 1)]


def test_what_nobody_asks_for_is_let_go() -> None:
    programs = Programs()
    for known in ("one", "two"):
        pushes = call("a.Data"), call("a.run"), call("a.Data")
        programs.run(Machine(stream(proto(), tuple_(*pushes)), name=known), known)
    programs.let_go("one", {"a.Data"})
    one, two = programs.all()
    assert [call.func.dotted for call in one.stream.calls] == ["a.run"]  # type: ignore[union-attr]
    assert one.stream.root is None
    assert (len(two.stream.calls), two.stream.root is None) == (3, False)
    assert [node.dotted for node in one.stream.globals] == ["a.Data", "a.run"]
