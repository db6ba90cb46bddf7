from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inspector.model.build import open_checkpoint
from inspector.remap.compare.integrity import DamagedRecord, FileCheck
from inspector.resources import demo_path
from inspector.session.checker import Check, check_page
from inspector.session.controller import Session
from tests.unit.session.documents import AtOnce, a_view


@pytest.fixture
def runner() -> AtOnce:
    return AtOnce()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(demo_path(), tmp_path / "demo.pth"))


@pytest.fixture
def session(runner, copy) -> Session:
    session = Session(a_view(), runner)
    session.open(str(copy))
    return session


def flip(path: Path, place: int) -> None:
    data = bytearray(path.read_bytes())
    data[place] ^= 255
    path.write_bytes(data)


def test_a_whole_file_is_said_to_be_whole(session) -> None:
    assert session.screen.check.lines == ()
    session.check_file()
    assert session.screen.check.tone == "good"
    assert session.screen.check.lines[-1] == "Nothing is wrong."


def test_a_changed_byte_is_found_and_tied_to_its_tensors(session, copy) -> None:
    rows = open_checkpoint(str(copy))
    storage = next(row for row in rows.storages if row.nbytes > 100)
    flip(copy, storage.file_offset + 5)
    session.check_file()
    tensor = next(row for row in rows.tensors if row.storage == storage.key)
    assert session.screen.check.tone == "bad"
    assert any(line.startswith(tensor.path) for line in session.screen.check.lines)
    card = session.screen.findings[0]
    assert card.id == "bad-crc"
    assert card.nodes


def test_very_many_losses_are_counted(session, copy) -> None:
    for storage in open_checkpoint(str(copy)).storages:
        if storage.nbytes:
            flip(copy, storage.file_offset)
    session.check_file()
    assert any(line.startswith("And ") for line in session.screen.check.lines)


def test_a_check_can_be_stopped(session, runner) -> None:
    runner.waits = True
    session.check_file()
    assert session.screen.check.progress is not None
    session.cancel_check()
    runner.go_on()
    assert session.screen.check.progress is None
    assert session.screen.check.lines == ()


def test_an_answer_about_another_file_is_dropped(session, runner, copy) -> None:
    runner.waits = True
    session.check_file()
    session.open(str(copy))
    runner.go_on()
    runner.go_on()
    assert session.screen.check.lines == ()


def test_a_file_that_is_gone_is_told(session, copy) -> None:
    copy.unlink()
    session.check_file()
    assert session.screen.check.tone == "bad"
    assert "no such file" in session.screen.check.lines[0]


def test_a_mistake_of_ours_is_said_and_ends_the_check(session, monkeypatch) -> None:
    def broken(*_given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("inspector.remap.compare.integrity.check_file", broken)
    session.check_file()
    page = session.screen.check
    assert (page.progress, page.tone) == (None, "bad")
    assert page.lines == ("unexpected ZeroDivisionError: ",)


def test_nothing_is_checked_without_a_file(runner) -> None:
    session = Session(a_view(), runner)
    session.check_file()
    assert check_page(Check()).lines == session.screen.check.lines == ()


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
    page = check_page(Check(result=found))
    assert page.tone == "bad"
    assert page.lines[1] == "The file has no checksum of 2 records: they are as long as they should be."
    assert page.lines[-1] == "Record version: its bytes were changed."
