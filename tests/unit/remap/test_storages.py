"""Which bytes of storages are written, and whence they come."""

from __future__ import annotations

import os
import sys
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.opening import read_container
from inspector.containers.packed import open_source
from inspector.containers.source import FileSource, Source
from inspector.containers.zip.directory import ZipEntry, payload_offset, read_directory
from inspector.containers.zip.records import read_zip_record
from inspector.errors import CancelledError, ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.values import Call, PersistentId, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap import export_form as form_export
from inspector.remap import storages
from inspector.remap import storages as form_bytes
from inspector.remap.forms import Form
from inspector.remap.pickle_writer import StorageName, Writing, storage_class, write_pickle
from inspector.remap.storages import (
    Buffered,
    Caster,
    Cut,
    Piece,
    Stock,
    Storages,
    Viewed,
    check_length,
    cut_out,
    read_at,
    refuse_full_disk,
)
from inspector.remap.zip_layout import DEFAULT_ALIGNMENT, Record, write_zip
from tests.builders import pickles
from tests.corpus import cases
from tests.sweep import table
from tests.unit.remap.form_samples import Halved, exported, file_of, mapping, names_in, numbers, tensor
from tests.unit.remap.samples import container_of, stream, written, zip_of


@table(
    ("spans", "nbytes", "alignment", "ranges", "starts"),
    [
        ([(8, 16)], 100, 4, ((8, 16),), (0,)),
        ([(8, 16), (12, 20)], 100, 4, ((8, 20),), (0,)),
        ([(40, 44), (8, 16)], 100, 4, ((8, 16), (40, 44)), (0, 8)),
        ([(8, 16), (16, 20)], 100, 4, ((8, 20),), (0,)),
        ([(9, 10)], 100, 16, ((0, 16),), (0,)),
        ([(97, 99)], 100, 16, ((96, 100),), (0,)),
        ([(8, 8)], 100, 4, ((0, 0),), (0,)),
        ([], 100, 4, ((0, 0),), (0,)),
    ],
)
def test_what_is_viewed_is_kept_aligned(spans, nbytes, alignment, ranges, starts) -> None:
    assert cut_out(spans, nbytes, alignment) == Cut(ranges, starts)


def storages_of(container: Container, **how: object) -> Storages:
    return Storages(
        container, how.pop("location_of", lambda key, tag: tag), lambda key: f"the tensor of {key}", **how
    )


def pieces(
    root: bytes, container: Container | None = None, *, compact: bool = False, **how: object
) -> list[Piece]:
    container = container or container_of(stream(root))
    viewed = Viewed(container)
    write_pickle(container.stream.root, Writing(naming=viewed))
    named = storages_of(container, cuts=viewed.cuts() if compact else {}, **how)
    write_pickle(container.stream.root, Writing(naming=named))
    return list(named.pieces.values())


def test_missing_bytes_are_named_by_their_tensor() -> None:
    container = replace(container_of(stream(tensor("0"))), stored={})
    with pytest.raises(ExportError, match="the bytes of a tensor are missing: the tensor of 0"):
        pieces(b"", container)
    (piece,) = pieces(b"", replace(container_of(stream(tensor("0", numel=0))), stored={}))
    assert piece.nbytes == 0


def test_other_persistent_ids_are_none_of_ours() -> None:
    node = PersistentId(("module", "cls"))
    container = container_of(stream(tensor()))
    for naming in (storages_of(container), Viewed(container)):
        assert naming.name_storage(node) is None
        assert naming.move_view(Call("f", (node, 0, (), ()), "reduce")) is None


# --- compact ------------------------------------------------------------------------------------------------


def view(geometry: str, **how: object) -> bytes:
    return tensor(numel=100, geometry=geometry, **how)


def offsets(root: bytes) -> list[Value]:
    """The offsets of all views in a compact form."""
    container = container_of(stream(root))
    viewed = Viewed(container)
    write_pickle(container.stream.root, Writing(naming=viewed))
    naming = storages_of(container, cuts=viewed.cuts())
    values = [value for _, value in container.stream.root.pairs]
    return [naming.move_view(value) for value in values]


@table(
    "other",
    [
        pickles.storage(numel=100),  # all of it is wanted
        tensor(numel=100, geometry="0;100;1"),
        tensor(numel=100, geometry="99;4;1"),  # runs past the end: nobody knows what it wants
        tensor(numel=100, geometry="0;2;1,1"),
        pickles.call(
            "torch._utils._rebuild_tensor", pickles.storage(numel=100), b"K\x00", b"K\x02", b"K\x01"
        ),
    ],
)
def test_storages_that_are_wanted_whole_stay_whole(other) -> None:
    (piece,) = pieces(mapping({"a": view("10;4;1"), "b": other}), compact=True)
    assert piece.is_whole


def test_packed_types_are_not_cut() -> None:
    (piece,) = pieces(tensor(numel=8, geometry="0;2;1", cls="torch.QUInt4x2Storage"), compact=True)
    assert piece.is_whole


def test_views_of_other_types_than_their_storage() -> None:
    args = [b"K\x08", pickles.tuple_(b"K\x02"), pickles.tuple_(b"K\x01"), b"\x89", b"N"]
    storage = pickles.storage(cls="torch.storage.UntypedStorage", numel=100)
    root = pickles.call("torch._utils._rebuild_tensor_v3", storage, *args, pickles.name("torch.uint16"))
    (piece,) = pieces(mapping({"a": root}), compact=True)
    assert (piece.ranges, piece.name.numel) == (((16, 32),), 16)
    assert offsets(mapping({"a": root})) == [0]


def test_views_within_views_of_old_files_begin_in_the_whole() -> None:
    inner = pickles.legacy_storage(numel=100, view=("v", 20, 8))
    args = [b"K\x02", pickles.tuple_(b"K\x03"), pickles.tuple_(b"K\x01"), b"\x89", b"N"]
    root = mapping({"a": pickles.call("torch._utils._rebuild_tensor_v2", inner, *args)})
    container = container_of(stream(root))
    container = replace(container, stored={"0": StoredBytes(0, None, 400)})
    (call,) = (value for _, value in container.stream.root.pairs)
    assert storages_of(container).move_view(call) == 22
    (piece,) = pieces(b"", container, compact=True)
    assert piece.ranges == ((88, 100),)


HALVES = """
def answer(head, blocks):
    assert head == {"source": "float32", "target": "float16"}
    for block in blocks:
        yield {"overflowed": 1}, block[::2]
"""


@pytest.fixture
def caster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Caster]:
    """Lets another script cast."""

    def caster(code: str) -> Caster:
        script = tmp_path / "script.py"
        script.write_text(code, encoding="ascii")
        monkeypatch.setattr(storages, "worker_script", lambda _name: script)
        return Caster("float16")

    return caster


def test_chunks_go_over_and_come_back(caster: Callable[[str], Caster]) -> None:
    with caster(HALVES) as halves:
        found = [list(halves.cast(chunks, Progress())) for chunks in ([b"abcd", b"", b"efgh"], [b"ij"])]
    assert (found, halves.overflowed) == ([[b"ac", b"", b"eg"], [b"i"]], 4)


def test_nothing_is_started_for_nothing(caster: Callable[[str], Caster]) -> None:
    with caster("raise SystemExit") as ends:
        assert list(ends.cast([], Progress())) == []


def test_child_that_ends_is_an_error(caster: Callable[[str], Caster]) -> None:
    with caster("raise SystemExit") as ends, pytest.raises(ExportError, match="torch failed to cast"):
        list(ends.cast([b"abcd"], Progress()))


def test_a_python_without_torch_is_named(caster: Callable[[str], Caster]) -> None:
    with (
        caster("raise ModuleNotFoundError(name='torch')") as ends,
        pytest.raises(ExportError, match="this Python has none") as error,
    ):
        list(ends.cast([b"abcd"], Progress()))
    assert str(error.value).startswith(f"a cast needs torch, and this Python has none: {sys.prefix}")


def test_it_can_be_cancelled(caster: Callable[[str], Caster]) -> None:
    progress = Progress()
    with caster(HALVES) as halves:
        chunks = halves.cast([b"ab"] * 9, progress)
        next(chunks)
        progress.cancel()
        with pytest.raises(CancelledError):
            next(chunks)


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


def test_files_are_read_at_a_place_where_the_system_has_no_call_for_it(tmp_path, monkeypatch) -> None:
    monkeypatch.delattr(os, "pread", raising=False)
    path = tmp_path / "file"
    path.write_bytes(b"0123456789")
    with path.open("rb") as file:
        assert read_at(file.fileno(), 3, 4) == b"3456"


# ------------------------------------------------------------------------------------------------------------
# A copy in torch's own containers.


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


THREE = mapping({"a": tensor("0"), "b": tensor("1"), "e": tensor("2", numel=0)})
WEIGHTS = Form(only_weights=True)


def source_of(folder: Path) -> Path:
    data = zip_of(stream(THREE), {"0": numbers("0"), "1": numbers("1"), "2": b""})
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
