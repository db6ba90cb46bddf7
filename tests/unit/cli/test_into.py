from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from inspector.cli import remapping
from inspector.cli.remapping import is_folder, name_of, refuse_collisions, refuse_sources
from inspector.errors import PlanError
from inspector.model.build import open_checkpoint
from tests.builders import pickles, zips

STATE = pickles.state_dict(w=pickles.tensor(pickles.storage(location="cuda:0"), 2))
CORPUS = Path(__file__).parents[2] / "data" / "corpus"


@pytest.fixture
def two(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "runs").mkdir()
    paths = tmp_path / "runs" / "a.pth", tmp_path / "runs" / "b.pth"
    for path in paths:
        path.write_bytes(zips.checkpoint(STATE, {"0": bytes(8)}))
    return paths


def devices(path: Path) -> set[str]:
    return {storage.device for storage in open_checkpoint(str(path)).storages}


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_each_file_has_its_copy(cli, two, tmp_path) -> None:
    out = tmp_path / "cpu"
    missing = two[0].with_name("c.pth")
    answer = cli("remap", *two, missing, "--into", out)
    assert answer.code == 3
    lines = answer.out.splitlines()
    assert [line.partition(":")[0] for line in lines] == [str(out / "a.pth"), str(out / "b.pth"), "3 files"]
    assert lines[-1] == "3 files: 2 were written, 1 could not be read"
    assert answer.err == f"checkpoint-inspector: error: no such file: {missing}\n"
    assert names(out) == ["a.pth", "b.pth"]
    assert devices(out / "a.pth") == devices(out / "b.pth") == {"cpu"}
    verified = cli("verify", out / "a.pth", out / "b.pth", "--against", two[0].parent)
    assert (verified.code, verified.out.splitlines()[-1]) == (0, "2 files: 2 are as they should be")


def test_nothing_is_written_unless_all_names_are_free(cli, two, tmp_path) -> None:
    out = tmp_path / "cpu"
    out.mkdir()
    (out / "b.pth").write_bytes(b"precious")
    answer = cli("remap", *two, "--into", out)
    assert (answer.code, answer.out, names(out)) == (4, "", ["b.pth"])
    assert f"the file already exists: {out / 'b.pth'} (choose another name, or use --force)" in answer.err
    assert cli("remap", *two, "--into", out, "--force").code == 0
    assert devices(out / "b.pth") == {"cpu"}
    twice = cli("remap", two[0], two[0].parent / "." / ".." / "runs" / "a.pth", "--into", tmp_path / "new")
    assert (twice.code, twice.out) == (2, "")
    assert "this file is named twice: " in twice.err
    assert not (tmp_path / "new").exists()


def test_the_folder_itself_is_no_place_for_copies(cli, two) -> None:
    before = two[0].read_bytes()
    for options in ((), ("--force",)):
        answer = cli("remap", *two, "--into", two[0].parent, *options)
        assert (answer.code, answer.out) == (4, "")
        assert "the copy would replace the file itself" in answer.err
    assert two[0].read_bytes() == before


def test_a_copy_takes_the_place_of_no_other_source(cli, two, tmp_path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    kept = shutil.copy(two[0], out / "a.pth")
    link = tmp_path / "link.pth"
    link.symlink_to(kept)
    answer = cli("remap", two[0], link, "--into", out, "--force")
    assert (answer.code, answer.out, names(out)) == (2, "", ["a.pth"])
    assert f"the copy of {two[0]} would replace a file that is to be copied: {link}" in answer.err
    assert devices(out / "a.pth") == {"cuda:0"}


def test_a_folder_that_cannot_take_them_is_told_first(cli, two, tmp_path, monkeypatch) -> None:
    (tmp_path / "file").write_bytes(b"x")
    assert "this is no folder: " in cli("remap", *two, "--into", tmp_path / "file").err
    answer = cli("remap", *two, "--into", tmp_path / "no" / "such")
    assert (answer.code, answer.out) == (4, "")
    assert "the folder cannot be made: No such file or directory" in answer.err
    (tmp_path / "closed").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: False)
    answer = cli("remap", *two, "--into", tmp_path / "closed")
    assert (answer.code, answer.out, names(tmp_path / "closed")) == (4, "", [])
    assert "nothing can be written into this folder" in answer.err


def test_a_folder_made_for_nothing_is_removed(cli, tmp_path) -> None:
    out = tmp_path / "out"
    for words in (("x", "y"), ("x",)):
        assert cli("remap", *words, "--into", out).code == 3
        assert not out.exists()
    out.mkdir()
    assert cli("remap", "x", "--into", out).code == 3
    assert out.exists()


def test_the_form_decides_the_suffix(cli, two, tmp_path) -> None:
    out = tmp_path / "st"
    assert cli("export", *two, "--into", out, "--format", "safetensors").code == 0
    assert names(out) == ["a.safetensors", "b.safetensors"]
    assert open_checkpoint(str(out / "a.safetensors")).format == "safetensors"
    back = tmp_path / "back"
    assert cli("export", out / "a.safetensors", "--into", back, "--format", "state-dict").code == 0
    assert names(back) == ["a.pth"]


def test_two_names_that_are_one_to_the_disk_are_two_copies_at_most(cli, two, tmp_path, monkeypatch) -> None:
    """Where upper and lower case are the same, no name tells before the first copy is there."""
    out = tmp_path / "out"

    def place_of(path: str, **_: object) -> tuple[int, int] | None:
        return (1, 2) if Path(path).parent == out and out.exists() and any(out.iterdir()) else None

    monkeypatch.setattr(remapping, "place_of", place_of)
    answer = cli("remap", *two, "--into", out, "--force")
    assert (answer.code, names(out)) == (4, ["a.pth"])
    assert f"the copy would replace that of another file: {out / 'b.pth'} (name it with -o)" in answer.err


def test_what_would_be_done_writes_nothing(cli, two, tmp_path) -> None:
    out = tmp_path / "cpu"
    answer = cli("remap", *two, "--into", out, "--dry-run")
    assert answer.code == 0
    assert [line for line in answer.out.splitlines() if line in map(str, two)] == list(map(str, two))
    assert answer.out.endswith("\n\n2 files: 2 can be written\n")
    documents = cli("remap", *two, "--into", out, "--dry-run", "--json").out.splitlines()
    assert [json.loads(line)["output"] for line in documents] == [str(out / "a.pth"), str(out / "b.pth")]
    assert not out.exists()
    plain = cli("remap", *two, "--dry-run", "--json").out.splitlines()
    assert [json.loads(line)["output"] for line in plain] == [None, None]


def test_several_files_change_in_place_each_with_its_record(cli, two, tmp_path) -> None:
    before = [path.read_bytes() for path in two]
    missing = tmp_path / "missing.pth"
    answer = cli("remap", two[0], missing, two[1], "--in-place", "--map", "cuda:*=cpu")
    assert answer.code == 3
    assert answer.out.endswith("3 files: 2 were written, 1 could not be read\n")
    assert all(path.read_bytes() != data for path, data in zip(two, before, strict=True))
    refused = cli("remap", *two, "--in-place", "--map", "*=cpu")
    assert (refused.code, refused.out) == (4, "2 files: 2 could not be written\n")
    answer = cli("remap", *two, "--undo")
    assert (answer.code, answer.out.endswith("\n2 files: 2 are as they were before\n")) == (0, True)
    assert [path.read_bytes() for path in two] == before


def test_a_checkpoint_of_several_files_is_one_copy(cli, tmp_path) -> None:
    out = tmp_path / "out"
    sharded, dcp = CORPUS / "hf_sharded", CORPUS / "dcp" / "plain"
    assert cli("export", f"{sharded}/", dcp / ".metadata", "--into", out, "--format", "safetensors").code == 0
    assert names(out) == ["hf_sharded.safetensors", "plain.safetensors"]
    index = sharded / "pytorch_model.bin.index.json"
    answer = cli("remap", index, "--into", out)
    assert (answer.code, (out / "hf_sharded").is_dir()) == (0, True), answer
    assert sorted(names(out / "hf_sharded")) == sorted(names(sharded))


def test_a_copy_is_called_as_its_file_unless_the_suffix_would_lie(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "step-5").mkdir()
    (tmp_path / "step-5" / ".metadata").touch()
    (tmp_path / "llm").mkdir()
    (tmp_path / "llm" / "model.safetensors.index.json").touch()
    named = {
        ("a/best.pth", None, False): "best.pth",
        ("a/best", None, False): "best",
        ("a/best.pth.gz", None, False): "best.pth",
        ("a/best.gz", None, False): "best.gz",
        ("best.pth.tar", None, False): "best.pth.tar",
        ("best.pth", "safetensors", True): "best.safetensors",
        ("best.pth.tar", "safetensors", True): "best.safetensors",
        ("model.v1", "safetensors", True): "model.v1.safetensors",
        ("x.safetensors", "safetensors", True): "x.safetensors",
        ("x.SafeTensors", "state-dict", True): "x.pth",
        ("x.safetensors", None, True): "x.safetensors",
        ("x.ckpt", "state-dict", True): "x.ckpt",
        ("step-5", None, False): "step-5",
        ("step-5/", None, False): "step-5",
        ("step-5/.metadata", None, False): "step-5",
        ("step-5/../step-5/.", None, False): "step-5",
        (".", None, False): tmp_path.name,
        ("llm/model.safetensors.index.json", None, False): "llm",
        ("llm", "safetensors", True): "llm.safetensors",
        ("step-5", "state-dict", True): "step-5.pth",
        ("step-5", None, True): "step-5.pth",
    }
    got = {given: name_of(given[0], given[1], is_form=given[2]) for given in named}
    assert got == named
    monkeypatch.chdir("step-5")
    assert name_of(".metadata", None, is_form=False) == "step-5"
    assert is_folder("../llm")
    assert not is_folder("missing.pth")


def test_two_copies_never_have_one_name(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "x.pth").touch()
    Path("link.pth").symlink_to("a/x.pth")
    refuse_collisions([("a/x.pth", "o/x.pth"), ("b/y.pth", "o/y.pth")])
    with pytest.raises(PlanError, match="two files would have one copy, o/x"):
        refuse_collisions([("a/x.pth", "o/x.pth"), ("b/x.pth", "o/x.pth")])
    for other in ("a/x.pth", "./a/x.pth", "link.pth"):
        with pytest.raises(PlanError, match=f"this file is named twice: a/x.pth and {other}"):
            refuse_collisions([("a/x.pth", "o/x.pth"), (other, "o/x.pth")])
    with pytest.raises(PlanError, match="named twice"):  # also where there is none
        refuse_collisions([("gone.pth", "o/x.pth"), ("gone.pth", "o/x.pth")])
    with pytest.raises(PlanError, match="two files would have one copy"):
        refuse_collisions([("gone.pth", "o/x.pth"), ("a\0b", "o/x.pth")])


def test_no_copy_takes_the_place_of_another_file(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(name).mkdir()
        Path(name, "x.pth").touch()
    Path("a/y.pth").symlink_to("../b/x.pth")
    refuse_sources([("a/x.pth", "o/x.pth"), ("b/x.pth", "o/y.pth")])
    with pytest.raises(PlanError, match=r"the copy of a/x\.pth would replace a file that is to be copied: b"):
        refuse_sources([("a/x.pth", "a/y.pth"), ("b/x.pth", "o/z.pth")])
