from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from inspector.containers.packed import GzipSource, PackedSource, open_source
from inspector.containers.source import FileSource
from inspector.errors import DamagedError, TooLargeError
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
        assert isinstance(source, GzipSource)
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


def test_what_only_begins_as_if_it_were_packed_is_read_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"x is a letter")
    with open_source(str(path)) as source:
        assert source.read(0, 4) == b"x is"
        assert not source.gzipped
