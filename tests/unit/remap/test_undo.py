from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.containers.source import Source
from inspector.errors import ExportError
from inspector.remap.patches import Piece
from inspector.remap.undo import (
    UndoRecord,
    format_record,
    make_record,
    patched_path,
    read_record,
    record_path,
    refuse_stranger,
    restore,
)
from tests.unit.remap.samples import written

DATA = bytes(range(256)) * 1024  # longer than what the witness hashes at each end
PIECES = (Piece(10, b"NEW"), Piece(150_000, b"x" * 9000), Piece(len(DATA) - 4, b"last"))
APPENDED = Piece(len(DATA), b"more")


def noted(path: Path, pieces: tuple[Piece, ...] = PIECES) -> UndoRecord:
    with Source(str(path)) as source:
        return make_record(source, pieces, path.stat().st_mtime_ns)


def patch(path: Path, pieces: tuple[Piece, ...]) -> None:
    with path.open("r+b") as file:
        for piece in pieces:
            file.seek(piece.offset)
            file.write(piece.data)


def check(path: Path, record: UndoRecord) -> None:
    with Source(str(path)) as source:
        refuse_stranger(source, record)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, DATA, "best.pth")


def test_a_record_stands_beside_its_file(path: Path) -> None:
    assert record_path(path) == path.with_name("best.pth.undo")
    assert patched_path(record_path(path)) == path


@pytest.mark.parametrize("pieces", [PIECES, (*PIECES, APPENDED), (APPENDED,)])
def test_a_record_is_read_as_it_was_written(path: Path, pieces: tuple[Piece, ...]) -> None:
    record = noted(path, pieces)
    at = written(path.parent, format_record(record), "best.pth.undo")
    assert read_record(at) == record
    assert record.nbytes_after == (len(DATA) + 4 if APPENDED in pieces else len(DATA))
    patch(path, pieces)
    check(path, record)
    with path.open("r+b") as file:
        restore(file.fileno(), record)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("count", range(4))
def test_a_patch_that_broke_off_is_recognised(path: Path, count: int) -> None:
    record = noted(path)
    patch(path, PIECES[:count])
    patch(path, tuple(Piece(piece.offset, piece.data[: len(piece.data) // 2]) for piece in PIECES[count:]))
    check(path, record)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (Piece(5, b"!"), "another file"),  # in what the witness hashes
        (Piece(len(DATA) - 9, b"!"), "another file"),
        (Piece(len(DATA), b"!"), "another file"),  # it has grown
        (Piece(150_100, b"!"), "changed since it was patched"),
    ],
)
def test_what_others_changed_is_not_written_over(path: Path, change: Piece, what: str) -> None:
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
    record = noted(path, (Piece(0, b"ab"), Piece(8, b"cd")))
    patch(path, (Piece(0, b"ab"), Piece(8, b"cd")))
    check(path, record)
    patch(path, (Piece(4, b"!"),))
    with pytest.raises(ExportError, match="another file"):
        check(path, record)


def damaged(data: bytes) -> dict[str, bytes]:
    magic, header, body = data.split(b"\n", 2)
    fields = json.loads(header)
    outside = json.dumps({**fields, "pieces": [[len(DATA), 3], *fields["pieces"][1:]]}).encode()
    without = json.dumps({key: value for key, value in fields.items() if key != "nbytes"}).encode()
    return {
        "no magic": b"x" + data,
        "cut": data[:-1],
        "turned": data[:-1] + bytes([data[-1] ^ 1]),
        "no line": magic + b"\n" + header,
        "no JSON": b"\n".join([magic, b"{", body]),
        "a list": b"\n".join([magic, b"[]", body]),
        "outside": b"\n".join([magic, outside, body]),
        "a key is missing": b"\n".join([magic, without, body]),
        "empty": b"",
    }


@pytest.mark.parametrize("name", damaged(b"m\n" + b'{"pieces": [[1, 3]], "nbytes": 1}' + b"\nbody"))
def test_damaged_records_are_refused(path: Path, name: str) -> None:
    at = written(path.parent, damaged(format_record(noted(path)))[name], "best.pth.undo")
    with pytest.raises(ExportError, match="the undo record is damaged"):
        read_record(at)


def test_a_record_that_is_not_there_is_told(path: Path) -> None:
    with pytest.raises(ExportError, match="no undo record can be read: there is no such file"):
        read_record(record_path(path))
