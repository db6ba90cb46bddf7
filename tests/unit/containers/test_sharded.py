"""A model in several files: all tensors, and every way in which index and files disagree."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from inspector.containers.notes import sentences
from inspector.containers.opening import read_container
from inspector.containers.sharded import find_index
from inspector.errors import CheckpointError, DamagedError
from inspector.model.build import build_checkpoint, open_checkpoint
from inspector.safety.verdict import judge
from tests.builders.archives import archive
from tests.builders.exports import saved
from tests.builders.folders import WEIGHTS, shard, sharded, trainer, two_shards
from tests.builders.pickles import call, dict_, list_, number, proto, storage, stream, tensor, text
from tests.builders.safetensors import model
from tests.builders.scripts import evil
from tests.builders.zips import checkpoint

ONE, TWO = (f"pytorch_model-0000{number}-of-00002.bin" for number in (1, 2))


def said(path: Path) -> list[str]:
    return sentences(read_container(str(path)).notes)


def test_folder_and_index_open_all_tensors(tmp_path: Path) -> None:
    index = two_shards(tmp_path / "m")
    for path in (index, index.parent):
        container = read_container(str(path))
        rows = build_checkpoint(container)
        assert (container.format, container.path, sentences(container.notes)) == ("sharded", str(path), [])
        assert [(one.path, one.device, one.role) for one in rows.tensors] == [
            ("a.weight", "cuda:0", "parameter"),
            ("a.bias", "cuda:0", "parameter"),
            ("b.weight", "cuda:0", "parameter"),
        ]
        assert [Path(one.part).name for one in rows.storages] == [ONE, ONE, TWO]
        assert [(one.path, one.text) for one in rows.values] == [(".__metadata__/total_size", "48")]
        assert container.file_nbytes == sum(file.stat().st_size for file in index.parent.iterdir())
        assert {program.name.partition(":")[0] for program in container.programs} == {ONE, TWO}
        assert container.stamp is not None


def test_index_of_safetensors_is_taken_first() -> None:
    names = ("pytorch_model.bin.index.json", "model.safetensors.index.json", "sub/a.safetensors.index.json")
    assert find_index(names) == "model.safetensors.index.json"
    assert find_index(("a.bin",)) is None


def test_shards_may_be_safetensors(tmp_path: Path) -> None:
    files = {"m-00001-of-00002.safetensors": model(a=(2,)), "m-00002-of-00002.safetensors": model(b=(3,))}
    places = {"a": "m-00001-of-00002.safetensors", "b": "m-00002-of-00002.safetensors"}
    index = sharded(tmp_path, files, places, ending="safetensors", total_size=20.0)
    rows = open_checkpoint(str(index))
    assert [(one.path, one.device, one.storage) for one in rows.tensors] == [
        ("a", "none", "0:0"),
        ("b", "none", "1:0"),
    ]
    assert (rows.notes, rows.safety) == ((), None)


def test_weights_beside_the_shards_count_for_the_folder_and_not_for_its_index(tmp_path: Path) -> None:
    """Harmless shards of safetensors, and what `from_pretrained(use_safetensors=False)` would unpickle."""
    places = {"a": "m-00001-of-00001.safetensors"}
    index = sharded(tmp_path, {places["a"]: model(a=(2,))}, places, ending="safetensors")
    (tmp_path / "pytorch_model.bin").write_bytes(saved(evil(), "0"))
    assert judge(open_checkpoint(str(index.parent))).verdict == "dangerous"
    assert judge(open_checkpoint(str(index))).verdict == "weights-only"


def test_every_disagreement_is_named(tmp_path: Path) -> None:
    one, two = shard("a", "b", "twice"), shard("c", "twice", "more")
    places = {"a": ONE, "b": TWO, "twice": TWO, "c": TWO, "gone": ONE}
    index = sharded(
        tmp_path, {ONE: one, TWO: two, "pytorch_model-00003-of-00003.bin": one}, places, total_size=9
    )
    container = read_container(str(index))
    assert sentences(container.notes) == [
        "1 file is not part of it, maybe left from another save: pytorch_model-00003-of-00003.bin.",
        (
            "1 tensor in more than one file: twice. The copy that the index names is shown; which one counts "
            "is up to the loader."
        ),
        f"{ONE}: the index looks here for 1 tensor that it does not hold: gone.",
        f"{ONE}: it holds 2 tensors that the index looks for in another file: b, twice.",
        f"{TWO}: the index looks here for 1 tensor that it does not hold: b.",
        f"{TWO}: it holds 1 tensor that the index does not list: more. Loaders take them all the same.",
    ]
    rows = build_checkpoint(container)
    assert [(row.path, row.storage) for row in rows.tensors] == [
        ("a", "0:0"),
        ("b", "0:1"),
        ("twice", "1:1"),
        ("c", "1:0"),
        ("more", "1:2"),
    ]
    assert container.refusal == ""


def test_tensor_of_two_files_is_the_one_that_the_index_names(tmp_path: Path) -> None:
    for listed, storage_id in ((ONE, "0:1"), (TWO, "1:1")):
        places = {"a": ONE, "b": TWO, "twice": listed}
        index = sharded(tmp_path, {ONE: shard("a", "twice"), TWO: shard("b", "twice")}, places)
        rows = {row.path: row.storage for row in open_checkpoint(str(index)).tensors}
        assert rows == {"a": "0:0", "b": "1:0", "twice": storage_id}
        assert any("1 tensor in more than one file: twice." in sentence for sentence in said(index))


def test_size_that_the_index_states_is_compared(tmp_path: Path) -> None:
    index = two_shards(tmp_path)
    document = json.loads(index.read_text())
    for total, is_said in (
        (48, False),
        (47, True),
        (True, False),
        ("48", False),
        (-1, False),
        (1 << 70, False),
    ):
        index.write_text(json.dumps({**document, "metadata": {"total_size": total}}))
        assert bool(said(index)) == is_said, total
    index.write_text(json.dumps({**document, "metadata": [1]}))
    assert said(index) == []


def test_missing_files_and_those_elsewhere_are_named_and_not_read(tmp_path: Path) -> None:
    index = two_shards(tmp_path / "m")
    (tmp_path / "secret.bin").write_bytes(shard("s"))
    (index.parent / TWO).unlink()
    document = json.loads(index.read_text())
    document["weight_map"] |= {"s": "../secret.bin", "t": str(tmp_path / "secret.bin"), "u": "C:\\x.bin"}
    index.write_text(json.dumps(document))
    container = read_container(str(index))
    outside, missing = sentences(container.notes)
    assert outside.startswith("It sends whoever loads it to files outside of its folder: ../secret.bin, ")
    assert missing == f"1 file is missing from the folder: {TWO}."
    assert [row.path for row in build_checkpoint(container).tensors] == ["a.weight", "a.bias"]
    assert container.refusal.startswith("FileNotFoundError: No such file or directory: ")


def test_file_that_cannot_be_read_is_named_and_judged_all_the_same(tmp_path: Path) -> None:
    payload = stream(proto(), call("os.system", text("true")) + b"\xff")
    index = two_shards(tmp_path)
    (tmp_path / TWO).write_bytes(archive(payload, {}))
    rows = open_checkpoint(str(index))
    assert rows.notes[0].part == TWO
    assert "cannot be read" in rows.notes[0].sentence
    assert rows.refusal.startswith(f"{TWO}: ")
    assert [(use.name, use.part) for use in rows.globals if use.name == "os.system"] == [("os.system", TWO)]
    (tmp_path / ONE).write_bytes(b"\0" * 100)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(str(index))
    assert any(program.name.startswith(TWO) for program in caught.value.programs)


def test_file_without_a_state_dict_is_a_branch_of_its_own(tmp_path: Path) -> None:
    bare = archive(stream(proto(), list_(tensor(storage(numel=4), 4))), {"0": WEIGHTS})
    index = sharded(tmp_path, {ONE: bare, TWO: shard("c")}, {"a": ONE, "c": TWO})
    rows = open_checkpoint(str(index))
    assert [row.path for row in rows.tensors] == [f"{ONE}/0", "c"]
    assert any("holds no state dict" in note.sentence for note in rows.notes)
    odd = archive(stream(proto(), dict_((b"K\x01", tensor(storage(numel=4), 4)))), {"0": WEIGHTS})
    (tmp_path / ONE).write_bytes(odd)
    assert [row.path for row in open_checkpoint(str(index)).tensors] == ["c"]


def test_name_that_is_listed_twice_is_said(tmp_path: Path) -> None:
    index = two_shards(tmp_path)
    places = f'"a.weight": "{ONE}", "a.bias": "{TWO}", "a.bias": "{ONE}"'
    index.write_text(f'{{"weight_map": {{{places}}}}}')
    assert "The index lists 1 tensor twice: a.bias. The last file counts." in said(index)


def test_index_that_is_none_is_refused_in_a_sentence(tmp_path: Path) -> None:
    index = two_shards(tmp_path)
    for text_of_it in ("{}", '{"weight_map": []}', '{"weight_map": {"a": 1}}', '{"weight_map": {"a": null}}'):
        index.write_text(text_of_it)
        with pytest.raises(DamagedError, match="does not say in which file each tensor is"):
            open_checkpoint(str(index))
    index.write_text("{")
    with pytest.raises(DamagedError, match="no valid JSON"):
        open_checkpoint(str(index))


def test_each_file_is_a_branch_and_slots_get_the_names_of_the_model(tmp_path: Path) -> None:
    rows = open_checkpoint(str(trainer(tmp_path)))
    assert rows.format == "folder"
    assert [(one.path, one.device, one.role, one.parameter) for one in rows.tensors] == [
        ("model.safetensors/weight", "none", "parameter", None),
        ("model.safetensors/bias", "none", "parameter", None),
        ("optimizer.pt/state/0/exp_avg", "cuda:0", "optimizer", "weight"),
        ("optimizer.pt/state/1/exp_avg", "cuda:0", "optimizer", "bias"),
    ]
    values = {one.path: one.text for one in rows.values}
    assert values["scheduler.pt/last_epoch"] == "3"
    assert values["config.json/hidden"] == "4"
    assert values["config.json/layers/1/a"] == "None"
    assert [Path(part.path).name for part in rows.parts] == [
        "model.safetensors",
        "optimizer.pt",
        "scheduler.pt",
        "training_args.bin",
    ]
    assert not rows.notes


def test_order_of_safetensors_names_nothing(tmp_path: Path) -> None:
    from tests.builders.folders import WEIGHTS, optimizer
    from tests.builders.safetensors import model

    trainer(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(model(a=(4,), b=(4,)))
    (tmp_path / "optimizer.pt").write_bytes(archive(optimizer(4, 4), {"0": WEIGHTS, "1": WEIGHTS}))
    rows = open_checkpoint(str(tmp_path))
    assert [one.parameter for one in rows.tensors] == [None] * 4
    assert "does not have the model's order, and several orders fit" in rows.optimizers[0].detail
    (tmp_path / "model.safetensors").write_bytes(model(**{"1__bias": (4,), "1__weight": (4,)}))
    rows = open_checkpoint(str(tmp_path))
    assert [one.parameter for one in rows.tensors][2:] == ["1.weight", "1.bias"]


def test_verdict_is_over_all_files_and_names_the_one(tmp_path: Path) -> None:
    verdict = judge(open_checkpoint(str(trainer(tmp_path, arguments="os.system"))))
    assert verdict.verdict == "dangerous"
    assert "Asked for in training_args.bin." in verdict.reasons


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    trainer(tmp_path)
    payload = stream(proto(), call("os.system", text("true")) + b"\xff")
    (tmp_path / "optimizer.pt").write_bytes(archive(payload, {}))
    rows = open_checkpoint(str(tmp_path))
    assert [note.part for note in rows.notes] == ["optimizer.pt"]
    assert rows.refusal.startswith("optimizer.pt: ")
    assert judge(rows).verdict == "dangerous"
    for name in ("model.safetensors", "scheduler.pt", "training_args.bin"):
        (tmp_path / name).write_bytes(b"\0" * 50)
    with pytest.raises(CheckpointError):
        open_checkpoint(str(tmp_path))


def test_model_may_be_in_several_files(tmp_path: Path) -> None:
    trainer(tmp_path)
    (tmp_path / "model.safetensors").unlink()
    name = "pytorch_model-00001-of-00001.bin"
    sharded(tmp_path, {name: shard("w")}, {"w": name, "gone": name})
    rows = open_checkpoint(str(tmp_path))
    assert rows.tensors[0].path == "pytorch_model.bin/w"  # as of one file
    assert rows.notes[0].part == f"pytorch_model.bin.index.json: {name}"
    index = tmp_path / "pytorch_model.bin.index.json"
    assert open_checkpoint(str(index)).format == "sharded"


def test_model_in_one_file_is_opened_by_its_folder(tmp_path: Path) -> None:
    trainer(tmp_path)
    for name in ("optimizer.pt", "scheduler.pt"):
        (tmp_path / name).unlink()
    rows = open_checkpoint(str(tmp_path))
    assert [one.path for one in rows.tensors] == ["weight", "bias"]
    assert rows.safety is None  # from_pretrained does not open training_args.bin


def test_paths_do_not_depend_on_how_many_files_a_model_is_in(tmp_path: Path) -> None:
    found = {}
    for kind, count in (("pretrained", 1), ("pretrained", 2), ("training", 1), ("training", 2)):
        folder = tmp_path / f"{kind}{count}"
        folder.mkdir()
        if kind == "training":
            trainer(folder)
            (folder / "model.safetensors").unlink()
        (folder / "config.json").write_text('{"model_type": "bert"}')
        if count == 1:
            (folder / "pytorch_model.bin").write_bytes(shard("a", "b"))
        else:
            files = {name: f"pytorch_model-0000{number}-of-00002.bin" for number, name in enumerate("ab", 1)}
            sharded(folder, {file: shard(name) for name, file in files.items()}, files)
        rows = open_checkpoint(str(folder))
        found[kind, count] = [one.path for one in rows.tensors if one.role == "parameter"]
        if count == 1 or kind == "training":
            assert [one.text for one in rows.values if one.path == "config.json/model_type"] == ["bert"]
    assert found["pretrained", 1] == found["pretrained", 2] == ["a", "b"]
    assert found["training", 1] == found["training", 2] == ["pytorch_model.bin/a", "pytorch_model.bin/b"]
    folder = tmp_path / "training1"
    file = "pytorch_model-00001-of-00001.bin"
    sharded(folder, {file: shard("a")}, {"a": file})
    names = {one.keys[0] for one in open_checkpoint(str(folder)).tensors}
    assert {"pytorch_model.bin", "pytorch_model.bin.index.json"} <= names  # the same model twice


def test_a_file_with_other_keys_than_names_keeps_all_of_them(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    body = dict_((text("a"), tensor(storage("0"), 2)), (number(7), tensor(storage("1"), 2)))
    (tmp_path / "pytorch_model.bin").write_bytes(checkpoint(stream(proto(), body), {"0": bytes(8)}))
    rows = open_checkpoint(str(tmp_path))
    assert [one.keys for one in rows.tensors] == [("pytorch_model.bin", "a"), ("pytorch_model.bin", 7)]


def test_configurations_that_are_long_or_none_are_left_out(tmp_path: Path) -> None:
    trainer(tmp_path)
    (tmp_path / "config.json").write_text("[")
    (tmp_path / "trainer_state.json").write_text(json.dumps({"x": "y" * (1 << 20)}))
    rows = open_checkpoint(str(tmp_path))
    assert not [one for one in rows.values if one.path.startswith(("config", "trainer_state"))]


def test_file_of_a_folder_says_so_when_it_is_opened_alone(tmp_path: Path) -> None:
    trainer(tmp_path)
    rows = open_checkpoint(str(tmp_path / "optimizer.pt"), beside=True)
    assert [note.values for note in rows.notes] == [(str(tmp_path),)]
    assert [one.parameter for one in rows.tensors] == ["weight", "bias"]
