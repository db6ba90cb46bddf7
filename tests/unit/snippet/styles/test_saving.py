"""The style `save`, as text; `test_table_torch.py` runs it on what a file holds, and loads that again."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.resources import demo_path
from inspector.snippet.styles.table import render
from tests.unit.snippet.rows import THIS, checkpoint, optimizer, storage, tensor, value

END = (
    "# Only rank 0 writes. If it is stopped meanwhile, the old file stays whole.\n"
    'path = "best_next.pth"\n'
    'torch.save(checkpoint, path + ".tmp")\n'
    'os.replace(path + ".tmp", path)\n'
)


def save(rows: Checkpoint, path: str = "best.pth") -> str:
    return render(rows, style="save", target=THIS, path=path)


def test_demo() -> None:
    text = save(open_checkpoint(str(demo_path())))
    assert "model.cpu() would move the model that is training" in text
    assert text.endswith(
        "checkpoint = {\n"
        '    "model": to_cpu(model.state_dict()),\n'
        '    "ema": to_cpu(ema.state_dict()),\n'
        '    "optimizer": to_cpu(optimizer.state_dict()),\n'
        '    "scheduler": to_cpu(scheduler.state_dict()),\n'
        '    "scaler": to_cpu(scaler.state_dict()),\n'
        '    "rng_state": {\n'
        '        "torch": torch.get_rng_state(),\n'
        '        "cuda": torch.cuda.get_rng_state_all(),\n'
        "    },\n"
        '    "epoch": epoch,\n'
        f"}}\n\n{END}"
    )


def test_state_dict_by_itself_and_without_the_names_of_wrappers() -> None:
    assert f"checkpoint = to_cpu(model.module.state_dict())\n\n{END}" in save(checkpoint(tensor("module.w")))
    text = save(checkpoint(tensor("net", "_orig_mod.w"), path="run.v2/best"), path="run.v2/best")
    assert '{"net": to_cpu(net._orig_mod.state_dict())}' in text
    assert 'path = "run_next.v2/best"' not in text
    assert 'path = "run.v2/best_next"' in text


def test_lists_and_random_states() -> None:
    states = [value("r", 0, text="3"), value("r", 1, type="tuple"), value("r", 2, type="NoneType")]
    array = [value("n", 0, type="str", text="MT19937"), value("n", 1, type="numpy.ndarray")]
    rows = checkpoint(
        tensor("nets", 0, "l.a"),
        tensor("nets", 1, "l.b"),
        tensor("mean", role="other", device="cuda:0"),
        values=(*states, *array),
        optimizers=(optimizer("opt", 3),),
    )
    text = save(rows)
    assert '"nets": [to_cpu(model.state_dict()), to_cpu(model_2.state_dict())],\n' in text
    assert '"opt": {3: to_cpu(opt.state_dict())},\n' in text
    assert '"mean": to_cpu(mean),\n' in text
    assert '"r": random.getstate(),\n' in text
    assert '"n": (kind, numbers.tolist(), *rest),\n' in text
    assert "kind, numbers, *rest = numpy.random.get_state()\n" in text


def test_data_and_files_of_nothing() -> None:
    for rows in (checkpoint(tensor("x"), tensor("y")), checkpoint()):
        assert "checkpoint = to_cpu(data)" in save(rows)


def test_what_stands_in_a_model_is_saved_with_it() -> None:
    rows = checkpoint(tensor("m", "l.weight"), tensor("m", "sub", "l.bias"))
    assert save(rows).count("state_dict()") == 1


def test_shared_data_is_copied_once_and_waste_is_left_behind() -> None:
    tied = [tensor("m", name)._replace(storage="0", storage_offset=0) for name in ("a.weight", "b.weight")]
    assert "shared[view]" in save(checkpoint(*tied))
    assert "shared" not in save(checkpoint(tied[0]))
    large = storage("cpu")._replace(nbytes=100, viewed_nbytes=10)
    assert ".cpu().clone()  # without" in save(checkpoint(tied[0], storages=(large,)))
    assert "clone" not in save(checkpoint(tied[0], storages=(large._replace(viewed_nbytes=90),)))


def test_tensors_without_data_stay_what_they_are() -> None:
    text = save(checkpoint(tensor("m", "w", device="meta")))
    assert text.index("value.is_meta:\n        return value  # it has no data\n") < text.index(".cpu()\n")
    assert "is_meta" not in save(checkpoint(tensor("m", "w")))


def test_trainer_of_lightning_saves_by_itself() -> None:
    rows = checkpoint(tensor("state_dict", "w"), values=(value("pytorch-lightning_version"),))
    text = save(rows, path="last.ckpt")
    assert text.endswith('trainer.save_checkpoint("last_next.ckpt")\n')
    assert "torch" not in text


def test_the_file_itself_is_never_overwritten() -> None:
    rows = checkpoint(tensor("w"))
    for path in ("a.pt", "a", "a.b/c", ".pt", "a.tar.gz", "a\\b.pt"):
        assert f'path = "{path}"' not in save(replace(rows, path=path), path=path)
