"""Code for folders: every file by the function that loads it."""

from __future__ import annotations

from pathlib import Path

from inspector.snippet.device import choose_device
from inspector.snippet.styles.transformers import index_of, training_code
from inspector.target.profile import CPU_ONLY
from tests.builders.folders import trainer, two_shards

CPU = choose_device(CPU_ONLY)


def test_index_is_found_in_its_folder(tmp_path: Path) -> None:
    index = two_shards(tmp_path)
    assert index_of(str(index)) == index_of(str(tmp_path)) == str(index)
    assert index_of(str(tmp_path / "none")) == str(tmp_path / "none") + "/"


def test_what_accelerate_saved_is_loaded_by_it_in_its_order(tmp_path: Path) -> None:
    for name in ("model.safetensors", "model_1.safetensors", "model_10.safetensors", "model_2.safetensors"):
        (tmp_path / name).touch()
    for name in ("optimizer.bin", "optimizer_1.bin", "scheduler.bin", "random_states_0.pkl", "sampler.bin"):
        (tmp_path / name).touch()
    code = " ".join(training_code(str(tmp_path), CPU).split())
    assert "( model, model_1, model_2, model_10, optimizer, optimizer_1, scheduler )" in code
    assert f'accelerator.load_state("{tmp_path}")' in code.replace("( ", "(").replace(" )", ")")


def test_files_are_loaded_by_what_they_are(tmp_path: Path) -> None:
    code = training_code(str(trainer(tmp_path / "a")), CPU)
    assert 'state_dict = load_file(folder / "model.safetensors")' in code
    flat = " ".join(code.split())
    assert 'torch.load( folder / "optimizer.pt", map_location="cpu", weights_only=True )' in flat
    assert "scheduler.load_state_dict(scheduler_state)" in code
    plain = training_code(str(trainer(tmp_path / "b", is_safe=False)), CPU)
    assert 'folder / "pytorch_model.bin", map_location="cpu", weights_only=True' in plain
    assert "safetensors" not in plain
    compile(code, "a", "exec")
    compile(training_code(str(tmp_path / "none"), CPU), "b", "exec")
