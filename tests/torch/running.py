"""Runs loading code as a reader would, on machines that are not there and beside objects that stand in.

A machine is played by telling torch what it would find there. Where torch restores a storage it is noted, and
refused if the machine has no such device; the bytes stay on the CPU.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch

from inspector.model.roles.devices import split_device
from inspector.target.profile import Profile
from tests.torch.remapping import tagged
from tests.unit.snippet.free import free_names

PARAMETERS = [object() for _ in range(64)]


class Loadable:
    """Stands for a model or optimizer: takes any state dict, and remembers it."""

    def __init__(self) -> None:
        self.state: Any = None
        self.device: str | None = None
        self.param_groups: list[dict[str, Any]] = [{"params": PARAMETERS}]

    def load_state_dict(self, state: Any, *, strict: bool = True) -> None:
        self.state = state

    def state_dict(self) -> Any:
        return self.state

    def parameters(self) -> list[Any]:
        return PARAMETERS

    def named_parameters(self) -> list[tuple[str, Any]]:
        return [(str(number), parameter) for number, parameter in enumerate(PARAMETERS)]

    def to(self, device: str) -> None:
        self.device = device

    def save_checkpoint(self, path: str) -> None:
        """As Lightning's Trainer does."""

    @property
    def module(self) -> Any:
        """What a wrapper holds."""
        return self

    _orig_mod = module


def stand_ins(code: str) -> dict[str, Any]:
    return {name: Loadable() for name in free_names(code)}


def run(code: str, **variables: object) -> SimpleNamespace:
    names: dict[str, Any] = dict(variables)
    exec(compile(code, "snippet", "exec"), names)
    return SimpleNamespace(**names)


def tensors_in(value: Any, seen: set[int] | None = None) -> Iterator[Any]:
    seen = set() if seen is None else seen
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, torch.nn.Module):
        yield from value.state_dict().values()
    elif isinstance(value, dict):
        yield from (tensor for item in value.values() for tensor in tensors_in(item, seen))
    elif isinstance(value, list | tuple):
        yield from (tensor for item in value for tensor in tensors_in(item, seen))


def save_as_if_on(device: str, value: object, path: Path) -> None:
    """Save as if all were on a device, but for `step` and the random state, which stay on the CPU."""
    with tagged(lambda storage: "cpu" if storage.nbytes() in {4, 5056} else device):
        torch.save(value, path)


@dataclass
class Machine:
    """Where `torch.load` has put storages on a machine that is played, and `to` tensors."""

    restored: list[str] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)

    @property
    def used(self) -> set[str]:
        return {*self.restored, *self.moved}


def play(patch: pytest.MonkeyPatch, target: Profile) -> Machine:
    """Let torch believe that it runs on a machine."""
    machine = Machine()

    def check(device: object) -> str:
        name = str(device)
        parts = split_device(name)
        if parts is None or not target.offers(*parts):
            raise RuntimeError(f"this machine has no {name}")
        return name

    def restore(storage: Any, location: str) -> Any:
        machine.restored.append(check(location))
        return storage

    def to(tensor: Any, device: object, *_: object, **__: object) -> Any:
        machine.moved.append(check(device))
        return tensor

    pretend(patch, target)
    patch.setattr(torch.cuda, "set_device", check)
    patch.setattr(torch.cuda, "set_rng_state", lambda state, index: check(f"cuda:{index}"))
    patch.setattr(torch.xpu, "set_device", check)
    patch.setattr(torch.serialization, "default_restore_location", restore)
    patch.setattr(torch.Tensor, "to", to, raising=False)
    _play_loaders(patch, check, machine)
    return machine


def pretend(patch: pytest.MonkeyPatch, target: Profile) -> None:
    """Let torch say that it has what a machine has, and change nothing else."""
    patch.setattr(torch.cuda, "is_available", lambda: target.count("cuda") > 0)
    patch.setattr(torch.cuda, "device_count", lambda: target.count("cuda"))
    patch.setattr(torch.xpu, "is_available", lambda: target.count("xpu") > 0)
    patch.setattr(torch.backends.mps, "is_available", lambda: target.count("mps"))


def _play_loaders(patch: pytest.MonkeyPatch, check: Any, machine: Machine) -> None:
    """Let loaders that reach their device in C++ or Rust stay on the CPU."""
    import safetensors.torch

    load_script, load_file = torch.jit.load, safetensors.torch.load_file

    def jit_load(path: str, map_location: str) -> Any:
        machine.restored.append(check(map_location))
        return load_script(path, map_location="cpu")

    def file_load(path: str, device: str = "cpu") -> Any:
        machine.restored.append(check(device))
        return load_file(path, device="cpu")

    patch.setattr(torch.jit, "load", jit_load)
    patch.setattr(safetensors.torch, "load_file", file_load)


def play_ranks(patch: pytest.MonkeyPatch, rank: int = 0) -> list[str]:
    """Let a single process pass for one of several ranks; gives the backends that were asked for."""
    import torch.distributed as dist

    backends: list[str] = []
    patch.setenv("LOCAL_RANK", str(rank))
    patch.setattr(dist, "init_process_group", backends.append)
    patch.setattr(dist, "get_rank", lambda: rank)
    patch.setattr(dist, "barrier", lambda: None)
    patch.setattr(dist, "broadcast_object_list", lambda states, src: None)
    patch.setattr(torch.nn.parallel, "DistributedDataParallel", lambda model: model)
    _play_shards(patch)
    return backends


def _play_shards(patch: pytest.MonkeyPatch) -> None:
    """Let one process pass for all ranks of FSDP: it has the shards of all of them."""
    import torch.distributed.checkpoint.state_dict as states
    from torch.distributed import fsdp

    def keep(thing: Any, state: Any, options: Any) -> None:
        assert options.full_state_dict
        thing.load_state_dict(state)

    patch.setattr(fsdp, "fully_shard", lambda model: None)
    patch.setattr(fsdp, "FullyShardedDataParallel", lambda model, device_id=None: model)
    patch.setattr(states, "set_model_state_dict", keep)
    patch.setattr(
        states,
        "set_optimizer_state_dict",
        lambda model, optimizer, state, options: keep(optimizer, state, options),
    )


# --- frameworks ---------------------------------------------------------------------------------------------


class LightningModule(torch.nn.Module):
    """Does what Lightning 2.6 does, see `_load_from_checkpoint` in lightning/pytorch/core/saving.py."""

    @classmethod
    def load_from_checkpoint(
        cls, checkpoint_path: str, map_location: Any = None, *, weights_only: bool | None = None
    ) -> Any:
        saved = torch.load(checkpoint_path, map_location=map_location, weights_only=weights_only)
        module = cls(**saved.get("hyper_parameters", {}))
        module.load_state_dict(saved["state_dict"])
        return module.to(next(iter(saved["state_dict"].values())).device)


class AnyModule(LightningModule):
    """A module for any state dict: it takes what it is given."""

    def __init__(self, **_: object) -> None:
        super().__init__()

    def load_state_dict(self, state_dict: Any) -> None:
        self.state = copy.copy(state_dict)


class _Batch(dict):
    """What a tokenizer gives: tensors by name that move together."""

    def to(self, device: object) -> _Batch:
        return _Batch({name: tensor.to(device) for name, tensor in self.items()})


def play_transformers(patch: pytest.MonkeyPatch) -> None:
    """Put a stand-in for transformers in its place: `from_pretrained` reads `config.json` and the weights.

    As the real one does, it leaves the model on the CPU and in evaluation mode (modeling_utils.py).
    """

    class Model(torch.nn.Module):
        def __init__(self, vocabulary: int, width: int) -> None:
            super().__init__()
            self.embedding = torch.nn.Embedding(vocabulary, width)

        @property
        def device(self) -> object:
            return self.embedding.weight.device

        def forward(self, input_ids: torch.Tensor) -> torch.Tensor:
            return self.embedding(input_ids)

    def model_from(folder: str) -> Model:
        import json

        config = json.loads((Path(folder) / "config.json").read_text(encoding="utf-8"))
        model = Model(config["vocab_size"], config["hidden_size"])
        weights = Path(folder) / "pytorch_model.bin"
        model.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        return model.eval()

    def tokenizer_from(folder: str) -> Any:
        assert (Path(folder) / "config.json").is_file()
        return lambda text, return_tensors: _Batch(input_ids=torch.tensor([[len(text) % 5, 1]]))

    module = ModuleType("transformers")
    module.AutoModel = SimpleNamespace(from_pretrained=model_from)  # type: ignore[attr-defined]
    module.AutoTokenizer = SimpleNamespace(from_pretrained=tokenizer_from)  # type: ignore[attr-defined]
    patch.setitem(sys.modules, "transformers", module)


def play_frameworks(
    patch: pytest.MonkeyPatch, destination: str = "cpu", machine: Machine | None = None
) -> None:
    """Put stand-ins for Accelerate, DeepSpeed and PEFT in their places, which use one device of a machine."""
    moved = [] if machine is None else machine.moved

    class Accelerator:
        scaler = None

        def prepare(self, *things: Any) -> Any:
            moved.append(destination)
            return things if len(things) > 1 else things[0]

    def initialize(*, model: Any, model_parameters: Any, config: str) -> tuple[Any, ...]:
        assert config.endswith(".json")
        moved.append(destination)
        engine = SimpleNamespace(
            module=model, load_checkpoint=lambda folder, tag=None: (folder, {"tag": tag})
        )
        return engine, Loadable(), None, None

    def from_pretrained(folder: str) -> Any:
        assert isinstance(folder, str)
        moved.append("cpu")
        return SimpleNamespace(to=moved.append, eval=lambda: None)

    def set_state(model: Any, state: Any) -> None:
        model.load_state_dict(state)

    modules: dict[str, dict[str, Any]] = {
        "accelerate": {"Accelerator": Accelerator},
        "deepspeed": {"initialize": initialize},
        "peft": {
            "set_peft_model_state_dict": set_state,
            "AutoPeftModelForCausalLM": SimpleNamespace(from_pretrained=from_pretrained),
        },
    }
    for name, members in modules.items():
        module = ModuleType(name)
        module.__dict__.update(members)
        patch.setitem(sys.modules, name, module)
