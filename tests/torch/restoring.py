"""A process that restores parts of checkpoints as code would, on accelerators that are played.

`python restoring.py FOLDER` makes the files that are wanted, then reads lines of JSON on stdin: lists of
cells, of which each says how one part of a file is restored and used. It answers with where the tensors are
then, and with what torch says on the way.

Without the meta device, all of it runs under torch's own fake tensors: they have no data, and know every
device whether it is there or not. `torch.load`, `load_state_dict`, `.to` and the optimizers are torch's own
code, and so is the rule by which tensors on different devices do not mix. A few things are played: torch
believes that there are two GPUs, `copy_` moves no data (a build without CUDA refuses it), and what remembers
fake tensors and numbers does not keep them from moving. With the meta device, everything is real.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim import swa_utils
from torch.overrides import TorchFunctionMode

from tests.torch.remapping import replaced, tagged

GPUS = 2


class Net(nn.Module):
    """Two layers, an embedding, a counter: `fc` is larger than the rest."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(8, 8)
        self.bn = nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.bn(self.fc(x))


class Masked(Net):
    def __init__(self) -> None:
        super().__init__()
        self.mask = torch.ones(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * self.mask


class Words(nn.Module):
    """An embedding whose weight the last layer shares."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(5, 8)
        self.head = nn.Linear(8, 5)
        self.head.weight = self.embedding.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.embedding(x.argmax(1) % 5))


class Normed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(2, 8)
        self.gate = nn.PReLU(8)
        self.scale = nn.LayerNorm(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.scale(self.gate(self.norm(x)))


def lazy() -> nn.Module:
    return nn.Sequential(nn.LazyLinear(8), nn.Linear(8, 3))


def average() -> nn.Module:
    """An `AveragedModel` of a net that need not be copied."""
    with replaced([(swa_utils, "deepcopy", lambda model: model)]):
        return swa_utils.AveragedModel(Net())


MODELS: dict[str, Callable[[], nn.Module]] = {
    "net": Net,
    "masked": Masked,
    "words": Words,
    "normed": Normed,
    "lazy": lazy,
    "average": average,
    "parallel": lambda: parallel(Net()),
    "pos_weight": lambda: nn.BCEWithLogitsLoss(pos_weight=torch.ones(8)),
    "weight": lambda: nn.CrossEntropyLoss(weight=torch.ones(8)),
}
OPTIMIZERS: dict[str, tuple[Any, dict[str, Any]]] = {
    "Adam": (torch.optim.Adam, {}),
    "AdamW": (torch.optim.AdamW, {"amsgrad": True}),
    "SGD": (torch.optim.SGD, {"momentum": 0.9, "lr": 0.1}),
    "Adagrad": (torch.optim.Adagrad, {}),
    "RMSprop": (torch.optim.RMSprop, {"centered": True}),
    "NAdam": (torch.optim.NAdam, {}),
    "RAdam": (torch.optim.RAdam, {}),
    "Adamax": (torch.optim.Adamax, {}),
    "Adadelta": (torch.optim.Adadelta, {}),
    "Rprop": (torch.optim.Rprop, {}),
    "ASGD": (torch.optim.ASGD, {}),
    "Adafactor": (torch.optim.Adafactor, {}),
    "LBFGS": (torch.optim.LBFGS, {}),
}


def parallel(net: nn.Module) -> nn.Module:
    """A `DataParallel` over the first GPU, as one is unpickled: its device was looked for before."""
    wrapped = nn.DataParallel(net)
    wrapped.device_ids, wrapped.output_device = [0], 0
    wrapped.src_device_obj = torch.device("cuda:0")
    return wrapped


# --- files --------------------------------------------------------------------------------------------------


def make(folder: Path, files: list[dict[str, Any]]) -> None:
    for file in files:
        with tagged(Tagging(file["tags"], file["numbers"])):
            torch.save(content(file), folder / file["name"])


class Tagging:
    """Hands out one tag after the other, and the last to all that come then; numbers have their own."""

    def __init__(self, tags: list[str], numbers: str) -> None:
        self.tags, self.numbers = tags, numbers
        self.given: dict[int, str] = {}

    def __call__(self, storage: Any) -> str:
        if storage.nbytes() <= 8:
            return self.numbers
        return self.given.setdefault(storage.data_ptr(), self.tags[min(len(self.given), len(self.tags) - 1)])


def content(file: dict[str, Any]) -> Any:
    kind, what = file["kind"], file["what"]
    if kind == "optimizer":
        return {"optimizer": trained(what, file["options"]).state_dict()}
    if kind == "whole optimizer":
        return {"optimizer": trained(what, file["options"])}
    if kind == "state":
        return {"model": prepared(what).state_dict()}
    if kind == "whole":
        return {"model": prepared(what)}
    if kind == "rng":
        return {"rng_state": torch.get_rng_state(), "cuda_rng": [torch.zeros(16, dtype=torch.uint8)]}
    return {"class_weights": torch.ones(8), "anchors": torch.ones(8)}


def prepared(what: str) -> nn.Module:
    model = MODELS[what]()
    if what == "lazy":
        model(torch.ones(4, 8))
    return model


def trained(what: str, options: dict[str, Any]) -> torch.optim.Optimizer:
    """An optimizer after a step, with options that are set afterwards as a machine with a GPU has them."""
    cls, fixed = OPTIMIZERS[what]
    parameters = [nn.Parameter(torch.ones(3, 5)), nn.Parameter(torch.ones(7))]
    optimizer = cls(parameters, **fixed)
    for _ in range(2):
        step(optimizer, parameters)
    for group in optimizer.param_groups:
        group.update(options)
    return optimizer


def step(optimizer: Any, parameters: list[Any]) -> None:
    def closure() -> Any:
        for parameter in parameters:
            parameter.grad = torch.full_like(parameter, 0.5)
        with torch.no_grad():
            return sum(parameter.detach().sum() for parameter in parameters[:1])

    closure()
    optimizer.step(closure) if isinstance(optimizer, torch.optim.LBFGS) else optimizer.step()


# --- the machine that is played -----------------------------------------------------------------------------


class Played(TorchFunctionMode):
    """What a build without CUDA refuses to fake tensors: data is not copied, numbers are made up."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in ANSWERS:
            return ANSWERS[func](*args)
        kwargs = dict(kwargs or {})
        if func.__name__.startswith("_foreach_"):
            # Fake tensors do not look at each index; torch does, one after the other where devices differ.
            for together in zip(*(arg for arg in args if isinstance(arg, list | tuple)), strict=True):
                meet(*together)
        if func in {torch.tensor, torch.as_tensor}:
            # What number it is is remembered, and would be sent to a GPU for real.
            device = kwargs.pop("device", None)
            made = func(*args, **kwargs)
            made.constant = None
            return made if device is None else made.to(device)
        return func(*args, **kwargs)


def copied(target: torch.Tensor, source: torch.Tensor, *_: object) -> torch.Tensor:
    if source.device.type == "meta" and target.device.type != "meta":
        raise NotImplementedError("Cannot copy out of meta tensor; no data!")
    return target


def meet(*values: object) -> None:
    """Let torch's fake tensors say what they say when they are added."""
    tensors = [value for value in values if isinstance(value, torch.Tensor)]
    FakeTensor._find_common_device(torch.ops.aten.add.Tensor, tensors)


def normed(x: torch.Tensor, *args: object) -> torch.Tensor:
    meet(x, *args)
    return torch.empty_like(x)


ANSWERS: dict[Any, Callable[..., Any]] = {
    torch.Tensor.copy_: copied,
    torch.Tensor.__setitem__: meet,
    nn.functional.batch_norm: normed,  # it copies inside
    torch.Tensor.__getitem__: lambda tensor, key: torch.ops.aten.slice(tensor, 0, key.start, key.stop),
    torch.Tensor.item: lambda *_: 0.5,
    torch.Tensor.__float__: lambda *_: 0.5,
    torch.Tensor.__bool__: lambda *_: False,
}


@contextmanager
def faked() -> Iterator[None]:
    """Fake tensors on a machine with two GPUs."""

    def index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
        found = torch.device(device).index
        return 0 if found is None or found == -1 else found

    rows = [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: GPUS),
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda._utils, "_get_device_index", index),
        # A build for CUDA asks the driver whether a graph is being captured.
        (torch.optim.Optimizer, "_accelerator_graph_capture_health_check", lambda optimizer: None),
        (torch.utils.weakref, "getweakrefs", lambda tensor: []),
    ]
    mode = FakeTensorMode()  # made first: it asks whether there is a GPU that it could use
    with replaced(rows), mode, Played():
        yield


# --- cells --------------------------------------------------------------------------------------------------


def answer(folder: Path, cell: dict[str, Any]) -> dict[str, Any]:
    said: dict[str, Any] = {"places": {}, "error": "", "warning": "", "failure": ""}
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        caught = stack.enter_context(warnings.catch_warnings(record=True))
        warnings.simplefilter("always")
        if not cell["real"]:
            stack.enter_context(faked())
        found = torch.load(folder / cell["file"]["name"], map_location=cell["map"], weights_only=False)
        try:
            places, use = RESTORED[cell["file"]["kind"]](found, cell)
        except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
            said["error"] = f"{type(error).__name__}: {error}"
            return said
        said["places"] = {
            path: [str(value.device), str(value.dtype).removeprefix("torch.")]
            for path, value in places().items()
        }
        said["warning"] = next((str(w.message) for w in caught if "no-op" in str(w.message)), "")
        try:
            use()
        except Exception as error:  # noqa: BLE001 - the same
            said["failure"] = f"{type(error).__name__}: {error}"
    return said


Restored = tuple[Callable[[], dict[str, Any]], Callable[[], object]]


def restore_model(found: Any, cell: dict[str, Any]) -> Restored:
    """Load into a model of the code what the file holds, or use that of the file."""
    code, what = cell["code"], cell["file"]["what"]
    if cell["file"]["kind"] == "whole" and code["way"] != "load_state_dict":
        model = found["model"]
    else:
        model = MODELS[what]()
        model.to(code["built_on"])
        state = found["model"] if cell["file"]["kind"] == "state" else found["model"].state_dict()
        model.load_state_dict(state, assign=code["way"] == "assign")
    if code["moved_to"]:
        model.to(code["moved_to"])

    def places() -> dict[str, Any]:
        if cell["file"]["kind"] == "state":
            return {f"model/{name}": tensor for name, tensor in model.state_dict().items()}
        return {f"model/{path}": tensor for path, tensor in attributes(model)}

    return places, lambda: use_model(model, what, cell)


def attributes(model: nn.Module, above: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the tensors of a module by the way to them in a pickle."""
    for group in ("_parameters", "_buffers"):
        yield from ((f"{above}.{group}/{name}", tensor) for name, tensor in getattr(model, group).items())
    yield from ((f"{above}.{name}", item) for name, item in vars(model).items() if torch.is_tensor(item))
    for name, child in model._modules.items():
        yield from attributes(child, f"{above}._modules/{name}/")


def use_model(model: nn.Module, what: str, cell: dict[str, Any]) -> None:
    device = cell["code"]["inputs"] or next(iter([*model.parameters(), *model.buffers()])).device
    x = torch.ones(4, 8, device=device)
    if what == "pos_weight":
        model(x, x)
    elif what == "weight":
        model(x, torch.ones(4, dtype=torch.int64, device=device))
    else:
        if what == "parallel":
            model.scatter = lambda inputs, kwargs, ids: ([inputs], [kwargs])
        model(x)


def restore_optimizer(found: Any, cell: dict[str, Any]) -> Restored:
    code = cell["code"]
    cls, fixed = OPTIMIZERS[cell["file"]["what"]]
    parameters = [nn.Parameter(torch.ones(3, 5)), nn.Parameter(torch.ones(7))]
    model = nn.ParameterList(parameters)
    model.to(device=code["built_on"], dtype=getattr(torch, code["built_as"] or "float32"))
    parameters = list(model)
    foreach = {} if cls is torch.optim.LBFGS else {"foreach": code["foreach"]}
    optimizer = cls(parameters, **fixed, **foreach)
    saved = found["optimizer"]
    for group in saved["param_groups"]:
        group.update(foreach)
    if code["way"] == "use":
        optimizer.state.update({parameters[key]: slots for key, slots in saved["state"].items()})
        for group, other in zip(optimizer.param_groups, saved["param_groups"], strict=True):
            group.update({name: item for name, item in other.items() if name != "params"})
    else:
        optimizer.load_state_dict(saved)
    if code["moved_to"]:
        model.to(code["moved_to"])

    def places() -> dict[str, Any]:
        return {
            f"optimizer/state/{place}/{name}": tensor
            for place, parameter in enumerate(parameters)
            for name, tensor in tensors_in(optimizer.state.get(parameter, {}))
        }

    return places, lambda: step(optimizer, parameters)


def tensors_in(value: Any, above: str = "") -> Iterator[tuple[str, torch.Tensor]]:
    if torch.is_tensor(value):
        yield above, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from tensors_in(item, f"{above}/{key}" if above else str(key))


def restore_whole_optimizer(found: Any, cell: dict[str, Any]) -> Restored:
    optimizer = found["optimizer"]
    parameters = optimizer.param_groups[0]["params"]
    for group in optimizer.param_groups:
        group["foreach"] = cell["code"]["foreach"]
    if cell["code"]["moved_to"]:
        nn.ParameterList(parameters).to(cell["code"]["moved_to"])
    return dict, lambda: step(optimizer, parameters)


def restore_rng(found: Any, cell: dict[str, Any]) -> Restored:
    places = {"rng_state": found["rng_state"], "cuda_rng/0": found["cuda_rng"][0]}
    return lambda: places, lambda: torch.set_rng_state(found["rng_state"])


def restore_tensors(found: Any, cell: dict[str, Any]) -> Restored:
    """Use tensors as they come: as weights of a loss, and in arithmetic."""

    def use() -> None:
        x = torch.ones(4, 8, device=cell["code"]["inputs"] or found["class_weights"].device)
        if cell["code"]["inputs"]:
            nn.functional.cross_entropy(x, x, weight=found["class_weights"])
            x * found["anchors"]

    return lambda: found, use


RESTORED: dict[str, Callable[[Any, dict[str, Any]], Restored]] = {
    "state": restore_model,
    "whole": restore_model,
    "optimizer": restore_optimizer,
    "whole optimizer": restore_whole_optimizer,
    "rng": restore_rng,
    "tensors": restore_tensors,
}


def main() -> None:
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for line in sys.stdin:
        cells = json.loads(line)
        make(folder, list({cell["file"]["name"]: cell["file"] for cell in cells}.values()))
        sys.stdout.write(json.dumps([answer(folder, cell) for cell in cells]) + "\n")


if __name__ == "__main__":
    main()
