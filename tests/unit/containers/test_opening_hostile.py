"""Files that attack whoever opens them: each ends in a container or an error, in seconds and little memory.

A child opens each, so that its address space can be bounded: one byte more and it stops with a MemoryError.
Most of the files, the limits and the bound are a tenth of the real ones, for the sake of time.
"""

from __future__ import annotations

import gzip
import json
import random
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.builders import legacy, zips
from tests.builders.pickles import MARK, NONE, name, op, proto, stream, text

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
