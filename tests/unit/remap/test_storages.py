from __future__ import annotations

import os
import sys
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.container import Container, StoredBytes
from inspector.containers.opening import read_container
from inspector.containers.packed import open_source
from inspector.containers.source import Source
from inspector.errors import CancelledError, ExportError
from inspector.pickles.values import Call, PersistentId, Value
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap import storages
from inspector.remap import storages as form_bytes
from inspector.remap.pickle_writer import StorageName, Writing, write_pickle
from inspector.remap.storages import (
    Buffered,
    Caster,
    Cut,
    Piece,
    Stock,
    Storages,
    Viewed,
    cut_out,
    read_at,
    refuse_full_disk,
)
from tests.builders import pickles
from tests.sweep import table
from tests.unit.remap.form_samples import file_of, mapping, names_in, numbers, tensor
from tests.unit.remap.samples import container_of, stream, written


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
