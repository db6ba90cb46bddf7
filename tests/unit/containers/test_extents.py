from __future__ import annotations

import gzip
import pickle
import random
import zlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import numpy  # noqa: ICN001 - its arrays are the subject
import pytest

from inspector.containers import storage_reader
from inspector.containers.codings import TEXT, coded
from inspector.containers.container import Extent, Extents, StoredBytes, plain_extents
from inspector.containers.opening import read_container, read_extents
from inspector.containers.packed import open_source
from inspector.containers.source import BytesSource
from inspector.containers.storage_reader import ExtentReader, StorageReader, Sums, sum_extents
from inspector.errors import CancelledError, ContainerError, DamagedError, NotACheckpointError, TooLargeError
from inspector.limits import Limits
from inspector.progress import Progress
from inspector.records import replace
from tests.builders import legacy, tars, zips
from tests.builders.archives import archive, directory_of
from tests.builders.pickles import legacy_storage, op, proto, state_dict, storage, stream, tensor
from tests.builders.zips import DEFLATED, Record, build_zip

Write = Callable[..., str]
SIZES = {"0": 40, "1": 3000, "2": 0, "3": 4}
STORAGES = {key: bytes([65 + int(key)]) * (4 * numel) for key, numel in SIZES.items()}
PICKLE = state_dict(**{f"t{key}": tensor(storage(key, numel=numel), numel) for key, numel in SIZES.items()})
WHOLE = archive(PICKLE, STORAGES)
OLD = legacy.checkpoint(
    state_dict(
        **{f"t{key}": tensor(legacy_storage(key, numel=numel), numel) for key, numel in SIZES.items()}
    ),
    *((key, SIZES[key], data) for key, data in STORAGES.items()),
)
MISSING = "its bytes are not in the file"


@pytest.fixture
def look(write: Write) -> Callable[[bytes], tuple[Extents, Sums]]:
    """Find and sum the storages of these bytes."""

    def look(data: bytes) -> tuple[Extents, Sums]:
        with open_source(write(data)) as source:
            found = read_extents(source, Limits(), Progress())
            return found, sum_extents(source, found.whole, Progress())

    return look


Look = Callable[[bytes], tuple[Extents, Sums]]
CRCS = {key: zlib.crc32(data) for key, data in STORAGES.items()}


@pytest.mark.parametrize("data", [WHOLE, OLD, gzip.compress(OLD), WHOLE[: directory_of(WHOLE)]])
def test_whole_file(look: Look, data: bytes) -> None:
    found, sums = look(data)
    assert found.lost == {}
    assert sums.faults == {}
    assert sums.crcs == CRCS
    is_zip = data[:2] == b"PK"
    assert sums.unchecked == (frozenset() if is_zip else frozenset({"0", "1", "3"}))
    names = ["data.pkl", ".format_version", ".storage_alignment", "byteorder", "version"]
    expected = [f"archive/{name}" for name in (*names, ".data/serialization_id")] if is_zip else []
    assert list(found.records) == expected


def test_archive_without_checksums_is_not_checked(look: Look) -> None:
    _, sums = look(archive(PICKLE, STORAGES, checksums=False))
    assert sums.crcs == CRCS
    assert sums.unchecked == {"0", "1", "3"}


@pytest.mark.parametrize("key", ["0", "1", "3"])
def test_changed_byte_is_seen_where_there_are_checksums(look: Look, key: str) -> None:
    def changed(data: bytes) -> bytes:
        place = data.index(STORAGES[key]) + len(STORAGES[key]) // 2
        return data[:place] + b"?" + data[place + 1 :]

    _, sums = look(changed(WHOLE))
    assert sums.faults == {key: "its checksum is wrong: bytes of it were changed or lost"}
    assert key not in sums.crcs
    _, sums = look(changed(OLD))
    assert sums.faults == {}


def test_file_that_ends_within_a_storage(look: Look) -> None:
    place = WHOLE.index(STORAGES["1"]) + 1234
    found, sums = look(WHOLE[:place])
    assert found.lost == {"1": "the file ends within it, after 1,234 of 12,000 bytes", "3": MISSING}
    assert list(sums.crcs) == ["2", "0"]
    found, _ = look(OLD[: OLD.index(STORAGES["1"]) + 1234])
    assert found.lost == {"1": MISSING, "3": MISSING}


def test_file_that_ends_before_the_checksum_of_a_storage(look: Look) -> None:
    end = WHOLE.index(STORAGES["1"]) + len(STORAGES["1"])
    for more in (0, 15):
        found, _ = look(WHOLE[: end + more])
        assert found.lost["1"] == (
            "the file ends before its checksum, so that nothing tells whether its bytes are its own"
        )
    found, sums = look(WHOLE[: end + 16])
    assert found.lost == {"3": MISSING}
    assert sums.crcs["1"] == CRCS["1"]


def test_header_that_was_overwritten(look: Look) -> None:
    place = WHOLE.rindex(b"PK\3\4", 0, WHOLE.index(STORAGES["1"]))
    found, _ = look(WHOLE[:place] + bytes(20) + WHOLE[place + 20 :])
    assert found.lost == {"1": "the header of its record was overwritten"}


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"data": b"x" * 8}, "the file holds 8 bytes of it, and it should have 160"),
        ({"nbytes": 160, "data": b"x" * 8}, "its record has two sizes"),
        ({"method": 99}, "its record is encrypted or packed in a way that torch does not read"),
        ({"flags": 1}, "its record is encrypted or packed in a way that torch does not read"),
        ({"stored_nbytes": 10**6}, "the file ends within it, after "),
    ],
)
def test_records_that_are_not_what_the_pickle_says(look: Look, fields: dict[str, object], why: str) -> None:
    pickle = state_dict(a=tensor(storage("0", numel=40), 40))
    record = Record(name="a/data/0", **{"data": STORAGES["0"], **fields})
    found, _ = look(build_zip(Record(name="a/data.pkl", data=pickle), record))
    assert list(found.lost) == ["0"]
    assert found.lost["0"].startswith(why)


def test_record_that_is_missing(look: Look) -> None:
    found, _ = look(zips.checkpoint(PICKLE, {"0": STORAGES["0"], "3": STORAGES["3"]}))
    assert found.lost == {"1": MISSING}


def test_legacy_storage_of_another_size(look: Look) -> None:
    pickle = state_dict(a=tensor(legacy_storage("0", numel=2), 2))
    found, _ = look(legacy.checkpoint(pickle, ("0", 1, b"1234")))
    assert found.lost == {"0": "the file holds 4 bytes of it, and it should have 8"}


# ------------------------------------------------------------------------------------------- packed


def packed(**fields: object) -> bytes:
    """A zip with all storages deflated, and the second one as these fields tell."""
    records = [
        Record(name=f"a/data/{key}", data=data, method=DEFLATED, **(fields if key == "1" else {}))
        for key, data in STORAGES.items()
    ]
    return build_zip(Record(name="a/data.pkl", data=PICKLE, method=DEFLATED), *records)


def test_packed_storages_are_inflated(look: Look) -> None:
    found, sums = look(packed())
    assert (found.lost, sums.crcs, sums.unchecked) == ({}, CRCS, frozenset())


@pytest.mark.wide
def test_packed_storage_is_inflated_no_further_than_it_says(write: Write) -> None:
    bomb = zlib.compressobj(wbits=-15)
    data = bomb.compress(bytes(50_000_000)) + bomb.flush()
    with open_source(write(data)) as source:
        read = sum(map(len, ExtentReader(source).contents(Extent(0, len(data), 5_000_000, DEFLATED, 0))))
    assert read == 5_000_000


def test_damaged_packed_storages(write: Write) -> None:
    data = packed()
    with open_source(write(data)) as source:
        extent = read_extents(source, Limits(), Progress()).whole["1"]
    broken = (
        data[: extent.offset] + b"\xff" * extent.stored_nbytes + data[extent.offset + extent.stored_nbytes :]
    )
    with open_source(write(broken)) as source:
        (fault,) = sum_extents(source, {"1": extent}, Progress()).faults.values()
        assert fault.startswith("a compressed record is damaged")
    with open_source(write(data)) as source:
        longer = extent._replace(nbytes=extent.nbytes + 7)
        (fault,) = sum_extents(source, {"1": longer}, Progress()).faults.values()
        assert fault == "a compressed record is shorter than it says: 7 bytes short"


def test_gzip_that_is_damaged_loses_what_lies_behind(look: Look) -> None:
    numel = 700_000
    noise = {key: random.Random(key).randbytes(4 * numel) for key in "01"}
    pickle = state_dict(**{f"t{key}": tensor(legacy_storage(key, numel=numel), numel) for key in "01"})
    data = bytearray(gzip.compress(legacy.checkpoint(pickle, *((key, numel, noise[key]) for key in "01")), 1))
    data[-5] ^= 0xFF  # gzip's own checksum
    found, sums = look(bytes(data))
    assert found.lost == {"1": MISSING}
    assert sums.crcs == {"0": zlib.crc32(noise["0"])}


# ------------------------------------------------------------------------------------------- manners


def test_bytes_are_read_in_small_steps(write: Write, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage_reader, "STEP_NBYTES", 100)
    with open_source(write(b"x" * 250)) as source:
        assert list(map(len, ExtentReader(source).contents(Extent(0, 250, 250, 0, 0)))) == [100, 100, 50]
        with pytest.raises(DamagedError, match="ends too early"):
            list(ExtentReader(source).contents(Extent(200, 100, 100, 0, 0)))


def test_progress_and_cancellation(write: Write) -> None:
    progress = Progress()
    with open_source(write(WHOLE)) as source:
        found = read_extents(source, Limits(), progress)
        sum_extents(source, found.whole, progress)
        assert (progress.label, progress.done, progress.total) == ("checking", 12_176, 12_176)
        progress.cancel()
        with pytest.raises(CancelledError):
            sum_extents(source, found.whole, progress)


def test_what_is_no_checkpoint_is_refused(write: Write) -> None:
    with open_source(write(b"<html>")) as source, pytest.raises(NotACheckpointError):
        read_extents(source, Limits(), Progress())


def test_zeros_at_the_end_of_a_tensor_and_behind_it_are_one_hole(look: Look) -> None:
    """Nobody can tell where it begins; a tensor that ends in something else is left in peace."""
    place = OLD.index(STORAGES["1"])
    end = place + len(STORAGES["1"])
    for start, lost in ((end - 8, ["1", "3"]), (end - 7, ["3"]), (end, ["3"])):
        found, sums = look(OLD[:start] + bytes(len(OLD) - start))
        assert sorted(found.lost) == lost
        assert set(sums.crcs) == set(SIZES) - set(lost)
    found, _ = look(OLD[: end - 8] + bytes(len(OLD) - end + 8))
    assert found.lost["1"] == "zeros stand at its end and behind it, where the next tensor should be"


def test_empty_tensor_behind_zeros_is_no_hole(look: Look) -> None:
    pickle = state_dict(a=tensor(legacy_storage("0", numel=4), 4), b=tensor(legacy_storage("1", numel=0), 0))
    found, _ = look(legacy.checkpoint(pickle, ("0", 4, bytes(16)), ("1", 0, b"")))
    assert found.lost == {}


def test_what_lies_behind_the_bound_of_gzip_is_not_lost(write: Write) -> None:
    with open_source(write(gzip.compress(bytes(5000))), Limits(inflated_nbytes=4000)) as source:
        extent = Extent(3990, 20, 20, zips.STORED, 0)
        with pytest.raises(TooLargeError):
            sum_extents(source, {"0": extent}, Progress())


def test_storages_of_a_tar_file(look: Look) -> None:
    rows = [tars.Storage(number, "cuda:0", bytes([number]) * 8) for number in (1, 2)]
    found, sums = look(tars.checkpoint(stream(proto(), op("EMPTY_DICT")), rows, []))
    assert sorted(found.whole) == ["1", "2"]
    assert sums.crcs == {str(number): zlib.crc32(bytes([number]) * 8) for number in (1, 2)}


def test_storages_of_a_compressed_pickle_are_found_inside(write: Write) -> None:
    saved = pickle.dumps({f"layer.{number}": numpy.arange(8.0) + number for number in range(3)}, 4)
    with open_source(write(gzip.compress(saved))) as source:
        found = read_extents(source, Limits(), Progress())
        assert found.lost == {}
        read = [b"".join(ExtentReader(source).contents(extent)) for extent in found.whole.values()]
    assert read == [(numpy.arange(8.0) + number).tobytes() for number in range(3)]


def test_what_is_compressed_without_a_way_to_inflate_it_is_lost() -> None:
    container = read_container(BytesSource(OLD, "a.pt"))
    packed = {key: StoredBytes(0, None, place.nbytes) for key, place in container.stored.items()}
    lost = plain_extents(container, packed).lost
    assert set(lost.values()) == {"it is compressed, and nothing here inflates it"}


NUMEL = 5000
DATA = {key: random.Random(key).randbytes(4 * NUMEL) for key in "01"}
PICKLE_STORAGE_READER = state_dict(**{f"t{key}": tensor(storage(key, numel=NUMEL), NUMEL) for key in DATA})
ZIP = archive(PICKLE_STORAGE_READER, DATA)
LEGACY = legacy.checkpoint(
    state_dict(**{f"t{key}": tensor(legacy_storage(key, numel=NUMEL), NUMEL) for key in DATA}),
    *((key, NUMEL, data) for key, data in DATA.items()),
)


def packed_storage_reader(data: dict[str, bytes] = DATA) -> bytes:
    return build_zip(
        Record(name="a/data.pkl", data=PICKLE_STORAGE_READER),
        *(Record(name=f"a/data/{key}", data=data, method=DEFLATED) for key, data in data.items()),
        Record(name="a/version", data=b"3\n"),
    )


FILES = {"zip": ZIP, "legacy": LEGACY, "deflated": packed_storage_reader(), "gzip": gzip.compress(LEGACY)}
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
    data = packed_storage_reader()
    start = data.index(b"a/data/0") + len(b"a/data/0")
    broken = data[:start] + b"\xff" * 100 + data[start + 100 :]
    with reading(broken) as reader, pytest.raises(DamagedError, match="a compressed record is damaged"):
        reader.read("0", 0, 4 * NUMEL)
    with reading(packed_storage_reader({key: value[:-4] for key, value in DATA.items()})) as reader:
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
    with reading(packed_storage_reader({"0": bytes(50_000_000), "1": DATA["1"]})) as reader:
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
