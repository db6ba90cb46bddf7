"""A process that loads files as other machines would: torch's own code, with accelerators that are played.

`python simulating.py` reads lines of JSON on stdin, one for each machine: its devices, and cells of (file,
form of `map_location`, `weights_only`, `mmap`, keys of tensors). For each cell it answers with the error, or
with where each tensor landed. Whether a device is there, torch learns from functions of `torch.cuda` and its
like: these are replaced. What moves data there is replaced too: the data stay on the CPU in new memory, and
the device is noted beside the address.
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch import serialization
from torch.testing._internal.two_tensor import TwoTensor  # noqa: F401 - a class that files name

from tests.torch.remapping import Net, Point, SubT, replaced  # noqa: F401 - the classes are those of files

MAPS: dict[str, Any] = {
    "None": None,
    "'cpu'": "cpu",
    "'cuda'": "cuda",
    "'cuda:0'": "cuda:0",
    "'cuda:1'": "cuda:1",
    "'cuda:7'": "cuda:7",
    "'mps'": "mps",
    "'xpu:0'": "xpu:0",
    "'meta'": "meta",
    "'cpu:0'": "cpu:0",
    "'gpu'": "gpu",
    "torch.device('cpu')": torch.device("cpu"),
    "torch.device('cuda:1')": torch.device("cuda:1"),
    "torch.device('meta')": torch.device("meta"),
    "{}": {},
    "{'cuda:0': 'cpu'}": {"cuda:0": "cpu"},
    "{'cuda': 'cpu'}": {"cuda": "cpu"},
    "a ring of tags": {"cuda:0": "cuda:1", "cuda:1": "cpu", "mps": "cpu", "cpu": "cuda:0"},
    "{'cuda:0': torch.device('cpu')}": {"cuda:0": torch.device("cpu")},
    "devices as keys": {torch.device("cpu"): "meta", torch.device("cuda:0"): "cpu"},
    "lambda storage, tag: storage": lambda storage, tag: storage,
    "lambda storage, tag: None": lambda storage, tag: None,
    "b'cpu'": b"cpu",
    "0": 0,
    "['cpu']": ["cpu"],
}


# --- the machine that is played -----------------------------------------------------------------------------


class Machine:
    """Accelerators that are not there, and what has been moved to them, by address."""

    def __init__(self, cuda: int, xpu: int, mps: bool, is_real: bool = False) -> None:
        self.is_real = is_real
        self.counts = {"cuda": cuda, "xpu": xpu, "mps": int(mps)}
        self.places: dict[int, tuple[int, str]] = {}
        self.kept: list[Any] = []
        self.restored = 0

    def has(self, device: Any) -> bool:
        device = torch.device(device)
        return self.counts.get(device.type, 0) > (device.index or 0)

    def note(self, storage: torch.UntypedStorage, device: str) -> torch.UntypedStorage:
        self.kept.append(storage)
        self.places[storage.data_ptr()] = storage.nbytes(), device
        return storage

    def place(self, storage: torch.UntypedStorage) -> str | None:
        """Where a storage, or a part of one, has been moved; None without an address to tell it by."""
        address = storage.data_ptr()
        if not storage.nbytes():
            return None
        for start, (nbytes, device) in self.places.items():
            if start <= address < start + nbytes:
                return device
        return str(storage.device)

    def played(self) -> AbstractContextManager[None]:
        """Put the machine in the place of the real one, unless it is that."""
        return replaced([] if self.is_real else [*self._movers(), *self._askers()])

    def _movers(self) -> list[tuple[Any, str, Any]]:
        """What moves data, and what is told of each storage before that."""
        real_to, real_restore = torch.Tensor.to, serialization.default_restore_location

        def move(storage: torch.UntypedStorage, *, device: Any, non_blocking: bool = False) -> Any:
            device = torch.device(device)
            assert self.has(device), device  # torch is to have looked
            return self.note(storage.clone(), str(device))

        def to_mps(storage: torch.UntypedStorage) -> Any:
            if not self.counts["mps"]:
                return torch.UntypedStorage(storage.nbytes(), device="mps")
            return self.note(storage.clone(), "mps")

        def send(tensor: torch.Tensor, *args: Any, **how: Any) -> torch.Tensor:
            device = how.get("device")
            if device is None or not self.has(device):
                return real_to(tensor, *args, **how)
            sent = real_to(tensor, dtype=how["dtype"]).clone()
            self.note(sent.untyped_storage(), str(torch.device(device)))
            return sent

        def restore(storage: torch.UntypedStorage, location: Any) -> Any:
            self.restored += 1
            return real_restore(storage, location)

        return [
            (torch.UntypedStorage, "to", move),
            (torch.UntypedStorage, "mps", to_mps),
            (torch.Tensor, "to", send),
            (serialization, "default_restore_location", restore),
        ]

    def _askers(self) -> Iterator[tuple[Any, str, Any]]:
        """What torch asks for devices."""
        for module in (torch.cuda, torch.xpu):
            count = self.counts[module.__name__.rpartition(".")[2]]
            yield module, "is_available", lambda count=count: count > 0
            yield module, "device_count", lambda count=count: count
            if count:
                yield module, "current_device", lambda: 0
                yield module._utils, "_get_device_index", _index


def _index(device: Any, optional: bool = False, allow_cpu: bool = False) -> int:
    index = torch.device(device).index
    return 0 if index is None or index == -1 else index


# --- cells --------------------------------------------------------------------------------------------------


def answer(machine: Machine, cell: dict[str, Any]) -> dict[str, Any]:
    machine.places.clear()
    machine.kept.clear()
    machine.restored = 0
    serialization._serialization_tls.map_location = None  # torch leaves it behind after an error
    how = {"weights_only": cell["weights_only"], "mmap": cell["mmap"]}
    try:
        with machine.played():
            found = torch.load(cell["path"], map_location=MAPS[cell["map"]], **how)
    except Exception as error:  # noqa: BLE001 - whatever torch raises is the answer
        return {"error": f"{type(error).__name__}: {error}", "restored": machine.restored}
    return {"devices": [device_of(machine, found, keys) for keys in cell["keys"]]}


def device_of(machine: Machine, value: Any, keys: list[str | int]) -> str | None:
    """Where the tensor at these keys is; None where it cannot be reached this way."""
    try:
        for key in keys:
            value = step(value, key)
    except (LookupError, AttributeError, TypeError, RuntimeError):
        return None
    if isinstance(value, torch.UntypedStorage):
        return machine.place(value)
    if isinstance(value, torch.storage.TypedStorage):
        return machine.place(value.untyped())
    if not isinstance(value, torch.Tensor):
        return None
    if value.device.type != "cpu" or hasattr(type(value), "__tensor_flatten__"):
        return str(value.device)
    return machine.place(data_of(value).untyped_storage())


def data_of(tensor: torch.Tensor) -> torch.Tensor:
    """The part of a tensor that tells its device."""
    if tensor.layout == torch.sparse_coo:
        return tensor._values()
    is_plain = tensor.layout == torch.strided and not tensor.is_nested
    return tensor if is_plain else tensor.values()


def step(value: Any, key: str | int) -> Any:
    if isinstance(key, str) and key.startswith("."):
        return getattr(value, key[1:])
    if isinstance(value, torch.Tensor):
        names = {"scales": "q_per_channel_scales", "zero_points": "q_per_channel_zero_points"}
        return getattr(value, names.get(key, f"_{key}" if value.layout == torch.sparse_coo else key))()
    return value[key]


def main() -> None:
    warnings.simplefilter("ignore")
    for line in sys.stdin:
        job = json.loads(line)
        machine = Machine(**job["machine"])
        sys.stdout.write(json.dumps([answer(machine, cell) for cell in job["cells"]]) + "\n")


if __name__ == "__main__":
    main()
