from __future__ import annotations

import os
from pathlib import Path

from inspector.containers.belonging import (
    configurations_of,
    files_of,
    is_pretrained,
    is_training,
    whole_of,
)

TRAINER = ("model.safetensors", "optimizer.pt", "rng_state_0.pth", "training_args.bin", "config.json")


def test_names_alone_tell_what_a_folder_is() -> None:
    assert is_training(TRAINER)
    assert is_training(("pytorch_model_1.bin", "random_states_0.pkl"))
    assert is_training(("model.safetensors.index.json", "scheduler.bin"))
    assert not is_training(("optimizer.pt", "notes.txt"))
    assert not is_training(("model.safetensors", "training_args.bin"))
    assert not is_training(("model.safetensors", "my_optimizer.pt"))
    assert is_pretrained(("model.safetensors", "config.json"))
    assert not is_pretrained(("model.safetensors", "README.md"))
    assert not is_pretrained(("model.safetensors", "model.safetensors.index.json", "config.json"))
    assert not is_pretrained(("config.json",))


def test_model_comes_first_and_in_one_form() -> None:
    assert files_of(TRAINER) == ["model.safetensors", "optimizer.pt", "rng_state_0.pth", "training_args.bin"]
    both = ("pytorch_model.bin", "model.safetensors", "config.json", "training_args.bin")
    assert files_of(both) == ["model.safetensors"]
    assert files_of(("pytorch_model.bin", "optimizer.bin")) == ["pytorch_model.bin", "optimizer.bin"]
    assert configurations_of(TRAINER) == ["config.json"]


def test_file_is_part_of_what_lies_beside_it(tmp_path: Path) -> None:
    shard, index = tmp_path / "m-00001-of-00002.bin", tmp_path / "m.bin.index.json"
    assert whole_of(str(shard)) is None
    index.touch()
    assert whole_of(str(shard)) == str(index)
    assert whole_of(str(tmp_path / "m-1-of-2.bin")) is None
    state = tmp_path / "optimizer.pt"
    state.touch()
    assert whole_of(str(state)) is None
    (tmp_path / "pytorch_model.bin").touch()
    assert whole_of(str(state)) == str(tmp_path)
    assert whole_of(str(tmp_path / "training_args.bin")) == str(tmp_path)
    assert whole_of(str(tmp_path / "pytorch_model.bin")) is None
    assert whole_of(str(tmp_path / "nowhere" / "optimizer.pt")) is None


def test_folder_we_are_in(tmp_path: Path) -> None:
    for name in ("optimizer.pt", "pytorch_model.bin"):
        (tmp_path / name).touch()
    before = Path.cwd()
    os.chdir(tmp_path)
    try:
        assert whole_of("optimizer.pt") == "."
    finally:
        os.chdir(before)
