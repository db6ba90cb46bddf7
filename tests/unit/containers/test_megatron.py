from __future__ import annotations

from pathlib import Path
from unittest.mock import Mock

import pytest

from inspector.containers.folder import Folder
from inspector.containers.formats import find_format
from inspector.containers.megatron import _FILE, Megatron
from inspector.containers.notes import NoteKind
from inspector.containers.opening import open_path
from inspector.containers.storage_reader import StorageReader
from inspector.errors import CancelledError, CheckpointError, NotACheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.progress import Progress
from inspector.safety.names import judge_global
from inspector.safety.verdict import judge
from tests.builders.exports import saved
from tests.builders.megatron import megatron, part, write
from tests.builders.pickles import new, text
from tests.builders.scripts import WEIGHTS, evil

FILE = "model_optim_rng.pt"


def kinds(found: Checkpoint) -> dict[NoteKind, tuple[str, ...]]:
    return {note.kind: note.values for note in found.notes}


def test_each_rank_is_a_branch(tmp_path: Path) -> None:
    folder = megatron(tmp_path)
    for path in (folder, folder / "iter_0001000", folder / "latest_checkpointed_iteration.txt"):
        found = open_checkpoint(str(path))
        assert found.format == "megatron"
        assert [row.path for row in found.tensors if row.role == "parameter"] == [
            f"mp_rank_{rank:02d}/model/{name}.weight" for rank in (0, 1) for name in ("embedding", "layer")
        ]
        assert found.refusal == ""
        assert kinds(found)[NoteKind.RANKS] == ("2 ranks", "2 files")
        assert kinds(found)[NoteKind.TENSOR_PARALLEL] == ("2",)
        assert NoteKind.PIPELINE not in kinds(found)
        assert (NoteKind.TAG in kinds(found)) == (path.name != "iter_0001000")
    with open_path(str(folder)) as source:
        from inspector.containers.opening import read_container

        container = read_container(source)
        reader = StorageReader(container, source)
        assert reader.read("1:0", 0, 16) == WEIGHTS
    safety = judge(open_checkpoint(str(folder)))
    assert safety.verdict == "weights-only"
    assert safety.answer.sentence == (
        "torch 2.13.0 does not load it with weights_only=True. It is for "
        "megatron.training.checkpointing.load_checkpoint, not for torch.load."
    )


def test_pipelines_and_files_that_are_missing(tmp_path: Path) -> None:
    names = [f"iter_0000005/mp_rank_{rank:02d}_{stage:03d}/{FILE}" for rank in (0, 1) for stage in (0, 1, 2)]
    whole = write(tmp_path / "a", dict.fromkeys(names, part("cpu")), "5")
    found = open_checkpoint(str(whole))
    assert (kinds(found)[NoteKind.PIPELINE], NoteKind.MISSING_PART in kinds(found)) == (("3",), False)
    for lost in names[1:-1]:
        (whole / lost).unlink()
        found = open_checkpoint(str(whole))
        assert kinds(found)[NoteKind.MISSING_PART] == ("1 file is", lost)
        assert found.refusal == f"{lost}: it is missing, or cannot be read"
        (whole / lost).write_bytes(part("cpu"))
    apart = {f"mp_rank_00/{kind}.pt": part("cpu") for kind in ("model_rng", "optim")}
    found = open_checkpoint(str(write(tmp_path / "b", {**apart, "mp_rank_01/optim.pt": part("cpu")}, None)))
    assert kinds(found)[NoteKind.MISSING_PART] == ("1 file is", "mp_rank_01/model_rng.pt")
    assert found.tensors[0].path == "mp_rank_00/model_rng/model/embedding.weight"
    many = {f"mp_rank_9999_9999/{FILE}": part("cpu")}
    found = open_checkpoint(str(write(tmp_path / "c", many, None)))
    assert NoteKind.MISSING_PART not in kinds(found)  # nobody has a hundred million ranks


def test_iterations(tmp_path: Path) -> None:
    rows = {f"{one}/mp_rank_00/{FILE}": part("cpu") for one in ("iter_0000002", "iter_0000010", "release")}
    folder = write(tmp_path / "a", rows, "2")
    assert kinds(open_checkpoint(str(folder)))[NoteKind.TAG] == ("iter_0000002", "2 others")
    write(folder, {}, "release")
    assert kinds(open_checkpoint(str(folder)))[NoteKind.TAG] == ("release", "2 others")
    (folder / "latest_checkpointed_iteration.txt").unlink()
    assert kinds(open_checkpoint(str(folder)))[NoteKind.TAG] == ("release", "2 others")
    for wrong in ("3", "../../etc", "\x1b[2J", "", "9" * 60, "²"):
        write(folder, {}, wrong)
        with pytest.raises(NotACheckpointError, match="names an iteration that is not here") as caught:
            open_checkpoint(str(folder))
        assert "\x1b" not in str(caught.value)
    write(folder, {f"mp_rank_00/{FILE}": part("cpu")}, "2")
    assert (
        kinds(open_checkpoint(str(folder)))[NoteKind.TAG][0] == "iter_0000002"
    )  # as the loader, which asks first
    (folder / "latest_checkpointed_iteration.txt").unlink()
    assert NoteKind.TAG not in kinds(open_checkpoint(str(folder)))  # the folder of an iteration itself


def test_verdict_is_never_better_than_the_worst_rank(tmp_path: Path) -> None:
    evil_part = saved(evil())
    for number, last in enumerate((evil_part, evil_part[:-60], evil_part[:200])):
        rows = {f"mp_rank_00/{FILE}": part("cpu"), f"mp_rank_01/{FILE}": last}
        found = open_checkpoint(str(write(tmp_path / str(number), rows, None)))
        assert judge(found).verdict == "dangerous"
    own = part("cpu", (text("mine"), new("mine.Config")))
    found = open_checkpoint(str(write(tmp_path / "own", {f"mp_rank_00/{FILE}": own}, None)))
    assert judge(found).verdict == "runs-code"


def test_files_that_cannot_be_read_are_told(tmp_path: Path) -> None:
    hostile = {
        "nothing": b"",
        "text": b"hello",
        "cut": part("cpu")[:100],
        "no pickle": saved()[:30] + bytes(500),
        "zeros": bytes(5000),
    }
    for name, data in hostile.items():
        rows = {f"mp_rank_00/{FILE}": part("cpu"), f"mp_rank_01/{FILE}": data}
        found = open_checkpoint(str(write(tmp_path / name, rows, None)))
        assert len(found.tensors) == 4, name
        assert [note.part for note in found.notes if note.kind is NoteKind.UNREAD_PART] == [
            f"mp_rank_01/{FILE}"
        ], name
        assert judge(found).verdict == "unknown", name
        with pytest.raises(CheckpointError):
            open_checkpoint(str(write(tmp_path / f"{name} alone", {f"mp_rank_00/{FILE}": data}, None)))


def test_links_and_loops_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "secret.pt"
    outside.write_bytes(part("cpu"))
    folder = write(tmp_path / "a", {f"mp_rank_00/{FILE}": part("cpu")}, None)
    (folder / "mp_rank_01").mkdir()
    (folder / "mp_rank_01" / FILE).symlink_to(outside)
    (folder / "mp_rank_02").symlink_to(folder)
    found = open_checkpoint(str(folder))
    assert len(found.tensors) == 4
    assert kinds(found)[NoteKind.UNREAD_PART] == ("a link leads out of the folder",)
    assert judge(found).verdict == "unknown"


def test_other_folders_are_none() -> None:
    assert _FILE.fullmatch(f"mp_rank_00/{FILE}")
    for name in (
        FILE,
        f"mp_rank_0/{FILE}",
        f"x/mp_rank_00/{FILE}",
        "mp_rank_00_model_states.pt",
        f"mp_rank_00/{FILE}.txt",
        f"iter_1/mp_rank_00/{FILE}",
    ):
        assert not _FILE.fullmatch(name), name


def test_it_can_be_cancelled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(Folder, "read_member", Mock(side_effect=CancelledError()))
        with pytest.raises(CancelledError):
            open_checkpoint(str(megatron(tmp_path)))
    progress = Progress()
    with open_path(str(megatron(tmp_path))) as source:
        assert find_format(source).name == "megatron"
        progress.cancel()
        read = find_format(source).read
        assert read is not None
        with pytest.raises(CancelledError):
            read(source, DEFAULT_LIMITS, progress)


def test_none_of_them_can_do_harm() -> None:
    assert {judge_global(name) for name in Megatron.own_names} <= {"tensor", "allowed", "unknown"}
