"""A plan is judged before it is carried out, and a file after it: never a false green."""

from __future__ import annotations

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.model.findings import Finding
from inspector.progress import Progress
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from inspector.session.device_map import map_devices
from inspector.session.export.draft import draft_of, with_outlook
from inspector.session.export.outlook import outlook_at, outlook_of, planned
from inspector.session.export.page import ExportWish
from inspector.target.profile import CPU_ONLY
from inspector.target.wish import parse_target
from tests.unit.report.rows import checkpoint, storage, tensor
from tests.unit.session.documents import saved_on

TWO = checkpoint(
    tensor("a", device="cuda:0", storage="0"),
    tensor("b", device="cuda:0", storage="1"),
    storage("0", "cuda:0"),
    storage("1", "cuda:0"),
)


def test_a_plan_is_judged_by_the_devices_that_it_gives() -> None:
    halfway = planned(TWO, plan_remap(TWO, (parse_rule("path:a@cpu"),)))
    assert [row.device for row in (*halfway.tensors, *halfway.storages)] == ["cpu", "cuda:0"] * 2
    found = outlook_of(halfway, CPU_ONLY)
    assert not found.loads
    assert found.sentence.startswith("does not load on a machine without a GPU: saved on cuda:0. torch.load ")
    assert outlook_of(halfway, parse_target("cuda")).loads
    whole = outlook_of(planned(TWO, plan_remap(TWO, (parse_rule("cuda:0=cpu"),))), CPU_ONLY)
    assert (whole.loads, whole.can_be_tried) == (True, True)


def test_what_no_device_stops_is_no_green_either(monkeypatch) -> None:
    asking = outlook_of(saved_on("cpu", names=("m.Net",), module_class="m.Net").checkpoint, CPU_ONLY)
    assert (asking.loads, asking.can_be_tried) == (False, False)
    assert "refused until 1 name is allowed" in asking.sentence
    harmful = outlook_of(saved_on("cpu", names=("os.system",)).checkpoint, CPU_ONLY)
    assert (harmful.loads, harmful.can_be_tried) == (False, False)
    damaged = saved_on("cpu", notes=(Note(NoteKind.NO_DIRECTORY),)).checkpoint
    assert not outlook_of(damaged, CPU_ONLY).loads
    error = Finding(id="x", severity="error", title="Bytes Are Gone", detail="", paths=(), count=0, fix=None)
    monkeypatch.setattr("inspector.session.export.outlook.diagnose", lambda *_asked: (error,))
    lost = outlook_of(saved_on("cpu").checkpoint, CPU_ONLY)
    assert (lost.loads, "does not load" in lost.sentence, "bytes Are Gone" in lost.sentence) == (
        False,
        True,
        True,
    )
    monkeypatch.undo()
    full = outlook_of(saved_on("cpu").checkpoint, parse_target("cpu@0.001mb"))
    assert not full.loads


def test_what_cannot_be_opened_again_is_said(monkeypatch, tmp_path) -> None:
    found = outlook_at(tmp_path / "gone.pth", CPU_ONLY, Progress())
    assert (found.loads, found.sentence) == (False, "was not judged: no such file.")
    monkeypatch.setattr("inspector.session.export.outlook.open_checkpoint", lambda *_, **__: 1 // 0)
    assert "ZeroDivisionError" in outlook_at(tmp_path, CPU_ONLY, Progress()).sentence


@pytest.mark.parametrize("kind", ["copy", "in-place"])
def test_a_draft_tells_what_its_plan_leaves(kind) -> None:
    document = saved_on("cuda:0", "cuda:0")
    branch = (parse_rule("path:model/layer0.weight@cuda:0"),)
    wish = ExportWish(kind=kind)
    for rules, told in ((branch, True), ((), False)):
        device_map = map_devices(document, CPU_ONLY, (), rules)
        draft = with_outlook(draft_of(device_map, wish), device_map, CPU_ONLY)
        assert any(line.startswith("With this plan it does not load") for line in draft.warnings) == told
        assert draft.is_way_out == (not told)
    same = map_devices(document, parse_target("cuda"), ())
    assert not draft_of(same, wish).is_way_out
    assert draft_of(same, ExportWish(kind="copy", exclude="model")).is_way_out
