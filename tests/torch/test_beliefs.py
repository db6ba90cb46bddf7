"""What the answers to beliefs say of torch, tried with torch, and what they say of a file, with its bytes."""

from __future__ import annotations

import io
import itertools
import os
import pathlib
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from inspector.diagnose.beliefs.belief import Belief
from inspector.diagnose.beliefs.table import BELIEFS, answer_beliefs
from inspector.errors import CheckpointError
from inspector.model.build import open_checkpoint
from inspector.target.default_load import judge_load
from inspector.target.machine.wish import parse_target
from tests.corpus import CORPUS, Case, cases
from tests.sweep import put_through
from tests.torch.remapping import tagged


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def net() -> torch.nn.Sequential:
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.BatchNorm1d(64), torch.nn.Linear(64, 8))


def trained(model: torch.nn.Module) -> torch.optim.Optimizer:
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.1)
    model(torch.ones(2, 64)).sum().backward()
    optimizer.step()
    return optimizer


def ask(path: str | Path, target: str = "cpu") -> dict[str, Belief]:
    checkpoint, machine = open_checkpoint(os.fspath(path)), parse_target(target)
    return {one.id: one for one in answer_beliefs(checkpoint, judge_load(checkpoint, machine), machine)}


def save(value: object, path: str, tag: str = "cpu", **options: object) -> str:
    with tagged(lambda _: tag):
        torch.save(value, path, **options)
    return path


def fails(do: Callable[[], object], text: str) -> bool:
    try:
        do()
    except Exception as error:  # noqa: BLE001 - of whatever kind it is
        return text in str(error)
    return False


# --- one function for each belief: whether torch agrees ---------------------------------------------------


def same_gpu() -> bool:
    path = save(net().state_dict(), "a.pth", "cuda:3")
    names = run(ask(path)["same-gpu"].code)
    return fails(lambda: torch.load(path), "CUDA") and names["checkpoint"]["0.weight"].device.type == "cpu"


def same_number() -> bool:
    tags = itertools.cycle(("cuda:0", "cuda:1"))
    with tagged(lambda _: next(tags)):
        torch.save(net().state_dict(), "b.pth")
    belief = ask("b.pth")["same-number-of-gpus"]
    return "It names 2 devices" in belief.here and len(run(belief.code)["checkpoint"]) == 9


def cuda_version() -> bool:
    with zipfile.ZipFile(save(net().state_dict(), "c.pth", "cuda:0")) as archive:
        data = b"".join(archive.read(name) for name in archive.namelist() if "/data/" not in name)
    return b"12." not in data and b"cuda:0" in data


def cpu_tensor() -> bool:
    model, optimizer = net(), None
    optimizer = trained(model)
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    belief = ask(save(state, "d.pth"))["cpu-tensor-breaks"]
    return "6 of them by design" in belief.here and bool(torch.load("d.pth", map_location="cpu"))


def data_parallel() -> bool:
    wrapped = torch.nn.DataParallel(net())
    path = save(wrapped.state_dict(), "e.pth")
    state = run(ask(path)["data-parallel-needed"].code, state_dict=torch.load(path))["state_dict"]
    net().load_state_dict(state)
    return "9 of its 9 names" in ask(path)["data-parallel-needed"].here


def moves_model() -> bool:
    with torch.device("meta"):
        model = net()
    model.load_state_dict(net().state_dict(), assign=False)  # a no-op: where the model is decides
    return all(value.device.type == "meta" for value in model.parameters())


def moves_optimizer() -> bool:
    state = trained(net()).state_dict()
    half = net().double()
    optimizer = torch.optim.AdamW(half.parameters())
    optimizer.load_state_dict(state)
    slots = optimizer.state[next(half.parameters())]
    return (slots["exp_avg"].dtype, slots["step"].dtype) == (torch.float64, torch.float32)


def torch_version() -> bool:
    corpus = Path(__file__).parents[1] / "data" / "corpus" / "old"
    paths = [corpus / "t1.0_py27_legacy_sd.pt", corpus / "t1.6_py38_zip_sd.pt"]
    return all(torch.load(path) and ask(path)["same-torch-version"].truth == "false" for path in paths)


def python_version() -> bool:
    save(net().state_dict(), "f.pth")
    save(net().state_dict(), "g.pth", pickle_protocol=5)
    return "protocol 2" in ask("f.pth")["same-python-version"].here and (
        "Python 3.8" in ask("g.pth")["same-python-version"].here
    )


def system() -> bool:
    save({"path": pathlib.PurePosixPath("a"), "w": torch.ones(1)}, "h.pth")
    other = pathlib.WindowsPath if os.name == "posix" else pathlib.PosixPath
    return ask("h.pth")["same-system"].truth == "false" and fails(lambda: other("a"), "cannot instantiate")


def weights_only() -> bool:
    module = save(net(), "i.pth")
    rows = [ask(save(net().state_dict(), "j.pth")), ask(module)]
    refused = fails(lambda: torch.load(module), "Weights only load failed")
    return refused and "weights_only=True refuses" in rows[0]["weights-only-false-needed"].here


def memory() -> bool:
    held: list[int] = []
    torch.load(
        save(net().state_dict(), "k.pth", "cuda:0"),
        map_location=lambda one, _: held.append(one.nbytes()) or one,
    )
    return sum(held) == sum(value.nbytes for value in net().state_dict().values())  # each once, one by one


def strict() -> bool:
    model, before = net(), None
    before = {name: value.clone() for name, value in model.state_dict().items()}
    state = {f"module.{name}": value + 1 for name, value in before.items()}
    left = model.load_state_dict(state, strict=False)
    same = all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    wrong = {"0.weight": torch.ones(1)}
    return (
        same
        and len(left.missing_keys) == 8
        and fails(lambda: model.load_state_dict(wrong, strict=False), "size mismatch")
    )


def extension() -> bool:
    names = [save({"w": torch.ones(1)}, f"same.{suffix}") for suffix in ("pth", "pt", "ckpt", "bin")]
    return len({Path(name).read_bytes() for name in names}) == 1 and all(torch.load(name) for name in names)


def changes() -> bool:
    value = torch.randn(99).to(torch.bfloat16)
    back = torch.load(save({"w": value}, "l.pth", "cuda:0"), map_location="cpu")["w"]
    return back.dtype == value.dtype and torch.equal(back.view(torch.int16), value.view(torch.int16))


def slower() -> bool:
    seen: list[str] = []
    torch.load(
        save({"w": torch.ones(1)}, "m.pth", "cuda:0"),
        map_location=lambda one, _: seen.append(one.device.type) or one,
    )
    return seen == ["cpu"]


def half_on_cpu() -> bool:
    model = net()
    model.load_state_dict(torch.load(save(net().half().state_dict(), "n.pth")))
    return model[0].weight.dtype == torch.float32 and "8 tensors" in ask("n.pth")["half-not-on-cpu"].here


def returns_model() -> bool:
    return fails(lambda: torch.load(save(net().state_dict(), "o.pth")).eval(), "has no attribute 'eval'")


def resume() -> bool:
    model = net()
    optimizer = trained(model)
    return (
        torch.optim.AdamW(model.parameters()).state_dict()["state"] == {} != optimizer.state_dict()["state"]
    )


def model_cpu() -> bool:
    model = net()
    weight = model[0].weight
    moved = model.double()  # as .cpu(): the model itself, in place
    state = {name: value.cpu() for name, value in model.state_dict().items()}
    return moved is model and weight is model[0].weight and weight.dtype == torch.float64 and len(state) == 9


def half_size() -> bool:
    model = torch.nn.Linear(512, 64)
    path = save(model.state_dict(), "p.pth")
    run(ask(path)["half-size-as-half"].code, model=model)
    was, now = Path(path).stat().st_size, Path("p-half.pth").stat().st_size
    foretold = was - sum(
        value.nbytes // 2 for value in model.state_dict().values() if value.dtype == torch.float32
    )
    return abs(now - foretold) < 0.02 * was and ask(path)["half-size-as-half"].truth == "true"


def size() -> bool:
    model = net()
    optimizer = trained(model)
    save({"model": model.state_dict(), "optimizer": optimizer.state_dict()}, "q.pth")
    weights = sum(value.nbytes for value in model.parameters())
    slots = sum(slot.nbytes for state in optimizer.state.values() for slot in state.values())
    return abs(slots / weights - 2) < 0.01 and ask("q.pth")["file-size-is-model-size"].truth == "depends"


def compressed() -> bool:
    with zipfile.ZipFile(save({"w": torch.zeros(9999)}, "r.pth")) as archive:
        return all(info.compress_type == zipfile.ZIP_STORED for info in archive.infolist())


def whole() -> bool:
    return (
        fails(lambda: torch.load(save(net(), "s.pth")), "Weights only")
        and "whole torch.nn" in ask("s.pth")["save-whole-model"].here
    )


def requires_grad() -> bool:
    model, other = net(), net()
    model[0].weight.requires_grad_(False)
    other.load_state_dict(torch.load(save(model.state_dict(), "t.pth")))
    kept = torch.load(save(model, "u.pth"), weights_only=False)[0].weight.requires_grad
    return other[0].weight.requires_grad and not kept and ask("u.pth")["requires-grad-saved"].truth == "true"


def eval_mode() -> bool:
    model, other = net().eval(), net()
    other.load_state_dict(torch.load(save(model.state_dict(), "v.pth")))
    kept = torch.load(save(model, "w.pth"), weights_only=False).training
    belief = ask("w.pth")["eval-mode-saved"]
    return (
        other.training
        and not kept
        and (belief.truth, belief.here) == ("true", "In training mode: 0 of its 4 modules.")
    )


def gradients() -> bool:
    model = net()
    trained(model)
    kept = torch.load(save(model, "x.pth"), weights_only=False)[0].weight.grad
    return model[0].weight.grad is not None and kept is None


def safetensors() -> bool:
    flat = pytest.importorskip("safetensors.torch")
    state = trained(net()).state_dict()
    slots = {
        f"{number}.{name}": value for number, row in state["state"].items() for name, value in row.items()
    }
    return len(flat.load(flat.save(slots))) == 18 and fails(lambda: flat.save({"lr": 0.1}), "")


def run(code: str, **names: object) -> dict[str, object]:
    exec(compile(code, "answer", "exec"), {"torch": torch, **names}, names)
    return names


AGREES: dict[str, Callable[[], bool]] = {
    "same-gpu": same_gpu,
    "same-number-of-gpus": same_number,
    "same-cuda-version": cuda_version,
    "cpu-tensor-breaks": cpu_tensor,
    "data-parallel-needed": data_parallel,
    "map-location-moves-model": moves_model,
    "map-location-moves-optimizer": moves_optimizer,
    "same-torch-version": torch_version,
    "same-python-version": python_version,
    "same-system": system,
    "weights-only-false-needed": weights_only,
    "loading-doubles-memory": memory,
    "strict-false-fixes": strict,
    "extension-matters": extension,
    "cpu-changes-weights": changes,
    "cpu-slower": slower,
    "half-not-on-cpu": half_on_cpu,
    "load-returns-model": returns_model,
    "weights-suffice": resume,
    "save-from-cpu": model_cpu,
    "half-size-as-half": half_size,
    "file-size-is-model-size": size,
    "zip-compresses": compressed,
    "save-whole-model": whole,
    "requires-grad-saved": requires_grad,
    "eval-mode-saved": eval_mode,
    "gradients-saved": gradients,
    "safetensors-no-optimizer": safetensors,
}


@pytest.mark.filterwarnings("ignore")
def test_torch_agrees_with_every_answer(folder: Path) -> None:
    assert set(AGREES) == {row.id for row in BELIEFS}
    assert [name for name, agrees in AGREES.items() if not agrees()] == []


def test_pickled_parameters_drop_their_gradients() -> None:
    parameter = torch.nn.Parameter(torch.ones(1))
    parameter.grad = torch.ones(1)
    file = io.BytesIO(pickle.dumps(parameter))
    assert pickle.load(file).grad is None


# Old nested tensors hold addresses of memory, see `_rebuild_nested_tensor`: nobody foresees what torch says.
UNFORESEEN = {"legacy/nested.pt"}


def runs_where_torch_loads(case: Case) -> None:
    """The line that is offered runs, and where torch needs more than a line another command is named."""
    try:
        beliefs = ask(case.path)
    except CheckpointError:
        return
    codes = [belief.code for belief in beliefs.values() if belief.code.startswith("checkpoint = ")]
    try:
        torch.load(case.path, map_location="cpu", weights_only=True)
    except Exception:  # noqa: BLE001 - whatever torch says
        assert codes == []
        return
    assert beliefs["weights-only-false-needed"].truth == "false"
    os.chdir(case.path.parent)
    for code in set(codes):
        run(code)
    assert codes


@pytest.mark.filterwarnings("ignore")
def test_code_of_genuine_files_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(CORPUS)
    genuine = [case for case in cases() if case.name not in UNFORESEEN and case.path.is_file()]
    put_through(runs_where_torch_loads, genuine, lambda case: case.name, every=5)
