from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path

import pytest

from inspector.containers.source import FileSource, Source
from inspector.containers.zip.directory import ZipEntry, payload_offset, read_directory
from inspector.containers.zip.records import read_zip_record
from inspector.limits import DEFAULT_LIMITS
from inspector.remap.zip_layout import DEFAULT_ALIGNMENT, Record, write_zip
from tests.corpus import cases

# Written by Python's zipfile, or with a record taken out.
NOT_BY_TORCH = {"zip/rezip_deflated.pt", "zip/rezip_prefix_space.pt", "zip/noversion.pt"}
BY_TORCH = [case for case in cases(container="zip") if case.name not in NOT_BY_TORCH]


def alignment_of(source: Source, entries: tuple[ZipEntry, ...]) -> int:
    for entry in entries:
        if entry.name.endswith("/.storage_alignment"):
            return int(read_zip_record(source, entry, 16))
    return DEFAULT_ALIGNMENT


def test_the_layout_is_torch_s_byte_for_byte() -> None:
    for case in BY_TORCH:
        made: list[bytes] = []
        with FileSource(str(case.path)) as source:
            entries = read_directory(source, DEFAULT_LIMITS).entries
            rows = [
                Record(
                    entry.name,
                    entry.nbytes,
                    entry.stored_nbytes,
                    source.read(payload_offset(source, entry), entry.stored_nbytes),
                    entry.method,
                    entry.crc,
                )
                for entry in entries
            ]
            write_zip(rows, alignment_of(source, entries), made.append)
        assert b"".join(made) == case.path.read_bytes(), case.name


def test_torch_of_every_age_is_among_them() -> None:
    names = " ".join(case.name for case in BY_TORCH)
    assert all(f"t{version}" in names for version in ("1.4", "1.5", "1.6", "1.12"))


def write_sparsely(path: Path, sizes: dict[str, int], alignment: int = DEFAULT_ALIGNMENT) -> list[int]:
    """Lay out an archive with holes for its contents; return where these start."""
    places = []
    with path.open("wb") as file:

        def skip(nbytes: int) -> int:
            places.append(file.tell())
            file.seek(nbytes, 1)
            return 7

        rows = [Record(name, nbytes, nbytes, partial(skip, nbytes)) for name, nbytes in sizes.items()]
        write_zip(rows, alignment, file.write)
    return places


GIB = 1 << 30
LARGE = {"a/data.pkl": 3, "a/data/0": 5 * GIB, "a/data/1": 9, "a/version": 0}


def test_large_archives_are_understood_by_others(tmp_path: Path) -> None:
    path = tmp_path / "large.zip"
    places = write_sparsely(path, LARGE)
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    assert [(info.filename, info.file_size, info.CRC) for info in infos] == [
        (name, nbytes, 7) for name, nbytes in LARGE.items()
    ]
    assert all(place % DEFAULT_ALIGNMENT == 0 for place in places)
    with FileSource(str(path)) as source:
        entries = read_directory(source, DEFAULT_LIMITS).entries
        assert [payload_offset(source, entry) for entry in entries] == places
    assert [entry.header_offset for entry in entries] == [info.header_offset for info in infos]


@pytest.mark.wide
def test_many_records_are_counted_in_the_large_end(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    write_sparsely(path, {f"a/{number}": 0 for number in range(70_000)}, alignment=1)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.infolist()) == 70_000
