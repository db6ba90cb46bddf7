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
from inspector.snippet.styles.table import STYLES, render, styles
from inspector.target.profile import Profile, presets
from inspector.target.wish import parse_target
from tests.sweep import tries
from tests.torch.remapping import tagged
from tests.torch.running import (
    AnyModule,
    Loadable,
    play,
    play_frameworks,
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
    "adapter_model.bin": lambda: {"base_model.model.q.lora_A.weight": torch.randn(2, 4)},
    "data.pt": lambda: {"x": torch.randn(40, 3), "y": torch.arange(40)},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Checkpoint]:
    """Each file as saved on each kind of device, and one that was split over two."""
    split = tmp_path_factory.mktemp("split") / "last.pt"
    with tagged(lambda storage: "cuda:0" if storage.nbytes() > 12 else "cuda:1"):
        torch.save({"model": state(), "optimizer": adam()}, split)
    made = [open_checkpoint(str(split))]
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
    files: list[Checkpoint], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, target: Profile, is_known: bool
) -> None:
    seen = set()
    # Every file on every machine, every second of them on the described one; a sweep tries all on both.
    for rows in files[tries(int(is_known), 0) :: tries(2, 1)]:
        for style in styles(rows):
            with monkeypatch.context() as patch:
                machine, said = play(patch, target), play_ranks(patch)
                play_transformers(patch)
                play_frameworks(patch, target.destination, machine)
                path = str(tmp_path / "a.pt") if style.id == "save" else None
                code = render(rows, style=style.id, target=target if is_known else THIS, path=path)
                found = stand_ins(code)
                kept = torch.serialization.get_safe_globals()
                run(code, **(found | {"MyModel": AnyModule}))
                torch.serialization.clear_safe_globals()
                torch.serialization.add_safe_globals(kept)
            used = machine.used | {item.device for item in found.values() if item.device is not None}
            assert all(target.offers(*device_of(name)) for name in used), (rows.path, style.id)
            assert style.id in {"fsdp", "save"} or wanted(rows, target, style.id) & used, (
                rows.path,
                style.id,
            )
            assert said == backends(target, style.id)
            seen.add(style.id)
    assert seen == {style.id for style in STYLES}  # what is added to the table must be run here


def wanted(rows: Checkpoint, target: Profile, style: str) -> set[str]:
    """Return the devices of which code has to use one: the best there is, or one that the file names."""
    if style.startswith("distributed") and target.count("mps"):
        return {"cpu"}  # ranks cannot talk to each other on Apple's GPU
    saved = {row.device for row in rows.tensors if row.device != "cpu"}
    return {target.devices[0], *(name for name in saved if target.offers(*device_of(name)))}


def device_of(name: str) -> tuple[str, int | None]:
    kind, _, index = name.partition(":")
    return kind, int(index) if index else None


def backends(target: Profile, style: str) -> list[str]:
    if not style.startswith(("distributed", "fsdp")):
        return []
    return ["nccl"] if target.count("cuda") else ["xccl"] if target.count("xpu") else ["gloo"]


def test_module_that_was_split_stays_split_where_it_can(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    path = tmp_path / "split.pt"
    with tagged(lambda storage: "cuda:0" if storage.nbytes() == 8 else "cuda:1"):
        torch.save(
            torch.nn.Sequential(torch.nn.Linear(1, 2, bias=False), torch.nn.Linear(2, 2, bias=False)), path
        )
    rows = open_checkpoint(str(path))
    for count in (1, 2, 4):
        target = Profile(id="this", label="", accelerators=(("cuda", count),))
        with monkeypatch.context() as patch:
            machine = play(patch, target)
            run(render(rows, style="plain", target=THIS))
        assert set(machine.restored) == {f"cuda:{index}" for index in range(min(count, 2))}


@pytest.mark.parametrize("tag", ["cpu", "cuda:0", "cuda:3"])
def test_models_and_losses_go_to_the_wanted_device(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tag: str
) -> None:
    path = tmp_path / "gan.pt"
    saved = {"netG": state(), "netD": state(), "criterion": {"pos_weight": torch.ones(3)}, "optG": adam()}
    save_as_if_on(tag, saved, path)
    rows = open_checkpoint(str(path))
    machine, target = Profile(id="m", label="", accelerators=(("cuda", 2),)), parse_target("2xcuda:1")
    for style in ("plain", "resume"):
        code = render(rows, style=style, target=target)
        found = stand_ins(code)
        with monkeypatch.context() as patch:
            played = play(patch, machine)
            run(code, **found)
        assert set(played.restored) <= {"cpu"}
        assert {name: thing.device for name, thing in found.items() if thing.device} == dict.fromkeys(
            ("netG", "netD", "criterion"), "cuda:1"
        )
        assert found["criterion"].state.keys() == {"pos_weight"}


def test_users_map_goes_before_the_machines_best(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "best.pt"
    save_as_if_on("cuda:0", {"model": state()}, path)
    rows, model = open_checkpoint(str(path)), Loadable()
    with monkeypatch.context() as patch:
        machine = play(patch, Profile(id="2xcuda", label="", accelerators=(("cuda", 2),)))
        run(render(rows, style="plain", target=THIS, mapping=(("cuda:0", "cuda:1"),)), model=model)
    assert model.device == "cuda:1"
    assert machine.used == {"cpu"}
