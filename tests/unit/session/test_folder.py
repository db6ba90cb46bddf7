"""A folder of checkpoints: listed at once, read one after the other, and sorted."""

from __future__ import annotations

import os
from pathlib import Path
from unittest.mock import MagicMock

import pytest

from inspector.model.build import open_checkpoint
from inspector.model.findings import Finding
from inspector.progress import Progress
from inspector.session import folder as module
from inspector.session.controller import Session
from inspector.session.folder import FolderRow, list_folder
from inspector.session.present.banner import short_verdict
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.simulate import Judged, judge_load
from tests.builders.pickles import new
from tests.builders.states import Raw, T, save_zip
from tests.unit.session.documents import AtOnce


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    folder = tmp_path / "runs"
    (folder / "old").mkdir(parents=True)
    save_zip(folder / "e10.pth", {"w": T([1.0])})
    save_zip(folder / "e2.pth", {"w": T([1.0, 2.0], device="cuda:0"), "v": T([1.0])})
    (folder / "page.pth").write_text("<!DOCTYPE html><html></html>")
    (folder / "gone.pth").symlink_to("nowhere")
    (folder / "notes.txt").write_text("x")
    data = Path(save_zip(folder / "old" / "cut.pth", {"w": T([1.0] * 64)})).read_bytes()
    (folder / "old" / "cut.pth").write_bytes(data[: len(data) // 2])
    return folder


@pytest.fixture
def walked(view: MagicMock, runner: AtOnce) -> Session:
    return Session(view, runner)


def rows_of(session: Session) -> dict[str, FolderRow]:
    page = session.screen.folder
    assert page is not None
    return {row.name: row for row in page.rows}


def test_each_checkpoint_is_read_and_judged_for_this_machine(walked: Session, runs: Path) -> None:
    walked.open(str(runs))

    screen = walked.screen
    assert (screen.phase, screen.title) == ("checkpoints", "runs - Checkpoint Inspector")
    rows = rows_of(walked)
    assert list(rows) == ["e2.pth", "e10.pth", "gone.pth", "page.pth", "old/cut.pth"]
    tones = {name: row.tone for name, row in rows.items()}
    assert tones == {
        "e2.pth": "bad",
        "e10.pth": "good",
        "gone.pth": "bad",
        "page.pth": "bad",
        "old/cut.pth": "bad",
    }
    assert rows["e2.pth"].devices == (("cuda:0", 8), ("cpu", 4))
    assert rows["e2.pth"].text("devices") == "cuda:0, cpu"
    assert "saved on cuda:0" in rows["e2.pth"].verdict
    assert not rows["gone.pth"].can_open
    assert screen.folder is not None
    assert screen.folder.reading == ""
    assert screen.folder.summary.startswith("4 checkpoints, ")
    assert screen.recent == (str(runs),)


def test_the_verdict_is_that_of_the_file_when_it_is_opened(walked: Session, runs: Path, view, runner) -> None:
    """A row is green where the banner of the opened file is, and nowhere else."""
    save_zip(runs / "whole.pth", T([1.0], kind="parameter"))
    walked.open(str(runs))

    for row in rows_of(walked).values():
        alone = Session(view, runner)
        alone.open(row.path)
        banner = alone.screen.banner
        assert row.tone == ("bad" if banner is None else banner.tone), row


def test_what_is_refused_is_not_counted_as_loading(walked: Session, runs: Path) -> None:
    save_zip(runs / "refused.pth", {"w": T([1.0]), "x": Raw(new("mine.Thing"))})
    walked.open(str(runs))
    row = rows_of(walked)["refused.pth"]
    assert row.tone == "warning", row
    assert row.verdict.startswith("Does not load"), row
    assert walked.screen.folder is not None
    assert ", 1 with a warning" in walked.screen.folder.summary


def test_an_error_beside_a_load_that_works_is_no_green(tmp_path: Path) -> None:
    checkpoint = open_checkpoint(save_zip(tmp_path / "a.pt", {"w": T([1.0])}))
    judged = Judged(checkpoint=checkpoint, target=CPU_ONLY, load=judge_load(checkpoint, CPU_ONLY))
    assert short_verdict(judged, ()) == ("good", "loads")
    for severity, said in (
        ("error", ("bad", "does not load: bytes are missing")),
        ("warning", ("warning", "loads: Bytes are missing")),
        ("note", ("good", "loads")),
    ):
        one = Finding(
            id="x", severity=severity, title="Bytes are missing", detail="", paths=(), count=0, fix=None
        )
        assert short_verdict(judged, (one,)) == said


def test_a_folder_that_is_one_checkpoint_or_holds_none_opens_as_before(
    walked: Session, tmp_path: Path
) -> None:
    whole = tmp_path / "hf"
    whole.mkdir()
    save_zip(whole / "pytorch_model.bin", {"w": T([1.0])})
    (whole / "config.json").write_text("{}")
    walked.open(str(whole))
    assert walked.screen.phase == "ready"

    (tmp_path / "empty").mkdir()
    walked.open(str(tmp_path / "empty"))
    assert walked.screen.phase == "failed"
    assert walked.screen.folder is None


def test_rows_stand_before_they_are_read_and_reading_can_be_cancelled(
    walked: Session, runner: AtOnce, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_BATCH_S", -1.0)  # one row at a time
    runner.waits = True
    walked.open(str(runs))
    runner.go_on()  # the list
    assert [row.is_read for row in rows_of(walked).values()] == [False, False, True, False, False]

    runner.go_on()
    page = walked.screen.folder
    assert page is not None
    assert (page.reading, page.done) == ("1 of 5 read", 0.2)
    assert rows_of(walked)["e2.pth"].is_read

    walked.stop_folder()
    runner.go_on()  # what was cancelled says nothing any more
    assert not rows_of(walked)["e10.pth"].is_read
    assert walked.screen.folder is not None
    assert walked.screen.folder.reading == ""

    walked.reload()
    while runner.waiting:
        runner.go_on()
    assert all(row.is_read for row in rows_of(walked).values())


def test_the_machine_is_asked_before_anything_is_judged(view, runner: AtOnce, runs: Path) -> None:
    asked: list[str | None] = []

    def probe(_: Progress, python: str | None) -> Profile:
        asked.append(python)
        return CPU_ONLY

    session = Session(view, runner, probe=probe)
    runner.waits = True
    session.open(str(runs))
    runner.go_on()
    assert not any(row.is_read for row in rows_of(session).values() if row.can_open)
    assert session.screen.folder is not None
    assert session.screen.folder.reading.startswith("Asking")
    while runner.waiting:
        runner.go_on()
    assert asked == [None]
    assert all(row.is_read for row in rows_of(session).values())


def test_cancel_while_the_machine_is_asked_leaves_all_unread(view, runner: AtOnce, runs: Path) -> None:
    session = Session(view, runner, probe=lambda *_: CPU_ONLY)
    runner.waits = True
    session.open(str(runs))
    runner.go_on()
    session.stop_folder()
    while runner.waiting:
        runner.go_on()
    assert not any(row.is_read for row in rows_of(session).values() if row.can_open)
    assert session.screen.folder is not None
    assert session.screen.folder.reading == ""


def test_columns_sort(walked: Session, runs: Path) -> None:
    os.utime(runs / "e10.pth", (1, 1_000_000_000))
    walked.open(str(runs))
    for column, descending, first in (
        ("name", True, "old/cut.pth"),
        ("size", False, "gone.pth"),
        ("verdict", True, "e10.pth"),
        ("devices", True, "e2.pth"),
    ):
        walked.sort_folder(column, descending=descending)
        assert next(iter(rows_of(walked))) == first, column
    walked.sort_folder("time", descending=False)
    assert list(rows_of(walked))[:2] == ["gone.pth", "e10.pth"]


def test_closing_forgets_the_folder(walked: Session, runs: Path) -> None:
    walked.open(str(runs))
    walked.close()
    assert (walked.screen.phase, walked.screen.folder) == ("empty", None)


def test_very_many_are_cut_and_that_is_said(runs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_ROWS", 2)
    listed = list_folder(str(runs), Progress())
    assert listed is not None
    assert [row.name for row in listed.rows] == ["e2.pth", "e10.pth", "(this folder)"]
    assert "More than 2 checkpoints" in listed.rows[-1].verdict


def test_a_mistake_of_ours_in_one_file_is_told_in_its_row(
    walked: Session, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(path: str, **_: object) -> None:
        raise ZeroDivisionError(path)

    monkeypatch.setattr(module, "open_checkpoint", fail)
    walked.open(str(runs))
    row = rows_of(walked)["e10.pth"]
    assert (row.tone, row.verdict[:28]) == ("bad", "Unexpected ZeroDivisionError")
