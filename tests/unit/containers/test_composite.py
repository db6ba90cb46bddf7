"""Folders of several objects: what is one checkpoint, which files are taken, nothing outside is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from inspector.containers.composite import Diffusers
from inspector.containers.folder import Folder
from inspector.containers.notes import NoteKind
from inspector.containers.opening import read_container
from inspector.containers.walking import checkpoints_in
from inspector.errors import CheckpointError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.safety.verdict import judge
from inspector.snippet.styles.table import render
from inspector.target.profile import CPU_ONLY as CPU
from inspector.target.simulate import judge_load
from tests.builders.archives import archive
from tests.builders.folders import adapters, brain, memmap_row, optimizer, pipeline, shard, tensordict_meta
from tests.builders.pickles import call, proto, stream
from tests.builders.safetensors import model

RUNS = archive(stream(proto(), call("os.system")), {})
GENUINE = Path(__file__).parents[2] / "data" / "folders"
SAFE = "diffusion_pytorch_model.safetensors"


def kinds(checkpoint: Checkpoint) -> list[NoteKind]:
    return [note.kind for note in checkpoint.notes]


def test_each_part_of_a_pipeline_is_a_branch(tmp_path: Path) -> None:
    parts = {"unet": {SAFE: model(a=(2,), b=(3,))}, "text_encoder": {"pytorch_model.bin": shard("w", "v")}}
    folder = pipeline(tmp_path / "p", parts, scheduler=["diffusers", "DDIMScheduler"], safety=[None, None])
    (folder / "scheduler").mkdir()
    (folder / "scheduler" / "scheduler_config.json").write_text("{}")
    found = open_checkpoint(str(folder))
    assert found.format == "diffusers"
    assert [(row.path, row.role) for row in found.tensors] == [
        ("unet/a", "parameter"),
        ("unet/b", "parameter"),
        ("text_encoder/w", "parameter"),
        ("text_encoder/v", "parameter"),
    ]
    assert {Path(row.part).name for row in found.storages} == {SAFE, "pytorch_model.bin"}
    assert found.notes == ()
    assert judge_load(found, CPU).loads
    assert [row.path for row in checkpoints_in(str(tmp_path))] == [str(folder)]  # and none of its parts


@pytest.mark.parametrize(
    ("files", "taken"),
    [
        ((SAFE, "diffusion_pytorch_model.bin"), SAFE),
        ((SAFE, "diffusion_pytorch_model.fp16.safetensors"), SAFE),
        (
            ("diffusion_pytorch_model.bin", "diffusion_pytorch_model.fp16.safetensors"),
            "diffusion_pytorch_model.bin",
        ),
        (("model.safetensors", "pytorch_model.bin"), "model.safetensors"),
    ],
)
def test_of_several_files_the_one_of_the_loader_is_taken_and_said(
    tmp_path: Path, files: tuple[str, ...], taken: str
) -> None:
    data = {name: model(a=(2,), b=(3,)) if name.endswith("s") else shard("a", "b") for name in files}
    found = open_checkpoint(str(pipeline(tmp_path, {"unet": data})))
    assert [Path(part.path).name for part in found.parts] == [taken]
    assert [(note.kind, note.part, note.values[0]) for note in found.notes] == [
        (NoteKind.FILE_TAKEN, "unet", taken)
    ]
    assert judge_load(found, CPU).loads


@pytest.mark.parametrize("name", ["diffusion_pytorch_model.fp16.safetensors", "model.fp16.safetensors"])
def test_a_variant_alone_does_not_load_without_its_name(tmp_path: Path, name: str) -> None:
    found = open_checkpoint(str(pipeline(tmp_path, {"unet": {name: model(a=(2,), b=(3,))}})))
    assert len(found.tensors) == 2
    assert kinds(found) == [NoteKind.VARIANT_TAKEN]
    load = judge_load(found, CPU)
    assert load.failure is not None
    assert "found in directory" in load.failure.message
    assert 'variant="fp16"' in render(found, style=None, target=CPU)


@pytest.mark.parametrize("form", ["{}.index.json", "{}.index.fp16.json", "{}.fp16.index.json"])
def test_shards_of_a_part_are_found_beside_its_index(tmp_path: Path, form: str) -> None:
    shards = {"m-00001-of-00002.safetensors": model(a=(2,)), "m-00002-of-00002.safetensors": model(b=(3,))}
    index = {"weight_map": {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"}}
    files = {**shards, form.format(SAFE): json.dumps(index).encode()}
    found = open_checkpoint(str(pipeline(tmp_path, {"unet": files})))
    assert [row.path for row in found.tensors] == ["unet/a", "unet/b"]
    assert NoteKind.MISSING_PART not in kinds(found)


def test_very_many_parts_are_looked_up_once(tmp_path: Path) -> None:
    named = {f"part{number}": ["diffusers", "X"] for number in range(3_000)}
    parts = {"unet": {SAFE: model(a=(2,), b=(3,)), **{f"{number}.txt": b"" for number in range(500)}}}
    folder = Folder(str(tmp_path), str(pipeline(tmp_path, parts, **named)))
    seen = 0

    class Sizes(dict[str, int]):
        def __iter__(self) -> Iterator[str]:
            nonlocal seen
            seen += len(self)
            return super().__iter__()

    folder.sizes = Sizes(folder.sizes)
    assert len(list(Diffusers().find(folder, DEFAULT_LIMITS))) == 3_001
    assert 0 < seen <= 10 * len(folder.sizes)


def test_a_part_without_files_stops_the_loader(tmp_path: Path) -> None:
    parts = {"unet": {SAFE: model(a=(2,), b=(3,))}, "vae": {}}
    found = open_checkpoint(str(pipeline(tmp_path, parts, text_encoder=["transformers", "CLIPTextModel"])))
    assert kinds(found) == [NoteKind.MISSING_PART]
    assert found.notes[0].values[1] == "vae/*.safetensors, text_encoder"
    assert not judge_load(found, CPU).loads


# --- what must not be missing from the verdict --------------------------------------------------------------


@pytest.mark.parametrize(
    "place",
    ["unet/diffusion_pytorch_model.bin", "unet/other.bin", "left.pkl", "scheduler/deep/er.pt", "unet/x/a.PT"],
)
def test_every_pickle_of_a_pipeline_counts(tmp_path: Path, place: str) -> None:
    folder = pipeline(tmp_path, {"unet": {SAFE: model(a=(2,), b=(3,))}})
    (folder / place).parent.mkdir(parents=True, exist_ok=True)
    (folder / place).write_bytes(RUNS)
    assert judge(open_checkpoint(str(folder))).verdict == "dangerous"


def test_code_in_a_pipeline_is_not_known(tmp_path: Path) -> None:
    folder = pipeline(tmp_path, {"unet": {SAFE: model(a=(2,), b=(3,))}})
    assert judge(open_checkpoint(str(folder))).weights_only
    (folder / "unet" / "mine.py").write_text("")
    assert judge(open_checkpoint(str(folder))).verdict == "unknown"


@pytest.mark.parametrize("how", ["..", "absolute", "link to a folder", "link to a file"])
def test_nothing_outside_of_a_pipeline_is_read(tmp_path: Path, how: str) -> None:
    other = pipeline(tmp_path / "other", {"unet": {SAFE: model(secret=(2,), more=(3,))}})
    name = {"..": "../other/unet", "absolute": str(other / "unet")}.get(how, "vae")
    folder = pipeline(tmp_path / "p", {"unet": {SAFE: model(a=(2,), b=(3,))}}, **{name: ["diffusers", "X"]})
    if how == "link to a folder":
        (folder / "vae").symlink_to(other / "unet", target_is_directory=True)
    elif how == "link to a file":
        (folder / "vae").mkdir()
        (folder / "vae" / SAFE).symlink_to(other / "unet" / SAFE)
    found = open_checkpoint(str(folder))
    assert [row.path for row in found.tensors] == ["unet/a", "unet/b"]
    assert judge(found).verdict == "unknown"
    assert not judge_load(found, CPU).loads
    assert set(kinds(found)) <= {NoteKind.PART_OUTSIDE, NoteKind.MISSING_PART, NoteKind.UNREAD_PART}
    assert kinds(found)


@pytest.mark.parametrize("named", ["../../other/w.bin", "/etc/passwd", "../../p/../other/w.bin"])
def test_index_of_a_part_never_leaves_the_folder(tmp_path: Path, named: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "w.bin").write_bytes(shard("secret"))
    index = json.dumps({"weight_map": {"secret": named, "a": "a.bin"}}).encode()
    files = {"a.bin": shard("a"), "diffusion_pytorch_model.bin.index.json": index}
    found = open_checkpoint(str(pipeline(tmp_path / "p", {"unet": files})))
    assert [row.path for row in found.tensors] == ["unet/a"]
    assert NoteKind.PART_OUTSIDE in kinds(found)
    assert judge(found).verdict == "unknown"


def test_index_of_a_part_may_name_a_file_of_another(tmp_path: Path) -> None:
    index = json.dumps({"weight_map": {"a": "../vae/diffusion_pytorch_model.bin"}}).encode()
    parts = {
        "unet": {"diffusion_pytorch_model.bin.index.json": index},
        "vae": {"diffusion_pytorch_model.bin": shard("a", "b")},
    }
    found = open_checkpoint(str(pipeline(tmp_path, parts)))
    assert [row.path for row in found.tensors] == ["unet/a", "unet/b", "vae/a", "vae/b"]


@pytest.mark.parametrize(
    "index", ["", "[]", "{", '{"unet": ["diffusers"]}', '{"unet": [1, 2]}', '{"": ["a", "b"]}']
)
def test_an_index_that_is_none_is_a_sentence_or_names_nothing(tmp_path: Path, index: str) -> None:
    pipeline(tmp_path, {"unet": {SAFE: model(a=(2,), b=(3,))}})
    (tmp_path / "model_index.json").write_text(index)
    if index[:1] == "{" and index != "{":
        found = open_checkpoint(str(tmp_path))
        assert not any(row.path.startswith("unet/") for row in found.tensors)
    else:
        with pytest.raises(CheckpointError, match="JSON"):
            open_checkpoint(str(tmp_path))


# --- SpeechBrain --------------------------------------------------------------------------------------------


def test_each_object_of_speechbrain_is_a_branch(tmp_path: Path) -> None:
    folder = brain(tmp_path / "save" / "CKPT+1")
    data = {"0": bytes(16), "1": bytes(16)}
    (folder / "optimizer.ckpt").write_bytes(archive(optimizer(4, 4, location="cpu"), data))
    found = open_checkpoint(str(folder))
    assert found.format == "speechbrain"
    assert [row.path for row in found.tensors][:2] == ["model/weight", "model/bias"]
    assert [row.parameter for row in found.tensors if row.slot] == ["weight", "bias"]
    assert {row.path: row.text for row in found.values}["counter.ckpt"] == "3"
    assert judge(found).weights_only
    assert judge_load(found, CPU).loads
    code = render(found, style=None, target=CPU)
    assert '{"counter": counter, "model": model, "optimizer": optimizer}' in code
    brain(tmp_path / "save" / "CKPT+2")
    assert len(list(checkpoints_in(str(tmp_path)))) == 2  # a folder of checkpoints


@pytest.mark.parametrize("text", ["cos\nsystem\n(S'id'\ntR.", "(S'id'\nios\nsystem\n."])
def test_a_pickle_of_text_is_no_text(tmp_path: Path, text: str) -> None:
    folder = brain(tmp_path / "CKPT+1")
    (folder / "counter.ckpt").write_text(text)
    assert judge(open_checkpoint(str(folder))).verdict in {"dangerous", "unknown"}


# --- adapters -----------------------------------------------------------------------------------------------


def test_adapters_of_one_model_are_branches_and_those_of_steps_are_not(tmp_path: Path) -> None:
    folder = adapters(tmp_path / "a")
    found = open_checkpoint(str(folder))
    assert found.format == "adapters"
    assert {row.path.partition("/")[0] for row in found.tensors} == {"default", "other"}
    assert 'model.load_adapter(folder / "other", adapter_name="other")' in render(
        found, style=None, target=CPU
    )
    (folder / "other" / "optimizer.pt").write_bytes(archive(optimizer(2), {"0": bytes(8)}))
    assert read_container(str(folder)).format == "folder"
    assert len(list(checkpoints_in(str(folder)))) == 2


# --- TensorDict ---------------------------------------------------------------------------------------------


def test_a_tensordict_is_a_tree_of_tensors(tmp_path: Path) -> None:
    folder = tensordict_meta(
        tmp_path, a=memmap_row(2, 2), inner={"type": "TensorDict"}, note={"type": "NonTensorData"}
    )
    tensordict_meta(folder / "inner", b=memmap_row(3, dtype="torch.bfloat16"))
    (folder / "note").mkdir()
    data = {"_type": "<class 'tensordict.tensorclass.NonTensorData'>", "data": "hi", "_is_non_tensor": True}
    (folder / "note" / "meta.json").write_text(json.dumps(data))
    (folder / "a.memmap").write_bytes(bytes(16))
    (folder / "inner" / "b.memmap").write_bytes(bytes(6))
    found = open_checkpoint(str(folder))
    assert [(row.path, row.dtype, row.shape) for row in found.tensors] == [
        ("a", "float32", (2, 2)),
        ("inner/b", "bfloat16", (3,)),
    ]
    assert [(row.path, row.text) for row in found.values] == [("note", "hi")]
    assert (found.format, judge(found).weights_only, judge_load(found, CPU).loads) == (
        "tensordict",
        True,
        True,
    )
    assert "TensorDict.load_memmap(" in render(found, style=None, target=CPU)
    assert [row.path for row in checkpoints_in(str(tmp_path))] == [str(tmp_path)]
    (folder / "note" / "other.pickle").write_bytes(stream(proto(), call("os.system")))
    assert judge(open_checkpoint(str(folder))).verdict == "dangerous"


@pytest.mark.parametrize("name", ["../out", "/tmp/out", "a/../../out"])
def test_keys_of_a_tensordict_never_leave_it(tmp_path: Path, name: str) -> None:
    (tmp_path / "out.memmap").write_bytes(bytes(8))
    tensordict_meta(tmp_path / "out", secret=memmap_row(2))
    folder = tensordict_meta(
        tmp_path / "td", **{name: memmap_row(2), f"{name}2": {"type": "TensorDict"}, name[::-1]: 1}
    )
    found = open_checkpoint(str(folder))
    assert found.tensors == ()
    assert NoteKind.PART_OUTSIDE in kinds(found)
    assert judge(found).verdict == "unknown"
    assert not judge_load(found, CPU).loads


def test_bytes_that_a_tensordict_lacks_are_said(tmp_path: Path) -> None:
    folder = tensordict_meta(
        tmp_path, a=memmap_row(4), gone=memmap_row(4), odd=memmap_row(-1), huge=memmap_row(1 << 62, 1 << 62)
    )
    (folder / "a.memmap").write_bytes(bytes(8))
    (folder / "huge.memmap").write_bytes(bytes(8))
    found = open_checkpoint(str(folder))
    assert {NoteKind.SHORT_PART, NoteKind.MISSING_PART} <= set(kinds(found))
    assert not judge_load(found, CPU).loads


def test_another_class_than_those_of_tensordict_is_not_known(tmp_path: Path) -> None:
    folder = tensordict_meta(tmp_path, a=memmap_row(1), inner={"type": "Mine"})
    (folder / "a.memmap").write_bytes(bytes(4))
    (folder / "inner").mkdir()
    (folder / "inner" / "meta.json").write_text(json.dumps({"_type": "<class 'mine.Own'>"}))
    assert judge(open_checkpoint(str(folder))).verdict == "unknown"


# --- what the packages themselves wrote; see `tests/frameworks/making/folders.py`


@pytest.mark.parametrize(
    ("name", "form", "tensors", "slots", "note"),
    [
        ("diffusers", "diffusers", 74, 0, NoteKind.FILE_TAKEN),
        ("diffusers_fp16", "diffusers", 74, 0, NoteKind.VARIANT_TAKEN),
        ("speechbrain", "speechbrain", 16, 12, None),
        ("adapters", "adapters", 4, 0, None),
        ("tensordict", "tensordict", 4, 0, None),
        ("accelerate", "folder", 33, 24, None),
    ],
)
def test_genuine_folders(name: str, form: str, tensors: int, slots: int, note: NoteKind | None) -> None:
    found = open_checkpoint(str(GENUINE / name))
    assert (found.format, len(found.tensors)) == (form, tensors)
    assert sum(row.parameter is not None for row in found.tensors) == slots
    assert not any(row.missing for row in found.storages)
    assert not any(row.problem for row in found.tensors)
    assert [kind for kind in kinds(found) if kind in {NoteKind.FILE_TAKEN, NoteKind.VARIANT_TAKEN}] == (
        [] if note is None else [note]
    )
    assert judge_load(found, CPU).loads == (name not in {"diffusers_fp16", "accelerate"})
    assert found.needs.unread == ()
