from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from inspector.resources import demo_path
from inspector.session.controller import Session
from inspector.session.export import exporter
from inspector.session.export.page import ExportWish
from inspector.session.screen import ExportPage
from tests.unit.session.documents import AtOnce, a_view


@pytest.fixture
def view():
    return a_view()


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    return Path(shutil.copy(demo_path(), tmp_path / "demo.pth"))


@pytest.fixture
def session(view, copy) -> Session:
    session = Session(view, AtOnce())
    session.set_target("cpu")
    session.open(str(copy))
    view.reset_mock()
    return session


def test_another_wish_is_another_draft(session, view, copy) -> None:
    session.begin_export()
    session.change_export(ExportWish(kind="safetensors"))
    draft = session.screen.export.draft
    assert draft.destination == str(copy.with_name("demo.weights.safetensors"))
    session.export(draft.destination)
    assert copy.with_name("demo.weights.safetensors").exists()
    assert any("Left out" in line for line in session.screen.export.result.lines)


def test_a_file_that_was_changed_is_read_again_and_given_back(session, view, copy) -> None:
    before = copy.read_bytes()
    session.begin_export()
    session.change_export(ExportWish(kind="in-place"))
    session.export("")
    assert session.screen.export.result.can_undo
    assert {row.device for row in session.screen.device_map} == {"cpu"}
    assert session.screen.can_undo
    session.undo_export()
    assert copy.read_bytes() == before
    assert session.screen.export.result.title == "The change is undone"
    assert not session.screen.can_undo
    assert {row.device for row in session.screen.device_map} == {"cuda:0", "cuda:1", "cpu"}
    session.undo_export()
    page = session.screen.export
    assert (page.stage, page.failure.title) == ("failed", "The change was not undone")


def test_a_receipt_is_written_or_it_is_said_why_not(session, view, copy) -> None:
    session.save_receipt(str(copy.with_name("early.json")))
    assert not copy.with_name("early.json").exists()
    session.begin_export()
    session.export(str(copy.with_name("out.pth")))
    session.save_receipt(str(copy.with_name("out.json")))
    assert copy.with_name("out.json").exists()
    result = session.screen.export.result
    assert result.lines[-1] == "The receipt is saved."
    session.save_receipt(str(copy / "no.json"))
    result = session.screen.export.result
    assert result.warnings[-1].startswith("The receipt was not written: ")


def test_a_receipt_that_is_canceled_leaves_the_result_as_it_was(view, copy) -> None:
    runner = AtOnce()
    session = Session(view, runner)
    session.open(str(copy))
    session.begin_export()
    session.export(str(copy.with_name("out.pth")))
    done = session.screen.export
    runner.waits = True
    session.save_receipt(str(copy.with_name("out.json")))
    assert (session.screen.export.stage, session.screen.export.title) == ("running", "Writing the receipt")
    session.cancel_export()
    runner.go_on()
    assert session.screen.export == done
    assert not copy.with_name("out.json").exists()


def test_a_damaged_file_is_saved_as_far_as_it_is_whole(session, view, copy) -> None:
    data = copy.read_bytes()
    copy.write_bytes(data[: len(data) * 2 // 3])
    session.reload()
    banner = session.screen.banner
    assert banner is not None
    assert banner.action == "Save what is intact\u2026"
    session.begin_export()
    draft = session.screen.export.draft
    assert draft.wish.kind == "recover"
    assert draft.summary[0].endswith("seem to be intact; each is checked")
    session.export(draft.destination)
    result = session.screen.export.result
    assert result.title == "What was intact is saved"
    assert result.warnings[-1].startswith("Lost as well: ")
    assert Path(draft.destination).name == "demo.recovered.pth"


def test_a_draft_of_an_older_wish_is_dropped(view, copy) -> None:
    runner = AtOnce()
    session = Session(view, runner)
    session.open(str(copy))
    runner.waits = True
    session.begin_export()
    session.change_export(ExportWish(kind="weights"))
    runner.go_on()
    assert session.screen.export.stage == "looking"
    runner.go_on()
    assert session.screen.export.draft.wish.kind == "weights"


def test_a_draft_that_fails_is_said_and_leads_back_to_the_last(session, monkeypatch) -> None:
    session.begin_export()
    draft = session.screen.export.draft

    def broken(*_given: object) -> None:
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr(exporter, "draft_of", broken)
    session.change_export(ExportWish(kind="weights"))
    page = session.screen.export
    assert (page.stage, page.failure.what) == ("failed", "unexpected ZeroDivisionError: by hand")
    session.resume_export()
    assert session.screen.export.draft == draft
    session.begin_export()
    assert (session.screen.export.stage, session.screen.export.draft) == ("failed", None)


def test_a_running_undo_is_shown(session, copy) -> None:
    session.begin_export()
    session.change_export(ExportWish(kind="in-place"))
    session.export("")
    session.end_export()
    runner = session._runner
    runner.waits = True
    session.undo_export()
    page = session.screen.export
    assert (page.stage, page.title) == ("running", "Undoing the change")
    runner.go_on()
    assert session.screen.export.stage == "done"
    assert session.screen.phase == "opening"


def test_a_page_without_a_result_takes_no_line() -> None:
    page = ExportPage(stage="looking")
    assert exporter._with_line(page, "saved") is page
