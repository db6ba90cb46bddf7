"""Every style for every machine: run by torch on that machine as far as it can be played, see `running.py`.

The code has to load there without asking for a device that the machine lacks, and to use the machine's own
where the file had one; whether the machine was described beforehand or is found out when the code runs.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.resources import demo_path
from inspector.snippet.styles.table import STYLES, render, styles
from inspector.target.machine.profile import Profile, presets
from tests.torch.running import (
    AnyModule,
    Loadable,
    play,
    play_ranks,
    play_transformers,
    run,
    save_as_if_on,
    stand_ins,
)
from tests.unit.snippet.rows import THIS

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]
SAVED_ON = ("cuda:0", "cuda:3", "mps", "npu:0")
TARGETS = [
    target for target in presets() if target.id not in {"8xcuda", "rocm"}
]  # the same as cuda:4, cuda:1


def state() -> dict[str, Any]:
    return torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3)).state_dict()


def adam() -> dict[str, Any]:
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(4, 3)).sum().backward()
    optimizer.step()
    return optimizer.state_dict()


FILES: dict[str, Callable[[], Any]] = {
    "best.pt": state,
    "run.pt": lambda: {"model": state(), "optimizer": adam(), "rng_state": torch.get_rng_state()},
    "net.pt": lambda: torch.nn.Sequential(torch.nn.Linear(3, 3)),
    "last.ckpt": lambda: {"pytorch-lightning_version": "2.4.0", "state_dict": state(), "loops": {}},
    "pytorch_model.bin": lambda: {"embedding.weight": torch.randn(5, 4)},
    "data.pt": lambda: {"x": torch.randn(40, 3), "y": torch.arange(40)},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Checkpoint]:
    """Each file as saved on each kind of device, and the demo, which was split over two."""
    made = [open_checkpoint(str(demo_path()))]
    for device in SAVED_ON:
        folder = tmp_path_factory.mktemp("saved")
        (folder / "config.json").write_text('{"vocab_size": 5, "hidden_size": 4}', encoding="utf-8")
        for name, value in FILES.items():
            save_as_if_on(device, value(), folder / name)
            made.append(open_checkpoint(str(folder / name)))
    return made


@pytest.mark.parametrize("is_known", [True, False], ids=["described", "found-out"])
@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.id)
def test_every_style_for_every_machine(
    files: list[Checkpoint], monkeypatch: pytest.MonkeyPatch, target: Profile, is_known: bool
) -> None:
    seen = set()
    for rows in files:
        for style in styles(rows):
            with monkeypatch.context() as patch:
                machine, said = play(patch, target), play_ranks(patch)
                play_transformers(patch)
                found = stand_ins()
                code = render(rows, style=style.id, target=target if is_known else THIS)
                kept = torch.serialization.get_safe_globals()
                run(code, **found, MyModel=AnyModule)
                torch.serialization.clear_safe_globals()
                torch.serialization.add_safe_globals(kept)
            used = machine.used | {item.device for item in found.values() if item.device is not None}
            assert all(target.offers(*device_of(name)) for name in used), (rows.path, style.id)
            is_left = is_left_to_the_reader(rows, target, style.id)
            assert is_left or wanted(rows, target, style.id) & used, (rows.path, style.id)
            assert said == backends(target, style.id)
            seen.add(style.id)
    assert seen == {style.id for style in STYLES}  # what is added to the table must be run here


def wanted(rows: Checkpoint, target: Profile, style: str) -> set[str]:
    """Return the devices of which code has to use one: the best there is, or one that the file names."""
    if style.startswith("distributed") and target.count("mps"):
        return {"cpu"}  # ranks cannot talk to each other on Apple's GPU
    saved = {row.device for row in rows.tensors if row.device != "cpu"}
    return {target.devices[0], *(name for name in saved if target.offers(*device_of(name)))}


def is_left_to_the_reader(rows: Checkpoint, target: Profile, style: str) -> bool:
    """Return whether code leaves it open where a model goes: one that was split, where it can be so again."""
    return rows.path == str(demo_path()) and style == "resume" and target.count("cuda") > 1


def device_of(name: str) -> tuple[str, int | None]:
    kind, _, index = name.partition(":")
    return kind, int(index) if index else None


def backends(target: Profile, style: str) -> list[str]:
    if not style.startswith("distributed"):
        return []
    return ["nccl"] if target.count("cuda") else ["xccl"] if target.count("xpu") else ["gloo"]


def test_split_model_stays_split_where_it_can(monkeypatch: pytest.MonkeyPatch) -> None:
    demo = open_checkpoint(str(demo_path()))
    for count in (1, 2, 4):
        target = Profile(id="this", label="", accelerators=(("cuda", count),))
        with monkeypatch.context() as patch:
            machine, model = play(patch, target), Loadable()
            run(render(demo, style="plain", target=THIS), model=model)
        assert set(machine.restored) == {"cpu", *(f"cuda:{index}" for index in range(min(count, 2)))}
        assert model.device == ("cuda:0" if count == 1 else None)


def test_users_map_goes_before_the_machines_best(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    save_as_if_on("cuda:0", {"model": state()}, path)
    rows = open_checkpoint(str(path))
    with monkeypatch.context() as patch:
        machine = play(patch, Profile(id="cuda:2", label="", accelerators=(("cuda", 2),)))
        run(render(rows, style="plain", target=THIS, mapping=(("cuda:0", "cuda:1"),)), model=Loadable())
    assert "cuda:1" in machine.used
    assert "cuda:0" not in machine.used
