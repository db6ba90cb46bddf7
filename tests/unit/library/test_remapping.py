from __future__ import annotations

import shutil

import pytest

import inspector
from inspector.library import copies
from inspector.resources import demo_path
from tests.corpus import CORPUS
from tests.schemas import complaint
from tests.unit.remap.samples import call, mapping, name, stream, tensor, text, written, zip_of


def devices(path) -> set[str]:
    return {one.device for one in inspector.open(path).devices}


def test_a_copy_with_other_devices(demo: inspector.Checkpoint, tmp_path) -> None:
    out = tmp_path / "out.pth"
    found = inspector.remap(demo, out, map={"cuda:1": "cuda:0"}, verify="full")
    assert devices(out) == {"cuda:0", "cpu"}
    assert (found.output, found.format, found.verified) == (out, "zip", True)
    assert found.nbytes == out.stat().st_size
    assert {(row.device, row.to) for row in found.moves if row.what == "moves"} == {("cuda:1", "cuda:0")}
    assert sum(row.tensors for row in found.moves) == len(demo)
    assert found.left_out == ()
    assert "relabeled" in str(found)
    assert complaint("remap", found.to_dict()) == ""
    inspector.remap(demo, out, force=True)
    assert devices(out) == {"cpu"}
    inspector.remap(demo.path, str(out), target="cuda", python="/nowhere", force=True)
    assert devices(out) == {"cuda:0", "cpu"}


def test_another_form(demo: inspector.Checkpoint, tmp_path) -> None:
    out = tmp_path / "weights.safetensors"
    found = inspector.remap(demo, out, only="weights", exclude="head.*", strip_prefix="model")
    assert (found.format, found.moves, found.verified) == ("safetensors", (), True)
    assert any(row.path.startswith("optimizer") for row in found.left_out)
    assert complaint("remap", found.to_dict()) == ""
    assert not any("head" in path for path in inspector.open(out).keys())  # noqa: SIM118 - no dict
    old = inspector.remap(demo, tmp_path / "old.pth", container="legacy", ema=True, only="weights")
    assert (old.format, inspector.open(tmp_path / "old.pth").format) == ("legacy", "legacy")
    with pytest.raises(inspector.PlanError, match="another form is no copy"):
        inspector.remap(demo, out, only="weights", verify="full")


def test_what_would_be_done(demo: inspector.Checkpoint, tmp_path) -> None:
    out = tmp_path / "out.pth"
    plain = inspector.remap(demo, out, dry_run=True)
    assert (plain.output, plain.verified, plain.nbytes) == (None, False, demo.file_nbytes)
    assert {row.to for row in plain.moves} == {"cpu"}
    assert "cuda:0 -> cpu" in str(plain)
    form = inspector.remap(demo, dry_run=True, only="weights")
    assert form.format == "zip"
    assert {row.role for row in form.moves} == {"parameter", "buffer"}
    assert inspector.remap(demo, dry_run=True, format="safetensors").moves == ()
    assert form.left_out
    for planned in (plain, form):
        assert complaint("remap", planned.to_dict()) == ""
    assert plain.to_dict()["output"] == str(out)
    less = inspector.remap(demo, dry_run=True, exclude=["optimizer"])
    assert [row.path for row in less.left_out if row.is_asked] == ["optimizer"]
    assert list(tmp_path.iterdir()) == []


def test_a_folder(tmp_path) -> None:
    """A folder of weights has no device, and is joined."""
    source = tmp_path / "shards"
    shutil.copytree(CORPUS / "hf_sharded", source)
    found = inspector.remap(source, tmp_path / "copy", map="*=cuda:0")
    assert found.output == tmp_path / "copy"
    assert devices(tmp_path / "copy") == {"cuda:0"}
    with pytest.raises(inspector.PlanError, match="is for single files"):
        inspector.remap(source, tmp_path / "other", map="*=cuda:0", verify="torch")


def test_wrong_wishes_write_nothing(demo: inspector.Checkpoint, tmp_path) -> None:
    out = tmp_path / "out.pth"
    wrong = {}
    for arguments, words in (
        ({"output": None}, "not told where to write"),
        ({"map": "xpu:7=cpu"}, "matches nothing"),
        ({"map": "nonsense"}, "not understood"),
        ({"target": "moon"}, "unknown target"),
        ({"only": "biases"}, "only='biases' is not understood"),
        ({"format": "onnx"}, "format='onnx' is not understood"),
        ({"verify": "maybe"}, "verify='maybe' is not understood"),
        ({"output": tmp_path / "out.safetensors", "format": "same"}, "file name"),
        ({"output": demo.path}, ""),
        ({"container": "tar"}, "container='tar' is not understood"),
        ({"cast": "float8"}, "cast='float8' is not understood"),
        ({"ema": True}, "and all are copied"),
        ({"exclude": ["optimizer"], "format": "safetensors"}, "file name"),
        ({"output": None, "dry_run": True, "only": "weights", "exclude": "**"}, "no weights are left"),
    ):
        try:
            inspector.remap(demo, **({"output": out} | arguments))
        except inspector.CheckpointError as error:
            if words not in str(error):
                wrong[str(arguments)] = str(error)
        else:
            wrong[str(arguments)] = "nothing was said"
    assert wrong == {}
    assert list(tmp_path.iterdir()) == []


def test_safetensors_have_no_device_to_map_to(tmp_path) -> None:
    source = CORPUS / "safetensors" / "all.safetensors"
    with pytest.raises(inspector.CheckpointError):
        inspector.remap(source, tmp_path / "out.safetensors", map="*=cuda:0")


def test_what_torch_says_of_the_copy_is_an_error_where_it_is_bad(demo, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(copies, "unchecked_by_torch", lambda done: "torch did not check the copy")
    with pytest.raises(inspector.ExportError, match="torch did not check the copy"):
        inspector.remap(demo, tmp_path / "out.pth", verify="quick")
    assert (tmp_path / "out.pth").exists()


def test_open_checkpoints_are_read_where_they_were_opened(copy, monkeypatch, tmp_path) -> None:
    monkeypatch.chdir(copy.parent)
    here = inspector.open("demo.pth")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    inspector.remap(here, "out.pth", verify="none")
    assert devices("out.pth") == {"cpu"}
    assert demo_path() != copy


def test_a_file_is_changed_in_place_and_that_is_taken_back(tmp_path) -> None:
    path = tmp_path / "best.pth"
    shutil.copy(demo_path(), path)
    before = path.read_bytes()
    found = inspector.remap(path, map="cuda:1=cuda:0", in_place=True)
    assert (found.output, found.verified) == (path, True)
    assert found.record is not None
    assert found.record.is_file()
    assert devices(path) == {"cuda:0", "cpu"}
    assert "Can be undone as long as" in str(found)
    assert (complaint("remap", found.to_dict()), found.to_dict()["action"]) == ("", "in-place")
    with pytest.raises(inspector.ExportError):  # the record is of one change
        inspector.remap(path, in_place=True)
    undone = inspector.undo(path)
    assert (undone.output, undone.nbytes, path.read_bytes()) == (path, len(before), before)
    assert (complaint("remap", undone.to_dict()), undone.to_dict()["action"]) == ("", "undo")
    assert str(undone)
    assert not found.record.exists()
    with pytest.raises(inspector.ExportError, match="nothing to undo"):
        inspector.undo(path)
    same = inspector.remap(path, map="cuda:1=cuda:1", in_place=True, dry_run=True)
    assert (same.output, same.record, path.read_bytes()) == (None, None, before)


def test_in_place_is_about_devices_alone(tmp_path) -> None:
    path = tmp_path / "best.pth"
    shutil.copy(demo_path(), path)
    with pytest.raises(inspector.PlanError, match="in_place changes the file itself"):
        inspector.remap(path, tmp_path / "out.pth", in_place=True)
    for other in ({"only": "weights"}, {"verify": "full"}, {"cast": "float16", "dry_run": True}):
        with pytest.raises(inspector.PlanError, match="the devices of a file and nothing else"):
            inspector.remap(path, in_place=True, **other)
    assert [one.name for one in tmp_path.iterdir()] == ["best.pth"]


@pytest.fixture
def out(tmp_path):
    path = tmp_path / "out.pth"
    inspector.remap(demo_path(), path, map="cuda:*=cpu", verify="none")
    return path


def test_a_copy_is_what_it_was_to_become(out, demo: inspector.Checkpoint) -> None:
    for arguments in ({}, {"map": "cuda:*=cpu"}, {"target": "cpu"}):
        found = inspector.verify(out, demo, **arguments)
        assert found, arguments
        assert (found.same, found.differences, found.tensors) == (True, (), 283)
        assert found.compared_nbytes > 0
        assert complaint("verify", found.to_dict()) == ""
    assert str(inspector.verify(out, demo, map="cuda:*=cpu")).startswith("Devices as planned.")


def test_a_copy_that_is_not(out, demo: inspector.Checkpoint) -> None:
    planned = inspector.verify(out, demo, map="cuda:1=cuda:0")
    assert not planned
    assert planned.differences
    data = bytearray(out.read_bytes())
    start = inspector.open(out).storages[0].file_offset
    assert start is not None
    data[start] ^= 1
    out.write_bytes(data)
    damaged = inspector.verify(out, demo)
    assert not damaged
    assert damaged.differences
    assert str(damaged)


def test_what_is_intact_is_saved(tmp_path) -> None:
    half, out = tmp_path / "half.pth", tmp_path / "rest.pth"
    half.write_bytes(demo_path().read_bytes()[:-90_000])
    found = inspector.recover(half, out)
    assert found.output == out
    assert found.tensors == len(inspector.open(out)) > 0
    assert found.lost
    assert found.verdict == "weights-only"
    assert found.lost[0] in str(found)
    assert "lost" in str(found)
    assert complaint("recover", found.to_dict()) == ""
    with pytest.raises(inspector.ExportError):
        inspector.recover(half, out)
    assert inspector.recover(half, out, force=True).lost == found.lost


def test_an_open_checkpoint_is_a_source_like_a_path(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(demo_path().parent)
    demo = inspector.open("demo.pth")
    monkeypatch.chdir(tmp_path)
    assert inspector.recover(demo, "rest.pth").tensors == len(demo)


def test_what_loading_the_rest_runs_is_said(tmp_path) -> None:
    body = mapping(w=tensor(text("cpu")), x=call(name("mine", "Thing"), text("a")))
    path = written(tmp_path, zip_of(stream(body), {"0": bytes(16)}))
    found = inspector.recover(path, tmp_path / "rest.pth")
    assert found.verdict == "runs-code"
    assert "The new file: " in str(found)
