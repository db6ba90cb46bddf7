"""Storages are placed in columns where they are when they are looked up one by one."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from inspector.containers.persistent_ids import StorageId
from inspector.containers.source import BytesSource
from inspector.containers.zip import directory as directory_module
from inspector.containers.zip.archive import Places, find_storages
from inspector.containers.zip.directory import DEFLATED, read_directory
from inspector.containers.zip.kinds import Records
from inspector.containers.zip.placed import Placed
from inspector.errors import CancelledError
from inspector.limits import Limits
from inspector.progress import Progress
from tests.builders.zips import Record, build_zip

_KEYS = [str(number) for number in range(20)]


def archive(**fields: Any) -> list[Record]:
    """What torch writes of twenty storages."""
    first = [Record(name="a/data.pkl", data=b"N."), Record(name="a/byteorder", data=b"little")]
    return [*first, *(Record(name=f"a/data/{key}", data=b"x" * 9, **fields) for key in _KEYS)]


def places_in(data: bytes, keys: list[str], *, many: int) -> Places:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(directory_module, "MANY", many)
        source = BytesSource(data, "a.zip")
        ids = {key: StorageId(key, "uint8", 1, "cpu", 9, untyped=False, view=None) for key in keys}
        return find_storages(source, Records(read_directory(source, Limits())), ids, Progress())


def is_in_columns(data: bytes, keys: list[str] | None = None) -> bool:
    """Whether storages are placed in columns; that they are placed alike is seen beside that."""
    keys = _KEYS if keys is None else keys
    found, plain = (places_in(data, keys, many=many) for many in (12, 1 << 30))
    assert found[1:] == plain[1:]
    assert dict(found.stored) == dict(plain.stored)
    assert list(found.stored) == list(plain.stored)
    assert len(found.stored) == len(plain.stored)
    for key in [*keys, "20", "x", "00"]:
        assert found.stored.get(key) == plain.stored.get(key)
    return isinstance(found.stored, Placed)


def test_storages_are_placed_as_one_by_one() -> None:
    assert is_in_columns(build_zip(*archive()))
    assert is_in_columns(build_zip(*archive()), _KEYS[3:9])  # the other records are nobody's storages
    assert is_in_columns(build_zip(*archive(), Record(name="a/version", data=b"3")))
    assert is_in_columns(build_zip(*archive()), [])


def test_storages_that_are_lost_are_lost() -> None:
    made = archive()
    made[5] = replace(made[5], local_signature=b"PK\5\6")
    assert is_in_columns(build_zip(*made))
    made = archive()
    made[-1] = replace(made[-1], extra=b"Z" * 5000)
    data = build_zip(*made)
    moved = data.replace(b"a/data/19", b"a/data/19", 1)
    at = moved.index(b"a/data/19") - 2
    assert is_in_columns(moved[:at] + b"\xff\xff" + moved[at + 2 :])  # its extra field runs past the end


def test_records_in_each_other_are_told() -> None:
    made = archive()
    made[9] = replace(made[9], offset=made[8].offset)
    data = build_zip(*made)
    assert is_in_columns(data)
    shared = build_zip(*[replace(one, offset=0) if row > 1 else one for row, one in enumerate(archive())])
    assert is_in_columns(shared)
    assert places_in(shared, _KEYS, many=12).overlap


def test_what_is_odd_is_placed_one_by_one() -> None:
    assert not is_in_columns(build_zip(*archive()), [*_KEYS, "20"])
    assert not is_in_columns(build_zip(*archive()), ["7", "3"])
    assert not is_in_columns(build_zip(*archive(flags=1)))
    assert not is_in_columns(build_zip(*archive(method=DEFLATED, nbytes=9, stored_nbytes=9)))
    assert not is_in_columns(build_zip(*archive(), Record(name="A/data/3", data=b"evil")))


def test_placing_is_cancelled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(directory_module, "MANY", 12)
    source = BytesSource(build_zip(*archive()), "a.zip")
    records = Records(read_directory(source, Limits()))
    ids = {key: StorageId(key, "uint8", 1, "cpu", 9, untyped=False, view=None) for key in _KEYS}
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        find_storages(source, records, ids, progress)
