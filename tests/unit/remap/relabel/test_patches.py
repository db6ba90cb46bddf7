"""What is patched is shown by `test_in_place` and `test_writers` on whole files; here are the corners."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import pytest

from inspector.containers.source import open_source
from inspector.containers.zip.archive import find_pickle
from inspector.containers.zip.directory import read_directory
from inspector.containers.zip.kinds import Records
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.remap.relabel import Patch, appended_piece, fits, storage_alignment, zip_pieces
from tests.corpus import CORPUS
from tests.sweep import table
from tests.unit.remap.samples import NBYTES, mapping, stream, tensor, text, written, zip_of

OBJECT = stream(mapping(a=tensor(text("cuda:0"))))
STORAGES = {"0": bytes(NBYTES)}
NEW = stream(b"]" * 4000 + b"N")


def appended(path: Path, pickle: bytes) -> Patch:
    with open_source(str(path)) as source:
        records = Records(read_directory(source, DEFAULT_LIMITS))
        return appended_piece(source, records, find_pickle(records, str(path)), pickle)


@pytest.mark.parametrize("name", ["devices/zip_mixed8.pt", "old/t1.5_py37_zip_misc.pt"])
def test_python_reads_an_archive_with_an_appended_pickle(tmp_path: Path, name: str) -> None:
    before = (CORPUS / name).read_bytes()
    path = written(tmp_path, before)
    piece = appended(path, NEW)
    assert piece.offset == len(before)
    after = before + piece.data
    with zipfile.ZipFile(io.BytesIO(before)) as one, zipfile.ZipFile(io.BytesIO(after)) as other:
        assert other.namelist() == one.namelist()
        assert other.testzip() is None
        for info in one.infolist():
            is_pickle = info.filename.endswith("/data.pkl")
            assert other.read(info.filename) == (NEW if is_pickle else one.read(info))


def test_a_checksum_that_was_left_out_stays_out(tmp_path: Path) -> None:
    data = bytearray(zip_of(OBJECT, STORAGES))
    central = data.rindex(b"archive/data.pkl") - 46
    data[central + 16 : central + 20] = bytes(4)
    path = written(tmp_path, bytes(data))
    with open_source(str(path)) as source:
        records = Records(read_directory(source, DEFAULT_LIMITS))
        entry = find_pickle(records, str(path))
        assert zip_pieces(source, entry, OBJECT[:-1])[1].data == bytes(4)
        assert appended_piece(source, records, entry, NEW).data.count(b"PK\x01\x02") == 3
        assert fits(entry, OBJECT)
        assert not fits(entry, OBJECT + b".")


def test_a_comment_at_the_end_is_in_the_way(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES))
    with zipfile.ZipFile(path, "a") as archive:
        archive.comment = b"a comment of some length"
    with pytest.raises(ExportError, match="there are bytes after the end of the zip"):
        appended(path, NEW)


@table(("given", "alignment"), [(b"4096", 4096), (b"x", 64), (b"0", 64), (b"9" * 17, 64), (b"9999999", 64)])
def test_contents_are_aligned_as_the_archive_says(tmp_path: Path, given: bytes, alignment: int) -> None:
    path = written(tmp_path, zip_of(OBJECT, STORAGES, **{".storage_alignment": given}))
    with open_source(str(path)) as source:
        assert storage_alignment(source, Records(read_directory(source, DEFAULT_LIMITS))) == alignment
    data = path.read_bytes() + appended(path, NEW).data
    assert data.index(NEW) % alignment == 0
