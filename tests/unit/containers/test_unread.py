from __future__ import annotations

import gzip
import re
import struct
import zlib
from collections.abc import Callable

import pytest

from inspector.containers import opening, unread
from inspector.containers.notes import Note, NoteKind
from inspector.containers.opening import read_container
from inspector.containers.programs import Program
from inspector.containers.torch_zip import TorchZip
from inspector.containers.unread import START
from inspector.errors import CancelledError, CheckpointError, ContainerError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.safety.unread import judge_unread
from tests.builders import legacy, tars
from tests.builders.pickles import NONE, STOP, call, dict_, name, op, proto, stream, text
from tests.builders.zips import Record, build_zip
from tests.hostile.archives import zip_and_tar

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


def test_file_without_a_stop_is_read(write: Write) -> None:
    assert seen(write, proto() + EVIL) == [(START, False, ["posix.system"])]
    assert seen(write, EVIL + STOP[:0]) == [(START, False, ["posix.system"])]


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
