"""A process that uses modules and optimizers as `torch.load` returns them, on accelerators that are played.

`python restoring.py FOLDER` reads lines of JSON on stdin: lists of files, which it makes. It answers with
what torch says when each is used; with nothing where that works.

All of it runs under torch's own fake tensors: they have no data, and know every device whether it is there or
not. `torch.load` and the optimizers are torch's own code, and so is the rule by which tensors on different
devices do not mix. A few things are played: torch believes that there are two GPUs, `copy_` moves no data (a
build without CUDA refuses it), and what remembers fake tensors and numbers does not keep them from moving.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim import swa_utils
from torch.overrides import TorchFunctionMode

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
    """A net with a tensor that is neither parameter nor buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.mask = torch.ones(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return super().forward(x) * self.mask


def average() -> nn.Module:
    """An `AveragedModel` of a net that need not be copied."""
    real = swa_utils.deepcopy
    swa_utils.deepcopy = lambda model: model
    try:
        return swa_utils.AveragedModel(Net())
    finally:
        swa_utils.deepcopy = real


MODELS: dict[str, Callable[[], nn.Module]] = {
    "net": Net,
    "masked": Masked,
    "average": average,
    "parallel": lambda: parallel(Net()),
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
    """Write files whose storages carry the tags that are asked for."""
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
    if file["kind"] == "whole optimizer":
        return {"optimizer": trained(file["what"], file["options"])}
    return {"model": MODELS[file["what"]]()}


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


@contextmanager
def tagged(tag_of: Callable[[Any], str]) -> Iterator[None]:
    real = torch.serialization.location_tag
    torch.serialization.location_tag = lambda storage: tag_of(getattr(storage, "_untyped_storage", storage))
    try:
        yield
    finally:
        torch.serialization.location_tag = real


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

    replaced = [
        (torch.cuda, "is_available", lambda: True),
        (torch.cuda, "device_count", lambda: GPUS),
        (torch.cuda, "current_device", lambda: 0),
        (torch.cuda._utils, "_get_device_index", index),
        # A build for CUDA asks the driver whether a graph is being captured.
        (torch.optim.Optimizer, "_accelerator_graph_capture_health_check", lambda optimizer: None),
        (torch.utils.weakref, "getweakrefs", lambda tensor: []),
    ]
    before = [(place, name, getattr(place, name)) for place, name, _ in replaced]
    mode = FakeTensorMode()  # made first: it asks whether there is a GPU that it could use
    for place, name, value in replaced:
        setattr(place, name, value)
    try:
        with mode, Played():
            yield
    finally:
        for place, name, value in before:
            setattr(place, name, value)


# --- cells --------------------------------------------------------------------------------------------------


def answer(folder: Path, file: dict[str, Any]) -> str:
    """Load a file and use what is in it."""
    with torch.no_grad(), faked():
        found = torch.load(folder / file["name"], weights_only=False)
        try:
            if "optimizer" in found:
                (group,) = found["optimizer"].param_groups
                # What torch chooses by itself for tensors that are not fake.
                group["foreach"] = all(one.device.type == "cuda" for one in group["params"])
                step(found["optimizer"], group["params"])
            else:
                use_model(found["model"], file["what"])
        except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
            return f"{type(error).__name__}: {error}"
    return ""


def use_model(model: nn.Module, what: str) -> None:
    device = next(iter([*model.parameters(), *model.buffers()])).device
    x = torch.ones(4, 8, device=device)
    if what == "weight":
        model(x, torch.ones(4, dtype=torch.int64, device=device))
        return
    if what == "parallel":
        model.scatter = lambda inputs, kwargs, ids: ([inputs], [kwargs])
    model(x)


def main() -> None:
    folder = Path(sys.argv[1])
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    for line in sys.stdin:
        cells = json.loads(line)
        make(folder, cells)
        sys.stdout.write(json.dumps([answer(folder, cell) for cell in cells]) + "\n")


if __name__ == "__main__":
    main()
