from __future__ import annotations

import contextlib
import gc
import gzip
import json
import os
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest

from inspector.containers import folder as beside
from inspector.containers import source
from inspector.containers.folder import Folder
from inspector.containers.opening import read_container
from inspector.containers.packed import open_source
from inspector.containers.programs import Programs
from inspector.containers.zip import rivals as others
from inspector.diagnose.run import diagnose
from inspector.errors import CancelledError, ContainerError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Safety
from inspector.progress import Progress
from inspector.records import replace
from inspector.safety.verdict import judge
from inspector.safety.words import verdict_words
from inspector.target.profile import CPU_ONLY
from tests.builders import legacy, zips
from tests.builders.pickles import MARK, NONE, call, dict_, name, op, proto, stream, text
from tests.hostile.loaders.cases_numpy import array
from tests.unit.report.rows import checkpoint

Write = Callable[..., str]
ZIP = zips.checkpoint(stream(NONE))


def test_path_is_kept_as_it_was_named(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path(write(ZIP))
    monkeypatch.chdir(path.parent)
    assert read_container(path.name).path == path.name


def test_file_is_closed_whatever_happens(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    def lowest_free() -> int:
        descriptor = os.open(os.devnull, os.O_RDONLY)
        os.close(descriptor)
        return descriptor

    before = lowest_free()
    for data in (ZIP, b"", ZIP[:50], gzip.compress(ZIP), gzip.compress(legacy.checkpoint(stream(NONE)))):
        with contextlib.suppress(ContainerError):
            read_container(write(data))
        assert lowest_free() == before

    def fail(*_given: int) -> bytes:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(source, "_pread", fail)
    with pytest.raises(ContainerError, match="cannot be read"):
        open_source(write(ZIP))
    assert lowest_free() == before


def test_collector_rests_while_reading(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    states = []
    monkeypatch.setattr(Progress, "advance", lambda self, units=0: states.append(gc.isenabled()))
    read_container(write(ZIP))
    assert states[-1] is False
    assert gc.isenabled()


pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="only Linux bounds the address space"),
]
MILLION = 1_000_000
MIB = 1 << 20
ALL, A_TENTH = 1, 10
CHILD = """
import json, os, resource, sys
from inspector.records import replace
from inspector.containers.opening import read_container
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS
names = ("pickle_nbytes", "opcodes", "values", "inflated_nbytes", "records", "directory_nbytes")
def open_file(path, part):
    parts = {name: getattr(DEFAULT_LIMITS, name) // part for name in names}
    limits = replace(DEFAULT_LIMITS, seconds=60, **parts)
    most = (1000 // part + 60 << 20,) * 2  # Python itself has sixty
    resource.setrlimit(resource.RLIMIT_AS, most)
    try:
        read_container(path, limits)
    except CheckpointError as error:
        return error.what
    return "read"
for line in sys.stdin:
    reader, writer = os.pipe()
    fork = os.fork()
    if fork == 0:
        code = 1
        try:
            os.write(writer, open_file(*json.loads(line)).encode())
            code = 0
        except BaseException as error:
            os.write(writer, repr(error)[:500].encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        said = pipe.read()
    print(json.dumps([os.waitstatus_to_exitcode(os.waitpid(fork, 0)[1]), said]), flush=True)
"""


@pytest.fixture(scope="module")
def child() -> Iterator[subprocess.Popen[str]]:
    """A process that has imported what opens files, and nothing more; each is opened in a fork of it."""
    pipe = subprocess.PIPE
    child = subprocess.Popen([sys.executable, "-c", CHILD], stdin=pipe, stdout=pipe, text=True)
    yield child
    child.communicate()
    assert child.returncode == 0


@pytest.fixture
def open_in_child(child: subprocess.Popen[str], tmp_path: Path) -> Callable[..., str]:
    """Open these bytes as a file with a part of the limits and the memory; return `read` or the error."""

    def open_in_child(data: bytes, part: int = A_TENTH) -> str:
        path = tmp_path / "file.pt"
        path.write_bytes(data)
        child.stdin.write(json.dumps([str(path), part]) + "\n")
        child.stdin.flush()
        code, said = json.loads(child.stdout.readline())
        assert code == 0, said
        assert path.stat().st_size == len(data)
        return said

    return open_in_child


def deflated(pickle: bytes) -> bytes:
    return zips.build_zip(
        zips.Record(name="a/data.pkl", data=pickle, method=zips.DEFLATED),
        zips.Record(name="a/version", data=b"3"),
    )


def shuffled_slots(count: int) -> bytes:
    slots = [2 * number for number in range(count)]
    random.Random(1).shuffle(slots)
    return b"".join(op("LONG_BINPUT", struct.pack("<I", slot)) for slot in slots)


TOO_MANY_NAMES = "the pickle imports more than 100,000 names"
TOO_MANY = "the pickle makes more than 400,000 values"
LINE = "\U0001f600".encode() + b"a" * MILLION
EMPTY_LIST, EMPTY_DICT, EMPTY_TUPLE, DUP = (
    op(opcode) for opcode in ("EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE", "DUP")
)

DEEP: dict[str, tuple[bytes, str]] = {
    "marks": (MARK * (MILLION + 20_000), "the pickle nests more than 1,000,000 marks"),
    "marks below the limit": (MARK * 900_000 + NONE, "read"),
    "lists": (EMPTY_LIST * MILLION + op("APPEND") * (MILLION - 1), "read"),
    "tuples": (EMPTY_TUPLE + op("TUPLE1") * MILLION, "read"),
    "dictionaries": (EMPTY_DICT + (NONE + EMPTY_DICT) * MILLION + op("SETITEM") * MILLION, "read"),
    "calls": (NONE + (NONE + op("REDUCE")) * MILLION, "read"),
}

LARGE: dict[str, tuple[Callable[[], bytes], str]] = {
    "the largest memo slot": (lambda: NONE + op("LONG_BINPUT", b"\xff" * 4), "read"),
    "a memo slot beyond all memory": (lambda: NONE + op("PUT", b"%d\n" % 2**62), "read"),
    "a terabyte of bytes": (
        lambda: op("BINBYTES8", struct.pack("<Q", 2**40)) + b"abc",
        "the pickle breaks off before its end",
    ),
    "a tuple as large as the universe": (lambda: EMPTY_TUPLE + (DUP + op("TUPLE2")) * 200, "read"),
    "a list as large as the universe": (
        lambda: EMPTY_LIST + (op("MEMOIZE") + MARK + NONE * 10 + op("LIST") + op("APPEND")) * 200,
        "read",
    ),
    "a list that holds itself": (lambda: EMPTY_LIST + (DUP + op("APPEND")) * (MILLION // 2), "read"),
    "dictionaries in the memo": (lambda: proto(4) + (EMPTY_DICT + op("MEMOIZE")) * 450_000, TOO_MANY),
    "slots in no order": (lambda: NONE + shuffled_slots(390_000), "read"),
    "too many slots in no order": (lambda: NONE + shuffled_slots(410_000), TOO_MANY),
    "one dictionary": (lambda: EMPTY_DICT + MARK + NONE * 790_000 + op("SETITEMS"), "read"),
    "one dictionary too large": (lambda: EMPTY_DICT + MARK + NONE * 810_000 + op("SETITEMS"), TOO_MANY),
    "names": (
        lambda: b"".join(op("GLOBAL", b"m%d\nn\n" % number) for number in range(150_000)),
        TOO_MANY_NAMES,
    ),
    "numbers": (lambda: op("BINFLOAT", bytes(7) + b"\1") * 850_000, TOO_MANY),
    "short texts": (lambda: op("SHORT_BINUNICODE", b"\2ab") * 850_000, TOO_MANY),
    "texts that take four times their length": (
        lambda: op("BINUNICODE", struct.pack("<I", len(LINE)) + LINE) * 24,
        TOO_MANY,
    ),
    "a line that stays in the file": (
        lambda: op("UNICODE", b"\\U0001f600" + b"a" * 24 * MILLION + b"\n"),
        "read",
    ),
    "instructions": (lambda: NONE * 2_100_000, "the pickle has more than 2,000,000 instructions"),
    "bytes": (lambda: bytes(27 * MIB), "a zip record is larger than 26,843,545 bytes"),
}


@pytest.mark.wide
@pytest.mark.parametrize("case", DEEP)
def test_deep_pickle(open_in_child: Callable[..., str], case: str) -> None:
    pickle, answer = DEEP[case]
    assert open_in_child(deflated(stream(pickle)), ALL) == answer


@pytest.mark.wide
@pytest.mark.parametrize("case", LARGE)
def test_large_pickle(open_in_child: Callable[..., str], case: str) -> None:
    make, answer = LARGE[case]
    assert open_in_child(deflated(stream(make()))) == answer


@pytest.mark.wide
def test_large_pickle_of_a_legacy_file(open_in_child: Callable[..., str]) -> None:
    data = legacy.checkpoint(op("BINBYTES", b"\xff" * 4) + bytes(40 * MIB))
    assert open_in_child(gzip.compress(data, 1)) == "the pickle is longer than 26,843,545 bytes"


@pytest.mark.wide
def test_long_names_of_many_records(open_in_child: Callable[..., str]) -> None:
    builder = zips.ZipBuilder()
    builder.add(zips.Record(name="a/data.pkl", data=stream(name("a.b"), text("x"))))
    builder.add(zips.Record(name="a/version", data=b"3"))
    entry = bytes(builder.central[: zips.CENTRAL.size - 18]) + struct.pack("<3H12x", 180, 0, 0)
    names = (b"a/data/%07d" % number + b"\xff" * 166 for number in range(39_998))
    builder.central += b"".join(entry + record for record in names)
    builder.count = 40_000
    assert open_in_child(builder.finish(zip64=True)) == "read"


EVIL = stream(proto(), call("posix.system", text("id")))
PLAIN = stream(proto(), dict_())


def zipped(*more: zips.Record) -> bytes:
    return zips.build_zip(
        zips.Record(name="archive/data.pkl", data=PLAIN),
        *more,
        zips.Record(name="archive/version", data=b"3\n"),
        zip64=True,
    )


def test_what_was_missed_is_handed_on() -> None:
    missed = Programs()
    for number in range(100):
        missed.miss(f"record {number}", "it is packed")
    assert len(missed.all()) == 64
    folder, whole = Programs(), Programs()
    folder.absorb(missed.all(), "a.pt")
    assert folder.all()[0][:2] == ("a.pt: record 0", "missed")
    whole.adopt(missed, "inner")
    assert whole.all()[0].name == "inner: record 0"
    assert not any(program.is_known for program in (*folder.all(), *whole.all()))


def test_unknown_is_worded_like_danger() -> None:
    found = checkpoint(safety=Safety(opcodes=("STOP",), protocol=2, oddities=(), unread=("a (why)",) * 9))
    safety = judge(found)
    assert (safety.verdict, safety.weights_only, safety.may_harm) == ("unknown", False, True)
    assert verdict_words(safety).startswith("unknown: ")
    assert safety.reasons[4] == "5 more could not be read."
    titles = [finding.title for finding in diagnose(found, safety, CPU_ONLY)]
    assert "Unknown: not all that loading it would run could be read" in titles
    old = replace(found.needs, unread=(), unread_before_2_6=("a chunk (why)",))
    assert judge(replace(found, safety=old), "2.5.0").verdict == "unknown"
    assert judge(replace(found, safety=old), "2.6.0").verdict == "weights-only"


def test_files_beside_are_bounded_and_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for label in ("a.pt", "b.pt", "c.bin"):
        (tmp_path / label).write_bytes(zipped())
    (tmp_path / "c.bin").write_bytes(b"\x89PNG\r\n\x1a\n")
    (tmp_path / "word").write_bytes(bytes(100))
    folder = Folder("x", str(tmp_path), read=read_container)
    beside.run_beside(folder, {"a.pt"}, "", DEFAULT_LIMITS, Progress())
    assert all(program.is_known for program in folder.programs.all())
    with monkeypatch.context() as patched:
        patched.setattr(beside, "_MOST_BESIDE", 1)
        patched.setattr(beside, "_MOST_WORD_NBYTES", 10)
        beside.run_beside(folder, (), "", DEFAULT_LIMITS, Progress())
        with pytest.raises(ContainerError, match="too long for the name"):
            beside.read_word(folder, "word")
    assert [program.name for program in folder.programs.all() if not program.is_known] == [
        "further files",
        "what word names",
    ]
    folder.read_file = Mock(side_effect=CancelledError())
    for work in (
        lambda: beside.run_beside(folder, (), "", DEFAULT_LIMITS, Progress()),
        lambda: folder.read_member("a.pt", DEFAULT_LIMITS, Progress()),
    ):
        with pytest.raises(CancelledError):
            work()


def test_records_for_others_are_bounded_and_never_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.pt"
    for record, verdict in (
        (zips.Record(name="archive/a.npy", data=array("'<f4'")), "weights-only"),
        (zips.Record(name="archive/a.npy", data=array("'nobody knows'")), "unknown"),
        (zips.Record(name="archive/a.pkl", data=b"no pickle"), "weights-only"),
        (zips.Record(name="archive/a.pkl", data=EVIL), "dangerous"),
    ):
        path.write_bytes(zipped(record))
        assert judge(open_checkpoint(str(path))).verdict == verdict, record
    monkeypatch.setattr(others, "_MOST_OTHERS", 1)
    path.write_bytes(zipped(*(zips.Record(name=f"archive/{one}.pkl", data=PLAIN) for one in "ab")))
    assert judge(open_checkpoint(str(path))).verdict == "unknown"
