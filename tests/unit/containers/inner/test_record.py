from __future__ import annotations

import zlib

import pytest

from inspector.containers.source import BytesSource, Source
from inspector.containers.zip.directory import read_directory
from inspector.containers.zip.records import InflatedRecord, is_stored, open_record
from inspector.errors import ContainerError, DamagedError
from inspector.limits import DEFAULT_LIMITS, Limits
from tests.builders.zips import Record, build_zip

DATA = bytes(range(256)) * 40


def opened(record: Record, limits: Limits = DEFAULT_LIMITS) -> Source:
    whole = BytesSource(build_zip(Record(name="before", data=b"x"), record), "a.zip")
    return open_record(whole, read_directory(whole, limits).entries[1], limits)


def test_contents_of_a_record_are_a_source() -> None:
    for method in (0, 8):
        found = opened(Record(name="a.pth", data=DATA, method=method))
        assert isinstance(found, InflatedRecord) == bool(method)
        assert (found.nbytes, found.read(300, 12), found.read(0, 3)) == (len(DATA), DATA[300:312], DATA[:3])
        assert found.read_upto(len(DATA) - 1, 9) == DATA[-1:]
        with pytest.raises(DamagedError, match="the file ends too early"):
            found.read(len(DATA) - 1, 9)


def test_what_inflating_costs_is_counted() -> None:
    limits = DEFAULT_LIMITS.started()
    opened(Record(name="a.pth", data=bytes(1 << 22), method=8), limits).read((1 << 22) - 1, 1)
    assert limits.work is not None
    assert limits.work.parts > 4000


def test_records_that_cannot_be_read_are_refused() -> None:
    for record, words in (
        (Record(name="a", data=DATA, flags=1), "a zip record cannot be read"),
        (Record(name="a", data=DATA, method=12), "a zip record cannot be read"),
        (Record(name="a", data=DATA, method=8, nbytes=2 << 30), "a zip record is larger than"),
    ):
        with pytest.raises(ContainerError, match=words):
            opened(record)


def test_damaged_records() -> None:
    packed = build_zip(Record(name="a", data=DATA, method=8))
    start = 30 + 1
    whole = BytesSource(packed[:start] + b"\xff" * 20 + packed[start + 20 :], "a.zip")
    found = open_record(whole, read_directory(whole, DEFAULT_LIMITS).entries[0], DEFAULT_LIMITS)
    with pytest.raises(DamagedError, match="a compressed record is damaged"):
        found.read(0, 1)
    entry = read_directory(whole, DEFAULT_LIMITS).entries[0]
    with pytest.raises(DamagedError, match="a zip record has two sizes"):
        open_record(whole, entry._replace(method=0), DEFAULT_LIMITS)


def test_record_that_the_end_of_the_file_cuts_off_is_read_as_far_as_it_goes() -> None:
    plain = build_zip(Record(name="a", data=DATA))
    entry = read_directory(BytesSource(plain, "a.zip"), DEFAULT_LIMITS).entries[0]
    cut = open_record(BytesSource(plain[:1000], "a.zip"), entry, DEFAULT_LIMITS)
    assert is_stored(entry)
    assert cut.nbytes == 1000 - 31
    assert cut.read(0, 10) == DATA[:10]
    assert zlib.crc32(DATA) == entry.crc
