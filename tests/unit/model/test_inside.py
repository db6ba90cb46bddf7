"""Devices of files of torch within bytes; changed in `tests/unit/remap/test_rewrite.py`."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from inspector.containers.opening import read_container
from inspector.containers.source import BytesSource
from inspector.errors import CancelledError
from inspector.limits import DEFAULT_LIMITS
from inspector.model import inside
from inspector.model.build import build_checkpoint
from inspector.model.checkpoint import HiddenPlace
from inspector.model.found import Found
from inspector.model.inside import devices_inside
from inspector.progress import Progress
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY
from inspector.target.simulate import judge_load
from tests.builders.exports import saved
from tests.builders.pickles import call, dict_, op, proto, storage, stream, tensor, text
from tests.builders.scripts import evil
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


@pytest.mark.parametrize("inner", ["zip", "cut"])
def test_what_bytes_run_when_they_are_opened_counts_for_the_verdict(inner: str) -> None:
    """The load around them leaves them closed: that is said, and the file is dangerous all the same."""
    payload = saved(evil(), "0")
    if inner == "cut":
        payload = payload[: payload.rindex(b"PK\x01\x02")]  # without its directory
    files = {
        "zip": saved(dict_((text("torch"), data_of(payload))), "0"),
        "pickle": stream(proto(), dict_((text("torch"), data_of(payload)))),
    }
    for form, data in files.items():
        found = build_checkpoint(read_container(BytesSource(data, "a.pth")))
        assert found.format == form
        assert any("system" in name for _, name in found.imported_inside)
        safety = judge(found)
        assert (safety.verdict, safety.danger) == (
            "dangerous",
            "bytes in it are a checkpoint that can run commands",
        )
        assert judge_load(found, CPU_ONLY).way == "never"
    found = build_checkpoint(read_container(BytesSource(files["zip"], "a.pth")))
    assert judge_load(found, CPU_ONLY).failure is None  # torch.load opens no bytes
    assert "runs nothing" in render(found, style="plain", target=CPU_ONLY)


@pytest.mark.parametrize("depth", [2, 40])
def test_files_within_files_within_bytes_count(depth: int) -> None:
    payload = saved(evil(), "0")
    for _ in range(depth):
        raw = op("BINBYTES", struct.pack("<I", len(payload)) + payload)
        payload = saved(dict_((text("torch"), raw)), "0")
    found = build_checkpoint(read_container(BytesSource(payload, "a.pth")))
    assert judge(found).verdict == "dangerous"
    assert found.imported_inside[0][0] == "torch"


@pytest.mark.parametrize("limit", ["_MOST_FILES", "_MOST_NAMES", "_MOST_NBYTES"])
def test_what_is_not_looked_at_is_not_said_to_be_safe(limit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not even where all that was looked at is harmless: the danger stands behind it."""
    harmless = data_of(file("cpu"))
    data = saved(dict_(*((text(f"k{number}"), harmless) for number in range(3)), (text("z"), harmless)), "0")
    read = read_container(BytesSource(data, "a.pth"))
    assert judge(build_checkpoint(read)).verdict == "weights-only"
    monkeypatch.setattr(inside, limit, 1)
    safety = judge(build_checkpoint(read))
    assert safety.verdict == "unknown"
    assert "checkpoints in its bytes" in safety.reasons[0]


def test_harmless_bytes_change_no_verdict() -> None:
    data = saved(dict_((text("torch"), data_of(file("cpu")))), "0")
    found = build_checkpoint(read_container(BytesSource(data, "a.pth")))
    assert found.imported_inside
    assert judge(found).verdict == "weights-only"


def data_of(payload: bytes) -> bytes:
    """The instructions that make bytes, as protocol 2 writes them."""
    return call("_codecs.encode", text(payload.decode("latin-1")), text("latin1"))
