from __future__ import annotations

import gzip
import pickle
import re
import struct
import zlib
from collections.abc import Callable

import pytest

from inspector.containers import opening, unread
from inspector.containers.notes import Note, NoteKind
from inspector.containers.opening import read_container
from inspector.containers.pickle_source import PlainMachine
from inspector.containers.programs import Program, ProgramKind, Programs, count_globals
from inspector.containers.source import BytesSource
from inspector.containers.torch_zip import TorchZip
from inspector.containers.unread import START, read_nested
from inspector.errors import CancelledError, CheckpointError, ContainerError, PickleError
from inspector.limits import Limits
from inspector.pickles.machine import Machine
from inspector.pickles.values import Global
from inspector.progress import Progress
from inspector.safety.unread import judge_unread
from tests.builders import legacy, tars
from tests.builders.pickles import NONE, call, dict_, name, number, op, proto, stream, text, tuple_
from tests.builders.zips import Record, build_zip
from tests.hostile.archives import zip_and_tar
from tests.sweep import table

Write = Callable[..., str]
EVIL = call("posix.system", text("id"))


def seen(write: Write, data: bytes, limits: Limits | None = None) -> list[tuple[str, bool, list[str]]]:
    """Each program of a file, or on the error: its name, whether it is whole, and what it imports."""
    try:
        found: tuple[object, ...] = read_container(write(data), limits or Limits()).programs
    except CheckpointError as error:
        found = error.programs
    programs = [one for one in found if isinstance(one, Program)]
    return [
        (re.sub("^pickle", START, one.name), one.is_whole, [node.dotted for node in one.stream.globals])
        for one in programs
    ]


def test_plain_pickle_is_read_for_what_it_runs(write: Write) -> None:
    assert seen(write, stream(proto(), EVIL)) == [(START, True, ["posix.system"])]
    assert seen(write, b"cos\nsystem\n(S'id'\ntR.") == [(START, True, ["os.system"])]


def test_pickles_one_behind_the_other_are_read(write: Write) -> None:
    data = stream(proto(), NONE) + stream(proto(), EVIL) + stream(proto(), name("a.B"))
    assert seen(write, data) == [(START, True, ["posix.system", "a.B"])]
    assert seen(write, stream(proto(), NONE) * 100) == [(START, True, [])]


def test_what_stands_in_front_of_garbage_is_read(write: Write) -> None:
    assert seen(write, proto() + EVIL + b"\xff\xff" + bytes(100)) == [(START, False, ["posix.system"])]
    assert seen(write, stream(EVIL) + b"\x89PNG") == [(START, False, ["posix.system"])]


@pytest.mark.parametrize("part", ["version", "info"])
def test_legacy_file_is_read_up_to_where_torch_stops(write: Write, part: str) -> None:
    evil = stream(proto(), EVIL, op("POP"), dict_())
    data = legacy.checkpoint(stream(proto(), dict_()), **{part: evil})
    known = {"version": "protocol version", "info": "system information"}[part]
    at = data.index(evil) + len(evil)
    found = {title: names for title, _, names in seen(write, data[: at + 3])}
    assert found[known] == ["posix.system"]


def test_pickle_longer_than_the_limits_is_read_so_far(write: Write) -> None:
    data = stream(proto(), EVIL, op("POP"), NONE * 30_000)
    assert seen(write, data, Limits(opcodes=10_000)) == [(START, False, ["posix.system"])]


def test_of_an_honest_text_nothing_is_told(write: Write) -> None:
    assert seen(write, b"<html></html>") == [(START, False, [])]


def test_bytes_within_pickles_are_read(write: Write) -> None:
    inner = stream(proto(), EVIL)
    data = stream(
        proto(),
        call("torch.storage._load_from_bytes", op("BINBYTES", len(inner).to_bytes(4, "little") + inner)),
    )
    programs = {title: names for title, _, names in seen(write, data)}
    assert programs[f"{START} > bytes"] == ["posix.system"]


def test_inside_of_gzip_is_read(write: Write) -> None:
    assert seen(write, gzip.compress(stream(proto(), EVIL))) == [(START, True, ["posix.system"])]
    zipped = build_zip(Record(name="a/data.pkl", data=stream(EVIL)), Record(name="a/version", data=b"3\n"))
    assert seen(write, gzip.compress(zipped)) == [("data.pkl", True, ["posix.system"])]


def test_cancelling_tells_nothing(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def cancel(*_given: object) -> None:
        raise CancelledError

    monkeypatch.setattr(opening, "find_format", cancel)
    with pytest.raises(CancelledError) as caught:
        read_container(write(stream(proto(), EVIL)))
    assert caught.value.programs == ()

    def refuse(*_given: object) -> None:
        progress.cancel()
        raise ContainerError("refused")

    progress = Progress()
    monkeypatch.setattr(opening, "find_format", refuse)
    with pytest.raises(CancelledError):
        read_container(write(stream(proto(), EVIL)), Limits(), progress)


def test_lack_of_memory_is_said_with_what_was_seen(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:

    class Exhausted(TorchZip):
        def read(self, *given: object) -> None:
            super().read(*given)
            raise MemoryError

    monkeypatch.setattr(opening, "find_format", lambda *_: Exhausted())
    data = build_zip(Record(name="a/data.pkl", data=stream(EVIL)), Record(name="a/version", data=b"3\n"))
    with pytest.raises(ContainerError, match="not enough memory to read this file") as caught:
        read_container(write(data))
    assert len(caught.value.programs) == 1


# --- files of two formats -----------------------------------------------------------------------------------


def tar_of(**members: bytes) -> bytes:
    return tars.archive(members, mtime=0)


def test_members_of_a_tar_archive_are_read(write: Write) -> None:
    data = tar_of(
        storages=stream(proto(), NONE) + stream(EVIL), x=b"", sys_info=stream(call("a.B")), y=b"\xff"
    )
    found = {title: names for title, _, names in seen(write, data)}
    assert found["storages"] == ["posix.system"]
    assert "sys_info" not in found


def test_tar_archive_whose_name_spells_a_pickle_is_of_two_formats(write: Write) -> None:
    spelled = b"cposix\nsystem\n(S'id'\ntR.".ljust(100, b"\0")
    whole = tars.checkpoint(stream(proto(), dict_()), [], [])
    found = read_container(write(tars.with_header(whole, 0, spelled)))
    assert found.notes == (Note(NoteKind.TWO_FORMATS),)
    assert [note.kind for note in found.stream.oddities] == ["two-formats"]
    (rival,) = [program for program in found.programs if program.kind == "rival"]
    assert [node.dotted for node in rival.stream.globals] == ["posix.system"]
    honest = read_container(write(whole))
    assert (honest.notes, [one.kind for one in honest.programs if one.kind == "rival"]) == ((), [])


def test_zip_that_opens_as_tar_is_of_two_formats(write: Write) -> None:
    found = read_container(write(zip_and_tar()))
    assert (found.format, found.notes) == ("zip", (Note(NoteKind.TWO_FORMATS),))


def test_lack_of_memory_while_reading_on_leaves_the_error_as_it_is_and_the_programs_unknown(
    write: Write, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(*_: object) -> None:
        raise MemoryError

    for name_ in ("read_programs", "read_nested"):
        monkeypatch.setattr(unread, name_, exhausted)
    with pytest.raises(CheckpointError, match="a NumPy array") as caught:
        read_container(write(b"\x93NUMPY"))
    seen = judge_unread(caught.value)
    assert seen is not None
    assert "the pickle at its beginning (there is not enough memory to read it)" in seen.unread


def test_what_is_read_of_a_refused_file_is_all_that_it_runs_or_is_told(write: Write) -> None:
    """Only where every unpickler stops is nothing left; all else is not known, and said so."""
    for data, is_known in (
        (b"hello", True),  # an empty memo slot
        (b"0", True),  # nothing on the stack
        (b"\x80\x02]q\x00", True),  # no STOP
        (b"\x80\x02N\xff", True),  # no instruction
        (b"I1\n" * 3_000_000 + EVIL, False),  # more than is read of a file that is refused
    ):
        with pytest.raises(CheckpointError) as caught:
            read_container(write(data))
        seen = judge_unread(caught.value)
        assert (seen is None) == is_known, data[:20]
        assert seen is None or seen.sentence.startswith("What loading it runs is not known: ")


def test_records_of_a_refused_zip_that_are_not_inflated_are_not_known(write: Write) -> None:
    whole = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = whole.compress(stream(proto(), EVIL)) + whole.flush(zlib.Z_FULL_FLUSH) + b"\xff" * 40
    for method, names in ((8, ["posix.system"]), (14, [])):
        header = b"PK\x03\x04" + struct.pack("<HHHHHIIIHH", 20, 0, method, 0, 0, 0, 0, 0, 8, 0) + b"data.pkl"
        with pytest.raises(CheckpointError) as caught:
            read_container(write(header + packed))
        found = judge_unread(caught.value)
        assert found is not None
        assert [name for name, *_ in found.names] == names
        assert found.verdict == ("dangerous" if names else "unknown")


EVIL_NESTED = stream(proto(), call("posix.system", text("id")))


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
    nested = programs_of(held(EVIL_NESTED, opener))["object > bytes"]
    assert (nested.kind, nested.is_whole, imported(nested)) == ("nested", True, ["posix.system"])


@table("protocol", [0, 1, 2, 3, 4, 5])
def test_bytes_are_found_however_they_are_written(protocol: int) -> None:
    class Opened:
        def __reduce__(self) -> tuple[object, ...]:
            return pickle.loads, (EVIL_NESTED + bytes(range(256)),)

    nested = programs_of(pickle.dumps(Opened(), protocol))["object > bytes"]
    assert imported(nested) == ["posix.system"]


def test_long_bytes_are_found_in_the_stream() -> None:
    class Opened:
        def __reduce__(self) -> tuple[object, ...]:
            return pickle.loads, (EVIL_NESTED + b"\x80\x04" + bytes(5000),)

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
    zipped = build_zip(Record(name="a/data.pkl", data=EVIL_NESTED), Record(name="a/version", data=b"3\n"))
    assert imported(programs_of(held(zipped))["object > bytes"]) == ["posix.system"]


def test_what_is_not_read_is_noted() -> None:
    assert not programs_of(held(EVIL_NESTED + b"\xff"))["object > bytes"].is_whole
    deep = EVIL_NESTED
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
    for data, is_whole in ((held(EVIL_NESTED), True), (held(EVIL_NESTED + filler), False)):
        programs = Programs()
        source = BytesSource(data, "a.pkl")
        programs.run(PlainMachine(source, 0, limits=Limits(), progress=Progress()), "object", "object")
        read_nested(programs, Limits(), Progress())
        found = {one.name: one for one in programs.all()}
        assert (found["object"].is_whole, "object > bytes" in found) == (is_whole, is_whole)


EVIL_PROGRAMS = call("posix.system")


def run(programs: Programs, data: bytes, title: str = "object", kind: ProgramKind = "object") -> None:
    programs.run(Machine(data, name=title), title, kind)


def test_programs_stand_in_the_order_in_which_they_were_read() -> None:
    programs = Programs()
    run(programs, stream(NONE), "magic number", "part")
    run(programs, stream(EVIL_PROGRAMS))
    run(programs, stream(NONE), kind="rival")
    assert [(one.name, one.kind, one.is_whole) for one in programs.all()] == [
        ("magic number", "part", True),
        ("object", "object", True),
        ("object", "rival", True),
    ]


def test_stream_that_breaks_off_is_kept_as_far_as_it_was_read() -> None:
    programs = Programs()
    with pytest.raises(PickleError, match="breaks off"):
        run(programs, proto() + EVIL_PROGRAMS + op("MARK") + name("torch.device"))
    (program,) = programs.all()
    assert not program.is_whole
    assert [node.dotted for node in program.stream.globals] == ["posix.system", "torch.device"]
    made, left = program.stream.root
    assert made is program.stream.calls[0]
    assert isinstance(left, Global)


def test_streams_of_one_name_are_one_program() -> None:
    programs = Programs()
    for data in (stream(EVIL_PROGRAMS), stream(name("torch.device")), stream(EVIL_PROGRAMS, op("POP"), NONE)):
        run(programs, data, "storages", "part")
    (program,) = programs.all()
    assert len(program.stream.calls) == 2
    assert len(program.stream.root) == 3
    assert count_globals([program]) == {"posix.system": 2, "torch.device": 1}


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
