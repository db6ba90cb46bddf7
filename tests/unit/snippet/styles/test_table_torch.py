"""Every snippet is run by torch itself, on genuine files."""

from __future__ import annotations

import argparse
import random
import runpy
import subprocess
import sys
from collections import namedtuple
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.model.checkpoint import Checkpoint
from inspector.records import replace
from inspector.resources import demo_path
from inspector.snippet.inventory import take_inventory
from inspector.snippet.styles.table import render, styles
from inspector.snippet.unopened import render_unopened, unopened_styles
from inspector.target.profile import CPU_ONLY, Profile
from inspector.target.wish import parse_target
from tests.corpus import Case, cases, varied
from tests.sweep import put_through, table
from tests.torch.running import (
    AnyModule,
    Loadable,
    play_frameworks,
    play_ranks,
    run,
    stand_ins,
    tensors_in,
)
from tests.unit.snippet.free import free_names
from tests.unit.snippet.rows import THIS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

UNOPENED = {
    "torchscript": "model.pt",
    "pt2": "model.pt2",
    "safetensors": "run/model.safetensors",
    "sharded": "a/long/way/to/the/folder/of/the/model/pytorch_model.bin.index.json",
    "dcp": "a/long/way/to/the/folder/of/the/model/that/was/saved/step_10",
    "tar": "old.pth",
    "pickle": "data.pkl",
    "pretrained": "run",
}
EXCLUDED = {
    "dist/sharded_tensor.pt": "torch wants a process group",
    "zip/generator.pt": "the file holds a Generator of a GPU, which no map_location moves",
}


@pytest.fixture(autouse=True)
def _clean_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Snippets change what torch allows and its random state; and no test may need a GPU, or find one."""
    for backend in (torch.cuda, torch.xpu, torch.backends.mps):
        monkeypatch.setattr(backend, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    allowed, state, python_state = (
        torch.serialization.get_safe_globals(),
        torch.get_rng_state(),
        random.getstate(),
    )
    yield
    torch.serialization.clear_safe_globals()
    torch.serialization.add_safe_globals(allowed)
    torch.set_rng_state(state)
    random.setstate(python_state)


@pytest.fixture(autouse=True)
def _main_classes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The classes that files of the corpus expect in the program that loads them."""

    class Net(torch.nn.Module):
        __module__ = "__main__"
        __qualname__ = "Net"

    class SubT(torch.Tensor):
        __module__ = "__main__"
        __qualname__ = "SubT"

    for made in (Net, SubT, namedtuple("Point", "x y", module="__main__")):  # noqa: PYI024 - as in the file
        monkeypatch.setattr(sys.modules["__main__"], made.__name__, made, raising=False)


def loadable(case: Case) -> bool:
    loads = case.torch_loads or case.container == "gzip(legacy)"
    return bool(loads) and case.container in {"zip", "legacy", "gzip(legacy)"} and case.name not in EXCLUDED


CASES = [case for case in varied() if loadable(case)]


def test_the_corpus_is_there() -> None:
    assert len(CASES) > 40


@pytest.mark.wide
@pytest.mark.filterwarnings("ignore")  # torch has much to say about old files
def test_genuine_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    play_ranks(monkeypatch)
    play_frameworks(monkeypatch)
    put_through(lambda case: check_case(tmp_path, case), CASES, lambda case: case.name, every=3)


def check_case(folder: Path, case: Case) -> None:
    checkpoint = open_checkpoint(str(case.path))
    offered = [style.id for style in styles(checkpoint)]
    assert offered
    # Its shards stand beside no config.json: `tests/torch` has a folder that is whole.
    for style, target in product((style for style in offered if style not in OTHERS), (CPU_ONLY, THIS)):
        allowed = torch.serialization.get_safe_globals()
        try:
            code = render(checkpoint, style=style, target=target)
            names = stand_ins(code) | {"MyModel": AnyModule}
            check_loaded(run(code, **names), checkpoint, (style, target.id))
        except Exception as error:
            raise AssertionError(f"{style} for {target.id}: {type(error).__name__}: {error}") from error
        finally:
            torch.serialization.clear_safe_globals()
            torch.serialization.add_safe_globals(allowed)
    check_saved(checkpoint, folder)


def check_saved(checkpoint: Checkpoint, folder: Path) -> None:
    """See that what a file holds can be saved, and then loads anywhere without a word of advice."""
    offered = [style.id for style in styles(checkpoint)]
    if "lightning" in offered:  # whose Trainer saves
        return
    code = render(checkpoint, style="resume" if "resume" in offered else "plain", target=CPU_ONLY)
    found = vars(run(code, **stand_ins(code)))
    path = str(folder / "a.pt")
    code = render(checkpoint, style="save", target=CPU_ONLY, path=path)
    known = {name: found.get(name, 3) for name in free_names(code)}
    run(code, **(known | {"data": torch.ones(2)}))
    saved = open_checkpoint(str(folder / "a_next.pt"))
    assert {tensor.device for tensor in saved.tensors} <= {"cpu", "meta"}
    assert not list(folder.glob("*.tmp"))
    models = [model for model in take_inventory(checkpoint).models if not model.is_module]
    kept = {tensor.path for tensor in saved.tensors}
    for model in models if "data" not in offered else ():
        assert any(path.endswith(model.names[0].split("module.")[-1]) for path in kept), model.keys


OTHERS = {"transformers", "save"}
WITHOUT_AVERAGES = {"distributed", "distributed-broadcast", "fsdp", "accelerate", "deepspeed", "peft"}


def check_loaded(found: Any, checkpoint: Checkpoint, where: tuple[str, ...]) -> None:
    if not hasattr(found, "torch"):  # a loader of its own
        return
    root = next(
        getattr(found, name)
        for name in ("tensor", "state_dict", "checkpoint", "saved", "data", "dataset", "loader", "model")
        if hasattr(found, name) and not isinstance(getattr(found, name), Loadable)
    )
    assert {tensor.device.type for tensor in tensors_in(root)} <= {"cpu", "meta"}, where
    takers = [thing for thing in vars(found).values() if isinstance(thing, Loadable | AnyModule)]
    states = [thing.state for thing in takers if thing.state is not None]
    for state in states:
        assert all(isinstance(name, str) for name in state), where
    is_renamed = where[0] == "lightning-weights"  # without the name of the attribute, too
    for model in () if is_data(checkpoint) or is_renamed else take_inventory(checkpoint).models:
        if not (model.is_module or (model.is_average and where[0] in WITHOUT_AVERAGES)):
            bare = {name.removeprefix("".join(model.prefixes)) for name in model.names}
            assert any(bare <= {*state} for state in states), (*where, model.keys)


def is_data(checkpoint: Checkpoint) -> bool:
    return "data" in [style.id for style in styles(checkpoint)]


@pytest.mark.parametrize("name", ["hostile/os_system.pt", "hostile/os_system_legacy.pt"])
def test_hostile_file_is_not_run(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("os.system", lambda command: pytest.fail(f"ran {command}"))
    (case,) = [case for case in cases() if case.name == name]
    code = render(open_checkpoint(str(case.path)), style="plain", target=THIS)
    with pytest.raises(Exception, match=r"[Ww]eights.only"):
        run(code, **stand_ins(code))


TARGETS = (
    CPU_ONLY,
    parse_target("mps"),
    parse_target("2xcuda"),
    replace(parse_target("xpu"), torch_version="2.0.1"),
    THIS,
)


@pytest.mark.wide
def test_formatters_have_nothing_to_change(tmp_path: Path) -> None:
    paths = [demo_path(), *(case.path for case in varied())]
    for number, path in enumerate(paths):
        try:
            checkpoint = open_checkpoint(str(path))
        except CheckpointError:
            continue
        for style in styles(checkpoint):
            for target in TARGETS:
                code = render(checkpoint, style=style.id, target=target, path=f"runs/{path.name}")
                name = f"{number}_{style.id}_{target.id.replace(':', '_')}.py"
                (tmp_path / name).write_text(code, encoding="ascii")
    for form, path in UNOPENED.items():
        for style in unopened_styles(form, path):
            for target in TARGETS:
                name = f"{form}_{style}_{target.id.replace(':', '_')}.py"
                code = render_unopened(form, path, target, style=style)
                (tmp_path / name).write_text(code, encoding="ascii")
    ruff = [sys.executable, "-m", "ruff"]
    answer = subprocess.run(
        [*ruff, "format", "--isolated", "--check", "--diff", tmp_path],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert answer.returncode == 0, answer.stdout
    own = ["E501", "E7", "E9", "F401", "F811", "F841", "I001"]  # F821 would name the reader's variables
    command = [*ruff, "check", "--isolated", "--line-length=92", f"--select={','.join(own)}", tmp_path]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert answer.returncode == 0, answer.stdout


# --- the demo checkpoint, with its true model ---------------------------------------------------------------


@pytest.fixture(scope="module")
def demo() -> Checkpoint:
    return open_checkpoint(str(demo_path()))


@pytest.fixture
def classifier() -> Any:
    script = runpy.run_path(str(demo_path().with_name("make_demo.py")))
    return script["Classifier"]()


@pytest.mark.wide
@pytest.mark.parametrize("target", [CPU_ONLY, THIS], ids=lambda target: target.id)
def test_plain_fills_the_demos_model(demo: Checkpoint, classifier: Any, target: Profile) -> None:
    run(render(demo, style="plain", target=target), model=classifier)
    saved = torch.load(demo_path(), map_location="cpu", weights_only=True)["model"]
    assert all(torch.equal(tensor, saved[name]) for name, tensor in classifier.state_dict().items())
    classifier.eval()
    assert classifier(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.wide
def test_resume_restores_all_of_the_demo(demo: Checkpoint, classifier: Any) -> None:
    optimizer = torch.optim.Adam(classifier.parameters(), lr=0.5)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, [1])
    scaler = torch.amp.GradScaler("cpu")
    found = run(
        render(demo, style="resume", target=THIS),
        model=classifier,
        optimizer=optimizer,
        scheduler=scheduler,
        scaler=scaler,
    )
    assert optimizer.param_groups[0]["lr"] == 0.0001
    assert scheduler.last_epoch == found.epoch == 50
    assert scaler.get_scale() == 32768.0
    averages = found.checkpoint["ema"]
    assert all(torch.equal(tensor, averages[name]) for name, tensor in found.ema.named_parameters())
    assert torch.equal(found.ema.stem.bn.running_mean, classifier.stem.bn.running_mean)
    assert torch.equal(torch.get_rng_state(), found.checkpoint["rng_state"]["torch"])
    slots = optimizer.state[classifier.head.bias]
    assert slots["step"].item() == 9750
    assert slots["exp_avg"].shape == classifier.head.bias.shape
    classifier(torch.zeros(2, 3, 32, 32)).sum().backward()
    optimizer.step()
    assert slots["step"].item() == 9751


# --- files of our own ---------------------------------------------------------------------------------------


@table("prefix", ["module.", "_orig_mod.", "module._orig_mod."])
def test_prefixed_state_dict_fits_the_bare_model(tmp_path: Path, prefix: str) -> None:
    model = torch.nn.Linear(3, 2)
    path = tmp_path / "ddp.pt"
    torch.save({"model": {prefix + name: tensor for name, tensor in model.state_dict().items()}}, path)
    bare = torch.nn.Linear(3, 2)
    run(render(open_checkpoint(str(path)), style="plain", target=THIS), model=bare, sub=bare)
    assert torch.equal(bare.weight, model.weight)


def test_state_dict_with_other_things_in_it_fits(tmp_path: Path) -> None:
    model = torch.nn.Linear(3, 2)
    path = tmp_path / "mixed.pt"
    torch.save({**model.state_dict(), "epoch": 3}, path)
    bare = torch.nn.Linear(3, 2)
    run(render(open_checkpoint(str(path)), style="plain", target=THIS), model=bare)
    assert torch.equal(bare.bias, model.bias)


def test_whole_module_of_torch_needs_no_trust(tmp_path: Path) -> None:
    path = tmp_path / "whole.pt"
    torch.save(torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU()), path)
    code = render(open_checkpoint(str(path)), style="plain", target=THIS)
    assert "weights_only=True" in code
    assert run(code).model(torch.zeros(1, 3)).shape == (1, 2)


def test_numpy_scalars_and_arguments_are_allowed_by_name(tmp_path: Path) -> None:
    import numpy as np

    path = tmp_path / "numpy.pt"
    saved = {
        "best": np.float64(0.5),
        "curve": np.arange(3, dtype=np.int16),
        "args": argparse.Namespace(lr=0.1),
    }
    torch.save(saved, path)
    code = render(open_checkpoint(str(path)), style="plain", target=THIS)
    assert "weights_only=True" in code
    found = run(code).checkpoint
    assert found["best"] == 0.5
    assert found["curve"].tolist() == [0, 1, 2]
    assert found["args"].lr == 0.1


def test_paths_and_keys_that_need_quoting(tmp_path: Path) -> None:
    path = tmp_path / "a \"b\" 'c'\n{d}.pt"
    model = torch.nn.Linear(1, 1)
    torch.save({'m"\n\u202e': {"sub": model.state_dict()}}, path)
    bare = torch.nn.Linear(1, 1)
    run(render(open_checkpoint(str(path)), style="plain", target=THIS), model=bare, sub=bare)
    assert torch.equal(bare.weight, model.weight)
