"""Folders of Megatron-LM made by hand, as `save_checkpoint` lays them out."""

from __future__ import annotations

from pathlib import Path

from tests.builders.exports import saved
from tests.builders.pickles import dict_, list_, new, number, storage, tensor, text


def part(place: str, *more: tuple[bytes, bytes]) -> bytes:
    """What one rank saves: its part of the model, its optimizer, a random state, its arguments."""

    def weight(key: str) -> bytes:
        return tensor(storage(key, location=place, numel=4), 2, 2)

    model = dict_((text("embedding.weight"), weight("0")), (text("layer.weight"), weight("1")))
    state = dict_((number(0), dict_((text("exp_avg"), weight("2")))))
    groups = list_(dict_((text("params"), list_(number(0)))))
    rng = list_(dict_((text("torch_rng_state"), tensor(storage("3", "torch.ByteStorage", numel=16), 16))))
    root = dict_(
        (text("args"), new("argparse.Namespace", (text("tensor_model_parallel_size"), number(2)))),
        (text("iteration"), number(1000)),
        (text("model"), model),
        (text("optimizer"), dict_((text("state"), state), (text("param_groups"), groups))),
        (text("rng_state"), rng),
        *more,
    )
    return saved(root, "0", "1", "2", "3")


def write(folder: Path, files: dict[str, bytes], latest: str | None = "1000") -> Path:
    for name, data in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    if latest is not None:
        (folder / "latest_checkpointed_iteration.txt").write_text(latest)
    return folder


def megatron(folder: Path) -> Path:
    """Two tensor-parallel ranks of one iteration."""
    ranks = {f"iter_0001000/mp_rank_{rank:02d}/model_optim_rng.pt": part(f"cuda:{rank}") for rank in (0, 1)}
    return write(folder / "megatron", ranks)
