from __future__ import annotations

import os
from pathlib import Path

import pytest

from inspector.containers.container import Part
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import HiddenDevice, HiddenPlace
from inspector.progress import Progress
from inspector.remap.forms import Form, LeftOut
from inspector.remap.rules import parse_rule
from inspector.resources import demo_path
from inspector.session.device_map import map_devices
from inspector.session.document import open_document
from inspector.session.export.draft import draft_of, left_out_lines, picked, propose_destination, with_preview
from inspector.session.export.kinds import KINDS
from inspector.session.export.page import NO_CHOICE, OUT, PARTLY, WRITTEN, ExportDraft, ExportWish
from inspector.target.profile import CPU_ONLY
from inspector.target.wish import parse_target
from tests.builders.folders import trainer
from tests.sweep import table
from tests.unit.report.rows import checkpoint, storage, tensor, value
from tests.unit.session.documents import document_of, saved_on

DEMO = open_checkpoint(str(demo_path()))
DRAFT = ExportDraft(wish=ExportWish(), kinds=(), destination="/x", summary=("1 tensor moves", "All stays."))
BYTE_FOR_BYTE = "Weights, names and all other values stay the same, byte for byte."


@table(
    ("source", "moves", "name"),
    [
        ("best.pth", [("cuda:0", "cpu")], "best.cpu.pth"),
        ("best.pth", [("cuda:0", "cpu"), ("cuda:1", "cpu")], "best.cpu.pth"),
        ("best.pth", [("cuda:0", "cuda:1"), ("cuda:2", "cuda:3")], "best.cuda.pth"),
        ("best.pth", [("cuda:0", "cpu"), ("cuda:1", "cuda:0")], "best.fixed.pth"),
        ("best.pth", [], "best.fixed.pth"),
        ("epoch.12.ckpt", [], "epoch.12.fixed.ckpt"),
        ("best.pth.gz", [], "best.fixed.pth"),
        ("pytorch_model", [], "pytorch_model.fixed.pth"),
        (".hidden", [], ".fixed.hidden"),
        ("run.with a very long last part", [], "run.with a very long last part.fixed.pth"),
    ],
)
def test_a_free_name_beside_the_source_is_proposed(tmp_path, source, moves, name) -> None:
    assert propose_destination(tmp_path / source, tuple(moves)) == tmp_path / name


def test_a_name_that_is_taken_is_numbered(tmp_path) -> None:
    (tmp_path / "best.cpu.pth").touch()
    (tmp_path / "best.cpu-2.pth").symlink_to("nowhere")
    assert propose_destination(tmp_path / "best.pth", (("mps", "cpu"),)).name == "best.cpu-3.pth"


@table("source", ["x" * 255, "名" * 85, "x" * 250 + ".pth"])
def test_the_longest_name_still_leaves_room(tmp_path, source: str) -> None:
    proposed = propose_destination(tmp_path / source, ())
    proposed.touch()
    assert len(os.fsencode(propose_destination(tmp_path / source, ()).name)) < 255


def test_devices_outside_of_tensors_are_offered_and_told() -> None:
    row = HiddenDevice(path="d", device="cuda:3", what=HiddenPlace.DEVICE)
    plain = map_devices(saved_on("cuda:3", hidden_devices=(row,)), parse_target("cpu"), ())
    draft = draft_of(plain)
    assert draft.can_change_hidden
    assert not any("outside" in line for line in draft.summary)
    chosen = draft_of(plain, ExportWish(hidden=True))
    assert "1 device outside of tensors from cuda:3 to cpu" in chosen.summary
    assert draft_of(plain, ExportWish(kind="compact", hidden=True)).can_change_hidden
    assert not draft_of(plain, ExportWish(kind="safetensors")).can_change_hidden
    assert not draft_of(plain, ExportWish(kind="recover")).can_change_hidden
    script = saved_on("cuda:3", hidden_devices=(row,), format="torchscript")
    assert not draft_of(map_devices(script, parse_target("cpu"), ())).can_change_hidden
    alone = map_devices(saved_on("cpu", hidden_devices=(row,)), parse_target("cuda"), ())
    assert (
        "1 device outside of tensors from cuda:3 to cuda:0"
        in draft_of(alone, ExportWish(hidden=True)).summary
    )
    assert not draft_of(map_devices(saved_on("cuda:3"), parse_target("cpu"), ())).can_change_hidden


def test_a_draft_says_what_will_change() -> None:
    document = document_of(
        checkpoint(
            tensor("a", device="cuda:0", storage="0"),
            tensor("rng", storage="1", on_cpu_by_design=True),
            storage("0", "cuda:0"),
            storage("1"),
            path="/somewhere/best.pth",
            file_nbytes=5000,
        )
    )
    draft = draft_of(map_devices(document, parse_target("2xcuda"), (("cuda:0", "cuda:1"), ("cpu", "cuda:1"))))
    assert draft.destination == str(Path("/somewhere/best.cuda.pth"))
    assert draft.size == "5.0 KB"
    assert draft.summary == (
        "1 tensor from cuda:0 to cuda:1",
        "1 tensor kept on the CPU by design (step, RNG state)",
        BYTE_FOR_BYTE,
    )


def test_a_draft_without_changes_says_so() -> None:
    draft = draft_of(map_devices(saved_on("cpu"), parse_target("cpu"), ()))
    assert draft.summary == (
        "Nothing changes: the copy equals the original. Choose destinations in the device map.",
        BYTE_FOR_BYTE,
    )


def test_of_very_many_moves_some_are_named() -> None:
    document = saved_on(*(f"cuda:{index}" for index in range(20)))
    away = tuple((f"cuda:{index}", f"cuda:{index + 1}") for index in range(20))
    summary = draft_of(map_devices(document, parse_target("cpu"), away)).summary
    assert summary[15:] == ("1 tensor from cuda:15 to cuda:16", "and those of 4 more devices", BYTE_FOR_BYTE)
    summary = draft_of(map_devices(document, parse_target("cpu"), ())).summary
    assert summary == ("20 tensors from 20 devices to cpu", BYTE_FOR_BYTE)


def test_a_part_of_a_file_is_not_said_to_be_larger_than_all_of_it() -> None:
    device_map = map_devices(open_document(str(demo_path()), Progress()), CPU_ONLY, ())
    draft = draft_of(device_map, ExportWish(exclude="epoch"))
    assert draft.nbytes <= DEMO.file_nbytes


def test_a_branch_is_told_as_it_is_written() -> None:
    rule = parse_rule("path:model/layer0*@mps")
    draft = draft_of(map_devices(saved_on("cpu"), parse_target("cpu"), (), (rule,)))
    assert draft.summary[0] == "model/layer0* to mps"


def test_a_change_of_the_file_itself_has_no_destination() -> None:
    device_map = map_devices(saved_on("cuda:0"), parse_target("cpu"), ())
    draft = draft_of(device_map, ExportWish(kind="in-place"))
    assert draft.in_place
    assert draft.warnings
    assert not draft.can_exclude
    still = draft_of(map_devices(saved_on("cpu"), parse_target("cpu"), ()), ExportWish(kind="in-place"))
    assert still.summary[0] == "Nothing changes. Choose destinations in the device map."


def test_each_kind_has_a_name_of_its_own(tmp_path) -> None:
    source, moves = tmp_path / "best.pth", (("mps", "cpu"),)
    names = {kind.id: propose_destination(source, moves, kind).name for kind in KINDS}
    assert names == {
        "copy": "best.cpu.pth",
        "in-place": "best.cpu.pth",
        "torch": "best.torch.pth",
        "weights": "best.weights.pth",
        "state-dict": "best.weights.pth",
        "safetensors": "best.weights.safetensors",
        "recover": "best.recovered.pth",
        "compact": "best.compact.pth",
    }


def test_the_weights_alone_are_a_part_of_the_file() -> None:
    draft = with_preview(DRAFT, DEMO, Form(only_weights=True))
    assert draft.summary[0].endswith(f"tensors of {len(DEMO.tensors):,} are written")
    assert draft.summary[1] == "Taken from model"
    assert draft.omissions[0] == "Leaves out 191 tensors, 538 KB, and 5 entries without tensors."
    assert any("optimizer" in line for line in draft.omissions)
    assert draft.warnings == ()
    assert draft.can_cast
    assert draft.can_average
    assert "of the original's 788 KB" in draft.size


def test_a_cast_says_what_it_costs() -> None:
    draft = with_preview(DRAFT, DEMO, Form(only_weights=True, cast="bfloat16"))
    assert "Float32 becomes bfloat16, with fewer digits" in draft.summary


def test_a_file_without_some_of_its_parts_still_changes_devices() -> None:
    draft = with_preview(DRAFT, DEMO, Form(exclude=("optimizer/**",)))
    assert draft.summary[-1] == "1 tensor moves"
    assert not draft.can_cast
    assert not draft.can_average


def test_what_cannot_be_had_is_refused_in_words() -> None:
    draft = with_preview(DRAFT, DEMO, Form(shape="safetensors", container="legacy"))
    assert "container of its own" in draft.refusal
    assert draft.summary == ()
    assert draft.size == ""


@pytest.mark.parametrize("count", [3, 9])
def test_what_is_left_out_is_named_the_largest_first(count: int) -> None:
    rows = tuple(LeftOut(f"p{i}\u202e", "why", i, i * 1000) for i in range(count))
    lines = left_out_lines(rows)
    assert lines[0].startswith(f"Left out: p{count - 1}\\u202e: why ({count - 1} tensors, ")
    if count > 4:
        assert lines[4] == "Left out: 5 more, 10.0 KB."
    else:
        assert lines[2] == "Left out: p0\\u202e: why."


def test_a_prefix_that_goes_is_named() -> None:
    tensors = tensor("module.a.weight", storage="0"), tensor("module.b.weight", storage="1")
    rows = checkpoint(*tensors, storage("0"), storage("1"))
    draft = with_preview(DRAFT, rows, Form(only_weights=True))
    assert "Prefix module. removed from every name" in draft.summary


def test_folder_becomes_a_folder_and_what_torch_reads_not_a_file_for_torch(tmp_path: Path) -> None:
    path = trainer(tmp_path / "run")
    draft = draft_of(map_devices(open_document(str(path), Progress()), CPU_ONLY, ()))
    assert Path(draft.destination) == tmp_path / "run.cpu"
    safe = path / "model.safetensors"
    chosen = map_devices(open_document(str(safe), Progress()), CPU_ONLY, ())
    assert Path(draft_of(chosen, ExportWish(kind="weights")).destination).name == "model.weights.pth"
    assert Path(draft_of(chosen, ExportWish(kind="safetensors")).destination).suffix == ".safetensors"


def test_a_folder_is_copied_to_a_folder_and_written_to_a_file(tmp_path) -> None:
    folder = tmp_path / "model.v2"
    folder.mkdir()
    entry = folder / "model.bin.index.json"
    entry.touch()
    rows = (tensor("a", device="cuda:0", storage="0"), storage("0", "cuda:0"))
    for path in (folder, entry):
        parts = (Part(str(folder / "a.bin"), 5),)
        document = document_of(checkpoint(*rows, path=str(path), format="sharded", parts=parts))
        mapped = map_devices(document, parse_target("cpu"), ())
        assert draft_of(mapped).destination == str(tmp_path / "model.v2.cpu")
        wish = ExportWish(kind="safetensors")
        assert draft_of(mapped, wish).destination.endswith(".weights.safetensors")
        assert Path(draft_of(mapped, wish).destination).parent == tmp_path
        refused = draft_of(mapped, ExportWish(kind="in-place"))
        assert refused.refusal == "A folder cannot be changed in place."


def test_what_has_no_devices_is_not_sent_to_the_device_map() -> None:
    mapped = map_devices(saved_on("none", format="dcp"), parse_target("cpu"), ())
    draft = draft_of(mapped, ExportWish(kind="torch"))
    assert draft.summary == ("1 tensor of 1 are written",)
    assert (draft.refusal, Path(draft.destination).suffix) == ("", ".pth")


def test_the_rows_that_can_be_left_out_have_boxes() -> None:
    document = open_document(str(demo_path()), Progress())
    device_map = map_devices(document, CPU_ONLY, ())
    copy = draft_of(device_map, ExportWish(), document.tree)
    assert set(copy.boxes.states) == {WRITTEN}
    assert copy.nbytes == document.checkpoint.file_nbytes
    weights = draft_of(device_map, ExportWish(kind="weights", exclude="model/stem.*"), document.tree)
    assert {OUT, PARTLY, WRITTEN, NO_CHOICE} == set(weights.boxes.states)
    assert 0 < weights.nbytes < copy.nbytes
    assert not any("stem" in line for line in weights.omissions)  # seen in the tree
    assert draft_of(device_map, ExportWish(kind="in-place"), document.tree).boxes is None


def test_clicked_boxes_become_patterns() -> None:
    document = open_document(str(demo_path()), Progress())
    names = [node.name for node in document.tree.nodes]
    model, scheduler = names.index("model"), names.index("scheduler")
    wish = ExportWish(exclude='"a b"')
    assert picked(document, wish, ()) is wish
    clicked = picked(document, wish, (((model, scheduler), False), ((model,), True)))
    assert clicked == ExportWish(exclude='"a b" scheduler')
    stem = names.index("stem", model)
    weights = ExportWish(kind="weights", exclude="stem.*")  # by the names of the model
    assert picked(document, weights, (((stem,), True),)).exclude == ""
    none = document_of(checkpoint(value("x")))
    unhad = ExportWish(kind="weights")
    assert picked(none, unhad, (((1,), False),)).exclude == "**"


def test_what_matches_nothing_or_leaves_nothing_is_refused() -> None:
    device_map = map_devices(open_document(str(demo_path()), Progress()), CPU_ONLY, ())
    asked = {
        "model optimzer/** x\u202ey": "Nothing in the file matches optimzer/**, x\\u202ey.",
        "**": "No tensors are left to export.",
    }
    drafts = {text: draft_of(device_map, ExportWish(exclude=text)) for text in asked}
    assert {text: draft.refusal for text, draft in drafts.items()} == asked
    assert drafts["model optimzer/** x\u202ey"].unused == ("optimzer/**", "x\u202ey")


def test_a_file_without_tensors_is_not_exported() -> None:
    empty = document_of(checkpoint())
    draft = draft_of(map_devices(empty, CPU_ONLY, ()), ExportWish(), empty.tree)
    assert draft.refusal == "The file holds no tensors: there is nothing to export."
    assert not draft.can_exclude
