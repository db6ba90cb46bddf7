from __future__ import annotations

import array
from pathlib import Path

import pytest

from inspector.containers.deepspeed import more_files
from inspector.containers.notes import NoteKind
from inspector.errors import CheckpointError, NotACheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.safety.verdict import judge
from inspector.target.simulate import judge_load
from inspector.target.wish import parse_wish
from tests.builders.dcp import saved_zip
from tests.builders.deepspeed import mapping, model_file, optim_file, vector, write, zero2
from tests.builders.pickles import proto, stream
from tests.builders.scripts import evil

VALUES = {"0": array.array("f", [1.0, 2.0]).tobytes()}
MODEL = "mp_rank_00_model_states.pt"
RANK = "zero_pp_rank_0_mp_rank_00_optim_states.pt"


def weight(**more: bytes) -> bytes:
    return saved_zip(stream(proto(), mapping(param=vector("0", [1.0, 2.0]), **more)), VALUES)


def bare() -> bytes:
    return saved_zip(stream(proto(), vector("0", [1.0, 2.0])), VALUES)


def universal(folder: Path, tag: str = "global_step1_universal", **files: bytes) -> Path:
    names = {f"zero/{name}/{slot}.pt": weight() for name in ("a.b", "c") for slot in ("fp32", "exp_avg")}
    own = {name.replace("__", "/"): data for name, data in files.items()}
    for name, data in {MODEL: model_file([{}]), "zero/a.b/exp_avg_sq.pt": bare(), **names, **own}.items():
        (folder / tag / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / tag / name).write_bytes(data)
    (folder / "latest_universal").write_text(tag)
    return folder


def kinds(found: Checkpoint) -> dict[NoteKind, tuple[str, ...]]:
    return {note.kind: note.values for note in found.notes}


def test_universal_checkpoints_have_weights_and_slots_by_name(tmp_path: Path) -> None:
    folder = universal(tmp_path)
    for path in (folder, folder / "global_step1_universal"):
        found = open_checkpoint(str(path))
        assert [(row.path, row.slot, row.parameter) for row in found.tensors] == [
            ("fp32/a.b", None, None),
            ("fp32/c", None, None),
            ("optimizer/state/a.b/exp_avg", "exp_avg", "a.b"),
            ("optimizer/state/a.b/exp_avg_sq", "exp_avg_sq", "a.b"),
            ("optimizer/state/c/exp_avg", "exp_avg", "c"),
        ]
        assert kinds(found)[NoteKind.UNIVERSAL] == ("2 parameters",)
        assert NoteKind.UNJOINED not in kinds(found)
        target = parse_wish("cpu").machine
        assert target is not None
        failure = judge_load(found, target).failure
        assert failure is not None
        assert failure.message.startswith(
            "FileNotFoundError: can't find *_optim_states.pt files in directory"
        )


def test_layers_of_a_pipeline_are_branches(tmp_path: Path) -> None:
    layers = {f"layer_{number:02d}-model_00-model_states.pt": weight() for number in (1, 0)}
    found = open_checkpoint(str(write(tmp_path / "a", {**zero2(), **layers})))
    assert [row.path for row in found.tensors][:2] == [
        "layers/layer_00-model_00-model_states/param",
        "layers/layer_01-model_00-model_states/param",
    ]
    assert kinds(found)[NoteKind.LAYERS] == ("2 layers",)
    assert "fp32/a" in [row.path for row in found.tensors]
    assert NoteKind.UNIVERSAL not in kinds(found)
    only = write(tmp_path / "b", {MODEL: model_file([{}]), "zero.pt": b"x", **layers})
    assert len(open_checkpoint(str(only)).tensors) == 2


def test_weights_that_were_joined_are_not_shown_twice(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", zero2())
    (folder / "global_step1/zero/a").mkdir(parents=True)
    (folder / "global_step1/zero/a/fp32.pt").write_bytes(weight())
    found = open_checkpoint(str(folder))
    assert [row.path for row in found.tensors if row.path.startswith("fp32")] == ["fp32/a", "fp32/b"]
    assert NoteKind.UNIVERSAL not in kinds(found)


def test_states_of_ranks_that_were_not_joined_are_left_beside_them(tmp_path: Path) -> None:
    optim = optim_file([[0, 1, 2, 3, 4]], ranks=7)
    found = open_checkpoint(str(universal(tmp_path, **{RANK: optim})))
    assert NoteKind.UNIVERSAL in kinds(found)
    assert found.refusal == ""


def test_slots_alone_have_no_weights(tmp_path: Path) -> None:
    folder = write(tmp_path / "a", {MODEL: model_file([{}])})
    (folder / "global_step1/zero/a").mkdir(parents=True)
    (folder / "global_step1/zero/a/exp_avg.pt").write_bytes(weight())
    assert [row.path for row in open_checkpoint(str(folder)).tensors] == ["optimizer/state/a/exp_avg"]
    (folder / "global_step1/zero/a/exp_avg.pt").rename(folder / "global_step1/zero/a/fp32.pt")
    assert [row.path for row in open_checkpoint(str(folder)).tensors] == ["fp32/a"]


def test_names_that_are_none() -> None:
    names = [
        "t/layer_00-model_states.pt",
        "t/zero/a/fp32.pt",
        "t/zero/a/b/fp32.pt",
        "t/zero/../fp32.pt.x",
        "zero/a/fp32.pt",
        "t/layer_xx-model_states.pt",
    ]
    assert more_files(names, "t") == (("t/layer_00-model_states.pt",), ("t/zero/a/fp32.pt",))
    assert more_files(names, "") == ((), ("zero/a/fp32.pt",))


def test_hostile_files_among_them(tmp_path: Path) -> None:
    dangerous = saved_zip(stream(proto(), evil()), {})
    for number, name in enumerate(("zero__a.b__fp32.pt", "zero__evil__step.pt", "layer_00-model_states.pt")):
        found = open_checkpoint(str(universal(tmp_path / str(number), **{name: dangerous})))
        assert judge(found).verdict == "dangerous"
    for number, data in enumerate((b"", b"text", bytes(400), dangerous[:40])):
        with pytest.raises(CheckpointError):
            open_checkpoint(str(universal(tmp_path / f"x{number}", **{"zero__c__fp32.pt": data})))
    cut = universal(tmp_path / "cut", **{"zero__c__fp32.pt": dangerous[:-90]})
    assert judge(open_checkpoint(str(cut))).verdict == "dangerous"
    folder = universal(tmp_path / "gone")
    (folder / "latest_universal").write_text("../elsewhere")
    with pytest.raises(NotACheckpointError, match="the file latest_universal names a folder"):
        open_checkpoint(str(folder))
