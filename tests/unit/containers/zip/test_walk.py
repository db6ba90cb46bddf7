"""From header to header through holes, lies and hosts of signatures."""

from __future__ import annotations

import random
import struct
import sys
from collections.abc import Callable

import pytest

from inspector.containers.source import FileSource
from inspector.containers.zip import salvage as zip_walk
from inspector.containers.zip.salvage import ZipWalk
from inspector.errors import ContainerError
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders import zips
from tests.builders.archives import archive, directory_of
from tests.builders.pickles import state_dict, storage, tensor
from tests.work import growth

Write = Callable[..., str]
Walk = Callable[..., ZipWalk]
SIZES = {"0": 40, "1": 3000, "2": 500, "3": 4}
STORAGES = {key: random.Random(key).randbytes(4 * numel) for key, numel in SIZES.items()}
PICKLE = state_dict(**{f"t{key}": tensor(storage(key, numel=numel), numel) for key, numel in SIZES.items()})
WHOLE = archive(PICKLE, STORAGES)
RECORDS = WHOLE[: directory_of(WHOLE)]
DESCRIBED = 0x0808


@pytest.fixture
def walk(write: Write) -> Walk:
    """Walk over these bytes within these limits."""

    def walk(data: bytes, **limits: float) -> ZipWalk:
        with FileSource(write(data)) as source:
            walk = ZipWalk(source, Limits(**limits), Progress())
            walk.run()
        return walk

    return walk


def short_names(walk: ZipWalk) -> list[str]:
    return [entry.name.removeprefix("archive/") for entry in walk.entries]


def hole(data: bytes, start: int, end: int) -> bytes:
    return data[:start] + bytes(end - start) + data[end:]


def test_records_have_the_sizes_and_checksums_of_the_directory(walk: Walk, write: Write) -> None:
    from inspector.containers.zip.directory import read_directory

    with FileSource(write(WHOLE)) as source:
        directory = read_directory(source, Limits())
    found = walk(RECORDS)
    assert [entry[:6] for entry in found.entries] == [entry[:6] for entry in directory.entries]
    assert found.stream is not None
    assert found.stream.end == len(PICKLE)


@pytest.mark.parametrize(
    ("start", "end", "lost"),
    [
        # (where the hole begins and ends: storage, its header (-1), bytes (0) or end (1), bytes from there)
        (("1", 0, 100), ("1", 0, 200), []),  # amid the bytes: only a checksum can tell
        (("1", 1, -8), ("1", 1, 16), ["data/1"]),  # over the descriptor
        (("1", -1, 0), ("1", 0, 10), ["data/1"]),  # over the header
        (("0", 1, -8), ("2", 0, 40), ["data/0", "data/1", "data/2"]),
        (("3", -1, 0), ("3", 1, 700), ["data/3", "version", ".data/serialization_id"]),
    ],
)
def test_hole_loses_what_it_touches(
    walk: Walk, start: tuple[str, int, int], end: tuple[str, int, int], lost: list[str]
) -> None:
    def place(at: tuple[str, int, int]) -> int:
        key, side, more = at
        start = RECORDS.index(STORAGES[key])
        if side < 0:
            return RECORDS.rindex(b"PK\3\4", 0, start) + more
        return start + side * len(STORAGES[key]) + more

    data = hole(RECORDS, place(start), min(place(end), len(RECORDS)))
    assert short_names(walk(data)) == [name for name in short_names(walk(RECORDS)) if name not in lost]


def test_descriptor_of_the_pickle_may_be_lost(walk: Walk) -> None:
    place = RECORDS.index(PICKLE) + len(PICKLE)
    found = walk(hole(RECORDS, place, place + 16))
    assert found.entries[0][2:6] == (len(PICKLE), len(PICKLE), 0, 0)
    assert short_names(found) == short_names(walk(RECORDS))


def test_zeros_behind_a_pickle_are_its_own(walk: Walk) -> None:
    """A shorter pickle was written over a longer one, as a fixed copy does."""
    found = walk(archive(PICKLE + bytes(300), STORAGES))
    assert found.entries[0].nbytes == len(PICKLE) + 300
    assert found.stream is not None
    assert found.stream.end == len(PICKLE)
    assert len(found.entries) == len(STORAGES) + 6


def test_pickle_at_the_end_of_the_file(walk: Walk) -> None:
    place = RECORDS.index(PICKLE) + len(PICKLE)
    assert short_names(walk(RECORDS[:place])) == ["data.pkl"]


def test_records_of_unknown_length_are_searched_to_their_end(walk: Walk) -> None:
    strange = {"notes.txt": b"PK\x07\x08 and PK\x03\x04 " * 9, "byteorder2": b"little"}
    found = walk(archive(PICKLE, STORAGES, first=strange))
    assert short_names(found)[:3] == ["notes.txt", "byteorder2", "data.pkl"]
    assert found.entries[0].nbytes == len(strange["notes.txt"])
    assert short_names(walk(archive(PICKLE, {}, first=strange)[:150])) == []


def test_record_that_is_longer_than_the_pickle_says_keeps_its_own_length(walk: Walk) -> None:
    found = walk(archive(PICKLE, STORAGES | {"1": bytes(20_000)}))
    assert {entry.name: entry.nbytes for entry in found.entries}["archive/data/1"] == 20_000
    assert len(found.entries) == len(STORAGES) + 6


def test_sizes_in_the_header_are_taken_where_no_descriptor_follows(walk: Walk) -> None:
    """As other programs write zips, packed or not."""
    for method in (zips.STORED, zips.DEFLATED):
        records = [
            zips.Record(name="a/data.pkl", data=PICKLE, method=method),
            *(zips.Record(name=f"a/data/{key}", data=data, method=method) for key, data in STORAGES.items()),
        ]
        data = zips.build_zip(*records)
        found = walk(data[: directory_of(data)])
        assert [entry.nbytes for entry in found.entries] == [len(PICKLE), *map(len, STORAGES.values())]
        assert found.stream is not None
        assert len(found.storage_ids) == 4


def test_packed_record_with_a_descriptor_tells_both_sizes(walk: Walk) -> None:
    packed = zips.Record(name="a/data/1", data=STORAGES["1"][:1000] * 12, method=zips.DEFLATED)
    data = zips.build_zip(zips.Record(name="a/data.pkl", data=PICKLE), packed)
    place = data.index(b"PK\3\4", 4)
    header = bytearray(data[place : place + 30])
    crc, stored, nbytes = struct.unpack_from("<3L", header, 14)
    struct.pack_into("<H6xLLL", header, 6, DESCRIBED, 0, 0, 0)
    struct.pack_into("<H", header, 8, 8)
    body = data[:place] + bytes(header) + data[place + 30 : place + 38 + stored]
    found = walk(body + struct.pack("<4s3L", b"PK\7\x08", crc, stored, nbytes))
    assert found.entries[1][2:7] == (12_000, stored, 8, crc, DESCRIBED)


def test_packed_pickle_of_unknown_length_cannot_be_read(walk: Walk) -> None:
    data = bytearray(RECORDS)
    struct.pack_into("<H", data, 8, 8)
    found = walk(bytes(data))
    assert found.stream is None
    assert found.pickle_error is not None
    assert found.pickle_error.what == "it is compressed, and its length is not known"


def test_damaged_pickle_in_a_record_of_known_length(walk: Walk) -> None:
    data = zips.build_zip(zips.Record(name="a/data.pkl", data=PICKLE, stored_nbytes=10**9))
    found = walk(data[: directory_of(data)])
    assert found.pickle_error is not None
    assert "larger than" in found.pickle_error.what


def test_large_records_have_wide_descriptors(walk: Walk) -> None:
    """torch writes sizes of eight bytes behind records that lie beyond 4 GiB."""
    place = RECORDS.index(STORAGES["1"]) + len(STORAGES["1"])
    signature, crc, stored, nbytes = struct.unpack_from("<4s3L", RECORDS, place)
    wide = struct.pack("<4sL2Q", signature, crc, stored, nbytes)
    found = walk(RECORDS[:place] + wide + RECORDS[place + 16 :])
    assert short_names(found) == short_names(walk(RECORDS))
    assert (found.entries[5].nbytes, found.entries[5].stored_nbytes) == (nbytes, stored)
    assert found.entries[5].crc == crc
    for more in range(16, 24):  # the file ends within it
        names = short_names(walk((RECORDS[:place] + wide)[: place + more]))
        assert len(names) == short_names(walk(RECORDS)).index("data/1")


def test_signature_on_the_border_of_two_blocks(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    data = hole(RECORDS, RECORDS.index(STORAGES["0"]) - 30, RECORDS.index(STORAGES["0"]) + 400)
    expected = short_names(walk(data))
    for nbytes in range(64, 72):
        monkeypatch.setattr(zip_walk, "_SEARCH_NBYTES", nbytes)
        assert short_names(walk(data)) == expected


def test_long_pickle_is_fetched_in_pieces(walk: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(zip_walk, "_FIRST_READ_NBYTES", 16)
    assert short_names(walk(RECORDS)) == short_names(walk(WHOLE))


def test_names_in_other_folders_are_no_headers(walk: Walk) -> None:
    """The bytes of a tensor may be a zip."""
    inner = archive(PICKLE, STORAGES, folder="inner/")
    inner += bytes(-len(inner) % 4)
    pickle = state_dict(a=tensor(storage("0", numel=len(inner) // 4), len(inner) // 4))
    data = archive(pickle, {"0": inner})
    data = hole(data, data.index(inner) - 60, data.index(inner))
    assert "data.pkl" in short_names(walk(data[: directory_of(data)]))
    assert not [name for name in walk(data).names if name.startswith("inner/")]


@pytest.mark.parametrize("limits", [{"records": 5}, {"directory_nbytes": 60}])
def test_headers_are_bounded(walk: Walk, limits: dict[str, int]) -> None:
    with pytest.raises(ContainerError, match="or names without end"):
        walk(RECORDS, **limits)


@pytest.mark.parametrize("signature", [b"PK\3\4", b"PK\7\x08", b"PK\3\4PK\7\x08"])
def test_host_of_signatures_is_searched_in_proportion(walk: Walk, signature: bytes) -> None:
    def prepare(signatures: int) -> Callable[[], object]:
        data = RECORDS[:-900] + signature * signatures
        return lambda: walk(data).stream is not None or pytest.fail("the pickle is not found")

    assert growth(prepare, 1_000, 4_000) < 1.2


def test_search_gives_up_after_its_time_and_keeps_what_it_has(walk: Walk) -> None:
    place = RECORDS.index(STORAGES["1"]) - 40
    data = RECORDS[:place] + bytes(9 << 20) + RECORDS[place:]
    late, patient = walk(data, seconds=-1), walk(data)
    assert late.stream is None or late.gave_up
    assert not patient.gave_up
    assert "data/1" not in short_names(late)
    assert {"data/2", "data/3"} <= set(short_names(patient))


def test_headers_cut_off_at_the_end(walk: Walk) -> None:
    place = RECORDS.index(b"PK\3\4", 100)
    for more in (3, 29, 35):
        assert short_names(walk(RECORDS[: place + more])) == ["data.pkl"]


@pytest.mark.parametrize(
    ("wide", "nbytes"), [(struct.pack("<2H2Q", 1, 16, 7, 7), 7), (b"FB\0\0", 0xFFFFFFFF)]
)
def test_local_header_whose_sizes_stand_in_its_extra_field(walk: Walk, wide: bytes, nbytes: int) -> None:
    full = zips.Record(name="archive/x", nbytes=0xFFFFFFFF, stored_nbytes=0xFFFFFFFF, extra=b"FB\1\0Z" + wide)
    found = walk(zips.build_zip(full))
    assert [(entry.nbytes, entry.stored_nbytes) for entry in found.entries] == [(nbytes, nbytes)]


@pytest.mark.parametrize("behind", [b"PK\3\4" * 3_000, b"\1" * 3_000], ids=["signatures", "nothing"])
def test_search_ends_when_its_time_is_over(
    walk: Walk, behind: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    def is_late(found: ZipWalk) -> bool:
        found.gave_up |= sys._getframe(1).f_code.co_name == "_search"
        return found.gave_up

    monkeypatch.setattr(ZipWalk, "_is_late", is_late)
    place = RECORDS.index(STORAGES["1"]) - 40
    found = walk(RECORDS[:place] + behind)
    assert found.gave_up
    assert "data/1" not in short_names(found)
