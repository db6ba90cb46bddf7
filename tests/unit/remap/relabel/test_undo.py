from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest

from inspector.containers.source import FileSource
from inspector.errors import ExportError
from inspector.remap import in_place
from inspector.remap.files import patched_path, record_path
from inspector.remap.in_place import UndoRecord, format_undo, make_record, read_undo, refuse_stranger, restore
from inspector.remap.plan import Plan
from inspector.remap.relabel import Patch
from inspector.remap.rules import Rules, parse_rule
from tests.sweep import table
from tests.unit.remap.samples import written

DATA = bytes(range(256)) * 1024  # longer than what the witness hashes at each end
PIECES = (Patch(10, b"NEW"), Patch(150_000, b"x" * 9000), Patch(len(DATA) - 4, b"last"))
APPENDED = Patch(len(DATA), b"more")
PLAN = Plan(
    rules=Rules(map(parse_rule, ("path:a/**@mps", "cuda:*=cpu", "*=xpu"))),
    tensors={0: "cpu", 1: "cpu", 2: "xpu", 7: "xpu", 5: "cpu"},
    storages={},
    kept=(3, 4),
    held=frozenset(),
    texts=frozenset(),
)


def noted(path: Path, pieces: tuple[Patch, ...] = PIECES) -> UndoRecord:
    with FileSource(str(path)) as source:
        return make_record(source, pieces, PLAN, path.stat().st_mtime_ns)


def patch(path: Path, pieces: tuple[Patch, ...]) -> None:
    with path.open("r+b") as file:
        for piece in pieces:
            file.seek(piece.offset)
            file.write(piece.data)


def check(path: Path, record: UndoRecord) -> None:
    with FileSource(str(path)) as source:
        refuse_stranger(source, record)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, DATA, "best.pth")


def test_a_record_stands_beside_its_file(path: Path) -> None:
    assert record_path(path) == path.with_name("best.pth.undo")
    assert patched_path(record_path(path)) == path


@pytest.mark.parametrize("pieces", [PIECES, (*PIECES, APPENDED), (APPENDED,)])
def test_a_record_is_read_as_it_was_written(path: Path, pieces: tuple[Patch, ...]) -> None:
    record = noted(path, pieces)
    at = written(path.parent, format_undo(record), "best.pth.undo")
    assert read_undo(at) == record
    assert record.rules == (("cuda:*", "cpu"), ("*", "xpu"))
    assert record.runs == ((0, 2, "cpu"), (2, 3, "xpu"), (3, 5, ""), (5, 6, "cpu"), (7, 8, "xpu"))
    assert record.nbytes_after == (len(DATA) + 4 if APPENDED in pieces else len(DATA))
    patch(path, pieces)
    check(path, record)
    with path.open("r+b") as file:
        restore(file.fileno(), record)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("count", range(4))
def test_a_patch_that_broke_off_is_recognized(path: Path, count: int) -> None:
    record = noted(path)
    patch(path, PIECES[:count])
    patch(path, tuple(Patch(piece.offset, piece.data[: len(piece.data) // 2]) for piece in PIECES[count:]))
    check(path, record)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (Patch(5, b"!"), "another file"),  # in what the witness hashes
        (Patch(len(DATA) - 9, b"!"), "another file"),
        (Patch(len(DATA), b"!"), "another file"),  # it has grown
        (Patch(150_100, b"!"), "changed since it was patched"),
    ],
)
def test_what_others_changed_is_not_written_over(path: Path, change: Patch, what: str) -> None:
    record = noted(path)
    patch(path, PIECES)
    patch(path, (change,))
    with pytest.raises(ExportError, match=what) as error:
        check(path, record)
    assert error.value.remedy == "if the file is as it should be, delete the record"


def test_a_file_that_was_cut_off_is_another(path: Path) -> None:
    record = noted(path)
    path.write_bytes(DATA[:-1])
    with pytest.raises(ExportError, match="another file"):
        check(path, record)


def test_small_files_are_known_again_too(tmp_path: Path) -> None:
    path = written(tmp_path, b"0123456789")
    record = noted(path, (Patch(0, b"ab"), Patch(8, b"cd")))
    patch(path, (Patch(0, b"ab"), Patch(8, b"cd")))
    check(path, record)
    patch(path, (Patch(4, b"!"),))
    with pytest.raises(ExportError, match="another file"):
        check(path, record)


def made(record: UndoRecord | None = None, **parts: object) -> bytes:
    """A record's bytes with other figures in it, whose hash is right."""
    head = {"nbytes": len(DATA), "mtime_ns": 1, "places": 1, "runs": 0, "texts": None, **parts}
    texts = parts.get("json", json.dumps({"rules": [], "devices": []}).encode())
    body = in_place._HEAD.pack(
        head["nbytes"], head["mtime_ns"], bytes(32), head["places"], head["runs"], len(texts)
    )
    body += b"".join(in_place._PLACE.pack(*place) for place in parts.get("table", [(1, 3, 3)]))
    body += parts.get("more", b"")
    body += b"".join(in_place._MOVE.pack(*move) for move in parts.get("moves", []))
    body += texts + parts.get("data", b"oldnew")
    return in_place._MAGIC + hashlib.sha256(body).digest() + body


def test_the_figures_of_these_records_are_otherwise_right(tmp_path: Path) -> None:
    assert read_undo(written(tmp_path, made(), "x.undo")).before == (Patch(1, b"old"),)


TWO = {"places": 2, "data": b"oldoldnewnew"}
END = len(DATA)
DAMAGED = {
    "empty": b"",
    "no magic": b"x" + made(),
    "cut": made()[:-1],
    "turned": made()[:-1] + b"!",
    "no head": in_place._MAGIC + hashlib.sha256(b"abc").digest() + b"abc",
    "more places than bytes": made(places=400_000),
    "more places than any change has": made(
        places=400_009, table=[], more=in_place._PLACE.pack(0, 1, 1) * 400_009
    ),
    "more runs than there are tensors": made(
        runs=800_001, more=in_place._MOVE.pack(0, 1, 0xFFFFFFFF) * 800_001
    ),
    "more runs than bytes": made(runs=800_000),
    "no JSON": made(json=b"{"),
    "deep JSON": made(json=b"[" * 100_000),
    "a number of many digits": made(json=b"9" * 100_000),
    "a list": made(json=b"[]"),
    "a key is missing": made(json=b"{}"),
    "rules of numbers": made(json=b'{"rules": [[1, 2]], "devices": []}'),
    "rules of one": made(json=b'{"rules": [["a"]], "devices": []}'),
    "devices of lists": made(json=b'{"rules": [], "devices": [[]]}'),
    "much JSON": made(json=b'{"rules": [], "devices": []}'.ljust((1 << 20) + 1)),
    "a device that is not there": made(runs=1, moves=[(0, 1, 5)]),
    "a time that never is": made(mtime_ns=(1 << 64) - 1),
    "outside": made(table=[(END - 1, 3, 3)]),
    "far outside": made(table=[((1 << 64) - 1, 3, 3)]),
    "behind a gap": made(table=[(END + 1, 0, 3)], data=b"new"),
    "in the middle, and nothing before": made(table=[(1, 0, 3)], data=b"new"),
    "of two lengths": made(table=[(1, 2, 3)], data=b"olnew"),
    "nothing": made(table=[(1, 0, 0)], data=b""),
    "overlapping": made(table=[(1, 3, 3), (3, 3, 3)], **TWO),
    "not in order": made(table=[(9, 3, 3), (1, 3, 3)], **TWO),
    "too few bytes": made(data=b"oldne"),
    "too many bytes": made(data=b"oldnewer"),
    "lengths beyond all bounds": made(table=[(0, 1 << 63, 1 << 63)], nbytes=(1 << 64) - 1),
}


@table("name", DAMAGED)
def test_damaged_records_are_refused(tmp_path: Path, name: str) -> None:
    at = written(tmp_path, DAMAGED[name], "best.pth.undo")
    with pytest.raises(ExportError, match="the undo record is damaged"):
        read_undo(at)


def test_a_record_of_another_version_is_named(tmp_path: Path) -> None:
    at = written(tmp_path, b"checkpoint-inspector undo record 1\n{}", "best.pth.undo")
    with pytest.raises(ExportError, match="written by another version"):
        read_undo(at)


def test_a_record_that_is_not_there_is_told(path: Path) -> None:
    with pytest.raises(ExportError, match="no undo record can be read: no such file"):
        read_undo(record_path(path))


def test_what_is_no_small_file_is_no_record(path: Path) -> None:
    at = record_path(path)
    at.symlink_to(path)
    with pytest.raises(ExportError, match="a link to another place"):
        read_undo(at)
    at.unlink()
    os.mkfifo(at)
    with pytest.raises(ExportError, match="not a regular file"):
        read_undo(at)
    at.unlink()
    with at.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ExportError, match="larger than"):
        read_undo(at)


def test_a_change_that_takes_too_much_to_note_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "_MOST_NBYTES", 1000)
    with pytest.raises(ExportError, match="too large"):
        format_undo(noted(path))


def test_times_before_the_epoch_are_none(path: Path) -> None:
    with FileSource(str(path)) as source:
        assert make_record(source, (), PLAN, -5).mtime_ns == 0


@pytest.mark.parametrize("tail", [b"", b"mo", b"m\0r\0", bytes(4)])
def test_what_was_appended_may_be_there_in_part(path: Path, tail: bytes) -> None:
    record = noted(path, (APPENDED,))
    with path.open("ab") as file:
        file.write(tail)
    check(path, record)


def test_what_others_appended_is_not_cut_off(path: Path) -> None:
    record = noted(path, (APPENDED,))
    with path.open("ab") as file:
        file.write(b"mine")
    with pytest.raises(ExportError, match="changed since it was patched"):
        check(path, record)
