from __future__ import annotations

import pickle

import pytest

from inspector.containers.pickle_source import PlainMachine
from inspector.containers.programs import Program, Programs
from inspector.containers.source import BytesSource
from inspector.containers.unread import read_nested
from inspector.errors import CancelledError
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.progress import Progress
from tests.builders import legacy
from tests.builders.pickles import NONE, call, dict_, number, op, proto, stream, text, tuple_
from tests.builders.zips import Record, build_zip
from tests.sweep import table

EVIL = stream(proto(), call("posix.system", text("id")))


def held(data: bytes, opener: str = "torch.storage._load_from_bytes") -> bytes:
    """A pickle that hands bytes to what unpickles them."""
    return stream(proto(), call(opener, op("BINBYTES", len(data).to_bytes(4, "little") + data)))


def programs_of(data: bytes, **limits: int) -> dict[str, Program]:
    programs = Programs()
    programs.run(Machine(data, name="object", limits=Limits(**limits)), "object", "object")
    read_nested(programs, Limits(), Progress())
    return {one.name: one for one in programs.all()}


def imported(program: Program) -> list[str]:
    return [node.dotted for node in program.stream.globals]


@table("opener", ["torch.storage._load_from_bytes", "pickle.loads", "_pickle.loads", "_io.BytesIO"])
def test_bytes_that_are_unpickled_are_a_program(opener: str) -> None:
    nested = programs_of(held(EVIL, opener))["object > bytes"]
    assert (nested.kind, nested.is_whole, imported(nested)) == ("nested", True, ["posix.system"])


@table("protocol", [0, 1, 2, 3, 4, 5])
def test_bytes_are_found_however_they_are_written(protocol: int) -> None:
    class Opened:
        def __reduce__(self) -> tuple[object, ...]:
            return pickle.loads, (EVIL + bytes(range(256)),)

    nested = programs_of(pickle.dumps(Opened(), protocol))["object > bytes"]
    assert imported(nested) == ["posix.system"]


def test_long_bytes_are_found_in_the_stream() -> None:
    class Opened:
        def __reduce__(self) -> tuple[object, ...]:
            return pickle.loads, (EVIL + b"\x80\x04" + bytes(5000),)

    for protocol in (2, 4):
        nested = programs_of(pickle.dumps(Opened(), protocol), text_nbytes=100)["object > bytes"]
        assert imported(nested) == ["posix.system"]


def test_other_arguments_are_none() -> None:
    for args in (
        (number(7),),
        (NONE,),
        (call("_codecs.encode"),),
        (call("_codecs.encode", NONE),),
        (call("a.B"),),
    ):
        assert list(programs_of(stream(proto(), call("pickle.loads", *args)))) == ["object"]
    assert list(programs_of(stream(proto(), call("a.loads", text("x"))))) == ["object"]
    long = op("LONG4", (300).to_bytes(4, "little") + bytes([1] * 300))
    assert list(programs_of(stream(proto(), call("pickle.loads", long)), long_nbytes=100)) == ["object"]
    assert list(programs_of(stream(proto(), op("MARK"), op("POP_MARK"), tuple_()))) == ["object"]


def test_whole_files_of_torch_are_read() -> None:
    inner = legacy.checkpoint(
        stream(proto(), dict_()), ("0", 2, bytes(8)), info=stream(proto(), call("posix.system"))
    )
    nested = programs_of(held(inner))["object > bytes"]
    assert (nested.is_whole, imported(nested)) == (True, ["posix.system"])
    zipped = build_zip(Record(name="a/data.pkl", data=EVIL), Record(name="a/version", data=b"3\n"))
    assert imported(programs_of(held(zipped))["object > bytes"]) == ["posix.system"]


def test_bytes_in_bytes_are_read() -> None:
    names = programs_of(held(held(EVIL)))
    assert "posix.system" in imported(names["object > bytes"])


def test_what_is_not_read_is_noted() -> None:
    assert not programs_of(held(EVIL + b"\xff"))["object > bytes"].is_whole
    deep = EVIL
    for _ in range(6):
        deep = held(deep)
    assert not programs_of(deep)["object > bytes"].is_whole
    assert programs_of(held(b""))["object"].is_whole


def test_crowd_of_bytes_is_read_in_part() -> None:
    small = b"\x80\x02N."
    one = call("pickle.loads", op("SHORT_BINBYTES", bytes([len(small)]) + small)) + op("POP")
    assert programs_of(stream(proto(), *[one] * 100, NONE))["object"].is_whole
    assert not programs_of(stream(proto(), *[one] * 1100, NONE))["object"].is_whole


def test_bytes_that_stayed_in_the_file_are_noted_as_unread() -> None:
    filler = bytes(20_000)
    for data, is_whole in ((held(EVIL), True), (held(EVIL + filler), False)):
        programs = Programs()
        source = BytesSource(data, "a.pkl")
        programs.run(PlainMachine(source, 0, limits=Limits(), progress=Progress()), "object", "object")
        read_nested(programs, Limits(), Progress())
        found = {one.name: one for one in programs.all()}
        assert (found["object"].is_whole, "object > bytes" in found) == (is_whole, is_whole)


def test_cancelling() -> None:
    programs = Programs()
    programs.run(Machine(held(EVIL), name="object"), "object", "object")
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        read_nested(programs, Limits(), progress)
