from __future__ import annotations

import bz2
import gzip
import lzma
import random
import sys
import types
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers import inflated as module_inflated
from inspector.containers import packings as module
from inspector.containers.inflated import Inflated
from inspector.containers.packed import PackedSource, open_source
from inspector.containers.packings import PACKINGS, packing_of
from inspector.containers.source import FileSource
from inspector.errors import DamagedError, TooLargeError, UnsupportedFormatError
from inspector.limits import Limits
from inspector.model.build import open_checkpoint
from tests.corpus import CORPUS
from tests.sweep import table

ZIP = CORPUS / "zip/state_dict.pt"
LEGACY = CORPUS / "devices/legacy_train_cuda_step_cpu.pt"
WAYS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zlib": zlib.compress,
}


@table("name", WAYS)
@table("file", [ZIP, LEGACY], ids=lambda file: file.name)
def test_a_checkpoint_that_is_packed_is_read_through(name: str, file: Path, tmp_path: Path) -> None:
    path = tmp_path / file.name
    path.write_bytes(WAYS[name](file.read_bytes()))
    plain, packed = open_checkpoint(str(file)), open_checkpoint(str(path))
    assert packed.tensors == plain.tensors
    assert [row._replace(file_offset=None) for row in plain.storages] == list(packed.storages)
    assert any(f"Compressed with {name}" in note.sentence for note in packed.notes)


def test_its_size_is_measured_when_it_is_read_from_its_end(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    path.write_bytes(gzip.compress(bytes(2_000_000)))
    with open_source(str(path)) as source:
        assert isinstance(source, PackedSource)
        assert (source.packing, source.nbytes) == ("gzip", 1 << 30)
        source.measure()
        assert source.nbytes == 2_000_000
    with (
        open_source(str(path), Limits(inflated_nbytes=1_000_000)) as source,
        pytest.raises(TooLargeError, match="more than 1,000,000 bytes once unpacked"),
    ):
        source.measure()
    plain = tmp_path / "plain"
    plain.write_bytes(b"abc")
    with FileSource(str(plain)) as file:
        file.measure()
        assert file.nbytes == 3


def test_damage_names_what_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "a.xz"
    packed = bytearray(lzma.compress(bytes(100_000)))
    packed[-30:] = bytes(30)
    path.write_bytes(packed)
    with open_source(str(path)) as source:
        assert isinstance(source, PackedSource)
        with pytest.raises(DamagedError, match="the xz stream is damaged"):
            source.read(0, 100_001)


PLAIN = random.Random(1).randbytes(60_000) + bytes(300_000) + random.Random(2).randbytes(40_000)
PACKED = {
    "xz": lzma.compress(PLAIN, preset=0),
    "bzip2": bz2.compress(PLAIN, 1),
    "lzma": lzma.compress(PLAIN, format=lzma.FORMAT_ALONE, preset=0),
    "zlib": zlib.compress(PLAIN, 1),
    "joblib's zlib": b"ZF" + hex(len(PLAIN)).ljust(19).encode() + zlib.compress(PLAIN, 1),
}


def opened(name: str, packed: bytes, taken: list[int] | None = None) -> module.Inside:
    found = packing_of(packed[:256])
    assert found is not None
    assert found.name == name
    return found.open(
        lambda offset, nbytes: packed[offset : offset + nbytes], None if taken is None else taken.append
    )


@pytest.mark.parametrize("name", PACKED)
def test_any_place_in_any_order(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_HELD_NBYTES", 20_000)
    monkeypatch.setattr(module, "_PLAIN_NBYTES", 30_000)
    taken: list[int] = []
    inside = opened(name, PACKED[name], taken)
    rolls = random.Random(3)
    for _ in range(8):
        offset, nbytes = rolls.randrange(len(PLAIN) + 1000), rolls.choice([0, 1, 10_000, 100_000])
        assert inside.read_upto(offset, nbytes) == PLAIN[offset : offset + nbytes]
    assert sum(taken) >= len(PLAIN) >> 10


def test_a_row_of_streams_and_zeros_behind_it() -> None:
    packed = lzma.compress(b"a" * 10) + lzma.compress(b"b" * 10) + bytes(12)
    assert opened("xz", packed).read_upto(5, 100) == b"aaaaabbbbbbbbbb"
    assert opened("bzip2", bz2.compress(b"a") + bz2.compress(b"b")).read_upto(0, 9) == b"ab"


@table("name", PACKED)
def test_damage_is_damage(name: str) -> None:
    packed = bytearray(PACKED[name])
    packed[1000:1100] = bytes(100)
    with pytest.raises(zlib.error):
        opened(name, bytes(packed)).read_upto(0, len(PLAIN))


@table("name", PACKED)
def test_a_stream_that_breaks_off_gives_what_there_is(name: str) -> None:
    found = opened(name, PACKED[name][:80_000]).read_upto(0, len(PLAIN))
    assert found == PLAIN[: len(found)]


def test_a_stream_of_nothing_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_EMPTY_STEPS", 3)
    empty = lzma.compress(b"")
    assert opened("xz", empty * 10).read_upto(0, 5) == b""


@table(
    "head",
    [b"x is a letter", b"x\x9c\xff\xff\xff", b"]\0\0", b"]\0\0\xff\xff\xff\xff\xff", b"", b"PK\3\4", b"BZ?"],
)
def test_what_only_looks_packed_is_not(head: bytes) -> None:
    assert packing_of(head) is None


def test_head_of_lzma_with_damage_behind_it_is_not_packed() -> None:
    head = PACKED["lzma"][:13]
    found = packing_of(PACKED["lzma"][:64])
    assert found is not None
    assert found.name == "lzma"
    assert packing_of(head + b"\xff" * 51) is None


def test_each_has_the_command_that_unpacks_it_or_none() -> None:
    assert {one.name: one.unpack for one in PACKINGS if one.unpack} == {
        "xz": "unxz",
        "bzip2": "bunzip2",
        "lzma": "unlzma",
        "lz4": "unlz4",
        "zstd": "unzstd",
    }


class Doubling:
    """Stands for lz4's decompressor, which need not be installed: each byte was one, and is two."""

    def __init__(self) -> None:
        self.eof, self.needs_input, self.unused_data = False, True, b""

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        assert max_length
        if data == b"\x04\x22\x4d\x18bad":
            raise RuntimeError("LZ4F_decompress failed")
        return bytes(byte for byte in data for _ in range(2))


def test_what_needs_a_package_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = b"\x04\x22\x4d\x18ab"
    monkeypatch.setitem(sys.modules, "lz4.frame", None)
    with pytest.raises(UnsupportedFormatError, match=r"the package lz4.*not installed") as caught:
        opened("lz4", packed)
    assert caught.value.remedy == "unpack it with unlz4 first"
    fake = types.ModuleType("lz4.frame")
    fake.__dict__["LZ4FrameDecompressor"] = Doubling
    monkeypatch.setitem(sys.modules, "lz4", types.ModuleType("lz4"))
    monkeypatch.setitem(sys.modules, "lz4.frame", fake)
    assert opened("lz4", packed).read_upto(8, 10) == b"aabb"
    with pytest.raises(zlib.error, match="LZ4F_decompress"):
        opened("lz4", b"\x04\x22\x4d\x18bad").read_upto(0, 10)


class FakeError(Exception):
    """Stands for `zstandard.ZstdError`."""


class FakeReader:
    """Stands for the reader of the package zstandard, which need not be installed: each byte is two."""

    def __init__(self, source: module._Fed, asked: list[int]) -> None:
        self.source, self.asked, self.left = source, asked, b""

    def read(self, size: int) -> bytes:
        self.asked.append(size)
        while len(self.left) < size and (data := self.source.read(1000)):
            if b"bad" in data:
                raise FakeError("data corruption detected")
            self.left += bytes(byte for byte in data for _ in range(2))
        found, self.left = self.left[:size], self.left[size:]
        return found


def fake_zstandard(asked: list[int]) -> types.ModuleType:
    made = types.ModuleType("zstandard")
    made.__dict__["ZstdError"] = FakeError
    made.__dict__["ZstdDecompressor"] = lambda: types.SimpleNamespace(
        stream_reader=lambda source, read_size, read_across_frames: FakeReader(source, asked)
    )
    return made


def test_zstd_is_read_by_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    packed = module.ZSTD + bytes(range(256)) * 40
    plain = bytes(byte for byte in packed for _ in range(2))
    for name in ("compression.zstd", "backports.zstd", "zstandard"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(UnsupportedFormatError, match=r"the package zstandard.*not installed") as caught:
        opened("zstd", packed)
    assert caught.value.remedy == "unpack it with unzstd first"
    asked: list[int] = []
    monkeypatch.setitem(sys.modules, "zstandard", fake_zstandard(asked))
    monkeypatch.setattr(module, "_PLAIN_NBYTES", 3000)
    monkeypatch.setattr(module, "_HELD_NBYTES", 1000)
    taken: list[int] = []
    inside = opened("zstd", packed, taken)
    for offset, nbytes in ((0, 10), (15_000, 100), (3, 5_000), (20_000, 9_999)):
        assert inside.read_upto(offset, nbytes) == plain[offset : offset + nbytes]
    assert set(asked) == {3000}
    assert taken
    with pytest.raises(zlib.error, match="data corruption"):
        opened("zstd", module.ZSTD + b"bad").read_upto(0, 9)
    fake = types.ModuleType("backports.zstd")
    fake.__dict__["ZstdDecompressor"] = Doubling
    monkeypatch.setitem(sys.modules, "backports", types.ModuleType("backports"))
    monkeypatch.setitem(sys.modules, "backports.zstd", fake)
    assert opened("zstd", packed).read_upto(100, 50) == plain[100:150]
    with pytest.raises(NotImplementedError):
        module._no_decompressor()


def test_zstd_itself_where_it_is_installed() -> None:
    zstandard = pytest.importorskip("zstandard")
    first = zstandard.compress(PLAIN[:200_000])
    packed = first + zstandard.compress(PLAIN[200_000:])
    inside = opened("zstd", packed)
    rolls = random.Random(3)
    for _ in range(6):
        offset = rolls.randrange(len(PLAIN))
        assert inside.read_upto(offset, 10_000) == PLAIN[offset : offset + 10_000]
    broken = first + b"\xff" * 100
    with pytest.raises(zlib.error):
        opened("zstd", broken).read_upto(0, len(PLAIN))
    bomb = zstandard.compress(bytes(1 << 28))
    assert opened("zstd", bomb).read_upto(0, 10) == bytes(10)


PLAIN_INFLATED = random.Random(1).randbytes(300_000) + bytes(3_000_000) + random.Random(2).randbytes(100_000)
ONE = gzip.compress(PLAIN_INFLATED, 1)
SEVERAL = b"".join(
    gzip.compress(part, 1)
    for part in (PLAIN_INFLATED[:9], b"", PLAIN_INFLATED[9:400_000], PLAIN_INFLATED[400_000:])
)


def inside(packed: bytes, step: int | None = None) -> Inflated:
    """The inside of these bytes, of which a read gives at most `step`."""
    return Inflated(lambda offset, nbytes: packed[offset : offset + min(nbytes, step or nbytes)])


@table("packed", [ONE, SEVERAL, SEVERAL + bytes(512), ONE + b"trailing"], ids=len)
def test_any_place_in_any_order_inflated(packed: bytes) -> None:
    reader = inside(packed)
    rolls = random.Random(3)
    for _ in range(60):
        offset = rolls.randrange(len(PLAIN_INFLATED) + 1000)
        nbytes = rolls.choice([0, 1, 100, 100_000, 2_000_000])
        assert reader.read_upto(offset, nbytes) == PLAIN_INFLATED[offset : offset + nbytes]


@table("step", [1, 2, 7, 1000])
def test_pieces_of_any_size(step: int) -> None:
    packed = gzip.compress(b"a" * 1000) + gzip.compress(b"b" * 1000)
    assert inside(packed, step).read_upto(0, 3000) == b"a" * 1000 + b"b" * 1000


def test_reading_forwards_inflates_once() -> None:
    taken: list[int] = []

    def read(offset: int, nbytes: int) -> bytes:
        taken.append(offset)
        return ONE[offset : offset + nbytes]

    reader = Inflated(read)
    for offset in range(0, len(PLAIN_INFLATED), 10_000):
        assert reader.read_upto(offset, 8) == PLAIN_INFLATED[offset : offset + 8]
    assert taken == sorted(taken)
    assert len(taken) == len(set(taken))
    reader.read_upto(0, 8)
    assert taken[-1] == 0


@pytest.mark.wide
def test_memory_is_what_was_asked_for_and_a_step() -> None:
    reader = inside(gzip.compress(bytes(50_000_000)))
    assert reader.read_upto(49_000_000, 10) == bytes(10)
    assert len(reader._window) <= 1 << 20


def test_long_read_joins_its_parts_once() -> None:
    reader = inside(gzip.compress(bytes(30_000_000), 1))
    fills = []
    fill = reader._fill
    reader._fill = lambda offset, end: (fills.append(end), fill(offset, end))
    assert len(reader.read_upto(0, 30_000_000)) == 30_000_000
    assert fills == [30_000_000]


@table("nbytes", [0, 1, 5, 10, len(ONE) // 2, len(ONE) - 9])
def test_stream_that_is_cut_off_gives_what_is_there(nbytes: int) -> None:
    found = inside(ONE[:nbytes]).read_upto(0, len(PLAIN_INFLATED))
    assert PLAIN_INFLATED.startswith(found)
    assert inside(ONE[:nbytes]).read_upto(len(PLAIN_INFLATED), 10) == b""


def damaged(at: int) -> bytes:
    return ONE[:at] + bytes([ONE[at] ^ 0xFF]) + ONE[at + 1 :]


@table("at", [0, 2, len(ONE) // 2, len(ONE) - 6])
def test_damage_is_an_error(at: int) -> None:
    with pytest.raises(zlib.error):
        inside(damaged(at)).read_upto(0, len(PLAIN_INFLATED) + 1)


def test_endless_empty_members_end() -> None:
    assert inside(gzip.compress(b"") * 3000 + ONE).read_upto(0, 10) == b""
    assert inside(gzip.compress(b"") * 300 + ONE).read_upto(0, 10) == PLAIN_INFLATED[:10]


def test_read_error_passes() -> None:
    def read(offset: int, nbytes: int) -> bytes:
        raise OSError(5, "Input/output error")

    with pytest.raises(OSError, match="Input/output error"):
        Inflated(read).read_upto(0, 1)


def test_a_step_back_inflates_from_the_mark_before_it() -> None:
    inflated: list[int] = []
    nbytes = 60_000_000
    reader = Inflated(packed_reader(gzip.compress(bytes(nbytes), 1)), inflated.append)
    reader.read_upto(nbytes - 10, 10)
    once = sum(inflated)
    for offset in (nbytes // 2, nbytes - 10, 100, nbytes - 100) * 3:
        before = sum(inflated)
        assert reader.read_upto(offset, 10) == bytes(10)
        assert sum(inflated) - before < once / 4
    assert len(reader._marks) <= 1 + nbytes // (8 << 20)


def packed_reader(packed: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, nbytes: packed[offset : offset + nbytes]


@pytest.mark.wide
def test_marks_stand_within_any_member() -> None:
    parts = [random.Random(seed).randbytes(5_000_000) for seed in range(5)]
    plain = b"".join(parts)
    reader = Inflated(packed_reader(b"".join(gzip.compress(part, 1) for part in parts)))
    assert reader.read_upto(0, len(plain)) == plain
    for offset in (24_000_000, 17_000_000, 8_388_608, 9_000_000, 4_999_990, 24_999_999):
        assert reader.read_upto(offset, 100) == plain[offset : offset + 100]


def test_marks_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module_inflated, "_MOST_MARKS", 4)
    monkeypatch.setattr(module_inflated, "_MARK_NBYTES", 100_000)
    reader = inside(ONE)
    for offset in range(0, len(PLAIN_INFLATED), 50_000):
        assert reader.read_upto(offset, 50_000) == PLAIN_INFLATED[offset : offset + 50_000]
        assert len(reader._marks) == len(reader._places) <= 4
    for offset in (3_000_000, 200_000, 0):
        assert reader.read_upto(offset, 100) == PLAIN_INFLATED[offset : offset + 100]


def test_record_of_a_zip_has_no_headers_and_one_member() -> None:
    compressor = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    packed = compressor.compress(PLAIN_INFLATED) + compressor.flush()
    for more in (b"", ONE):
        reader = Inflated(packed_reader(packed + more), is_gzip=False)
        assert reader.read_upto(len(PLAIN_INFLATED) - 10, 100) == PLAIN_INFLATED[-10:]
        assert reader.read_upto(5, 100) == PLAIN_INFLATED[5:105]
    assert len(Inflated(packed_reader(packed[:-5]), is_gzip=False).read_upto(0, len(PLAIN_INFLATED))) < len(
        PLAIN_INFLATED
    )
