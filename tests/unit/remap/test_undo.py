from __future__ import annotations

import hashlib
import json
import os
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
    refuse_stranger,
    restore,
    undo_patch,
)
from inspector.remap.plan import Plan, plan_remap
from inspector.remap.relabel import Patch
from inspector.remap.rules import Rules, parse_rule
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

DATA = bytes(range(256)) * 1024  # longer than what the witness hashes at each end
PIECES = (Patch(10, b"NEW"), Patch(150_000, b"x" * 9000), Patch(len(DATA) - 4, b"last"))
APPENDED = Patch(len(DATA), b"more")
PLAN = Plan(
    rules=Rules(map(parse_rule, ("path:a/**@mps", "cuda:*=cpu", "*=xpu"))),
    tensors={0: "cpu", 1: "cpu", 2: "xpu", 7: "xpu", 5: "cpu"},
    storages={},
    kept=(3, 4),
    held=frozenset(),
    texts=frozenset(),
)


def noted(path: Path, pieces: tuple[Patch, ...] = PIECES) -> UndoRecord:
    with FileSource(str(path)) as source:
        return make_record(source, pieces, PLAN, path.stat().st_mtime_ns)


def patch(path: Path, pieces: tuple[Patch, ...]) -> None:
    with path.open("r+b") as file:
        for piece in pieces:
            file.seek(piece.offset)
            file.write(piece.data)


def check(path: Path, record: UndoRecord) -> None:
    with FileSource(str(path)) as source:
        refuse_stranger(source, record)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return written(tmp_path, DATA, "best.pth")


@pytest.mark.parametrize("pieces", [PIECES, (*PIECES, APPENDED), (APPENDED,)])
def test_a_record_is_read_as_it_was_written(path: Path, pieces: tuple[Patch, ...]) -> None:
    record = noted(path, pieces)
    at = written(path.parent, format_undo(record), "best.pth.undo")
    assert read_undo(at) == record
    assert record.rules == (("cuda:*", "cpu"), ("*", "xpu"))
    assert record.runs == ((0, 2, "cpu"), (2, 3, "xpu"), (3, 5, ""), (5, 6, "cpu"), (7, 8, "xpu"))
    assert record.nbytes_after == (len(DATA) + 4 if APPENDED in pieces else len(DATA))
    patch(path, pieces)
    check(path, record)
    with path.open("r+b") as file:
        restore(file.fileno(), record)
    assert path.read_bytes() == DATA


@pytest.mark.parametrize("count", range(4))
def test_a_patch_that_broke_off_is_recognized(path: Path, count: int) -> None:
    record = noted(path)
    patch(path, PIECES[:count])
    patch(path, tuple(Patch(piece.offset, piece.data[: len(piece.data) // 2]) for piece in PIECES[count:]))
    check(path, record)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (Patch(5, b"!"), "another file"),  # in what the witness hashes
        (Patch(len(DATA) - 9, b"!"), "another file"),
        (Patch(len(DATA), b"!"), "another file"),  # it has grown
        (Patch(150_100, b"!"), "changed since it was patched"),
    ],
)
def test_what_others_changed_is_not_written_over(path: Path, change: Patch, what: str) -> None:
    record = noted(path)
    patch(path, PIECES)
    patch(path, (change,))
    with pytest.raises(ExportError, match=what) as error:
        check(path, record)
    assert error.value.remedy == "if the file is as it should be, delete the record"


def test_a_file_that_was_cut_off_is_another(path: Path) -> None:
    record = noted(path)
    path.write_bytes(DATA[:-1])
    with pytest.raises(ExportError, match="another file"):
        check(path, record)


def test_small_files_are_known_again_too(tmp_path: Path) -> None:
    path = written(tmp_path, b"0123456789")
    record = noted(path, (Patch(0, b"ab"), Patch(8, b"cd")))
    patch(path, (Patch(0, b"ab"), Patch(8, b"cd")))
    check(path, record)
    patch(path, (Patch(4, b"!"),))
    with pytest.raises(ExportError, match="another file"):
        check(path, record)


def made(record: UndoRecord | None = None, **parts: object) -> bytes:
    """A record's bytes with other figures in it, whose hash is right."""
    head = {"nbytes": len(DATA), "mtime_ns": 1, "places": 1, "runs": 0, "texts": None, **parts}
    texts = parts.get("json", json.dumps({"rules": [], "devices": []}).encode())
    body = in_place._HEAD.pack(
        head["nbytes"], head["mtime_ns"], bytes(32), head["places"], head["runs"], len(texts)
    )
    body += b"".join(in_place._PLACE.pack(*place) for place in parts.get("table", [(1, 3, 3)]))
    body += parts.get("more", b"")
    body += b"".join(in_place._MOVE.pack(*move) for move in parts.get("moves", []))
    body += texts + parts.get("data", b"oldnew")
    return in_place._MAGIC + hashlib.sha256(body).digest() + body


def test_the_figures_of_these_records_are_otherwise_right(tmp_path: Path) -> None:
    assert read_undo(written(tmp_path, made(), "x.undo")).before == (Patch(1, b"old"),)


TWO = {"places": 2, "data": b"oldoldnewnew"}
END = len(DATA)
DAMAGED = {
    "empty": b"",
    "no magic": b"x" + made(),
    "cut": made()[:-1],
    "turned": made()[:-1] + b"!",
    "no head": in_place._MAGIC + hashlib.sha256(b"abc").digest() + b"abc",
    "more places than bytes": made(places=400_000),
    "more places than any change has": made(
        places=400_009, table=[], more=in_place._PLACE.pack(0, 1, 1) * 400_009
    ),
    "more runs than there are tensors": made(
        runs=800_001, more=in_place._MOVE.pack(0, 1, 0xFFFFFFFF) * 800_001
    ),
    "more runs than bytes": made(runs=800_000),
    "no JSON": made(json=b"{"),
    "deep JSON": made(json=b"[" * 100_000),
    "a number of many digits": made(json=b"9" * 100_000),
    "a list": made(json=b"[]"),
    "a key is missing": made(json=b"{}"),
    "rules of numbers": made(json=b'{"rules": [[1, 2]], "devices": []}'),
    "rules of one": made(json=b'{"rules": [["a"]], "devices": []}'),
    "devices of lists": made(json=b'{"rules": [], "devices": [[]]}'),
    "much JSON": made(json=b'{"rules": [], "devices": []}'.ljust((1 << 20) + 1)),
    "a device that is not there": made(runs=1, moves=[(0, 1, 5)]),
    "a time that never is": made(mtime_ns=(1 << 64) - 1),
    "outside": made(table=[(END - 1, 3, 3)]),
    "far outside": made(table=[((1 << 64) - 1, 3, 3)]),
    "behind a gap": made(table=[(END + 1, 0, 3)], data=b"new"),
    "in the middle, and nothing before": made(table=[(1, 0, 3)], data=b"new"),
    "of two lengths": made(table=[(1, 2, 3)], data=b"olnew"),
    "nothing": made(table=[(1, 0, 0)], data=b""),
    "overlapping": made(table=[(1, 3, 3), (3, 3, 3)], **TWO),
    "not in order": made(table=[(9, 3, 3), (1, 3, 3)], **TWO),
    "too few bytes": made(data=b"oldne"),
    "too many bytes": made(data=b"oldnewer"),
    "lengths beyond all bounds": made(table=[(0, 1 << 63, 1 << 63)], nbytes=(1 << 64) - 1),
}


@table("name", DAMAGED)
def test_damaged_records_are_refused(tmp_path: Path, name: str) -> None:
    at = written(tmp_path, DAMAGED[name], "best.pth.undo")
    with pytest.raises(ExportError, match="the undo record is damaged"):
        read_undo(at)


def test_a_record_of_another_version_is_named(tmp_path: Path) -> None:
    at = written(tmp_path, b"checkpoint-inspector undo record 1\n{}", "best.pth.undo")
    with pytest.raises(ExportError, match="written by another version"):
        read_undo(at)


def test_what_is_no_small_file_is_no_record(path: Path) -> None:
    at = record_path(path)
    at.symlink_to(path)
    with pytest.raises(ExportError, match="a link to another place"):
        read_undo(at)
    at.unlink()
    os.mkfifo(at)
    with pytest.raises(ExportError, match="not a regular file"):
        read_undo(at)
    at.unlink()
    with at.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(ExportError, match="larger than"):
        read_undo(at)


def test_a_change_that_takes_too_much_to_note_is_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_place, "_MOST_NBYTES", 1000)
    with pytest.raises(ExportError, match="too large"):
        format_undo(noted(path))


def test_times_before_the_epoch_are_none(path: Path) -> None:
    with FileSource(str(path)) as source:
        assert make_record(source, (), PLAN, -5).mtime_ns == 0


@pytest.mark.parametrize("tail", [b"", b"mo", b"m\0r\0", bytes(4)])
def test_what_was_appended_may_be_there_in_part(path: Path, tail: bytes) -> None:
    record = noted(path, (APPENDED,))
    with path.open("ab") as file:
        file.write(tail)
    check(path, record)


def test_what_others_appended_is_not_cut_off(path: Path) -> None:
    record = noted(path, (APPENDED,))
    with path.open("ab") as file:
        file.write(b"mine")
    with pytest.raises(ExportError, match="changed since it was patched"):
        check(path, record)


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
