"""Snippets for checkpoints of every shape: whatever a script saves under whatever names, the code runs.

The files are made by torch, and the code is run with stand-ins for what its reader has to bring.
"""

from __future__ import annotations

import itertools
import random
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.snippet.styles.table import render, styles
from inspector.target.profile import CPU_ONLY, Profile
from tests.sweep import put_through
from tests.torch.running import AnyModule, Loadable, play, play_frameworks, play_ranks, run, save_as_if_on
from tests.unit.snippet.free import free_names
from tests.unit.snippet.rows import THIS

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
GPU = Profile(id="this", label="", accelerators=(("cuda", 2),))


def net(width: int = 3) -> Any:
    return nn.Sequential(nn.Linear(width, 2), nn.BatchNorm1d(2))


def weights(width: int = 3) -> dict[str, Any]:
    return net(width).state_dict()


def adam(*models: Any) -> Any:
    optimizer = torch.optim.Adam(itertools.chain(*(model.parameters() for model in models)))
    sum(parameter.sum() for model in models for parameter in model.parameters()).backward()
    optimizer.step()
    return optimizer


def with_attribute() -> Any:
    tensor = nn.Parameter(torch.ones(2))
    tensor.scale = torch.ones(2)  # type: ignore[attr-defined]
    tensor.parts = {"a": torch.ones(2), "b": torch.ones(2)}  # type: ignore[attr-defined]
    return tensor


def samples(count: int) -> list[dict[str, Any]]:
    return [{"obs": torch.ones(3), "act": torch.ones(1)} for _ in range(count)]


def optimizer_state() -> dict[str, Any]:
    return adam(net()).state_dict()


def prefixed() -> dict[str, Any]:
    return {f"module.{name}": tensor for name, tensor in weights().items()}


def under(key: Any) -> Any:
    return {key: weights(), "optimizer": optimizer_state()}


def beside(key: Any) -> Any:
    return {key: weights(), "model": weights(4), "x": 1}


def named(key: Any) -> Any:
    return {"model": {key: ONES, "w": ONES}}


ONES, GPU_STATE = torch.ones(9), torch.ones(16, dtype=torch.uint8)
ODD_KEYS = (
    "", " ", "a b", "it's", 'say "x"', "a\nb", "a\\b", "{x}", "%s", "\u00e9tat", "\u202ea", "1st", "os",
    "__builtins__", "torch", "import", "class", "match", "print", "self", "k", "state_dict", "checkpoint",
    "device", "copy",
    "model.module", "a/b", "~", ".hidden", "x" * 200, "net[0]", "optimizer", "ema", "dist", "data", "index",
    "to_cpu", "accelerator", "engine", "MyModel", "deepspeed", "script", "epoch", "name", "resolve_name",
)  # fmt: skip
NOT_TEXT: tuple[Any, ...] = (0, -1, 10**30, True, None, 0.5, (1, 2), ("a", "b"), b"x", frozenset({1}), 2j)
SHAPES: dict[str, Callable[[], Any]] = {
    "empty": dict,
    "list": list,
    "tuple": tuple,
    "none": lambda: None,
    "number": lambda: 5,
    "text": lambda: "best",
    "scalar": lambda: torch.tensor(1.0),
    "no elements": lambda: torch.ones(0, 3),
    "one tensor": lambda: {"mean": torch.ones(3)},
    "one weight": lambda: {"weight": torch.ones(3)},
    "deep": lambda: {"a": {"b": [{"c": weights()}]}},
    "list of weights": lambda: [weights(), weights(4)],
    "tuple of weights": lambda: (weights(), 3, optimizer_state()),
    "ensemble": lambda: {"models": [weights() for _ in range(3)]},
    "many": lambda: {"clients": {index: weights() for index in range(30)}},
    "deque": lambda: deque([weights()]),
    "buffer of samples": lambda: {"policy": weights(), "replay": samples(10)},
    "buffer of columns": lambda: {"policy": weights(), "buffer": {"obs": ONES, "rew": ONES}},
    "buffer of tuples": lambda: {"net": weights(), "memory": [(torch.ones(3), 1, torch.ones(3))] * 9},
    "samples alone": lambda: samples(3),
    "unknown samples": lambda: [{"p": torch.ones(2), "q": torch.ones(2)} for _ in range(9)],
    "attributes": lambda: {"model": {"w": with_attribute(), "b": torch.ones(2)}},
    "attributes of a tensor": with_attribute,
    "module": net,
    "module of parallel": lambda: nn.DataParallel(net()),
    "modules": lambda: {"model": nn.DataParallel(net()), "ema": net(), "criterion": nn.CrossEntropyLoss()},
    "object of an optimizer": lambda: {"model": net(), "optimizer": adam(net())},
    "optimizer alone": optimizer_state,
    "optimizer first": lambda: {"optimizer": optimizer_state(), "epoch": 1},
    "optimizer without state": lambda: {"model": weights(), "opt": torch.optim.SGD([ONES]).state_dict()},
    "flat": lambda: {**weights(), "epoch": 3, "optimizer": optimizer_state(), "rng": torch.get_rng_state()},
    "flat with a mean": lambda: {**weights(), "epoch": 3, "data_rng_state": torch.get_rng_state()},
    "gan": lambda: {
        "netG_state_dict": weights(),
        "netD_state_dict": weights(4),
        "optimizerG": adam(net()).state_dict(),
        "optimizerD": adam(net(4)).state_dict(),
    },
    "dqn": lambda: {"policy_net": weights(), "target_net": weights(), "optimizer": optimizer_state()},
    "criterion": lambda: {"net": weights(), "criterion": {"pos_weight": torch.ones(2)}},
    "loss of two": lambda: {"net": weights(), "loss_fn": {"weight": ONES, "pos_weight": ONES}},
    "teacher": lambda: {"teacher": weights(), "student": weights(4), "optimizer": adam(net(4)).state_dict()},
    "ema": lambda: {"model": weights(), "ema": weights()},
    "ema of parameters": lambda: {"model": weights(), "ema": dict(net().named_parameters())},
    "ema in a wrapper": lambda: {
        "model": weights(),
        "ema_model": torch.optim.swa_utils.AveragedModel(net()).state_dict(),
    },
    "ema of lists": lambda: {"net": weights(), "ema": {"decay": 0.9, "shadow_params": [torch.ones(2)] * 3}},
    "ema beside numbers": lambda: {"net": weights(), "ema": {"decay": 0.9, "shadow": weights()}},
    "ema of several": lambda: {"G": weights(), "D": weights(4), "ema": {"G": weights(), "D": weights(4)}},
    "ema alone": lambda: {"ema": weights()},
    "list of averages": lambda: {"shadow_params": [torch.ones(2)] * 3},
    "best and last": lambda: {"last": weights(), "best": weights(), "best_state_dict": weights()},
    "prefixed": lambda: {"model": prefixed()},
    "flat and prefixed": lambda: prefixed() | {"epoch": 1},
    "random states": lambda: {
        "model": weights(),
        "optimizer": optimizer_state(),
        "rng": {"torch": torch.get_rng_state(), "python": random.getstate(), "cuda": [GPU_STATE]},
    },
    "views": lambda: {"model": OrderedDict((str(index), torch.ones(64)[:2]) for index in range(3))},
    "tied": lambda: {"model": dict.fromkeys(("a.weight", "b.weight"), torch.ones(2, 2))},
    "lora": lambda: {f"base_model.model.q.lora_{part}.weight": torch.ones(2, 2) for part in "AB"},
    "lora of a model": lambda: {"state": {f"q.lora_{part}.default.weight": ONES for part in "AB"}},
    "loose": lambda: {"model": weights(), "class_weights": torch.ones(3), "mean": torch.ones(1)},
    "double": lambda: {"model": net().double().state_dict()},
    "sparse": lambda: {"model": {"e.weight": torch.eye(3).to_sparse(), "e.bias": torch.ones(3)}},
    **{f"under {key!a}"[:30]: partial(under, key) for key in ODD_KEYS},
    **{f"named {key!a}"[:30]: partial(named, key) for key in ODD_KEYS},
    **{f"beside {key!r}": partial(beside, key) for key in NOT_TEXT},
    "no text at all": lambda: {key: weights() for key in NOT_TEXT},
    "two of one name": lambda: {"a b": weights(), "a_b": weights(), "a-b": weights(), "A B": weights()},
}  # fmt: skip
NAMES = (
    "a b.pt",
    "it's.pt",
    'say "x".pt',
    "a\nb.pt",
    "a\\b.pt",
    "{x}.pt",
    "%s.pt",
    "-x.pt",
    "\u00e9\u202e.pt",
    "x" * 200,
)


@pytest.fixture(autouse=True)
def _clean_torch() -> Iterator[None]:
    allowed, state = torch.serialization.get_safe_globals(), torch.get_rng_state()
    python_state = random.getstate()
    yield
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(allowed)
    torch.set_rng_state(state)
    random.setstate(python_state)


def test_every_shape_runs_in_every_style(tmp_path: Path) -> None:
    def check(name: str) -> None:
        path = tmp_path / "file.pt"
        for tag in ("cpu", "cuda:0"):
            save_as_if_on(tag, SHAPES[name](), path)
            run_all(open_checkpoint(str(path)), str(path))

    put_through(check, SHAPES, every=11)


def test_every_file_name_runs(tmp_path: Path) -> None:
    def check(name: str) -> None:
        path = tmp_path / name
        torch.save({"model": weights(), "optimizer": optimizer_state()}, path)
        run_all(open_checkpoint(str(path)), str(path))

    put_through(check, NAMES, ascii, every=3)


def run_all(rows: Checkpoint, path: str) -> None:
    offered = [style.id for style in styles(rows)]
    assert offered
    known: dict[str, Any] = {}
    for style, (meant, machine) in product(offered, ((CPU_ONLY, CPU_ONLY), (THIS, GPU), (GPU, GPU))):
        with pytest.MonkeyPatch.context() as patch:
            play(patch, machine)
            play_ranks(patch)
            play_frameworks(patch)
            code = render(rows, style=style, target=meant)
            names = {name: known.get(name, Loadable()) for name in free_names(code)}
            try:
                found = vars(run(code, **(names | {"MyModel": AnyModule})))
            except Exception as error:
                raise AssertionError(
                    f"{style} for {meant.id}: {type(error).__name__}: {error}\n{code}"
                ) from error
            if style in {"plain", "resume"}:
                known.update((name, thing) for name, thing in found.items() if name != "__builtins__")
