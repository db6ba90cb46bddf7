from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.errors import CancelledError, ExportError
from inspector.model.build import open_checkpoint
from inspector.progress import Progress
from inspector.records import replace
from inspector.remap.export import Export
from inspector.remap.forms import Form, FormExport, LeftOut
from inspector.remap.in_place import Patched
from inspector.remap.recover import Recovery
from inspector.remap.torch_check import TorchCheck
from inspector.session.device_map import map_devices
from inspector.session.document import open_document
from inspector.session.export.page import ExportWish
from inspector.session.export.work import (
    Order,
    carry_out,
    copy_result,
    form_result,
    patch_result,
    recovery_result,
    save_receipt,
    tried_result,
    undo,
)
from inspector.session.state import THIS
from inspector.target.profile import CPU_ONLY
from tests.builders.folders import trainer
from tests.sweep import table
from tests.unit.remap.samples import CUDA_0, call, mapping, name, stream, tensor, text, written, zip_of


def order(path: Path, destination: Path | str = "", **wish: object) -> Order:
    document = open_document(str(path), Progress())
    return Order(
        device_map=map_devices(document, CPU_ONLY, ()),
        wish=ExportWish(**wish),
        destination=str(destination),
        overwrite=False,
        target=CPU_ONLY,
    )


LOADS = "Loads on a machine without a GPU: torch.load works there."


def test_a_copy_comes_with_a_receipt(copy: Path) -> None:
    outcome = carry_out(order(copy, copy.with_name("out.pth"), verify="full"), Progress())
    assert outcome.result.lines[-2:] == ("Every copied byte compared with the original.", LOADS)
    assert outcome.can_be_tried
    save_receipt(outcome.copied, str(copy.with_name("out.json")), Progress())
    receipt = json.loads(copy.with_name("out.json").read_text())
    assert receipt["copy"]["name"] == "out.pth"
    before = copy.with_name("out.pth").read_bytes()
    with pytest.raises(ExportError, match="the receipt would replace the copy"):
        save_receipt(outcome.copied, str(copy.with_name("out.pth")), Progress())
    assert copy.with_name("out.pth").read_bytes() == before
    original = copy.read_bytes()
    with pytest.raises(ExportError, match="would replace the file itself"):
        save_receipt(outcome.copied, str(copy), Progress())
    assert copy.read_bytes() == original


def test_devices_outside_of_tensors_change_where_that_is_wished(tmp_path: Path) -> None:
    path = written(tmp_path, zip_of(stream(mapping(d=CUDA_0, t=tensor(text("cuda:0")))), {"0": bytes(16)}))
    for wished, there in ((False, "cuda:0"), (True, "cpu")):
        out = tmp_path / f"{wished}.pt"
        outcome = carry_out(order(path, out, hidden=wished), Progress())
        assert ("1 device outside of tensors changed." in outcome.result.lines) == wished
        assert [row.device for row in open_checkpoint(str(out)).hidden_devices] == [there]
    save_receipt(outcome.copied, str(tmp_path / "out.json"), Progress())
    assert json.loads((tmp_path / "out.json").read_text())["plan"]["hidden_devices"] == 1
    result = carry_out(order(path, kind="in-place", hidden=True), Progress()).result
    assert "1 device outside of tensors changed." in result.lines
    assert open_checkpoint(str(path)).hidden_devices[0].device == "cpu"


def test_a_copy_that_torch_still_refuses_is_a_warning(tmp_path: Path) -> None:
    contents = mapping(net=call(name("mine", "Net"), text("a")), t=tensor(text("cuda:0")))
    path = written(tmp_path, zip_of(stream(contents), {"0": bytes(16)}))
    outcome = carry_out(order(path, tmp_path / "out.pt"), Progress())
    (warning,) = outcome.result.warnings
    assert warning.startswith("Does not load on a machine without a GPU: refused without weights_only=False.")
    assert (outcome.result.title, outcome.can_be_tried) == ("The copy is written", False)


def test_a_file_that_was_changed_can_be_given_back(copy: Path) -> None:
    before = copy.read_bytes()
    outcome = carry_out(order(copy, kind="in-place"), Progress())
    assert outcome.result.can_undo
    assert not outcome.result.is_copy
    assert {row.device for row in open_checkpoint(str(copy)).tensors} == {"cpu"}
    assert (outcome.changed, outcome.copied) == (True, None)
    assert outcome.result.lines[-1] == LOADS
    cancelled = Progress()
    cancelled.cancel()
    with pytest.raises(CancelledError):
        undo(str(copy), CPU_ONLY, cancelled)
    restored = undo(str(copy), CPU_ONLY, Progress())
    assert (restored.result.title, restored.changed, restored.can_be_tried) == (
        *("The change is undone", True),
        False,
    )
    (warning,) = restored.result.warnings
    assert warning.startswith("Does not load on a machine without a GPU: saved on cuda:0, cuda:1.")
    assert copy.read_bytes() == before
    with pytest.raises(ExportError, match="nothing to undo"):
        undo(str(copy), CPU_ONLY, Progress())


def test_the_weights_alone_say_what_they_leave_out(copy: Path) -> None:
    outcome = carry_out(order(copy, copy.with_name("w.pth"), kind="weights"), Progress())
    assert any("Left out: optimizer" in line for line in outcome.result.omissions)
    assert outcome.result.omissions[0].startswith("Leaves out 191 tensors, ")
    assert outcome.result.warnings == ("The target is not this machine.",)  # it loads there: no green here
    here = replace(order(copy, copy.with_name("v.pth"), kind="weights"), target=replace(CPU_ONLY, id=THIS))
    assert carry_out(here, Progress()).result.warnings == ()
    written = open_checkpoint(str(copy.with_name("w.pth")))
    assert {row.role for row in written.tensors} == {"parameter", "buffer"}


def export(**fields: object) -> Export:
    given = {"moved_tensors": 3, "kept_tensors": 0, "in_one_piece": True, "verified": True, **fields}
    return Export(destination=Path("out.pth"), nbytes=2000, **given)


def test_what_was_copied_is_said_and_nothing_else() -> None:
    checked = "Reopened and compared: same objects, devices as planned."
    assert copy_result(export()).lines == ("2.0 KB written.", "3 tensors relabeled.", checked)
    assert copy_result(export(verified=False, kept_tensors=2)).lines == (
        "2.0 KB written.",
        "3 tensors relabeled.",
        "2 tensors kept on the CPU by design.",
    )


def test_a_copy_without_another_device_says_that_it_is_the_same() -> None:
    result = copy_result(export(moved_tensors=0))
    assert result.title == "The copy changes nothing"
    assert result.lines[1] == "No device changed."
    assert copy_result(export(moved_tensors=0, moved_hidden=1)).title == "The copy is written"


def test_what_is_written_stays_written_when_judging_it_is_cancelled(copy: Path) -> None:
    class CancelledThen(Progress):
        def start(self, label: str, *args: object, **more: object) -> None:
            super().start(label, *args, **more)
            if label == "judging what was written":
                self.cancel()

    outcome = carry_out(order(copy, copy.with_name("out.pth")), CancelledThen())
    assert copy.with_name("out.pth").exists()
    assert outcome.result.title == "The copy is written"
    assert outcome.result.warnings[0].startswith("Was not judged: ")


@table(
    ("verdict", "title", "said"),
    [
        ("loads", "The copy is ready", "Tried: torch 2.13.0 loaded it here."),
        ("failed", "The copy is written", "Tried: torch 2.13.0 does not load it here: RuntimeError: no"),
        ("unchecked", "The copy is ready", "3 tensors relabeled."),
    ],
)
def test_what_torch_itself_makes_of_a_file_is_told(verdict, title: str, said: str) -> None:
    check = TorchCheck(verdict=verdict, detail="RuntimeError: no", torch="2.13.0")
    judged = replace(copy_result(export(verified=False)), loads=True)
    result = tried_result(judged, check)
    assert (result.title, (*result.lines, *result.warnings)[-1]) == (title, said)


@table(
    ("verdict", "detail", "warning"),
    [
        ("equal", "", None),
        ("failed", "RuntimeError: no.", "torch does not load the copy as planned: RuntimeError: no."),
        ("unchecked", "no torch", "torch did not check the copy: no torch."),
    ],
)
def test_what_torch_said_is_told(verdict, detail: str, warning: str | None) -> None:
    result = copy_result(export(torch=TorchCheck(verdict=verdict, detail=detail, torch="2.13.0")))
    assert result.warnings == (() if warning is None else (warning,))
    assert ("torch 2.13.0 loads it, and the tensors are equal." in result.lines) == (warning is None)


def patched(record: Path | None) -> Patched:
    return Patched(
        path=Path("a.pth"),
        record=record,
        nbytes=1,
        written_nbytes=0,
        appended=False,
        moved_tensors=0,
        kept_tensors=0,
        verified=False,
    )


def test_what_had_not_to_be_changed_is_said_so() -> None:
    result = patch_result(patched(None))
    assert (result.title, result.can_undo) == ("The file is unchanged", False)


def test_a_change_that_was_not_checked_does_not_say_so() -> None:
    assert len(patch_result(patched(Path("a.pth.undo"))).lines) == 3


def test_numbers_that_did_not_fit_are_counted() -> None:
    written = FormExport(
        destination=Path("w.pth"),
        form=Form(only_weights=True, cast="float16"),
        format="zip",
        model="model",
        tensors=2,
        nbytes=1000,
        source_nbytes=3000,
        left_out=(LeftOut("optimizer", "only the model is written", 4, 2000),),
        prefix="",
        tied=(),
        overflowed=1,
        verified=False,
    )
    result = form_result(written)
    assert result.lines[0] == "1.0 KB of the original's 3.0 KB, 2 tensors as zip."
    assert result.warnings == ("1 value became infinite in the cast.",)


def test_what_was_saved_without_a_checksum_is_told() -> None:
    saved = Recovery(
        destination=Path("r.pth"),
        nbytes=9,
        tensors=2,
        storages=1,
        storage_nbytes=8,
        unchecked=1,
        lost=(),
        verdict="weights-only",
    )
    result = recovery_result(saved)
    assert result.lines == (
        "2 of 2 tensors saved, 8 B.",
        "Reopened and compared: names, types and shapes of the tensors and all other values.",
        "The file has no checksums, so changed bytes inside a tensor would go unnoticed.",
    )
    assert result.warnings == ()
    result = recovery_result(replace(saved, verdict="dangerous"))
    assert result.warnings == ("The new file: DANGEROUS: loading it can run commands.",)


def test_folder_is_copied_as_a_folder(tmp_path: Path) -> None:
    for verify in ("quick", "torch"):
        out = tmp_path / verify
        found = carry_out(order(trainer(tmp_path / "run"), out, verify=verify), Progress())
        assert found.result.destination == str(out)
        assert found.copied is None  # receipts are for single files
        assert {row.device for row in open_checkpoint(str(out)).tensors} == {"cpu", "none"}
