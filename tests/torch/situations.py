"""Who opens a file, on which machine, for what; and what the program's first answer must be.

Each row of `tests/data/situations.toml` makes its files with torch, runs one command as that person would,
and looks at the first thing that they read: of `check` the lines down to the first fix, of other commands all
they print. A sentence counts by what it says, so rows name words that must or must not stand there.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import json
import os
import pickle
import re
import shlex
import sys
import tomllib
import types
import zipfile
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from inspector.cli import main as run_program
from tests.builders.pickles import As
from tests.torch.remapping import loaded, tagged

DATA = Path(__file__).parents[1] / "data"
LITERAL = (r"\bFILE\b", r"\bOUT\b")
"""Placeholders, which nobody can run: no answer may have them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One row.

    Attributes:
        story: Who it is.
        has: What the file is, where it is opened, and what for.
        run: The command, without the program's name; TEXT stands for `text`, PROFILES for the machines.
        make: Writes the files into the working folder, in Python; the functions are below.
        script: What stands in train.py.
        before: A command that is run before.
        text: An error text that is pasted, or comes on standard input.
        code: The exit code.
        says: Patterns that the first answer matches, its lines joined.
        fix: A pattern that the first fix matches; empty where none is looked at.
        also: Patterns that something further down matches.
        never: Patterns that nothing in the whole output matches, besides `LITERAL`.
        then: Looks at what the command wrote, in Python.
    """

    story: str
    has: str
    run: str
    make: str = ""
    script: str = ""
    before: str = ""
    text: str = ""
    code: int = 0
    says: tuple[str, ...] = ()
    fix: str = ""
    also: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    then: str = ""


TABLE = tomllib.loads((DATA / "situations.toml").read_text(encoding="utf-8"))
ROWS = tuple(Situation(story=story, **row) for story, rows in TABLE.items() for row in rows)


# --- what is saved, as if parts of it were on devices that this machine does not have -----------------------

_TAGS: dict[int, str] = {}


def on(device: str, value: Any) -> Any:
    for tensor in _tensors(value):
        if tensor.layout is torch.strided:
            _TAGS[tensor.untyped_storage().data_ptr()] = device
    return value


def save(value: Any, path: str, **options: Any) -> None:
    with tagged(lambda storage: _TAGS.get(storage.data_ptr(), "cpu")):
        torch.save(value, path, **options)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from (*value.parameters(), *value.buffers())
    elif isinstance(value, dict | list | tuple):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _tensors(item)


def net(width: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))


@cache
def trained() -> tuple[dict[str, Any], ...]:
    """The state of a model, its optimizer and its scheduler after a step, which takes torch long to begin."""
    model = net()
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    return model.state_dict(), optimizer.state_dict(), scheduler.state_dict()


def state_dict(device: str, **options: Any) -> None:
    save(on(device, net().state_dict()), "best.pth", **options)


def training(device: str, *, with_rng: bool = False) -> None:
    """Model and optimizer as training loops save them; Adam's steps and the random state are on the CPU."""
    model, slots, scheduler = trained()
    for tensor in _tensors(slots):
        on("cpu" if tensor.ndim == 0 else device, tensor)
    rng = torch.get_rng_state()
    value = {
        "epoch": 3,
        "model": on(device, model),
        "optimizer": slots,
        "scheduler": scheduler,
        "rng_state": on(device, rng) if with_rng else rng,
    }
    save(value, "run.pt")


def split(devices: tuple[str, ...]) -> None:
    layers = {}
    for number, device in enumerate(devices):
        for name, value in on(device, nn.Linear(2, 2).state_dict()).items():
            layers[f"layers.{number}.{name}"] = value
    save(layers, "big.pt")


def written(path: str, data: bytes) -> None:
    Path(path).write_bytes(data)


def truncated() -> None:
    torch.save({f"{n}.weight": torch.randn(64, 64) for n in range(4)}, "best.pth")
    os.truncate("best.pth", Path("best.pth").stat().st_size // 2)


def unzipped() -> None:
    """A checkpoint that a browser or a file manager unpacked."""
    torch.save(net().state_dict(), "whole.pth")
    with zipfile.ZipFile("whole.pth") as archive:
        archive.extractall("best.pth")
    Path("whole.pth").unlink()


def gzipped() -> None:
    state_dict("cpu", _use_new_zipfile_serialization=False)
    written("best.pth", gzip.compress(Path("best.pth").read_bytes()))


@contextlib.contextmanager
def _exported(module: str, name: str, base: type) -> Iterator[type]:
    """A class in a module that nobody can import."""
    made = type(name, (base,), {"__module__": module})
    parts = module.split(".")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]
    sys.modules.update({each: types.ModuleType(each) for each in names})
    setattr(sys.modules[module], name, made)
    yield made
    for each in names:
        del sys.modules[each]


def whole_module(device: str) -> None:
    """torch.save(model) of a class whose code is elsewhere."""
    with _exported("models.yolo", "Model", nn.Module) as made:
        model = made()
        model.layer = nn.Linear(2, 2)
        save(on(device, model), "model.pt")


def apex_optimizer() -> None:
    with _exported("apex.optimizers.fused_adam", "FusedAdam", object) as made:
        optimizer = made()
        optimizer.slots = on("cuda:0", {"exp_avg": torch.zeros(2)})
        save({"model": on("cuda:0", net().state_dict()), "optimizer": optimizer}, "run.pt")


def pickled() -> None:
    """pickle.dump of tensors on a GPU: their bytes are whole files of torch within the pickle."""
    with tagged(lambda _: "cuda:0"):
        written("features.pkl", pickle.dumps({"x": torch.randn(4, 2), "y": torch.arange(4)}))


def traced() -> None:
    """A traced model that makes a tensor on the device it was traced on."""

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.zeros(2, device=x.device)

    torch.jit.save(torch.jit.trace(Net(), torch.randn(2)), "traced.pt")


def safetensors_file() -> None:
    save_file(net().state_dict(), "model.safetensors")


def sharded() -> None:
    """transformers' shards with their index."""
    Path("llm").mkdir()
    names = {}
    for number in (1, 2):
        shard = f"pytorch_model-0000{number}-of-00002.bin"
        torch.save({f"layer{number}.weight": torch.randn(2, 2)}, Path("llm", shard))
        names[f"layer{number}.weight"] = shard
    index = {"metadata": {"total_size": 32}, "weight_map": names}
    Path("llm", "pytorch_model.bin.index.json").write_text(json.dumps(index), encoding="utf-8")


def tied() -> dict[str, Any]:
    weight = torch.randn(4, 2)
    return {"wte.weight": weight, "lm_head.weight": weight}


def gan() -> dict[str, Any]:
    return {"netG": on("cuda:0", net().state_dict()), "netD": on("cuda:1", net(5).state_dict())}


def with_loss() -> dict[str, Any]:
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.ones(3))
    return {"model": on("cuda:0", net().state_dict()), "criterion": loss.state_dict()}


def with_average() -> dict[str, Any]:
    return {"model": on("cuda:0", net().state_dict()), "ema": net().state_dict()}


def with_buffer() -> dict[str, Any]:
    replay = {"obs": torch.zeros(8, 2), "action": torch.zeros(8), "reward": torch.zeros(8)}
    return {"policy": on("cuda:0", net().state_dict()), "replay_buffer": replay}


def lightning() -> dict[str, Any]:
    model, slots, _ = trained()
    return {
        "epoch": 3,
        "global_step": 30,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": on("cuda:0", model),
        "loops": {},
        "callbacks": {},
        "optimizer_states": [slots],
        "lr_schedulers": [],
    }


# --- what was written ---------------------------------------------------------------------------------------


def holds(path: str, devices: set[str], *absent: str) -> None:
    """What was written is on these devices, and has no such keys."""
    value, tags = loaded(Path(path), weights_only=True)
    assert set(tags) == devices, tags
    assert not set(absent) & set(value), list(value)


def is_safetensors(path: str) -> None:
    assert {tensor.dtype for tensor in load_file(path).values() if tensor.is_floating_point()} == {
        torch.float32
    }


def is_absent(path: str) -> None:
    assert not Path(path).exists()


def is_smaller(path: str, than: str) -> None:
    assert Path(path).stat().st_size < Path(than).stat().st_size / 1.5


NAMES = dict(globals(), As=As, Namespace=Namespace, np=np)
"""What `make` and `then` may say."""


# --- running ------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """What a command printed: its exit code, all of it, what is read first, and the first fix."""

    code: int
    whole: str
    first: str
    fix: str


def prepare(row: Situation) -> None:
    _TAGS.clear()
    if row.make:
        eval(row.make, NAMES)
    if row.script:
        Path("train.py").write_text(row.script, encoding="utf-8")
    if row.before:
        with contextlib.redirect_stdout(io.StringIO()):
            assert run_program(shlex.split(row.before)) == 0


def answer(row: Situation) -> Answer:
    words = shlex.split(row.run.replace("PROFILES", str(DATA / "profiles")))
    arguments = [row.text if word == "TEXT" else word for word in words]
    out, err, stdin = io.StringIO(), io.StringIO(), sys.stdin
    sys.stdin = io.StringIO(row.text)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = run_program(arguments)
    except SystemExit as stopped:  # what argparse refuses
        code = int(stopped.code or 0)
    finally:
        sys.stdin = stdin
    lines = f"{out.getvalue()}\n{err.getvalue()}".splitlines()
    is_check = row.run.startswith("check") and "--json" not in row.run
    start = lines.index("The error") if "The error" in lines else 0
    fixes = [place + 1 for place, line in enumerate(lines) if place >= start and line.endswith(" with:")]
    first = fixes[0] if fixes and is_check else len(lines)
    end = next((place for place in range(first, len(lines)) if not lines[place]), len(lines))
    code_lines = takewhile(lambda line: line[:1] != " " or line.startswith(" " * 7), lines[first:])
    return Answer(code, *(" ".join(" ".join(part).split()) for part in (lines, lines[start:end], code_lines)))


def wrong(row: Situation) -> Iterator[str]:
    prepare(row)
    found = answer(row)
    if found.code != row.code:
        yield f"exit code {found.code}, not {row.code}"
    yield from (f"nothing of {pattern!r}" for pattern in row.says if not re.search(pattern, found.first))
    if row.fix and not re.search(row.fix, found.fix):
        yield f"the first fix is {found.fix!r}, not {row.fix!r}"
    yield from (f"nowhere {pattern!r}" for pattern in row.also if not re.search(pattern, found.whole))
    yield from (
        f"it says {pattern!r}" for pattern in (*LITERAL, *row.never) if re.search(pattern, found.whole)
    )
    if row.then and found.code == 0:
        try:
            eval(row.then, NAMES)
        except Exception as error:  # noqa: BLE001 - told with the rest
            yield f"{type(error).__name__}: {error}"
