"""What must hold for any bytes whatever; a target raises `AssertionError` when it does not.

The three are fuzzed by `make fuzz` and carried out on every kept sample in each test run.
"""

from __future__ import annotations

import io
import itertools
import os
import pickletools
import tempfile
import warnings
import zipfile
from collections.abc import Callable

from inspector.containers.source import FileSource
from inspector.containers.zip.directory import read_directory
from inspector.diagnose.run import diagnose
from inspector.errors import CheckpointError, PickleError
from inspector.model.build import open_checkpoint
from inspector.pickles.instructions import OPCODES, instruction_end, iter_instructions
from inspector.pickles.machine import Stream, read_pickle
from inspector.progress import Progress
from inspector.records import replace
from inspector.report.jsonable import write_show
from inspector.safety.verdict import judge
from tests.fuzz.unpickling import Watching
from tests.property import bounds

LIMITS = replace(bounds.LIMITS, opcodes=200_000, seconds=20)
_MOST_SLOT = 100_000
_FOLDER = tempfile.mkdtemp(prefix="fuzz-")
_PATH = os.path.join(_FOLDER, "file.pt")  # noqa: PTH118 - made once, used a million times
# Frames and buffers are read differently on purpose; extension codes depend on the registry.
_HARMLESS = frozenset(OPCODES) - {0x95, 0x97, *b"\x82\x83\x84"}


def open_file(data: bytes) -> None:
    """Any file ends in a whole document or a `CheckpointError`."""
    _write(data)
    try:
        checkpoint = open_checkpoint(_PATH, LIMITS)
    except CheckpointError as error:
        _require(str(error), "an error that says nothing")
        return
    safety = judge(checkpoint)
    assert safety.answer.sentence
    text = "".join(write_show(checkpoint, safety, diagnose(checkpoint, safety), open_seconds=0))
    text.encode()  # half a character of a name would raise
    if safety.verdict == "weights-only":
        assert not safety.to_allow
        assert "dangerous" not in safety.globals


def read_stream(data: bytes) -> None:
    """A pickle is cut as `pickletools` cuts it, and no name is imported that is not seen."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _compare_boundaries(data)
        found = _read(data)
        if found is None or not found.opcodes <= _HARMLESS or _fills_memory(found):
            return
        theirs, finished = _imported(data)
    ours = {node.dotted for node in found.globals}
    assert theirs <= ours, f"only CPython imports {theirs - ours}"
    assert not finished or found.oddities or theirs == ours, f"only we see {ours - theirs}"


def read_zip(data: bytes) -> None:
    """A zip's directory is read as Python's zipfile reads it, where both find the same one."""
    _write(data)
    try:
        with FileSource(_PATH) as source:
            ours = read_directory(source, LIMITS, Progress())
    except CheckpointError:
        return
    try:
        theirs = zipfile.ZipFile(io.BytesIO(data))
    # What zipfile raises for what it does not take; NotImplementedError: a version or method unknown to it.
    except (zipfile.BadZipFile, NotImplementedError, ValueError, OverflowError, EOFError, UnicodeError):
        return
    if theirs.start_dir != ours.start:  # it looks for a zip behind other bytes, torch does not
        return
    mine = [(row.header_offset, row.nbytes, row.stored_nbytes, row.crc, row.method) for row in ours.entries]
    other = [
        (row.header_offset, row.file_size, row.compress_size, row.CRC, row.compress_type)
        for row in theirs.infolist()
    ]
    # The number of records in the end counts for torch, the size of the directory for zipfile.
    assert mine == other[: len(mine)], f"{mine} is {other} for zipfile"


def _write(data: bytes) -> None:
    with open(_PATH, "wb") as file:  # noqa: PTH123 - the same
        file.write(data)


def _read(data: bytes) -> Stream | None:
    try:
        return read_pickle(data, limits=LIMITS)
    except PickleError as error:
        _require(error.what, "an error that says nothing")
        _require(error.where, "an error without a place")
        return None


def _require(text: str | None, otherwise: str) -> None:
    assert text, otherwise


def _compare_boundaries(data: bytes) -> None:
    places = []
    try:
        for _, _, place in pickletools.genops(data):
            places.append(place)
    except (ValueError, UnicodeError, OverflowError):
        places = places[:-1]  # where the last one ends is not known
    for place, following in itertools.pairwise(places):
        end = instruction_end(data, place)
        assert end == following, f"the instruction at {place} ends at {end}, not at {following}"


def _fills_memory(found: Stream) -> bool:
    """Return whether CPython's memo, which is as long as its highest slot, would be enormous."""
    for start, end in iter_instructions(found.data, 0, found.end):
        opcode, operand = OPCODES[found.data[start]].name, found.data[start + 1 : end]
        if opcode == "LONG_BINPUT" and int.from_bytes(operand, "little") > _MOST_SLOT:
            return True
        if opcode == "PUT" and int(operand) > _MOST_SLOT:
            return True
    return False


def _imported(data: bytes) -> tuple[set[str], bool]:
    theirs = Watching(data)
    try:
        theirs.load()
    except Exception:  # noqa: BLE001 - it stops where the stream makes no sense; what it asked for counts
        return theirs.asked, False
    return theirs.asked, True


TARGETS: dict[str, Callable[[bytes], None]] = {"file": open_file, "pickle": read_stream, "zip": read_zip}
"""The targets by the word that their samples' names begin with."""
