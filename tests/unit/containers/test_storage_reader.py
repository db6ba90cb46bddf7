from __future__ import annotations

import gzip
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from inspector.containers import storage_reader
from inspector.containers.codings import TEXT, coded
from inspector.containers.container import Extent, StoredBytes
from inspector.containers.opening import read_container
from inspector.containers.packed import open_source
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import ExtentReader, StorageReader
from inspector.errors import CancelledError, ContainerError, DamagedError
from inspector.progress import Progress
from inspector.records import replace
from tests.builders import legacy
from tests.builders.archives import archive
from tests.builders.pickles import legacy_storage, state_dict, storage, tensor
from tests.builders.zips import DEFLATED, Record, build_zip
from tests.unit.remap.samples import NBYTES, mapping, stream, tar_of, text
from tests.unit.remap.samples import tensor as sample

NUMEL = 5000
DATA = {key: random.Random(key).randbytes(4 * NUMEL) for key in "01"}
PICKLE = state_dict(**{f"t{key}": tensor(storage(key, numel=NUMEL), NUMEL) for key in DATA})
ZIP = archive(PICKLE, DATA)
LEGACY = legacy.checkpoint(
    state_dict(**{f"t{key}": tensor(legacy_storage(key, numel=NUMEL), NUMEL) for key in DATA}),
    *((key, NUMEL, data) for key, data in DATA.items()),
)


def packed(data: dict[str, bytes] = DATA) -> bytes:
    return build_zip(
        Record(name="a/data.pkl", data=PICKLE),
        *(Record(name=f"a/data/{key}", data=data, method=DEFLATED) for key, data in data.items()),
        Record(name="a/version", data=b"3\n"),
    )


FILES = {"zip": ZIP, "legacy": LEGACY, "deflated": packed(), "gzip": gzip.compress(LEGACY)}
Reading = Callable[[bytes], AbstractContextManager[StorageReader]]


@pytest.fixture
def reading(tmp_path: Path) -> Reading:
    @contextmanager
    def reading(data: bytes) -> Iterator[StorageReader]:
        path = tmp_path / "file.pt"
        path.write_bytes(data)
        with open_source(str(path)) as source:
            yield StorageReader(read_container(source), source)

    return reading


@pytest.mark.parametrize("kind", FILES)
def test_bytes_of_any_format(
    reading: Reading, tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(storage_reader, "STEP_NBYTES", 3000)
    with reading(FILES[kind]) as reader, (tmp_path / "out").open("w+b") as out:
        for key, data in reversed(DATA.items()):
            assert reader.nbytes(key) == len(data)
            assert reader.is_packed(key) == (kind in {"deflated", "gzip"})
            assert reader.read(key, 10_000, 16) == data[10_000:10_016]
            assert reader.read(key, 16, 8) == data[16:24]
            steps = list(reader.steps(key, 100, 9000, Progress()))
            assert (b"".join(steps), max(map(len, steps))) == (data[100:9000], 3000)
            progress = Progress()
            reader.copy_to(key, 5, 7005, out.fileno(), progress)
            reader.copy_to(key, 5, 5, out.fileno(), progress)
            assert progress.done == 7000
            assert reader.crc(key) == (zlib.crc32(data) if kind in {"zip", "deflated"} else 0)
        out.seek(0)
        assert out.read() == b"".join(data[5:7005] for data in reversed(DATA.values()))


def test_bytes_of_a_tar_file(reading: Reading) -> None:
    data = bytes(range(NBYTES))
    with reading(tar_of(stream(mapping(a=sample(text("cuda:0")))), {"0": data})) as reader:
        (key,) = reader.container.stored
        assert reader.read(key, 3, 5) == data[3:8]
        assert reader.crc(key) == 0


@pytest.mark.parametrize("kind", FILES)
def test_what_is_not_there_is_not_read(reading: Reading, kind: str) -> None:
    with reading(FILES[kind]) as reader:
        assert (reader.nbytes("none"), reader.is_packed("none"), reader.crc("none")) == (0, False, 0)
        assert reader.read("none", 0, 0) == b""
        for key, offset in (("none", 0), ("0", 4 * NUMEL)):
            with pytest.raises(DamagedError, match=f"shorter than what is read of it: storage {key}"):
                reader.read(key, offset, 1)
            with pytest.raises(DamagedError):
                reader.copy_to(key, offset, offset + 1, -1, Progress())


def test_reading_can_be_cancelled(reading: Reading) -> None:
    progress = Progress()
    progress.cancel()
    with reading(ZIP) as reader, pytest.raises(CancelledError):
        list(reader.steps("0", 0, 8, progress))


def changed(reader: StorageReader, **stored: StoredBytes) -> StorageReader:
    return StorageReader(replace(reader.container, stored=stored), *reader._parts)


def test_storages_of_several_parts(reading: Reading) -> None:
    with reading(ZIP) as reader:
        container = changed(reader, a=StoredBytes(1, 2, 4), b=StoredBytes(0, 1, 3)).container
    several = StorageReader(container, BytesSource(b"0123456789", "a"), BytesSource(b"abcdefghij", "b"))
    assert several.read("a", 1, 3) == b"def"
    assert several.read("b", 0, 3) == b"123"


def test_damage_in_what_is_compressed_is_an_error(reading: Reading) -> None:
    data = packed()
    start = data.index(b"a/data/0") + len(b"a/data/0")
    broken = data[:start] + b"\xff" * 100 + data[start + 100 :]
    with reading(broken) as reader, pytest.raises(DamagedError, match="a compressed record is damaged"):
        reader.read("0", 0, 4 * NUMEL)
    with reading(packed({key: value[:-4] for key, value in DATA.items()})) as reader:
        longer = changed(reader, **{"0": StoredBytes(0, None, 4 * NUMEL)})
        with pytest.raises(DamagedError, match="a compressed record is shorter than it says"):
            list(longer.steps("0", 0, 4 * NUMEL, Progress()))


def test_spelled_bytes_that_end_too_early_are_an_error() -> None:
    spelled = "\xe9ab".encode()
    source = BytesSource(spelled, "a.pkl")
    for nbytes in (3, 5):
        read = ExtentReader(source).reader_of(Extent(0, len(spelled), nbytes, coded(TEXT), 0))
        assert read(0, 3) == b"\xe9ab"
    with pytest.raises(DamagedError, match="the bytes of a tensor end too early: 2 bytes short"):
        read(0, 5)


def test_compression_that_is_not_known_is_an_error(reading: Reading) -> None:
    with reading(ZIP) as reader:
        unknown = changed(reader, **{"9": StoredBytes(0, None, 16)})
        with pytest.raises(ContainerError, match="compressed in an unknown way: storage 9"):
            unknown.read("9", 0, 1)


@pytest.mark.wide
def test_bomb_is_inflated_no_further_than_asked(reading: Reading, monkeypatch: pytest.MonkeyPatch) -> None:
    with reading(packed({"0": bytes(50_000_000), "1": DATA["1"]})) as reader:
        seen = []
        real = reader._parts[0].read
        monkeypatch.setattr(
            reader._parts[0], "read", lambda at, nbytes: seen.append(nbytes) or real(at, nbytes)
        )
        assert reader.read("0", 1000, 10) == bytes(10)
    assert sum(seen) < 300_000


def test_extents_of_one_compressed_record_share_what_inflates_it(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 8
    packer = zlib.compressobj(wbits=-15)
    stored = packer.compress(data) + packer.flush()
    source = BytesSource(b"xx" + stored, "a.zip")
    made = []
    real = storage_reader.Inflated
    monkeypatch.setattr(storage_reader, "Inflated", lambda *args, **kw: made.append(1) or real(*args, **kw))
    reader = ExtentReader(source)
    for skip in (0, 100, 1000):
        extent = Extent(2, len(stored), 50, DEFLATED, 0, skip=skip)
        assert b"".join(reader.contents(extent)) == data[skip : skip + 50]
    assert len(made) == 1
    with pytest.raises(DamagedError, match="10 bytes short"):
        list(reader.contents(Extent(2, len(stored), 50, DEFLATED, 0, skip=len(data) - 40)))
    assert reader.reader_of(Extent(2, len(stored) - 1, 50, DEFLATED, 0))(0, 3) == data[:3]
    assert len(made) == 2


def test_a_file_of_several_that_is_not_open_is_named(tmp_path: Path) -> None:
    path = tmp_path / "file.pt"
    path.write_bytes(ZIP)
    with open_source(str(path)) as source:
        container = read_container(source)
        elsewhere = {key: found._replace(part=1) for key, found in container.stored.items()}
        reader = StorageReader(replace(container, stored=elsewhere), source)
        with pytest.raises(ContainerError, match="a file of the checkpoint is not open"):
            reader.read("0", 0, 4)
