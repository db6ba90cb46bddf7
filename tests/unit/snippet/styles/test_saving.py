"""The style `save`, as text; `test_table_torch.py` runs it on what a file holds, and loads that again."""

from __future__ import annotations

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.resources import demo_path
from inspector.snippet.styles.table import render
from tests.unit.snippet.rows import THIS, checkpoint, optimizer, storage, tensor, value

COPY = "checkpoint = tree_map(lambda v: v.cpu() if torch.is_tensor(v) else v, checkpoint)\n"
END = f'{COPY}torch.save(checkpoint, "best_next.pth")\n'


def save(rows: Checkpoint, path: str = "best.pth") -> str:
    return render(rows, style="save", target=THIS, path=path)


def test_demo() -> None:
    text = save(open_checkpoint(str(demo_path())))
    assert text.endswith(
        "checkpoint = {\n"
        '    "model": model.state_dict(),\n'
        '    "ema": ema.state_dict(),\n'
        '    "optimizer": optimizer.state_dict(),\n'
        '    "scheduler": scheduler.state_dict(),\n'
        '    "scaler": scaler.state_dict(),\n'
        '    "rng_state": {\n'
        '        "torch": torch.get_rng_state(),\n'
        '        "cuda": torch.cuda.get_rng_state_all(),\n'
        "    },\n"
        '    "epoch": epoch,\n'
        '    "best_accuracy": best_accuracy,\n'
        '    "config": config,\n'
        f"}}\n{END}"
    )


def test_state_dict_by_itself_and_without_the_names_of_wrappers() -> None:
    text = save(checkpoint(tensor("module.w")))
    guarded = (
        'if not dist.is_initialized() or dist.get_rank() == 0:\n    torch.save(checkpoint, "best_next.pth")\n'
    )
    assert text.endswith(f"checkpoint = model.module.state_dict()\n{COPY}{guarded}")
    text = save(checkpoint(tensor("net", "_orig_mod.w"), path="run.v2/best"), path="run.v2/best")
    assert '{"net": net._orig_mod.state_dict()}' in text
    assert text.endswith('torch.save(checkpoint, "run.v2/best_next")\n')


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
    assert '"nets": [model.state_dict(), model_2.state_dict()],\n' in text
    assert '"opt": {3: opt.state_dict()},\n' in text
    assert '"mean": mean,\n' in text
    assert '"r": random.getstate(),\n' in text
    assert '"n": (kind, numbers.tolist(), *rest),\n' in text
    assert "kind, numbers, *rest = numpy.random.get_state()\n" in text


def test_data_and_files_of_nothing() -> None:
    for rows in (checkpoint(tensor("x"), tensor("y")), checkpoint()):
        assert "checkpoint = data  #" in save(rows)


def test_what_stands_in_a_model_is_saved_with_it() -> None:
    rows = checkpoint(tensor("m", "l.weight"), tensor("m", "sub", "l.bias"))
    assert save(rows).count("state_dict()") == 1


def test_shared_data_is_copied_once_and_waste_is_left_behind() -> None:
    tied = [tensor("m", name)._replace(storage="0", storage_offset=0) for name in ("a.weight", "b.weight")]
    assert "copies.setdefault(view, v.cpu())" in save(checkpoint(*tied))
    assert "copies" not in save(checkpoint(tied[0]))
    large = storage("cpu")._replace(nbytes=100, viewed_nbytes=10)
    assert "v.cpu().clone()" in save(checkpoint(tied[0], storages=(large,)))
    assert "clone" not in save(checkpoint(tied[0], storages=(large._replace(viewed_nbytes=90),)))


def test_tensors_without_data_stay_what_they_are() -> None:
    assert "lambda v: v if v.is_meta else v.cpu() if" in save(checkpoint(tensor("m", "w", device="meta")))
    assert "is_meta" not in save(checkpoint(tensor("m", "w")))


def test_other_values_are_saved_too_and_objects_as_dictionaries() -> None:
    values = (
        value("best_acc", type="float"),
        value("args", ".lr", type="float"),
        value("it's", type="int"),
        value("lr_scheduler", "a"),
    )
    text = save(checkpoint(tensor("m", "w"), values=values))
    assert "lr_scheduler" not in text  # which is none of torch's
    assert '"best_acc": best_acc,\n    "args": vars(args),\n    "it\'s": it_s,\n}' in text


def test_versions_that_decide_how_weights_are_read_are_kept() -> None:
    for version, is_kept in (("1", False), ("2", False), ("4", True)):
        versions = (value("m", "._metadata", "0", "version", text=version),)
        text = save(checkpoint(tensor("m", "w"), values=versions))
        assert ('checkpoint["m"]._metadata = m.state_dict()._metadata\n' in text) == is_kept


def test_trainer_of_lightning_saves_by_itself() -> None:
    rows = checkpoint(tensor("state_dict", "w"), values=(value("pytorch-lightning_version"),))
    text = save(rows, path="last.ckpt")
    assert text.endswith('trainer.save_checkpoint("last_next.ckpt")\n')
    assert "torch" not in text


def test_the_file_itself_is_never_overwritten() -> None:
    rows = checkpoint(tensor("w"))
    for path in ("a.pt", "a", "a.b/c", ".pt", "a.tar.gz", "a\\b.pt"):
        assert f'checkpoint, "{path}"' not in save(replace(rows, path=path), path=path)
