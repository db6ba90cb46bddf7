"""Makes the files of the situations, with torch: what people have on their disks, small."""

from __future__ import annotations

import pickle
import sys
import types
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import nn

from tests.torch.remapping import tagged

# --- what is saved ------------------------------------------------------------------------------------------


class Saving:
    """Saves values as if parts of them were on devices that this machine does not have."""

    def __init__(self) -> None:
        self._tags: dict[int, str] = {}

    def on(self, device: str, value: Any) -> Any:
        """Let all tensors of a value be on a device."""
        for tensor in _tensors(value):
            if tensor.layout is torch.strided:
                self._tags[tensor.untyped_storage().data_ptr()] = device
        return value

    def save(self, value: Any, path: str, **options: Any) -> None:
        """Write the file."""
        with tagged(lambda storage: self._tags.get(storage.data_ptr(), "cpu")):
            torch.save(value, path, **options)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, nn.Module):
        yield from (*value.parameters(), *value.buffers())
    elif isinstance(value, dict):
        yield from (tensor for item in value.values() for tensor in _tensors(item))
    elif isinstance(value, list | tuple):
        yield from (tensor for item in value for tensor in _tensors(item))


def net(width: int = 3) -> nn.Module:
    return nn.Sequential(nn.Linear(2, width), nn.BatchNorm1d(width))


def adam(model: nn.Module, **options: Any) -> torch.optim.Optimizer:
    """An optimizer that has taken a step."""
    optimizer = torch.optim.Adam(model.parameters(), **options)
    model(torch.randn(4, 2)).sum().backward()
    optimizer.step()
    return optimizer


def state_dict(device: str, path: str = "best.pth", **options: Any) -> Callable[[], None]:
    """A state dict on one device."""

    def make() -> None:
        saving = Saving()
        saving.save(saving.on(device, net().state_dict()), path, **options)

    return make


@cache
def trained() -> tuple[dict[str, Any], ...]:
    """The state of a model, its optimizer and its scheduler after a step, which takes torch long to begin."""
    model = net()
    optimizer = adam(model)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 5)
    return model.state_dict(), optimizer.state_dict(), scheduler.state_dict()


def training(device: str, path: str = "run.pt", *, with_rng: bool = False) -> Callable[[], None]:
    """Model and optimizer as training loops save them; Adam's steps and the random state are on the CPU."""

    def make() -> None:
        saving, (model, slots, scheduler) = Saving(), trained()
        for slot in slots["state"].values():
            saving.on(device, {name: value for name, value in slot.items() if name != "step"})
        rng = torch.get_rng_state()
        value = {
            "epoch": 3,
            "model": saving.on(device, model),
            "optimizer": slots,
            "scheduler": scheduler,
            "rng_state": saving.on(device, rng) if with_rng else rng,
        }
        saving.save(value, path)

    return make


def split(devices: tuple[str, ...], path: str = "big.pt") -> Callable[[], None]:
    """A model whose layers were spread over devices."""

    def make() -> None:
        saving = Saving()
        layers = {}
        for number, device in enumerate(devices):
            for name, value in saving.on(device, nn.Linear(2, 2).state_dict()).items():
                layers[f"layers.{number}.{name}"] = value
        saving.save(layers, path)

    return make


def saved(value: Callable[[Saving], Any], path: str, **options: Any) -> Callable[[], None]:
    """Any value."""

    def make() -> None:
        saving = Saving()
        saving.save(value(saving), path, **options)

    return make


def written(path: str, data: bytes) -> Callable[[], None]:
    """Bytes."""
    return lambda: Path(path).write_bytes(data) and None


def truncated(path: str = "best.pth") -> None:
    """The first half of a download."""
    torch.save({f"{n}.weight": torch.randn(64, 64) for n in range(4)}, path)
    Path(path).write_bytes(Path(path).read_bytes()[: Path(path).stat().st_size // 2])


def unzipped(path: str = "best.pth") -> None:
    """A checkpoint that a browser or a file manager unpacked."""
    import zipfile

    torch.save(net().state_dict(), "whole.pth")
    with zipfile.ZipFile("whole.pth") as archive:
        archive.extractall(path)
    Path("whole.pth").unlink()


class _Exported:
    """Puts a class into a module that nobody can import."""

    def __init__(self, module: str, name: str, base: type = nn.Module) -> None:
        self.made = type(name, (base,), {"__module__": module})
        self.module = types.ModuleType(module)
        setattr(self.module, name, self.made)

    def __enter__(self) -> type:
        parts = self.module.__name__.split(".")
        for end in range(1, len(parts) + 1):
            name = ".".join(parts[:end])
            sys.modules[name] = self.module if end == len(parts) else types.ModuleType(name)
        return self.made

    def __exit__(self, *_: object) -> None:
        parts = self.module.__name__.split(".")
        for end in range(1, len(parts) + 1):
            del sys.modules[".".join(parts[:end])]


def whole_module(device: str, path: str = "model.pt", module: str = "models.yolo") -> Callable[[], None]:
    """torch.save(model) of a class whose code is elsewhere."""

    def make() -> None:
        saving = Saving()
        with _Exported(module, "Model") as made:
            model = made()
            model.layer = nn.Linear(2, 2)
            saving.save(saving.on(device, model), path)

    return make


def apex_optimizer(path: str = "run.pt") -> None:
    """An object of a compiled extension."""
    saving = Saving()
    with _Exported("apex.optimizers.fused_adam", "FusedAdam", object) as made:
        optimizer = made()
        optimizer.slots = saving.on("cuda:0", {"exp_avg": torch.zeros(2)})
        saving.save({"model": saving.on("cuda:0", net().state_dict()), "optimizer": optimizer}, path)


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        import os

        return os.system, ("echo pwned",)


def pickled(path: str = "features.pkl") -> None:
    """pickle.dump of tensors on a GPU: their bytes are whole files of torch within the pickle."""
    saving = Saving()
    tensors = {"x": torch.randn(4, 2), "y": torch.arange(4)}
    with tagged(lambda _: "cuda:0"):
        Path(path).write_bytes(pickle.dumps(saving.on("cuda:0", tensors)))


def traced(path: str = "traced.pt") -> None:
    """A traced model that makes a tensor on the device it was traced on."""

    class Net(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + torch.zeros(2, device=x.device)

    torch.jit.save(torch.jit.trace(Net(), torch.randn(2)), path)


def safetensors_file(path: str = "model.safetensors") -> None:
    from safetensors.torch import save_file

    save_file(net().state_dict(), path)


def sharded(folder: str = "llm", *, missing: bool = False) -> Callable[[], None]:
    """transformers' shards with their index."""

    def make() -> None:
        import json

        Path(folder).mkdir()
        names = {}
        for number in (1, 2):
            shard = f"pytorch_model-0000{number}-of-00002.bin"
            torch.save({f"layer{number}.weight": torch.randn(2, 2)}, Path(folder, shard))
            names[f"layer{number}.weight"] = shard
        index = {"metadata": {"total_size": 32}, "weight_map": names}
        Path(folder, "pytorch_model.bin.index.json").write_text(json.dumps(index), encoding="utf-8")
        if missing:
            Path(folder, "pytorch_model-00002-of-00002.bin").unlink()

    return make


def tied(_: Saving) -> dict[str, Any]:
    weight = torch.randn(4, 2)
    return {"wte.weight": weight, "lm_head.weight": weight}


def gan(saving: Saving) -> dict[str, Any]:
    return {"netG": saving.on("cuda:0", net().state_dict()), "netD": saving.on("cuda:1", net(5).state_dict())}


def with_loss(saving: Saving) -> dict[str, Any]:
    loss = nn.BCEWithLogitsLoss(pos_weight=torch.ones(3))
    return {"model": saving.on("cuda:0", net().state_dict()), "criterion": loss.state_dict()}


def with_average(saving: Saving) -> dict[str, Any]:
    return {"model": saving.on("cuda:0", net().state_dict()), "ema": net().state_dict()}


def with_buffer(saving: Saving) -> dict[str, Any]:
    replay = {"obs": torch.zeros(8, 2), "action": torch.zeros(8), "reward": torch.zeros(8)}
    return {"policy": saving.on("cuda:0", net().state_dict()), "replay_buffer": replay}


def lightning(saving: Saving) -> dict[str, Any]:
    model, slots, _ = trained()
    return {
        "epoch": 3,
        "global_step": 30,
        "pytorch-lightning_version": "2.4.0",
        "state_dict": saving.on("cuda:0", model),
        "loops": {},
        "callbacks": {},
        "optimizer_states": [slots],
        "lr_schedulers": [],
    }


# --- what was written ---------------------------------------------------------------------------------------


def holds(path: str, devices: set[str], *absent: str) -> Callable[[], None]:
    """What was written is on these devices, and has no such keys."""

    def look() -> None:
        tags: set[str] = set()

        def note(storage: torch.UntypedStorage, tag: str) -> torch.UntypedStorage:
            tags.add(tag)
            return storage

        value = torch.load(path, map_location=note, weights_only=True)
        assert tags == devices, tags
        assert not set(absent) & set(value), list(value)

    return look


def is_safetensors(path: str, dtype: torch.dtype = torch.float32) -> Callable[[], None]:
    def look() -> None:
        from safetensors.torch import load_file

        assert {tensor.dtype for tensor in load_file(path).values() if tensor.is_floating_point()} == {dtype}

    return look


def is_absent(path: str) -> None:
    assert not Path(path).exists()


def is_smaller(path: str, than: str) -> Callable[[], None]:
    def look() -> None:
        assert Path(path).stat().st_size < Path(than).stat().st_size / 1.5

    return look
