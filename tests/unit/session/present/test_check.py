from __future__ import annotations

from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap import recover
from inspector.remap.recover import DamagedRecord, FileCheck
from inspector.session.operations import Job
from inspector.session.present.compose import check_page
from inspector.session.screen import CheckPage
from inspector.session.state import State
from tests.builders.folders import two_shards
from tests.builders.safetensors import model
from tests.unit.session.documents import saved_on

DOCUMENT = saved_on("cpu")


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 255
    path.write_bytes(data)


def test_a_whole_file_is_said_to_be_whole(real) -> None:
    assert real.screen.check.lines == ()
    real.start_job("check")
    assert real.screen.check.tone == "good"
    assert real.screen.check.lines[-1] == "No damage found."


def test_a_changed_byte_is_found_and_tied_to_its_tensors(real, copy) -> None:
    rows = open_checkpoint(str(copy))
    storage = next(row for row in rows.storages if row.nbytes > 100)
    flip(copy, storage.file_offset + 5)
    real.start_job("check")
    tensor = next(row for row in rows.tensors if row.storage == storage.key)
    assert real.screen.check.tone == "bad"
    assert any(line.startswith(f"Damaged: {tensor.path}") for line in real.screen.check.lines)
    card = real.screen.findings[0]
    assert card.id == "bad-crc"
    assert card.nodes


@pytest.mark.wide
def test_very_many_losses_are_counted(real, copy) -> None:
    for storage in open_checkpoint(str(copy)).storages:
        if storage.nbytes:
            flip(copy, storage.file_offset)
    real.start_job("check")
    assert any(line.startswith("And ") for line in real.screen.check.lines)


def test_a_check_that_runs_is_followed_and_one_that_was_cancelled_is_forgotten() -> None:
    job = Job(kind="check", about="a", progress=Progress("reading"))
    assert check_page(State(jobs=(job,)), DOCUMENT) == CheckPage(progress=job.progress)
    cancelled = check_page(State(jobs=(replace(job, status="cancelled"),)), DOCUMENT)
    assert cancelled == check_page(State(), DOCUMENT) == CheckPage(hint=cancelled.hint)


def test_a_file_that_is_gone_is_told(real, copy) -> None:
    copy.unlink()
    real.start_job("check")
    assert real.screen.check.tone == "bad"
    assert "no such file" in real.screen.check.lines[0]


def test_a_mistake_of_ours_is_said_and_ends_the_check(real, monkeypatch) -> None:
    def broken(*_given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(recover, "check_file", broken)
    real.start_job("check")
    page = real.screen.check
    assert (page.progress, page.tone) == (None, "bad")
    assert page.lines == ("unexpected ZeroDivisionError: ",)


def test_records_without_checksums_are_counted_and_damaged_ones_named() -> None:
    found = FileCheck(
        path="a",
        nbytes=10,
        checked=0,
        unchecked=2,
        lost=(),
        records=(DamagedRecord("version", "its bytes were changed"),),
        findings=(),
    )
    job = Job(kind="check", about="a", progress=Progress(), status="done", result=found)
    page = check_page(State(jobs=(job,)), DOCUMENT)
    assert page.tone == "bad"
    assert page.lines[1] == "2 records without a checksum: only the length was checked."
    assert page.lines[-1] == "Damaged: record version: its bytes were changed."


def test_torch_load_is_spoken_of_only_where_it_reads_the_file(real, view, runner, tmp_path) -> None:
    assert real.screen.check.hint == (
        "torch.load does not compare checksums. Reading the whole file shows whether it is as it was saved."
    )
    single = tmp_path / "model.safetensors"
    single.write_bytes(model(w=(4,)))
    real.open(str(single))
    assert real.screen.check.hint == (
        "Reading the whole file shows whether nothing is missing, and whether it matches its checksums if "
        "the format has any."
    )
    real.open(str(two_shards(tmp_path / "run")))
    assert real.screen.check.hint.startswith("Reading all of its files shows whether nothing is missing, ")
