from __future__ import annotations

import pytest

from inspector.containers.notes import Note, NoteKind
from inspector.errors import PlanError
from inspector.progress import Progress
from inspector.records import replace
from inspector.session.document import Document, open_document
from inspector.session.operations import Job
from inspector.session.present import compose as module
from inspector.session.present.compose import compose
from inspector.session.screen import FailurePage, Screen
from inspector.session.state import State
from inspector.session.values.kinds import SCALARS
from inspector.target.profile import CPU_ONLY
from tests.builders.folders import two_shards
from tests.unit.report.rows import checkpoint, is_harmless, optimizer, storage, tensor
from tests.unit.session.documents import document_of, saved_on


def ready(document: Document, **fields: object) -> Screen:
    return compose(State(**{"phase": "ready", "path": "dir/best.pth", "document": document, **fields}))


def test_an_empty_window_has_the_programs_name_and_nothing_else() -> None:
    screen = compose(State(recent=("a.pth",)))
    assert screen.title == "Checkpoint Inspector"
    assert screen.recent == ("a.pth",)
    assert (screen.banner, screen.tree, screen.code, screen.device_map, screen.charts) == (
        *(None, None, None),
        *((), ()),
    )
    assert not screen.can_export


@pytest.mark.parametrize("phase", ["opening", "failed"])
def test_a_file_is_named_before_it_is_read(phase) -> None:
    failure = FailurePage(title="t", what="w", where="", remedy="")
    state = State(phase=phase, path="dir/be\u202est.pth", failure=failure, document=saved_on("cpu"))
    screen = compose(state)
    assert screen.title == r"be\u202est.pth - Checkpoint Inspector"
    assert screen.failure is failure
    assert screen.tree is None


def test_a_long_name_is_cut() -> None:
    assert len(compose(State(phase="opening", path="x" * 999)).title) == 120 + len(" - Checkpoint Inspector")


def test_a_screen_shows_the_whole_document() -> None:
    document = saved_on("cuda:0", "cpu", versions=(("version", "3"),))
    screen = ready(document)
    assert screen.title == "best.pth - Checkpoint Inspector"
    assert screen.banner is not None
    assert screen.banner.tone == "bad"
    assert screen.safety is not None
    assert screen.safety.text == "safe"
    assert screen.tree is document.tree
    assert screen.matches is None
    assert [row.device for row in screen.device_map] == ["cuda:0", "cpu"]
    assert [chart.title for chart in screen.charts] == [
        "Memory by device",
        "What the bytes are for",
        "Dtypes",
    ]
    assert screen.tensor == ()
    assert [row.id for row in screen.findings] == ["cuda-unavailable"]
    assert [row.tone for row in screen.findings] == ["bad"]
    assert screen.code is not None
    assert 'torch.load(\n    "best.pth",\n    map_location="cpu",\n' in screen.code.text
    assert screen.file[0].title == "File"
    assert screen.status == (
        "best.pth",
        "torch.save zip, torch 1.6 to 2.0",
        "2 tensors, 8 params",
        "1.0 KB",
        "opened in 0.25 s",
    )
    assert screen.can_export


def test_a_container_that_does_not_tell_its_writer() -> None:
    assert ready(saved_on("cpu")).status[1] == "torch.save zip"


def test_new_destinations_get_colors_of_their_own() -> None:
    document = saved_on("cuda:1", "cpu")
    screen = ready(document, target="2xcuda")
    saved = {piece.label: piece.color for piece in screen.charts[0].bars[0].segments}
    assert saved == {"cuda:1": 0, "cpu": -1}
    moved = ready(document, target="2xcuda", chosen=(("cuda:1", "cuda:0"),))
    assert [piece.color for piece in moved.charts[0].bars[1].segments] == [1, -1]
    assert moved.charts[1:] == screen.charts[1:]


def test_the_style_that_was_chosen_is_kept_where_the_file_offers_it() -> None:
    rows = checkpoint(
        tensor("model", "a.weight", storage="0"),
        tensor("model", "a.bias", storage="0"),
        optimizer("optimizer"),
        storage("0"),
    )
    both = ready(document_of(rows), style="plain")
    assert both.code is not None
    assert both.code.style == "plain"
    assert [style.id for style in both.code.styles][:2] == ["resume", "plain"]
    one = ready(saved_on("cpu"), style="nonsense")
    assert one.code is not None
    assert one.code.style == "plain"


def test_a_map_that_is_refused_cannot_be_exported(monkeypatch: pytest.MonkeyPatch) -> None:
    document = saved_on("cuda:0")
    refused = replace(module.map_devices(document, CPU_ONLY, ()), refusal=PlanError("tensors disagree"))
    monkeypatch.setattr(module, "map_devices", lambda *_asked: refused)
    screen = ready(document, target="cuda")
    assert not screen.can_export
    assert screen.banner is not None
    assert screen.banner.advice == "This map cannot be carried out: tensors disagree."


def test_findings_lead_to_their_nodes() -> None:
    document = saved_on(*("cuda:0" for _ in range(30)))
    (finding,) = ready(document).findings
    assert finding.nodes == tuple(document.tree.tensor_nodes[:20])


def test_findings_about_no_tensor_lead_nowhere() -> None:
    document = saved_on("cpu", names=("net.Net",), module_class="net.Net")
    assert {row.id: row.nodes for row in ready(document).findings} == {
        "whole-module": (),
        "needs-allow-list": (),
    }


def test_nothing_invisible_reaches_the_screen() -> None:
    evil = "a\u202e\x1b[31m\n"
    notes = (Note(NoteKind.REFUSED, (evil,)),)
    document = saved_on(evil, "cuda:0", path=evil, module_class=evil, notes=notes, versions=((evil, evil),))
    screen = ready(document, path=evil, selected=document.tree.tensor_nodes[0])
    banner, safety = screen.banner, screen.safety
    assert banner is not None
    assert safety is not None
    texts = [screen.title, banner.headline, banner.advice, banner.error_text or "", safety.tooltip]
    texts += screen.status
    texts += [text for row in screen.findings for text in (row.title, row.detail)]
    texts += [text for row in screen.device_map for text in (row.device, row.note, *row.choices)]
    texts += [text for group in (*screen.file, *screen.tensor) for fact in group.facts for text in fact]
    texts += [piece.label for chart in screen.charts for bar in chart.bars for piece in bar.segments]
    assert [text for text in texts if not is_harmless(text)] == []


def test_a_file_without_devices_has_no_map_and_no_bars_of_devices() -> None:
    screen = ready(saved_on("none", format="safetensors"), target="cuda")
    assert screen.device_map == ()
    assert screen.no_map == "No devices are stored here: load_file(path, device=...) decides."
    assert [chart.title for chart in screen.charts] == ["What the bytes are for", "Dtypes"]
    assert screen.forecast is not None
    assert screen.forecast.chart is not None
    assert screen.forecast.chart.title.startswith("While loading: safetensors.torch.load_file, ")
    assert screen.banner is not None
    assert (screen.banner.tone, screen.banner.action) == ("warning", "Export\u2026")
    assert screen.banner.is_elsewhere
    assert screen.status[1] == "safetensors file"


def test_devices_that_decide_nothing_are_shown_and_not_mapped() -> None:
    screen = ready(saved_on("cuda:0", "cuda:1", format="deepspeed"))
    assert (screen.device_map, screen.no_map[:9]) == ((), "DeepSpeed")
    assert [bar.label for bar in screen.charts[0].bars] == ["As saved"]
    assert screen.banner is not None
    assert "Map " not in screen.banner.advice
    assert screen.banner.error_text is None  # it loads to the CPU wherever the files were saved
    screen = ready(saved_on("cuda:0", format="sharded"))  # whose loader maps everything
    assert screen.banner is not None
    assert (screen.banner.tone, screen.banner.advice) == ("good", "")


def test_a_part_leads_to_the_whole(tmp_path) -> None:
    index = two_shards(tmp_path / "run")
    part = str(index.with_name("pytorch_model-00001-of-00002.bin"))
    screen = ready(open_document(part, Progress()))
    leading = {card.id: card.opens for card in screen.findings if card.opens}
    assert leading == {"part-of-checkpoint": str(index)}
    whole = ready(open_document(str(index), Progress()))
    assert not any(card.opens for card in whole.findings)


def test_the_overview_says_what_the_chosen_machine_has_room_for() -> None:
    rows = checkpoint(
        tensor("fc.weight", shape=(500, 2), nbytes=4000, storage="0"), storage("0", nbytes=4000)
    )
    card = replace(CPU_ONLY, memory_nbytes=5_000)
    screen = ready(document_of(rows), machines=(card,), target=card.id)
    assert screen.overview.title == "Model, 1,000 parameters"
    group = next(group for group in screen.overview.groups if group.title.startswith("Memory"))
    assert group.title == "Memory needed on cpu, of 5.0 KB"
    said = {line.caption: line.text for line in group.lines}
    assert said["Loading"] == screen.forecast.chart.bars[0].text
    assert said["Training"] == "16.0 KB in float32 with Adam (11.0 KB too much)"


def test_scores_that_are_tensors_are_in_the_overview_once_they_were_read() -> None:
    rows = checkpoint(
        tensor("best_loss", shape=(), nbytes=4, storage="0", role="other"), storage("0", nbytes=4)
    )
    document = document_of(rows)
    assert [group.title for group in ready(document).overview.groups] == ["Memory needed on cpu", "File"]
    read = Job(kind=SCALARS, about="", progress=Progress(), status="done", result={0: "0.6931471824645996"})
    first = ready(document, jobs=(read,)).overview.groups[0]
    assert (first.title, first.lines[0].text) == ("Training", "best_loss 0.693147")
