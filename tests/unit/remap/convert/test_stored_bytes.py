from __future__ import annotations

import os
import zlib
from pathlib import Path

import pytest

from inspector.containers import storage_reader
from inspector.containers.container import Container, StoredBytes
from inspector.containers.opening import read_container
from inspector.containers.source import Source, open_source
from inspector.errors import ExportError
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap import storages as form_bytes
from inspector.remap.pickle_writer import StorageName
from inspector.remap.storages import Buffered, Piece, Stock, read_at, refuse_full_disk
from tests.sweep import table
from tests.unit.remap.form_samples import file_of, mapping, names_in, numbers, tensor
from tests.unit.remap.samples import written

ROOT = mapping({"a": tensor("0"), "b": tensor("1")})
NAME = StorageName(("torch", "FloatStorage"), "0", "cpu", 4)


def piece(key: str, *ranges: tuple[int, int]) -> Piece:
    return Piece(key, NAME, ranges or ((0, 16),), not ranges, "float32", 16)


def stocked(path: Path) -> tuple[Source, Container]:
    return open_source(str(path)), read_container(str(path))


@table("how", [{}, {"legacy": True}, {"deflated": ("data/0", "data/1")}])
def test_bytes_come_from_wherever_they_are(tmp_path, how) -> None:
    source, container = stocked(file_of(tmp_path, ROOT, **how))
    with source, Stock(source, container, tmp_path) as stock, (tmp_path / "out").open("w+b") as out:
        assert b"".join(stock.read(piece("1"), Progress())) == numbers("1")
        assert (
            b"".join(stock.read(piece("1", (4, 8), (12, 16)), Progress()))
            == numbers("1")[4:8] + numbers("1")[12:]
        )
        for span in ((8, 16), (0, 4)):
            stock.copy_range("0", span, out.fileno(), Progress())
        assert stock.reader("0", Progress())(3, 5) == numbers("0")[3:8]
        assert out.read() == b""  # the descriptor's place is behind what was copied
        out.seek(0)
        assert out.read() == numbers("0")[8:] + numbers("0")[:4]
    assert names_in(tmp_path) == ["in.pt", "out"]


def test_chunks_are_small(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form_bytes, "STEP_NBYTES", 6)
    monkeypatch.setattr(storage_reader, "STEP_NBYTES", 6)
    for how in ({}, {"deflated": ("data/0",)}):
        source, container = stocked(file_of(tmp_path, ROOT, **how))
        with source, Stock(source, container, tmp_path) as stock:
            assert [len(chunk) for chunk in stock.read(piece("0"), Progress())] == [6, 6, 4]


def test_small_pieces_are_written_together_and_large_ones_copied(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form_bytes, "SMALL_NBYTES", 8)
    monkeypatch.setattr(form_bytes, "STEP_NBYTES", 10)
    source, container = stocked(file_of(tmp_path, ROOT))
    progress = Progress()
    with source, Stock(source, container, tmp_path) as stock, (tmp_path / "out").open("w+b") as file:
        out = Buffered(stock, file.fileno(), progress)
        out.write(b"head")
        out.copy("0", (0, 4))
        assert (tmp_path / "out").stat().st_size == 0
        out.copy("1", (0, 16))
        assert (tmp_path / "out").read_bytes() == b"head" + numbers("0")[:4] + numbers("1")
        out.write(bytes(10))
        assert (tmp_path / "out").stat().st_size == 34
        out.write(b"tail")
        out.flush()
        assert (tmp_path / "out").read_bytes().endswith(bytes(10) + b"tail")
    assert progress.done == 20


def test_checksums_are_those_of_whole_records(tmp_path) -> None:
    source, container = stocked(file_of(tmp_path, ROOT))
    with source, Stock(source, container, tmp_path) as stock:
        assert stock.crc(piece("0")) == zlib.crc32(numbers("0"))
        assert stock.crc(piece("0", (0, 8))) == 0
        assert stock.crc(piece("missing")) == 0
    source, container = stocked(file_of(tmp_path, ROOT, legacy=True))
    with source, Stock(source, container, tmp_path) as stock:
        assert stock.crc(piece("0")) == 0


def test_storages_without_bytes_are_nowhere(tmp_path) -> None:
    source, container = stocked(file_of(tmp_path, ROOT))
    container = replace(container, stored={"0": StoredBytes(0, None, 0)})
    with source, Stock(source, container, tmp_path) as stock:
        for key in ("0", "1"):
            assert list(stock.read(piece(key, (0, 0)), Progress())) == []


def test_damage_in_what_is_compressed_is_an_error(tmp_path) -> None:
    path = file_of(tmp_path, ROOT, deflated=("data/0",))
    data = path.read_bytes()
    compressor = zlib.compressobj(wbits=-15)
    packed = compressor.compress(numbers("0")) + compressor.flush()
    assert data.count(packed) == 1
    for spoiled, said in (
        (b"\xff" * len(packed), "a compressed record is damaged"),
        (b"\x03\x00" + bytes(len(packed) - 2), "a compressed record is shorter than it says"),
    ):
        source, container = stocked(written(tmp_path, data.replace(packed, spoiled)))
        with source, Stock(source, container, tmp_path) as stock, pytest.raises(ExportError, match=said):
            list(stock.read(piece("0"), Progress()))


def test_unknown_compression_is_an_error(tmp_path) -> None:
    source, container = stocked(file_of(tmp_path, ROOT))
    container = replace(container, stored={"9": StoredBytes(0, None, 16)})
    with source, Stock(source, container, tmp_path) as stock, pytest.raises(ExportError, match="unknown way"):
        list(stock.read(piece("9"), Progress()))


def test_spooled_files_have_no_name(tmp_path) -> None:
    source, container = stocked(file_of(tmp_path, ROOT))
    with source, Stock(source, container, tmp_path) as stock:
        stock.spool().write(b"x")
        assert names_in(tmp_path) == ["in.pt"]
    (tmp_path / "gone").mkdir()
    source, container = stocked(file_of(tmp_path, ROOT))
    with source, Stock(source, container, tmp_path / "nowhere") as stock, pytest.raises(ExportError):
        stock.spool()


def test_files_that_end_early_are_an_error(tmp_path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"1234")
    with path.open("rb") as file:
        assert read_at(file.fileno(), 1, 3) == b"234"
        with pytest.raises(ExportError, match="ended while it was copied"):
            read_at(file.fileno(), 2, 3)


def test_disks_that_are_full_are_noticed_before(tmp_path) -> None:
    refuse_full_disk(tmp_path, 1)
    with pytest.raises(ExportError, match="the disk has room for"):
        refuse_full_disk(tmp_path, 1 << 60)
    with pytest.raises(ExportError, match="No such file"):
        refuse_full_disk(tmp_path / "nowhere", 1)


def test_small_pieces_do_not_wait_without_end(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(form_bytes, "STEP_NBYTES", 10)
    source, container = stocked(file_of(tmp_path, ROOT))
    with source, Stock(source, container, tmp_path) as stock, (tmp_path / "out").open("w+b") as target:
        out = Buffered(stock, target.fileno(), Progress())
        for data in (b"1234567", b"89", b"0"):
            out.write(data)
        assert read_at(target.fileno(), 0, 10) == b"1234567890"


def test_files_are_read_at_a_place_where_the_system_has_no_call_for_it(tmp_path, monkeypatch) -> None:
    monkeypatch.delattr(os, "pread", raising=False)
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        assert read_at(file.fileno(), 3, 4) == b"3456"
