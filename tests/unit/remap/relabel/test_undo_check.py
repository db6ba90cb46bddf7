"""Planted undo records: what lies beside a file takes back a change of devices, and does nothing else."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from inspector.containers.source import FileSource
from inspector.errors import CancelledError, ContainerError, ExportError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap import in_place
from inspector.remap.files import record_path
from inspector.remap.in_place import (
    UndoRecord,
    format_undo,
    make_record,
    patch_in_place,
    read_undo,
    undo_patch,
)
from inspector.remap.plan import plan_remap
from inspector.remap.relabel import Patch
from inspector.remap.rules import parse_rule
from tests.builders import tars
from tests.sweep import table
from tests.unit.remap.samples import (
    NBYTES,
    call,
    legacy_of,
    mapping,
    name,
    stream,
    tensor,
    text,
    written,
    zip_of,
)

KINDS = ["zip", "legacy", "tar"]
STORAGES = {"0": bytes(range(NBYTES))}
HARMLESS = stream(mapping(a=tensor(text("cuda:0")), note=text("posix_system_true")))
EVIL = stream(mapping(a=tensor(text("cuda:0")), note=call(name("posix", "system"), text("true"))))
RULE = "*=cpu"


def padded(data: bytes, nbytes: int) -> bytes:
    """A pickle of a given length: with a number more at its front, dropped again."""
    missing = nbytes - len(data)
    return data[:2] + (b"X" + (missing - 6).to_bytes(4, "little") + b"x" * (missing - 6) + b"0") + data[2:]


LENGTH = max(len(HARMLESS), len(EVIL)) + 10
HARMLESS, EVIL = padded(HARMLESS, LENGTH), padded(EVIL, LENGTH)


def file_of(kind: str, pickle: bytes) -> bytes:
    if kind == "zip":
        return zip_of(pickle, STORAGES)
    if kind == "legacy":
        return legacy_of(pickle, STORAGES)
    # A tar file has its storages beside the pickle, which may be any.
    return tars.checkpoint(pickle, [tars.Storage(0, "cuda:0", bytes(NBYTES))], [])


def differences(one: bytes, other: bytes) -> list[Patch]:
    """What turns the one into the other, of the same length, in runs of eight."""
    runs = [(at, other[at : at + 8]) for at in range(0, len(one), 8)]
    return [Patch(at, run) for at, run in runs if one[at : at + 8] != run]


def planted(path: Path, will_be: bytes, pieces: Iterable[Patch], *rules: str) -> None:
    """Put a record beside a file that says it was another before, with the plan of a real change."""
    there = path.read_bytes()
    path.write_bytes(will_be)
    plan = plan_remap(open_checkpoint(str(path)), [parse_rule(rule) for rule in rules or (RULE,)])
    with FileSource(str(path)) as source:
        record = make_record(source, pieces, plan, 5)
    path.write_bytes(there)
    record_path(path).write_bytes(format_undo(record))


def refused(path: Path, what: str, *, force: bool = False) -> ExportError:
    before, record = path.read_bytes(), record_path(path).read_bytes()
    with pytest.raises(ExportError, match=what) as error:
        undo_patch(str(path), force=force)
    assert path.read_bytes() == before
    assert record_path(path).read_bytes() == record
    return error.value


@table("kind", KINDS)
def test_a_harmless_file_does_not_become_an_evil_one(tmp_path: Path, kind: str) -> None:
    harmless, evil = file_of(kind, HARMLESS), file_of(kind, EVIL)
    assert len(harmless) == len(evil)
    path = written(tmp_path, harmless)
    planted(path, evil, differences(evil, harmless))
    error = refused(path, "is of no change that this program makes")
    assert error.remedy is not None
    assert "--force" in error.remedy
    undo_patch(str(path), force=True)  # whoever asks for it by name
    assert path.read_bytes() == evil


def test_an_evil_file_whose_change_is_genuine_stays_as_evil_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(EVIL, STORAGES))
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]))
    undo_patch(str(path))
    assert path.read_bytes() == zip_of(EVIL, STORAGES)


def test_a_file_that_is_harmless_as_it_is_does_not_get_worse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However its bytes may be mixed from those of two evil files."""
    path = written(tmp_path, zip_of(EVIL, STORAGES))
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]))
    harmless = open_checkpoint(str(written(tmp_path, zip_of(HARMLESS, STORAGES), "harmless.pt")))
    with monkeypatch.context() as patch:
        patch.setattr(in_place, "open_checkpoint", lambda *_, **__: harmless)
        refused(path, "a worse file than the present one, dangerous: loading it can run commands")

    def fail(*_: object, **__: object) -> None:
        raise ContainerError("half of it is there")

    with monkeypatch.context() as patch:
        patch.setattr(in_place, "open_checkpoint", fail)
        refused(path, "than the present one, dangerous: loading it can run commands")


@table("nbytes", [0, 1, 10, 100, 300])
@table("kind", KINDS)
def test_a_file_is_not_cut_off(tmp_path: Path, kind: str, nbytes: int) -> None:
    data = file_of(kind, HARMLESS)
    path = written(tmp_path, data)
    with FileSource(str(path)) as source:
        record = make_record(source, (), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]), 5)
    nbytes = min(nbytes, len(data) - 1)
    short = written(tmp_path, data[:nbytes], "short")
    with FileSource(str(short)) as source:
        witness = make_record(source, (), plan_remap(open_checkpoint(str(path)), []), 5).witness
    record = replace(record, nbytes=nbytes, witness=witness, after=(Patch(nbytes, data[nbytes:]),))
    record_path(path).write_bytes(format_undo(record))
    refused(path, "is of no change that this program makes")


def test_a_file_is_not_cut_off_to_the_evil_one_at_its_front(tmp_path: Path) -> None:
    evil = zip_of(EVIL, STORAGES)
    path = written(tmp_path, evil + zip_of(HARMLESS, STORAGES))
    planted(path, evil, [Patch(len(evil), zip_of(HARMLESS, STORAGES))])
    refused(path, "is of no change that this program makes")


def test_weights_are_never_written(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(HARMLESS, STORAGES))
    start = open_checkpoint(str(path)).storages[0].file_offset
    assert start is not None
    changed = bytearray(path.read_bytes())
    changed[start : start + 4] = b"\xff" * 4
    planted(path, bytes(changed), [Patch(start, path.read_bytes()[start : start + 4])])
    refused(path, "is of no change that this program makes")


def test_a_genuine_change_with_one_byte_more_is_none(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(HARMLESS, STORAGES))
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]))
    genuine = read_undo(record_path(path))
    start = open_checkpoint(str(path)).storages[0].file_offset
    assert start is not None
    there = path.read_bytes()[start : start + 1]
    before = tuple(sorted([*genuine.before, Patch(start, b"\xee")]))
    after = tuple(sorted([*genuine.after, Patch(start, there)]))
    record_path(path).write_bytes(format_undo(replace(genuine, before=before, after=after)))
    refused(path, "no change that this program makes|belongs to another file")


def test_the_record_of_another_file_is_refused(tmp_path: Path) -> None:
    one, other = (
        written(tmp_path, zip_of(HARMLESS, {"0": bytes([value]) * NBYTES}), f"{value}.pt") for value in (1, 2)
    )
    patch_in_place(str(one), plan_remap(open_checkpoint(str(one)), [parse_rule(RULE)]))
    patch_in_place(str(other), plan_remap(open_checkpoint(str(other)), [parse_rule(RULE)]))
    record_path(other).write_bytes(record_path(one).read_bytes())
    refused(other, "belongs to another file")
    refused(other, "belongs to another file", force=True)


RUNS = {
    "tensors that are not there": ((0, 9, "cpu"),),
    "far too many": ((0, 1 << 63, "cpu"),),
    "no tensors": ((0, 0, "cpu"),),
    "one tensor twice": ((0, 1, "cpu"), (0, 1, "")),
    "a device that is none": ((0, 1, "nowhere"),),
    "another device": ((0, 1, "xpu"),),
    "none": (),
    "kept": ((0, 1, ""),),
}


@table("runs", RUNS)
def test_the_plan_of_a_record_must_be_that_of_the_change(tmp_path: Path, runs: str) -> None:
    path = written(tmp_path, zip_of(HARMLESS, STORAGES))
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]))
    genuine = read_undo(record_path(path))
    record_path(path).write_bytes(format_undo(replace(genuine, runs=RUNS[runs])))
    refused(path, "is of no change that this program makes")
    bad = replace(genuine, rules=(("*", "nowhere"),))
    record_path(path).write_bytes(format_undo(bad))
    refused(path, "is of no change that this program makes")


def test_a_change_by_path_is_taken_back_without_a_pattern(tmp_path: Path) -> None:
    """Patterns of a record could take for ever; which rows moved is noted instead."""
    path = written(tmp_path, zip_of(HARMLESS, STORAGES))
    before = path.read_bytes()
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule("path:a@cpu")]))
    record: UndoRecord = read_undo(record_path(path))
    assert (record.rules, record.runs) == ((), ((0, 1, "cpu"),))
    undo_patch(str(path))
    assert path.read_bytes() == before


def test_rules_without_end_are_not_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = written(tmp_path, zip_of(HARMLESS, STORAGES))
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]))
    genuine = read_undo(record_path(path))
    record_path(path).write_bytes(format_undo(replace(genuine, rules=(("xpu:1", "cpu"),) * 1000)))
    monkeypatch.setattr(in_place, "_MOST_QUESTIONS", 999)
    refused(path, "too many rules")


@pytest.mark.parametrize("turn", [0, 1])
def test_it_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, turn: int) -> None:
    path = written(tmp_path, zip_of(HARMLESS, STORAGES))
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]))
    there, progress = path.read_bytes(), Progress()
    if turn:
        monkeypatch.setattr(in_place, "judge", lambda *_: progress.cancel() or real_judge(*_))
        real_judge = __import__("inspector.safety.verdict", fromlist=["judge"]).judge
    else:
        progress.cancel()
    with pytest.raises(CancelledError):
        undo_patch(str(path), progress=progress)
    assert path.read_bytes() == there


def test_a_file_that_is_replaced_meanwhile_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written(tmp_path, zip_of(HARMLESS, STORAGES))
    patch_in_place(str(path), plan_remap(open_checkpoint(str(path)), [parse_rule(RULE)]))
    there = path.read_bytes()
    real = in_place.judge

    def change(*arguments: object) -> object:
        path.write_bytes(there + b"more")
        return real(*arguments)

    monkeypatch.setattr(in_place, "judge", change)
    with pytest.raises(ExportError, match="changed while it was read"):
        undo_patch(str(path))
    assert path.read_bytes() == there + b"more"
