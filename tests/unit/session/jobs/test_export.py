from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import PlanError
from inspector.records import replace
from inspector.remap.torch_check import TorchCheck
from inspector.session.device_map import DeviceMap, map_devices
from inspector.session.export import steps
from inspector.session.export.page import Destination, ExportWish


def stages(view) -> list[str | None]:
    """The stages of the export in the order they were shown, each once."""
    pages = [call.args[0].export for call in view.show_screen.call_args_list]
    said = [None if page is None else page.stage for page in pages]
    return [stage for place, stage in enumerate(said) if place == 0 or stage != said[place - 1]]


def test_an_export_is_asked_for_done_and_reported(real, view, copy) -> None:
    real.begin_export()
    draft = real.screen.export.draft
    assert draft.destination == str(copy.with_name("demo.cpu.pth"))
    assert draft.summary[:2] == ("150 tensors from cuda:0 to cpu", "83 tensors from cuda:1 to cpu")
    real.export(draft.destination)
    assert stages(view) == ["looking", "draft", "running", "done"]
    result = real.screen.export.result
    assert result.destination == draft.destination
    assert result.lines[1] == "233 tensors relabeled."
    real.open(draft.destination)
    assert real.screen.export is None
    assert real.screen.banner.headline.endswith("Loads on every machine: torch.load works there.")


def test_a_branch_on_a_device_that_is_not_here_is_told_before_and_after(real, tried, copy) -> None:
    node = node_named(real, "model")
    real.map_branches((node,), "cuda:0")
    banner = real.screen.banner
    assert not banner.is_way_out
    assert banner.advice.startswith("The map leaves tensors on cuda:0, ")
    real.begin_export()
    draft = real.screen.export.draft
    assert draft.warnings[0].startswith("With this plan it does not load on a machine without a GPU: saved ")
    real.export(draft.destination)
    result = real.screen.export.result
    assert result.title == "The copy is written"
    assert result.warnings[0].startswith("Does not load on a machine without a GPU: saved on cuda:0.")
    assert not tried


def test_what_loads_on_this_machine_is_tried_there_also_in_place(real, tried, copy) -> None:
    real.set_target()
    assert real.screen.banner.is_way_out
    real.begin_export()
    real.export(real.screen.export.draft.destination)
    assert real.screen.export.result.lines[-1].startswith("Loads on this machine: torch.load works there.")
    assert tried == [str(copy.with_name("demo.cpu.pth"))]
    real.end_export()
    real.begin_export()
    real.change_export(ExportWish(kind="in-place"))
    real.export("")
    assert real.screen.export.result.title == "The file is changed"
    assert tried[1:] == [str(copy)]
    real.undo_export()
    assert real.screen.export.result.warnings[0].startswith("Does not load on this machine: saved on cuda:0")
    assert tried[2:] == []


def test_what_torch_answers_late_is_added_and_what_is_left_is_not_waited_for(
    real, runner, monkeypatch, copy
) -> None:
    real.set_target()
    loaded = TorchCheck(verdict="loads", torch="9")
    monkeypatch.setattr(steps, "try_with_torch", lambda *_args, **_more: loaded)
    real.begin_export()
    runner.waits = True
    real.export(real.screen.export.draft.destination)
    runner.go_on()
    before = real.screen.export.result
    real.save_receipt(str(copy.with_name("receipt.json")))
    runner.waiting.reverse()
    runner.go_on()
    runner.go_on()
    lines = real.screen.export.result.lines
    added = ["The receipt is saved.", "Tried: torch 9 loaded it here."]
    assert sorted(set(lines) - set(before.lines)) == added
    assert [line.text for line in real.screen.log][-3:] == ["The copy is ready: demo.cpu.pth", *added]
    real.begin_export()
    runner.go_on()
    real.export(str(copy.with_name("other.pth")))
    runner.go_on()
    real.end_export()
    runner.go_on()
    assert real.screen.export is None


def test_what_torch_answers_of_a_change_is_not_said_of_its_undoing(real, runner, monkeypatch) -> None:
    real.set_target()
    loaded = TorchCheck(verdict="loads", torch="9")
    monkeypatch.setattr(steps, "try_with_torch", lambda *_args, **_more: loaded)
    real.begin_export()
    real.change_export(ExportWish(kind="in-place"))
    runner.waits = True
    real.export("")
    runner.go_on()
    trial = runner.waiting.pop(0)
    runner.waits = False
    while runner.waiting:
        runner.go_on()
    real.undo_export()
    told = real.screen.export.result
    assert told.title == "The change is undone"
    trial()
    assert real.screen.export.result == told


def test_another_machine_is_never_a_green_banner(session) -> None:
    session.open("/a.pth")
    assert session.screen.target == "this"
    assert not session.screen.banner.is_elsewhere
    session.set_target("2xcuda")
    banner = session.screen.banner
    assert banner.verdict.startswith("Loads on ")
    assert (banner.tone, banner.is_elsewhere, banner.is_way_out) == ("warning", True, False)
    assert banner.action == "Export\u2026"
    session.begin_export()
    draft = session.screen.export.draft
    assert not draft.is_way_out
    assert draft.summary[0].startswith("Nothing changes: the copy equals the original.")
    session.set_target()
    assert (session.screen.banner.tone, session.screen.banner.is_elsewhere) == ("bad", False)


def test_a_typed_destination_is_seen_from_the_folder_of_the_file(real, copy, monkeypatch, tmp_path) -> None:
    elsewhere = tmp_path / "installation"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    real.begin_export()
    real.look_at_destination("typed.pth")
    found = real.screen.export.destination
    assert (found.path, found.note) == ("typed.pth", f"This is {copy.with_name('typed.pth')}.")
    real.export("typed.pth")
    assert real.screen.export.result.destination == str(copy.with_name("typed.pth"))
    assert list(elsewhere.iterdir()) == []
    monkeypatch.setenv("HOME", str(elsewhere))
    real.end_export()
    real.begin_export()
    real.export("~/home.pth")
    assert (elsewhere / "home.pth").exists()


def test_an_export_that_fails_says_why_and_leads_back(real, copy) -> None:
    real.begin_export()
    draft = real.screen.export.draft
    real.export(str(copy))
    page = real.screen.export
    assert (page.stage, page.cancelled, page.failure.title) == ("failed", False, "No copy was written")
    assert page.failure.what == "the copy would replace the file itself"
    real.resume_export()
    assert (real.screen.export.stage, real.screen.export.draft) == ("draft", draft)
    real.end_export()
    assert real.screen.export is None


def test_an_export_is_cancelled(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.export(str(copy.with_name("out.pth")))
    real.cancel_export()
    page = real.screen.export
    assert (page.stage, page.stopping, page.progress.cancelled) == ("running", True, True)
    runner.go_on()
    assert (real.screen.export.stage, real.screen.export.cancelled) == ("failed", True)
    assert list(copy.parent.iterdir()) == [copy]


def test_an_existing_file_is_replaced_on_request_only(real, copy) -> None:
    taken = copy.with_name("taken.pth")
    taken.write_bytes(b"precious")
    real.begin_export()
    real.export(str(taken))
    assert taken.read_bytes() == b"precious"
    real.resume_export()
    real.export(str(taken), overwrite=True)
    assert real.screen.export.stage == "done"
    assert taken.stat().st_size > 100_000


def test_one_export_at_a_time(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.export(str(copy.with_name("one.pth")))
    real.export(str(copy.with_name("two.pth")))
    real.begin_export()
    real.undo_export()
    assert len(runner.waiting) == 1
    runner.go_on()
    assert real.screen.export.stage == "done"
    real.export(str(copy.with_name("two.pth")))
    assert not runner.waiting


def test_nothing_is_written_while_the_draft_is_worked_out(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.change_export(ExportWish(kind="safetensors"))
    page = real.screen.export
    assert (page.stage, page.draft.wish.kind) == ("looking", "safetensors")
    real.export(str(copy.with_name("out.pth")))
    assert len(runner.waiting) == 1


def test_a_copy_of_a_file_that_was_closed_is_not_reported_on_the_next(real, runner, copy) -> None:
    real.begin_export()
    runner.waits = True
    real.export(str(copy.with_name("out.pth")))
    finish = runner.waiting.pop()
    real.open(str(copy))
    finish()
    assert (real.screen.phase, real.screen.export) == ("opening", None)
    runner.go_on()
    assert (real.screen.phase, real.screen.export) == ("ready", None)


def test_a_map_that_is_refused_is_not_exported(session, monkeypatch) -> None:
    error = PlanError("tensors disagree", remedy="give them one device")

    def refused(*asked: object) -> DeviceMap:
        return replace(map_devices(*asked), refusal=error)

    monkeypatch.setattr("inspector.session.present.compose.map_devices", refused)
    session.open("/a.pth")
    session.begin_export()
    page = session.screen.export
    assert (page.stage, page.draft, page.failure.what) == ("failed", None, "tensors disagree")
    session.resume_export()
    assert session.screen.export.stage == "failed"


def test_another_wish_is_another_draft(real, copy) -> None:
    real.begin_export()
    real.change_export(ExportWish(kind="safetensors"))
    draft = real.screen.export.draft
    assert draft.destination == str(copy.with_name("demo.weights.safetensors"))
    real.export(draft.destination)
    assert copy.with_name("demo.weights.safetensors").exists()
    assert any("Left out" in line for line in real.screen.export.result.omissions)


def test_a_file_that_was_changed_is_read_again_and_given_back(real, copy) -> None:
    before = copy.read_bytes()
    real.begin_export()
    real.change_export(ExportWish(kind="in-place"))
    real.export("")
    assert real.screen.export.result.can_undo
    assert real.screen.tree.colors.keys() == {"cpu"}
    assert real.screen.device_map == ()  # there is nothing left to map
    assert real.screen.can_undo
    real.undo_export()
    assert copy.read_bytes() == before
    assert real.screen.export.result.title == "The change is undone"
    assert not real.screen.can_undo
    assert {row.device for row in real.screen.device_map} == {"cuda:0", "cuda:1", "cpu"}
    real.undo_export()
    page = real.screen.export
    assert (page.stage, page.failure.title) == ("failed", "The change was not undone")


def test_a_receipt_is_written_or_it_is_said_why_not(real, copy) -> None:
    real.save_receipt(str(copy.with_name("early.json")))
    assert not copy.with_name("early.json").exists()
    real.begin_export()
    real.export(str(copy.with_name("out.pth")))
    real.save_receipt(str(copy.with_name("out.json")))
    assert copy.with_name("out.json").exists()
    result = real.screen.export.result
    assert result.lines[-1] == "The receipt is saved."
    real.save_receipt(str(copy / "no.json"))
    result = real.screen.export.result
    assert result.warnings[-1].startswith("The receipt was not written: ")


def test_a_receipt_that_is_canceled_leaves_the_result_as_it_was(real, runner, copy) -> None:
    real.begin_export()
    real.export(str(copy.with_name("out.pth")))
    done = real.screen.export
    runner.waits = True
    real.save_receipt(str(copy.with_name("out.json")))
    assert (real.screen.export.stage, real.screen.export.title) == ("running", "Writing the receipt")
    real.cancel_export()
    runner.go_on()
    assert real.screen.export == done
    assert not copy.with_name("out.json").exists()


def test_a_damaged_file_is_saved_as_far_as_it_is_whole(real, copy) -> None:
    data = copy.read_bytes()
    copy.write_bytes(data[: len(data) * 2 // 3])
    real.reload()
    banner = real.screen.banner
    assert banner is not None
    assert banner.action == "Save what is intact\u2026"
    real.begin_export()
    draft = real.screen.export.draft
    assert draft.wish.kind == "recover"
    assert draft.summary[0].endswith("seem to be intact; each is checked")
    real.export(draft.destination)
    result = real.screen.export.result
    assert result.title == "The intact tensors are saved"
    assert result.warnings[-1].startswith("And ")
    assert Path(draft.destination).name == "demo.recovered.pth"


def test_a_draft_of_an_older_wish_is_dropped(real, runner, copy) -> None:
    runner.waits = True
    real.begin_export()
    real.change_export(ExportWish(kind="weights"))
    runner.go_on()
    assert real.screen.export.stage == "looking"
    runner.go_on()
    assert real.screen.export.draft.wish.kind == "weights"


def test_a_draft_that_fails_is_said_and_leads_back_to_the_last(real, monkeypatch) -> None:
    real.begin_export()
    draft = real.screen.export.draft

    def broken(*_given: object) -> None:
        raise ZeroDivisionError("by hand")

    monkeypatch.setattr(steps, "draft_of", broken)
    real.change_export(ExportWish(kind="weights"))
    page = real.screen.export
    assert (page.stage, page.failure.what) == ("failed", "unexpected ZeroDivisionError: by hand")
    real.resume_export()
    assert real.screen.export.draft == draft
    real.begin_export()
    assert (real.screen.export.stage, real.screen.export.draft) == ("failed", None)


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("new.pth", "free"),
        ("taken.pth", "file"),
        ("demo.pth", "bad"),
    ],
)
def test_what_stands_at_a_destination_is_looked_up_by_the_worker(real, runner, copy, name, found) -> None:
    copy.with_name("taken.pth").touch()
    real.begin_export()
    draft = real.screen.export.draft
    assert real.screen.export.destination == Destination(path=draft.destination, found="free")
    runner.waits = True
    path = str(copy.parent / name)

    def told() -> tuple[str, str]:
        at = real.screen.export.destination
        return at.path, at.found

    real.look_at_destination(path)
    runner.go_on()
    assert told() == (path, found)
    real.change_export(ExportWish(kind="weights"))
    runner.go_on()
    assert told() == (path, found)  # typed, so it stays
    real.look_at_destination(real.screen.export.draft.destination)
    runner.go_on()
    real.change_export(ExportWish())
    runner.go_on()
    assert real.screen.export.destination == Destination(path=draft.destination, found="free")
    real.look_at_destination(path)
    real.end_export()
    runner.go_on()
    assert real.screen.export is None


def node_named(session, name: str) -> int:
    return next(id_ for id_, node in enumerate(session.screen.tree.nodes) if node.name == name)


def test_boxes_are_clicked_and_the_plan_follows(real, runner, copy) -> None:
    real.choose_rows((1,), False)  # no export is open
    assert real.screen.export is None
    real.begin_export()
    optimizer, ema = node_named(real, "optimizer"), node_named(real, "ema")
    runner.waits = True
    real.choose_rows((optimizer,), False)
    real.choose_rows((ema,), False)  # before the first answer is there
    while runner.waiting:
        runner.go_on()
    draft = real.screen.export.draft
    assert draft.wish.exclude == "optimizer ema"
    assert [draft.boxes.states[node] for node in (optimizer, ema, node_named(real, "model"))] == [0, 0, 2]
    runner.waits = False
    real.choose_rows((optimizer,), True)
    assert real.screen.export.draft.wish.exclude == "ema"
    real.export(str(copy.with_name("out.pth")))
    assert real.screen.export.result.omissions[0] == "Leaves out 47 tensors, 177 KB."


def test_rows_are_searched_in_the_dialog(real, runner) -> None:
    real.search_export("role:ema")
    assert real.screen.export is None
    real.begin_export()
    real.search_export("role:ema")
    assert (real.screen.export.query, len(real.screen.export.matches)) == ("role:ema", 47)
    real.choose_rows(real.screen.export.matches, False)
    assert (real.screen.export.draft.wish.exclude, real.screen.export.query) == ("ema", "role:ema")
    real.search_export("")
    assert real.screen.export.matches is None
    runner.waits = True
    real.search_export("x")
    real.end_export()
    runner.go_on()
    assert real.screen.export is None


def test_a_destination_that_is_typed_while_a_draft_is_worked_out_is_looked_at_again(
    real, runner, copy, monkeypatch
) -> None:
    real.begin_export()
    runner.waits = True
    typed = str(copy.with_name("typed.pth"))
    real.change_export(ExportWish(kind="safetensors"))
    real.look_at_destination(typed)
    runner.waiting.reverse()
    runner.go_on()  # looked at for the last draft: it is a good place for that
    assert real.screen.export.destination.found == "free"
    runner.go_on()
    runner.go_on()
    at = real.screen.export.destination
    assert (at.path, at.found) == (typed, "bad")
    assert "safetensors" in at.note


def test_before_the_first_draft_only_the_file_itself_is_refused(real, runner, copy) -> None:
    runner.waits = True
    real.begin_export()
    real.look_at_destination(str(copy))
    runner.waiting.reverse()
    runner.go_on()
    assert real.screen.export.destination.found == "bad"


def test_the_dialog_opens_without_rows_that_were_chosen_in_the_tree(real) -> None:
    real.begin_export_without((node_named(real, "scheduler"), node_named(real, "ema")))
    assert real.screen.export.draft.wish.exclude == "scheduler ema"
