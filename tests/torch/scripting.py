"""Runs scripts with torch on machines that are played, to find the line that fails.

The data stay on the CPU. Where each storage would be is noted beside its address, by a mode that sees every
function of torch before it runs: what moves is noted, and what mixes devices raises as torch does.
"""

from __future__ import annotations

import builtins
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from tests.torch.remapping import replaced
from tests.torch.simulating import Machine

_REAL_TO, _REAL_INIT = torch.Tensor.to, nn.Linear.__init__
_MOVES = {"to", "cuda", "cpu", "xpu"}
_FREE = {"__set__", "copy_", "set_", "is_set_to", "_has_compatible_shallow_copy_type", "backward", "type"}
_FACTORIES = {"zeros", "ones", "rand", "randn", "randint", "arange", "full", "empty", "tensor", "as_tensor"}


class Net(nn.Module):
    """What scripts import from another file."""

    def __init__(self) -> None:
        super().__init__()
        self.fc1 = nn.Linear(4, 8)
        self.bn = nn.BatchNorm1d(8)
        self.fc2 = nn.Linear(8, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.fc2(torch.relu(self.bn(self.fc1(x))))


class Found(NamedTuple):
    """What running a script came to: the line that raised (0 for none), what it raised, its names."""

    line: int
    error: str
    names: dict[str, Any]


class Devices(TorchFunctionMode):
    def __init__(self, machine: Machine) -> None:
        super().__init__()
        self.machine = machine
        self.default = "cpu"

    def place(self, tensor: torch.Tensor) -> str:
        with torch._C.DisableTorchFunction():
            if tensor.device.type != "cpu" or not tensor.untyped_storage().nbytes():
                return str(tensor.device)
            return self.machine.place(tensor.untyped_storage()) or "cpu"

    def put(self, tensor: torch.Tensor, device: str) -> torch.Tensor:
        with torch._C.DisableTorchFunction():
            self.machine.note(tensor.untyped_storage(), device)
        return tensor

    def __torch_function__(self, function: Any, _: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = dict(kwargs or {})
        name = getattr(function, "__name__", "")
        if name == "__get__":
            return self.attribute(function, args)
        if name in _MOVES and args and isinstance(args[0], torch.Tensor):
            return self.moved(function, name, args, kwargs)
        if name in _FACTORIES or name.endswith("_like"):
            return self.made(function, args, kwargs)
        tensors = [value for value in flat([args, kwargs]) if isinstance(value, torch.Tensor)]
        places = {self.place(tensor) for tensor in tensors if tensor.dim() or self.place(tensor) != "cpu"}
        self.refuse(name, tensors, places)
        with torch._C.DisableTorchFunction() if name in _FREE else nullcontext():
            found = function(*args, **kwargs)
        if len(places) == 1 and name not in _FREE:
            for value in flat(found):
                if isinstance(value, torch.Tensor) and self.place(value) == "cpu":
                    self.put(value, next(iter(places)))
        return found

    def refuse(self, name: str, tensors: list[torch.Tensor], places: set[str]) -> None:
        if name in {"numpy", "__array__"} and tensors and self.place(tensors[0]) != "cpu":
            raise TypeError(
                f"can't convert {self.place(tensors[0])} device type tensor to numpy. Use Tensor.cpu() "
            )
        if len(places) > 1 and name not in _FREE:
            raise RuntimeError("Expected all tensors to be on the same device")

    def attribute(self, function: Any, args: Any) -> Any:
        with torch._C.DisableTorchFunction():
            found = function(*args)
        tensor = args[0]
        if isinstance(found, torch.device) and isinstance(tensor, torch.Tensor):
            return torch.device(self.place(tensor))
        if function is torch.Tensor.is_cuda.__get__:
            return self.place(tensor).startswith("cuda")
        if isinstance(found, torch.Tensor) and self.place(found) == "cpu" and self.place(tensor) != "cpu":
            self.put(found, self.place(tensor))  # the gradient, which C++ has made
        return found

    def moved(self, function: Any, name: str, args: Any, kwargs: Any) -> torch.Tensor:
        tensor, rest = args[0], list(args[1:])
        device = name if name != "to" else None
        number = rest[0] if rest else kwargs.get("device")
        if name == "to" and isinstance(number, str | int | torch.device):
            device = number
            rest = rest[1:]
            kwargs.pop("device", None)
        elif name == "to" and isinstance(number, torch.Tensor):
            device = self.place(number)
            rest[0] = number.dtype
        elif name == "cuda" and isinstance(number, int | torch.device):
            device, rest = number, rest[1:]
        wanted = None if device is None else self.real(device)
        kwargs.pop("non_blocking", None)
        rest = [value for value in rest if isinstance(value, torch.dtype)]
        with torch._C.DisableTorchFunction():
            changed = torch.Tensor.to(tensor, *rest, **kwargs) if rest or kwargs else tensor
        if wanted is None or wanted == self.place(tensor):
            return changed if changed is tensor else self.put(changed, self.place(tensor))
        with torch._C.DisableTorchFunction():
            return self.put(changed.clone(), wanted)

    def real(self, device: Any) -> str:
        device = torch.device(f"cuda:{device}" if isinstance(device, int) else device)
        if device.type == "cpu":
            return "cpu"
        if not self.machine.has(device):
            if device.type == "cuda" and self.machine.counts["cuda"]:
                raise torch.AcceleratorError("CUDA error: invalid device ordinal")
            raise AssertionError(f"Torch not compiled with {device.type.upper()} enabled")
        return f"{device.type}:{device.index or 0}" if device.type != "mps" else "mps"

    def made(self, function: Any, args: Any, kwargs: Any) -> torch.Tensor:
        like = args[0] if args and isinstance(args[0], torch.Tensor) else None
        device = kwargs.pop("device", None)
        wanted = (
            self.real(device)
            if device is not None
            else self.place(like)
            if like is not None
            else self.default
        )
        with torch._C.DisableTorchFunction():
            return self.put(function(*args, **kwargs), wanted)


def flat(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list | tuple):
        for item in value:
            yield from flat(item)
    else:
        yield value


def run_script(path: Path, machine: Machine, arguments: list[str]) -> Found:
    """Run a script as `python script.py arguments` would, in the present folder."""
    text = path.read_text(encoding="utf-8")
    main, own = ModuleType("__main__"), ModuleType("model")
    own.Net, own.make_optimizer, own.save_everything = Net, _adam, lambda *_: None  # type: ignore[attr-defined]
    bar = ModuleType("tqdm")
    bar.tqdm, bar.__spec__ = (lambda items: items), ModuleSpec("tqdm", None)  # type: ignore[attr-defined]
    kept = {name: sys.modules.get(name) for name in ("__main__", "model", "tqdm")}
    argv, sys.argv = sys.argv, [path.name, *arguments]
    sys.modules.update({"__main__": main, "model": own, "tqdm": bar})
    mode = Devices(machine)
    try:
        with machine.played(), _patched(mode), mode:
            exec(compile(text, str(path), "exec"), main.__dict__)
    except BaseException as error:  # noqa: BLE001 - whatever the script raises is the answer
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)]
        return Found(frames[-1].lineno or 0, f"{type(error).__name__}: {error}", main.__dict__)
    finally:
        sys.argv = argv
        for name, module in kept.items():
            sys.modules.pop(name, None) if module is None else sys.modules.update({name: module})
    return Found(0, "", main.__dict__)


def _adam(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.Adam(model.parameters())


def _replaced(mode: Devices) -> list[tuple[Any, str, Any]]:
    """What no mode sees: storages, parallel modules, the default device, what is available, output."""
    machine = mode.machine

    def forward(module: nn.DataParallel, *inputs: Any, **named: Any) -> Any:
        places = {mode.place(parameter) for parameter in module.parameters()}
        if machine.counts["cuda"] and places != {"cuda:0"}:
            raise RuntimeError("module must have its parameters and buffers on device cuda:0 (device_ids[0])")
        return module.module(*(each.to(next(iter(places))) for each in inputs), **named)

    def wrap(parallel: nn.DataParallel, module: nn.Module, *_: Any, **__: Any) -> None:
        nn.Module.__init__(parallel)
        parallel.module = module

    def to_gpu(storage: torch.UntypedStorage, device: int = 0) -> torch.UntypedStorage:
        return machine.note(storage.clone(), mode.real(f"cuda:{device}"))

    def init(module: Any, *args: Any, **named: Any) -> None:
        _REAL_INIT(module, *args, **named)
        module.to(mode.default)

    return [
        (nn.DataParallel, "__init__", wrap),
        (nn.DataParallel, "forward", forward),
        (torch.UntypedStorage, "cuda", to_gpu),
        (torch, "set_default_device", lambda device: setattr(mode, "default", mode.real(device))),
        (torch.backends.mps, "is_available", lambda: bool(machine.counts["mps"])),
        (torch.Tensor, "to", _REAL_TO),  # the mode sees it
        # A build for CUDA asks the driver whether a graph is being captured.
        (torch.optim.Optimizer, "_accelerator_graph_capture_health_check", lambda optimizer: None),
        (torch, "save", lambda *_, **__: None),
        (torch, "compile", lambda model, **_: model),
        (builtins, "print", lambda *_, **__: None),
        (nn.Linear, "__init__", init),
    ]


@contextmanager
def _patched(mode: Devices) -> Iterator[None]:
    kept = torch.serialization.get_safe_globals()
    try:
        with replaced(_replaced(mode)):
            yield
    finally:
        torch.serialization.clear_safe_globals()
        torch.serialization.add_safe_globals(kept)
        torch.serialization._serialization_tls.map_location = None
