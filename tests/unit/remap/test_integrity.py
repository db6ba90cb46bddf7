from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from inspector.errors import CancelledError, NotACheckpointError
from inspector.progress import Progress
from inspector.remap.recover import FileCheck, check_file
from tests.builders import legacy
from tests.builders.archives import archive
from tests.builders.pickles import legacy_storage, state_dict, storage, tensor

SIZES = {"0": 40, "1": 3000, "2": 0}
STORAGES = {key: random.Random(key).randbytes(4 * numel) for key, numel in SIZES.items()}


def objects(push: Callable[..., bytes]) -> bytes:
    return state_dict(**{f"t{key}": tensor(push(key, numel=numel), numel) for key, numel in SIZES.items()})


ZIP = archive(objects(storage), STORAGES)
OLD = legacy.checkpoint(objects(legacy_storage), *((key, SIZES[key], data) for key, data in STORAGES.items()))


@pytest.fixture
def check(tmp_path) -> Callable[[bytes], FileCheck]:
    """Check these bytes as a file."""

    def check(data: bytes) -> FileCheck:
        path = tmp_path / "file.pt"
        path.write_bytes(data)
        return check_file(str(path))

    return check


Check = Callable[[bytes], FileCheck]


def flipped(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


def test_intact_file(check: Check) -> None:
    found = check(ZIP)
    assert found.is_intact
    assert (found.findings, found.lost, found.records) == ((), (), ())
    assert (found.checked, found.unchecked) == (8, 0)  # two storages with bytes in them, six records
    assert found.nbytes > sum(map(len, STORAGES.values()))


def test_file_without_checksums_says_so(check: Check) -> None:
    found = check(OLD)
    assert (found.is_intact, found.checked, found.unchecked) == (True, 0, 2)
    found = check(archive(objects(storage), STORAGES, checksums=False))
    assert (found.is_intact, found.checked, found.unchecked) == (True, 0, 8)


def test_changed_byte_of_a_tensor(check: Check) -> None:
    found = check(flipped(ZIP, ZIP.index(STORAGES["1"]) + 7))
    assert not found.is_intact
    assert [row.path for row in found.lost] == ["t1"]
    (finding,) = found.findings
    assert (finding.id, finding.severity, finding.paths, finding.count) == ("bad-crc", "warning", ("t1",), 1)
    assert finding.title == "The checksum of 1 tensor is wrong"
    assert found.checked == 7


def test_changed_byte_of_another_record(check: Check) -> None:
    found = check(flipped(ZIP, ZIP.index(b"little")))
    assert not found.is_intact
    assert [record.name for record in found.records] == ["archive/byteorder"]
    (finding,) = found.findings
    assert (finding.id, finding.paths) == ("bad-crc", ())
    assert finding.title == "The checksum of 1 record is wrong"


def test_file_that_was_cut_off(check: Check) -> None:
    place = ZIP.index(STORAGES["1"]) + 100
    found = check(ZIP[:place])
    (finding,) = found.findings
    assert (finding.id, finding.severity, finding.paths) == ("truncated", "error", ("t1",))


def test_both_kinds_of_damage_have_a_finding_each(check: Check) -> None:
    data = flipped(ZIP, ZIP.index(STORAGES["0"]) + 7)
    found = check(data[: data.index(STORAGES["1"]) + 100])
    assert [(finding.id, finding.paths) for finding in found.findings] == [
        ("truncated", ("t1",)),
        ("bad-crc", ("t0",)),
    ]


def test_names_of_records_are_escaped_and_no_storage_is_taken_for_one(check: Check) -> None:
    """A key may be anything, even a record's name."""
    key = "archive/evil\x1b[2J" + "x" * 200
    pickle = state_dict(a=tensor(storage(key, numel=2), 2))
    data = archive(pickle, {key: b"12345678"}, first={"evil\x1b[2J" + "x" * 200: b"12345679"})
    found = check(flipped(flipped(data, data.index(b"12345678")), data.index(b"12345679") + 1))
    assert [row.path for row in found.lost] == ["a"]
    (record,) = found.records
    assert record.name.startswith("archive/evil\\u001b[2Jxxx")
    assert len(record.name) < 100


def test_what_is_no_checkpoint_and_cancelling(tmp_path, check: Check) -> None:
    with pytest.raises(NotACheckpointError):
        check(b"<html>")
    path = tmp_path / "file.pt"
    path.write_bytes(ZIP)
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        check_file(str(path), progress)
