from __future__ import annotations

import bz2
import lzma
import random
import sys
import types
import zlib

import pytest

from inspector.containers import packings as module
from inspector.containers.packings import PACKINGS, packing_of
from inspector.errors import UnsupportedFormatError
from tests.sweep import table

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
