from __future__ import annotations

import zipfile
from pathlib import Path

import pytest

from inspector.containers.source import Source
from inspector.containers.zip.directory import STORED, Entry, payload_offset, read_directory
from inspector.containers.zip.records import read_record
from inspector.limits import DEFAULT_LIMITS
from inspector.remap.archive.zip_layout import DEFAULT_ALIGNMENT, Contents, Record, lay_out
from tests.corpus import Case, cases

# Written by Python's zipfile, or with a record taken out.
NOT_BY_TORCH = {"zip/rezip_deflated.pt", "zip/rezip_prefix_space.pt", "zip/noversion.pt"}
BY_TORCH = [case for case in cases(container="zip") if case.name not in NOT_BY_TORCH]


def alignment_of(source: Source, entries: tuple[Entry, ...]) -> int:
    for entry in entries:
        if entry.name.endswith("/.storage_alignment"):
            return int(read_record(source, entry, 16))
    return DEFAULT_ALIGNMENT


@pytest.mark.parametrize("case", BY_TORCH, ids=lambda case: case.name)
def test_the_layout_is_torch_s_byte_for_byte(case: Case) -> None:
    made = b""
    with Source(str(case.path)) as source:
        entries = read_directory(source, DEFAULT_LIMITS).entries
        rows = [Record(entry, entry.crc, entry.nbytes, entry.stored_nbytes) for entry in entries]
        for part in lay_out(rows, alignment_of(source, entries)):
            if isinstance(part, Contents):
                entry = entries[part.number]
                part = source.read(payload_offset(source, entry), entry.stored_nbytes)  # noqa: PLW2901
            made += part
    assert made == case.path.read_bytes()


def test_torch_of_every_age_is_among_them() -> None:
    names = " ".join(case.name for case in BY_TORCH)
    assert all(f"t{version}" in names for version in ("1.4", "1.5", "1.6", "1.12"))


def record(name: str, nbytes: int) -> Record:
    return Record(Entry(name, 0, nbytes, nbytes, STORED, 0, 0, 0), 7, nbytes, nbytes)


def write_sparsely(path: Path, rows: list[Record], alignment: int = DEFAULT_ALIGNMENT) -> list[int]:
    """Lay out an archive with holes for its contents; gives where these start."""
    places = []
    with path.open("wb") as file:
        for part in lay_out(rows, alignment):
            if isinstance(part, Contents):
                places.append(file.tell())
                file.seek(rows[part.number].nbytes, 1)
            else:
                file.write(part)
    return places


GIB = 1 << 30
LARGE = [record("a/data.pkl", 3), record("a/data/0", 5 * GIB), record("a/data/1", 9), record("a/version", 0)]


def test_large_archives_are_understood_by_others(tmp_path: Path) -> None:
    path = tmp_path / "large.zip"
    places = write_sparsely(path, LARGE)
    with zipfile.ZipFile(path) as archive:
        infos = archive.infolist()
    assert [(info.filename, info.file_size, info.CRC) for info in infos] == [
        (row.entry.name, row.nbytes, row.crc) for row in LARGE
    ]
    assert all(place % DEFAULT_ALIGNMENT == 0 for place in places)
    with Source(str(path)) as source:
        entries = read_directory(source, DEFAULT_LIMITS).entries
        assert [payload_offset(source, entry) for entry in entries] == places
    assert [entry.header_offset for entry in entries] == [info.header_offset for info in infos]


def test_many_records_are_counted_in_the_large_end(tmp_path: Path) -> None:
    path = tmp_path / "many.zip"
    rows = [record(f"a/{number}", 0) for number in range(70_000)]
    write_sparsely(path, rows, alignment=1)
    with zipfile.ZipFile(path) as archive:
        assert len(archive.infolist()) == 70_000
