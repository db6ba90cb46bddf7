"""Devices of files of torch within bytes; changed in `tests/unit/remap/test_rewrite.py`."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import CancelledError
from inspector.limits import DEFAULT_LIMITS
from inspector.model import inside
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import HiddenPlace
from inspector.model.found import Found
from inspector.model.inside import devices_inside
from inspector.progress import Progress
from tests.builders.exports import saved
from tests.builders.pickles import dict_, storage, tensor, text
from tests.builders.zips import Record, build_zip


def file(*places: str) -> bytes:
    rows = [
        (text(f"w{key}"), tensor(storage(str(key), location=place, numel=4), 4))
        for key, place in enumerate(places)
    ]
    return saved(dict_(*rows), *(str(key) for key in range(len(places))))


def rows(*contents: bytes) -> list[tuple[str, str]]:
    found = Found()
    found.embedded += [(f"k{number}", one) for number, one in enumerate(contents)]
    listed = devices_inside(found, b"", DEFAULT_LIMITS, Progress())
    assert all(row.what is HiddenPlace.NESTED for row, _ in listed)
    return [(row.path, row.device) for row, _ in devices_inside(found, b"", DEFAULT_LIMITS, Progress())]


def test_each_accelerator_is_listed_once_for_each_file() -> None:
    assert rows(file("cuda:1", "cpu", "cuda:0", "cuda:1"), file("cpu"), file("mps")) == [
        ("k0", "cuda:1"),
        ("k0", "cuda:0"),
        ("k2", "mps"),
    ]


def test_what_is_broken_or_too_much_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = file("cuda:0")
    bomb = build_zip(Record(name="a/data.pkl", data=bytes(1 << 20), method=8, nbytes=2 << 30))
    assert rows(whole[:40], b"", b"PK\x03\x04nothing", bomb, whole) == [("k4", "cuda:0")]
    monkeypatch.setattr(inside, "_MOST_FILES", 1)
    assert rows(whole, whole) == [("k0", "cuda:0")]
    monkeypatch.setattr(inside, "_MOST_NBYTES", len(whole) - 1)
    assert rows(whole) == []


def test_it_can_be_cancelled() -> None:
    found = Found()
    found.embedded.append(("k", file("cuda:0")))
    progress = Progress()
    progress.cancel()
    with pytest.raises(CancelledError):
        list(devices_inside(found, b"", DEFAULT_LIMITS, progress))


def test_files_that_hold_none_read_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from inspector.containers.opening import read_container
    from inspector.containers.source import BytesSource

    monkeypatch.setattr(inside, "devices_inside", None)
    assert build_checkpoint(read_container(BytesSource(file("cuda:0"), "a.pt"))).hidden_devices == ()
