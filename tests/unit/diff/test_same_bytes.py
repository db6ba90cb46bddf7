from __future__ import annotations

import gzip
import hashlib
import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest

from inspector.containers.packed import open_source
from inspector.diff import same_bytes
from inspector.diff.same_bytes import (
    Span,
    find_difference,
    hash_file,
    legacy_spans,
    sample_spans,
    tar_spans,
    total_nbytes,
    whole_spans,
    zip_spans,
)
from inspector.errors import CancelledError, ContainerError, ExportError
from inspector.progress import Progress
from tests.builders import tars
from tests.sweep import table
from tests.unit.remap.samples import NBYTES, legacy_of, mapping, stream, tensor, text, written, zip_of

SHORT = stream(mapping(a=tensor(text("cpu")), b=tensor(text("cpu"), "1")))
LONG = stream(mapping(a=tensor(text("cuda:11")), b=tensor(text("cuda:11"), "1")))
STORAGES = {"0": bytes(range(NBYTES)), "1": bytes(range(100, 100 + NBYTES))}
OTHERS = {"0": bytes(range(NBYTES)), "1": bytes(NBYTES)}
KB = 1024


@pytest.fixture
def two(tmp_path: Path):
    def make(one: bytes, other: bytes):
        return (
            open_source(str(written(tmp_path, one, "one"))),
            open_source(str(written(tmp_path, other, "two"))),
        )

    return make


# --- samples ------------------------------------------------------------------------------------------------


@table("most", [0, 256 * KB, 1024 * KB])
def test_samples_come_from_all_over(most: int) -> None:
    spans = [Span(number * 1000 * KB, 64 + number * 1000 * KB, 1000 * KB) for number in range(20)]
    found = sample_spans(spans, most)
    assert 2 <= len(found) <= max(most // (128 * KB), 2)
    assert found[0].offset == 0
    assert all(span.copy_offset == span.offset + 64 for span in found)
    assert total_nbytes(found) <= max(most, 256 * KB)
    last = max(found)
    assert last.offset >= 20_000 * KB - 128 * KB
    gaps = [later.offset - sooner.offset for sooner, later in itertools.pairwise(found)]
    assert max(gaps) - min(gaps) <= 1


def test_samples_stay_within_their_spans() -> None:
    spans = [Span(number * 100, number * 100, 60) for number in range(10_000)]
    found = sample_spans(spans, 300_000)
    assert found
    assert all(span.offset % 100 + span.nbytes <= 60 for span in found)


# --- comparing ----------------------------------------------------------------------------------------------


def test_the_step_that_differs_is_named(two, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(same_bytes, "_STEP_NBYTES", 4)
    one, other = two(b"0123456789", b"xx01234!6789")
    progress = Progress()
    assert find_difference(one.read, other.read, [Span(0, 2, 5)], progress) is None
    assert progress.done == 5
    assert find_difference(one.read, other.read, [Span(0, 2, 10)], Progress()) == Span(4, 6, 4)
    with pytest.raises(ContainerError):
        find_difference(one.read, other.read, [Span(8, 10, 5)], Progress())
    progress.cancel()
    with pytest.raises(CancelledError):
        find_difference(one.read, other.read, [Span(0, 2, 5)], progress)


def test_files_of_which_nothing_is_changed_are_compared_whole(two) -> None:
    assert whole_spans(*two(b"abcd", b"abxd"), Progress()) == [Span(0, 0, 4)]
    with pytest.raises(ExportError, match="differ in length"):
        whole_spans(*two(b"abcd", b"abc"), Progress())


@pytest.mark.parametrize(("pair", "make"), [(zip_spans, zip_of), (legacy_spans, legacy_of)])
def test_files_that_differ_in_their_pickles_only(two, pair, make) -> None:
    one, other = two(make(SHORT, STORAGES), make(LONG, STORAGES))
    spans = pair(one, other, Progress())
    assert total_nbytes(spans) >= 2 * NBYTES
    assert find_difference(one.read, other.read, spans, Progress()) is None
    one, other = two(make(SHORT, STORAGES), make(LONG, OTHERS))
    if pair is legacy_spans:
        assert find_difference(one.read, other.read, pair(one, other, Progress()), Progress()) is not None
        return
    with pytest.raises(ExportError, match="differ in name, size or checksum"):  # the directory says so
        pair(one, other, Progress())


def test_a_gzip_file_is_compared_by_its_inside(two) -> None:
    one, other = two(gzip.compress(legacy_of(SHORT, STORAGES)), legacy_of(LONG, STORAGES))
    assert find_difference(one.read, other.read, legacy_spans(one, other, Progress()), Progress()) is None


@pytest.mark.parametrize("tail", [b"", b"more and more"])
def test_legacy_files_must_be_equally_long(two, tail: bytes) -> None:
    one, other = two(legacy_of(SHORT, STORAGES, b"more"), legacy_of(LONG, STORAGES, tail))
    with pytest.raises(ExportError, match="differ in length"):
        legacy_spans(one, other, Progress())


TAR = tars.Storage(1, "cpu", bytes(8)), tars.Storage(2, "cpu", b"12345678")


def tar(
    storages: Sequence[tars.Storage] = TAR, views: Sequence[tars.View] = (), root: bytes = SHORT
) -> bytes:
    return tars.checkpoint(root, storages, [], views)


def test_tar_files_that_differ_in_their_tags_only(two) -> None:
    one, other = two(tar(), tar([row._replace(location="cuda:11") for row in TAR]))
    spans = tar_spans(one, other, Progress())
    assert total_nbytes(spans) > 16
    assert find_difference(one.read, other.read, spans, Progress()) is None
    one, other = two(tar(), tar([TAR[0], TAR[1]._replace(data=b"12345679")]))
    assert find_difference(one.read, other.read, tar_spans(one, other, Progress()), Progress()) is not None


@pytest.mark.parametrize(
    "data",
    [
        tar(TAR[:1]),
        tar([TAR[0], TAR[1]._replace(key=3)]),
        tar([TAR[0], TAR[1]._replace(data=bytes(4))]),
        tar(views=[(7, 1, 0, 1)]),
        tar(root=LONG),
        tars.archive(
            {"pickle": SHORT, "tensors": tars.tensors_member([]), "storages": tars.storages_member(TAR)}
        ),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_tar_files_must_hold_the_same(two, data: bytes, turned: bool) -> None:
    one, other = two(*((data, tar()) if turned else (tar(), data)))
    with pytest.raises(ExportError, match="of the two files differ"):
        tar_spans(one, other, Progress())


def test_records_must_be_the_same(two) -> None:
    one, other = two(zip_of(SHORT, STORAGES), zip_of(SHORT, {"0": STORAGES["0"]}))
    with pytest.raises(ExportError, match="differ in name, size or checksum"):
        zip_spans(one, other, Progress())


def test_a_record_that_one_archive_has_lost_is_told(two) -> None:
    data = zip_of(SHORT, STORAGES)
    start = data.index(b"PK\x03\x04", data.index(b"data/0"))  # of data/1
    broken = data[:start] + b"XX" + data[start + 2 :]
    one, other = two(data, broken)
    with pytest.raises(ExportError, match="not where its directory says"):
        zip_spans(one, other, Progress())
    one, other = two(broken, broken)  # a damaged file may have a damaged copy
    assert NBYTES <= total_nbytes(zip_spans(one, other, Progress())) < 2 * NBYTES


# --- hashing ------------------------------------------------------------------------------------------------


def test_a_hash_is_that_of_sha256sum(tmp_path: Path) -> None:
    data = bytes(3 << 20) + b"end"
    progress = Progress()
    assert hash_file(str(written(tmp_path, data)), progress) == hashlib.sha256(data).hexdigest()
    assert progress.done == progress.total == len(data)
