"""A copy of a folder: every file of torch's relabeled, the others as they are, and all of it or nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from inspector.errors import CancelledError, ExportError, PlanError
from inspector.model.build import open_checkpoint
from inspector.remap import export as module
from inspector.remap.export import Export, can_relabel, export_folder
from inspector.remap.plan import plan_remap
from inspector.remap.rules import parse_rule
from inspector.remap.verify import compare_files
from tests.builders.archives import archive
from tests.builders.folders import trainer, two_shards
from tests.builders.pickles import dict_, list_, number, proto, storage, stream, tensor, text
from tests.builders.safetensors import model


def copied(source: Path, destination: Path, *rules: str) -> Export:
    checkpoint = open_checkpoint(str(source))
    return export_folder(checkpoint, destination, plan_remap(checkpoint, list(map(parse_rule, rules))))


def devices(path: Path) -> dict[str, str]:
    return {row.path: row.device for row in open_checkpoint(str(path)).tensors}


@pytest.mark.parametrize("by_index", [False, True])
def test_shards_are_relabeled_and_the_rest_is_copied(tmp_path: Path, by_index: bool) -> None:
    index = two_shards(tmp_path / "m")
    (tmp_path / "m" / "sub").mkdir()
    (tmp_path / "m" / "sub" / "notes.txt").write_text("notes")
    out = tmp_path / "out"
    done = copied(index if by_index else index.parent, out, "path:b.*@cpu", "*=cuda:1")
    assert devices(out) == {"a.weight": "cuda:1", "a.bias": "cuda:1", "b.weight": "cpu"}
    assert (out / "sub" / "notes.txt").read_text() == "notes"
    assert (out / index.name).read_bytes() == index.read_bytes()
    assert (done.moved_tensors, done.verified, done.destination) == (3, True, out)
    assert done.nbytes == sum(file.stat().st_size for file in out.rglob("*") if file.is_file())
    assert devices(index.parent) == dict.fromkeys(devices(out), "cuda:0")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []
    copied(index.parent, tmp_path / "part", "path:a.bias@cpu")
    assert devices(tmp_path / "part") == {"a.weight": "cuda:0", "a.bias": "cpu", "b.weight": "cuda:0"}


def test_files_of_a_trainer_follow_the_paths_of_the_folder(tmp_path: Path) -> None:
    source = trainer(tmp_path / "run")
    done = copied(source, tmp_path / "out", "path:optimizer.pt/state/0/**@cpu", "*=cuda:3")
    assert devices(tmp_path / "out") == {
        "model.safetensors/weight": "none",
        "model.safetensors/bias": "none",
        "optimizer.pt/state/0/exp_avg": "cpu",
        "optimizer.pt/state/1/exp_avg": "cuda:3",
    }
    same = ("model.safetensors", "config.json")
    assert all((tmp_path / "out" / name).read_bytes() == (source / name).read_bytes() for name in same)
    assert done.moved_tensors == 2


def test_what_has_no_devices_is_refused(tmp_path: Path) -> None:
    source = trainer(tmp_path / "run")
    for name in ("optimizer.pt", "scheduler.pt", "training_args.bin"):
        (source / name).unlink()
    assert not can_relabel(open_checkpoint(str(source)))
    with pytest.raises(PlanError, match="no file of this folder names a device"):
        copied(source, tmp_path / "out", "*=cpu")
    assert not (tmp_path / "out").exists()


def test_new_folder_is_whole_or_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = trainer(tmp_path / "run")
    (source / "model2.safetensors").write_bytes(model(a=(1,)))
    os.mkfifo(source / "pipe")
    with pytest.raises(ExportError, match="only regular files are copied"):
        copied(source, tmp_path / "out", "*=cpu")
    (source / "pipe").unlink()
    (source / "loop").symlink_to(source, target_is_directory=True)
    with pytest.raises(ExportError, match="only regular files are copied"):
        copied(source, tmp_path / "out", "*=cpu")
    (source / "loop").unlink()

    def cancelled(*_: object, **__: object) -> Export:
        raise CancelledError

    monkeypatch.setattr(module, "export_copy", cancelled)
    with pytest.raises(CancelledError):
        copied(source, tmp_path / "out", "*=cpu")
    assert [path.name for path in tmp_path.iterdir()] == ["run"]


def test_places_that_cannot_be_are_refused(tmp_path: Path) -> None:
    source = trainer(tmp_path / "run")
    (tmp_path / "there").mkdir()
    for place, words in (
        ("there", "this exists already"),
        ("run/copy", "the copy would stand in the folder itself"),
        ("no/where", "no such folder"),
    ):
        with pytest.raises(ExportError, match=words):
            copied(source, tmp_path / place, "*=cpu")


def test_state_that_stays_on_the_cpu_by_design_stays_there(tmp_path: Path) -> None:
    source = trainer(tmp_path / "run")
    slots = dict_((text("step"), tensor(storage(location="cpu", numel=1), 1)))
    group = dict_((text("lr"), number(1)), (text("params"), list_(number(0))))
    state = dict_((text("state"), dict_((number(0), slots))), (text("param_groups"), list_(group)))
    (source / "optimizer.pt").write_bytes(archive(stream(proto(), state), {"0": bytes(4)}))
    done = copied(source, tmp_path / "out", "cpu=cuda:3")
    assert devices(tmp_path / "out")["optimizer.pt/state/0/step"] == "cpu"
    assert (done.moved_tensors, done.kept_tensors) == (0, 1)


def test_files_that_are_copied_as_they_are_are_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A safetensors file beside those of torch counts among what was compared."""
    source = trainer(tmp_path / "run")
    done = copied(source, tmp_path / "out", "*=cpu")
    assert done.compared_nbytes == done.copied_nbytes > (source / "model.safetensors").stat().st_size
    checkpoint = open_checkpoint(str(source))
    plan = plan_remap(checkpoint, [parse_rule("*=cpu")])
    unchecked = export_folder(checkpoint, tmp_path / "unchecked", plan, verify="none")
    assert (unchecked.compared_nbytes, unchecked.copied_nbytes) == (0, done.copied_nbytes)
    full = export_folder(checkpoint, tmp_path / "full", plan, verify="full")
    assert full.compared_nbytes == done.compared_nbytes
    real = module.shutil.copyfile

    def damaged(one: Path, other: Path) -> None:
        real(one, other)
        other.write_bytes(other.read_bytes()[:-1] + b"\xff")

    monkeypatch.setattr(module.shutil, "copyfile", damaged)
    with pytest.raises(ExportError, match="the bytes of a copied file differ"):
        copied(source, tmp_path / "bad", "*=cpu")
    assert not (tmp_path / "bad").exists()


def differences(tmp_path: Path) -> tuple[str, ...]:
    return compare_files(str(tmp_path / "copy"), str(tmp_path / "run")).differences


def test_folders_are_compared_whole(tmp_path: Path) -> None:
    shutil.copytree(trainer(tmp_path / "run"), tmp_path / "copy")
    found = compare_files(str(tmp_path / "copy"), str(tmp_path / "run"))
    assert (found.differences, found.tensors, found.compared_nbytes) == ((), 4, 4685)
    assert compare_files(str(tmp_path / "run"), str(tmp_path / "run")).is_same
    config = tmp_path / "copy" / "config.json"
    config.write_text(config.read_text() + " ")
    assert differences(tmp_path) == ("The file config.json differs.",)
    config.rename(tmp_path / "copy" / "other.json")
    assert "The file config.json is missing from the copy." in differences(tmp_path)
    assert "The file other.json is in the copy alone." in differences(tmp_path)


def test_changed_bytes_are_found(tmp_path: Path) -> None:
    shutil.copytree(trainer(tmp_path / "run"), tmp_path / "copy")
    file = tmp_path / "copy" / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[-1] ^= 1
    file.write_bytes(data)
    assert differences(tmp_path) == ("The file model.safetensors differs.",)
    file.write_bytes(data[:-8])
    assert differences(tmp_path) == ("The file model.safetensors differs.",)


def test_files_beside_are_compared_to_their_end(tmp_path: Path) -> None:
    trainer(tmp_path / "run")
    (tmp_path / "run" / "vocab.txt").write_bytes(bytes(3 << 20))
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    assert differences(tmp_path) == ()
    (tmp_path / "copy" / "vocab.txt").write_bytes(bytes((3 << 20) - 1) + b"x")
    assert differences(tmp_path) == ("The file vocab.txt differs.",)


def add_stranger(folder: Path, location: str) -> None:
    """Have a folder hold a file that is no part of its checkpoint, and so in no row."""
    push = tensor(storage("0", location=location), 2)
    (folder / "mine.pth").write_bytes(archive(stream(proto(), push), {"0": bytes(8)}))


def test_devices_that_no_row_of_a_folder_shows_are_compared(tmp_path: Path) -> None:
    add_stranger(trainer(tmp_path / "run"), "cuda:0")
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    paths = str(tmp_path / "copy"), str(tmp_path / "run")
    assert compare_files(*paths, []).is_same
    add_stranger(tmp_path / "copy", "cuda:7")
    assert compare_files(*paths, []).differences == ("A device that no row shows differs.",)
