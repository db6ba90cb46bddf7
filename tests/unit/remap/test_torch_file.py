from __future__ import annotations

import zipfile
from functools import partial
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.containers.source import FileSource, Source
from inspector.containers.zip.directory import ZipEntry, payload_offset, read_directory
from inspector.containers.zip.records import read_zip_record
from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.remap import export_form as form_export
from inspector.remap.forms import Form
from inspector.remap.pickle_writer import StorageName, storage_class
from inspector.remap.storages import Piece, check_length
from inspector.remap.zip_layout import DEFAULT_ALIGNMENT, Record, write_zip
from tests.corpus import cases
from tests.unit.remap.form_samples import Halved, exported, file_of, mapping, numbers, tensor
from tests.unit.remap.samples import stream, written, zip_of

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


ROOT = mapping({"a": tensor("0"), "b": tensor("1"), "e": tensor("2", numel=0)})
WEIGHTS = Form(only_weights=True)


def source_of(folder: Path) -> Path:
    data = zip_of(stream(ROOT), {"0": numbers("0"), "1": numbers("1"), "2": b""})
    return written(folder, data)


def test_records_are_torchs_in_torchs_order_torch_file(tmp_path) -> None:
    destination, _ = exported(source_of(tmp_path), WEIGHTS)
    with zipfile.ZipFile(destination) as archive:
        assert [entry.filename.removeprefix("out/") for entry in archive.infolist()] == [
            "data.pkl",
            ".format_version",
            ".storage_alignment",
            "byteorder",
            "data/0",
            "data/1",
            "data/2",
            "version",
            ".data/serialization_id",
        ]
        assert archive.testzip() is None
        assert archive.read("out/data/1") == numbers("1")
        assert archive.read("out/data/2") == b""
        facts = [
            archive.read(f"out/{name}")
            for name in (".format_version", ".storage_alignment", "byteorder", "version")
        ]
        assert facts == [b"1", b"64", b"little", b"3\n"]
        assert len(archive.read("out/.data/serialization_id")) == 40
    container = read_container(str(destination))
    assert {place.offset % 64 for place in container.stored.values() if place.offset} == {0}


def test_checksums_are_computed_where_the_source_has_none(tmp_path) -> None:
    data = bytearray(source_of(tmp_path).read_bytes())
    with zipfile.ZipFile(source_of(tmp_path)) as archive:
        crc = archive.getinfo("archive/data/0").CRC.to_bytes(4, "little")
    assert data.count(crc) == 2
    source = written(tmp_path, bytes(data).replace(crc, bytes(4)))
    for legacy in (False, True):
        path = (
            file_of(tmp_path, mapping({"a": tensor("0"), "b": tensor("1")}), legacy=True)
            if legacy
            else source
        )
        destination, _ = exported(path, Form(only_weights=True, container="zip"))
        with zipfile.ZipFile(destination) as archive:
            assert archive.testzip() is None
            assert archive.getinfo("out/data/0").CRC != 0


def test_legacy_files_have_their_keys_sorted(tmp_path) -> None:
    items = {f"t{number:02}": tensor(str(number)) for number in range(12)}
    source = written(
        tmp_path, zip_of(stream(mapping(items)), {str(key): numbers(str(key)) for key in range(12)})
    )
    destination, _ = exported(source, Form(only_weights=True, container="legacy"))
    container = read_container(str(destination))
    places = sorted(container.stored.items(), key=lambda item: item[1].offset or 0)
    assert [key for key, _ in places] == sorted(map(str, range(12)))
    assert dict(container.versions)["little_endian"] == "True"
    data = destination.read_bytes()
    for key, place in places:
        assert place.offset is not None
        assert data[place.offset :][:16] == numbers(key)


def test_legacy_files_cannot_hold_untyped_storages(tmp_path) -> None:
    root = mapping({"s": tensor("0"), "u": tensor("1", cls="torch.storage.UntypedStorage", numel=16)})
    with pytest.raises(ExportError, match="cannot read untyped storages"):
        exported(file_of(tmp_path, root), Form(container="legacy"))


@pytest.mark.parametrize("container", ["zip", "legacy"])
def test_cast_storages_are_written_smaller(tmp_path, monkeypatch, container) -> None:
    monkeypatch.setattr(form_export, "Caster", Halved)
    root = mapping({"a": tensor("0"), "b": tensor("1", cls="torch.IntStorage")})
    destination, made = exported(
        file_of(tmp_path, root), Form(only_weights=True, cast="float16", container=container)
    )
    stored = read_container(str(destination)).stored
    assert [place.nbytes for place in stored.values()] == [8, 16]
    place = stored["0"].offset
    assert place is not None
    assert destination.read_bytes()[place:][:8] == numbers("0")[::2]
    assert made.overflowed == 1


def test_storages_are_as_long_as_they_say() -> None:
    def piece(nbytes: int, dtype: str | None = "float32") -> Piece:
        name = StorageName(storage_class(dtype), "0", "cpu", 4)
        return Piece("0", name, ((0, nbytes),), True, dtype or "uint8", nbytes)

    check_length(piece(16), str)
    check_length(piece(4, None), str)
    with pytest.raises(ExportError, match="not what the pickle says: the owner of 0"):
        check_length(piece(15), lambda key: f"the owner of {key}")
