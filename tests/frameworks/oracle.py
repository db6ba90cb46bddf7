"""What a framework's file truly holds, written down by torch and the framework's own objects.

Runs in an environment that has the frameworks (see `__main__.py`). The file is loaded by torch itself; each
storage's key and device come from the arguments of torch's own `map_location`, what a tensor is for and
which parameter a slot belongs to from the live objects that were saved.
"""

from __future__ import annotations

import copyreg
import io
import json
import pickle
import sys
import zipfile
from collections import OrderedDict, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

Path_ = tuple[Any, ...]
_ATOMS = (type(None), bool, int, float, complex, str, bytes, type, torch.dtype, torch.device, torch.Size)


class Truth:
    """What the live objects say of one file: claims about everything below a path.

    Attributes:
        roles: The role of everything below a path; the longest path that fits counts.
        slots: The parameter's name for (the path of an optimizer's `state`, the key of the parameter there).
    """

    def __init__(self) -> None:
        self.roles: dict[Path_, str] = {}
        self.slots: dict[tuple[Path_, str], str] = {}

    def role(self, role: str, *path: Any) -> Truth:
        """Claim a role for all that stands below a path."""
        self.roles[tuple(map(str, path))] = role
        return self

    def model(self, module: torch.nn.Module, *path: Any, prefix: str = "") -> Truth:
        """Claim that a state dict of this module stands there."""
        here = tuple(map(str, path))
        for name, _ in module.named_parameters(remove_duplicate=False):
            self.roles[(*here, prefix + name)] = "parameter"
        for name, _ in module.named_buffers(remove_duplicate=False):
            self.roles[(*here, prefix + name)] = "buffer"
        return self

    def optimizer(
        self, optimizer: Any, module: torch.nn.Module | dict[str, torch.nn.Module], *path: Any
    ) -> Truth:
        """Claim that the state dict of an optimizer over a module stands there; several modules by name."""
        here = tuple(map(str, path))
        self.roles[here] = "optimizer"
        modules = module if isinstance(module, dict) else {"": module}
        names = {
            id(parameter): f"{where}.{name}".strip(".")
            for where, one in modules.items()
            for name, parameter in one.named_parameters()
        }
        number = 0
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                self.slots[(*here, "state"), str(number)] = names[id(parameter)]
                number += 1
        return self

    def role_of(self, path: Path_) -> str | None:
        """Return the role that the nearest claim above a path says."""
        texts = tuple(map(str, path))
        for end in range(len(texts), -1, -1):
            if texts[:end] in self.roles:
                return self.roles[texts[:end]]
        return None

    def slot_of(self, path: Path_) -> str | None:
        """Return the name of the parameter that a slot belongs to, or None for what is no slot."""
        texts = tuple(map(str, path))
        for end in range(1, len(texts)):
            found = self.slots.get((texts[:end], texts[end]))
            if found is not None:
                return found
        return None


# --- played devices -----------------------------------------------------------------------------------------


@contextmanager
def saved_as_if_on(device: str) -> Iterator[None]:
    """Have `torch.save` tag storages with a device, but those that stay on the CPU by design."""
    tag_of = torch.serialization.location_tag
    state_dict = torch.optim.Optimizer.state_dict
    kept: list[Any] = []

    def note(self: Any, *args: Any, **options: Any) -> Any:
        answer = state_dict(self, *args, **options)
        kept.extend(state["step"].untyped_storage() for state in answer["state"].values() if "step" in state)
        return answer

    def tag(storage: Any) -> str:
        bare = getattr(storage, "_untyped_storage", storage)
        on_cpu = bare.nbytes() == 5056 or any(bare._cdata == other._cdata for other in kept)
        return tag_of(storage) if on_cpu else device

    torch.optim.Optimizer.state_dict = note
    torch.serialization.location_tag = tag
    try:
        yield
    finally:
        torch.serialization.location_tag = tag_of
        torch.optim.Optimizer.state_dict = state_dict


# --- loading with torch, and the names of what stands in it ----------------------------------------------


class _Loaded:
    """The storages that torch asked for while it loaded a file."""

    def __init__(self) -> None:
        self.by_pointer: dict[int, tuple[str, str]] = {}
        self.alive: list[Any] = []

    def __call__(self, storage: Any, location: str) -> Any:
        frame = sys._getframe(1)
        while frame is not None and "saved_id" not in frame.f_locals:
            frame = frame.f_back
        saved = frame.f_locals["saved_id"] if frame is not None else None
        bare = getattr(storage, "_untyped_storage", storage)
        key = "?" if saved is None else str(saved[2])
        self.by_pointer[bare._cdata] = (key, location)
        self.alive.append(bare)
        return storage


def describe(path: Path, truth: Truth, container: str) -> dict[str, Any]:
    loaded = _Loaded()
    try:
        value = torch.load(path, map_location=loaded, weights_only=False)
    except RuntimeError:  # subclasses that keep a device of their own take no callable
        value = torch.load(path, weights_only=False)
    try:
        torch.load(path, map_location="cpu", weights_only=True)
        safe = True
    except Exception:  # noqa: BLE001 - whatever stops it is the answer
        safe = False
    rows = [_row(keys, tensor, truth, loaded) for keys, tensor in tensors_of(value)]
    storages = {
        key: {"location": location, "nbytes": bare.nbytes()}
        for bare in loaded.alive
        for key, location in [loaded.by_pointer[bare._cdata]]
    }
    return {
        "container": container,
        "torch": torch.__version__,
        "torch_loads": True,
        "torch_loads_weights_only": safe,
        "storages": storages,
        "tensors": rows,
        "oracle_source": "torch.load",
    }


def _row(keys: Path_, tensor: torch.Tensor, truth: Truth, loaded: _Loaded) -> dict[str, Any]:
    row: dict[str, Any] = {
        "path": [key if isinstance(key, int | str) else _text_of_key(key) for key in keys],
        "class": type(tensor).__name__,
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "shape": list(tensor.shape),
        "kind": "strided",
    }
    if type(tensor) not in {torch.Tensor, torch.nn.Parameter, torch.nn.Buffer} and _is_wrapper(tensor):
        row["kind"] = "wrapper_subclass"
    elif tensor.is_quantized:
        row["kind"] = "quantized"
    elif tensor.layout is not torch.strided:
        row["kind"] = str(tensor.layout).removeprefix("torch.")
    if row["kind"] in {"strided", "quantized"}:
        key, location = loaded.by_pointer.get(tensor.untyped_storage()._cdata, (None, None))
        row |= {"stride": list(tensor.stride()), "offset": tensor.storage_offset(), "device": location}
        row["storage_key"] = key
    role, slot = truth.role_of(keys), truth.slot_of(keys)
    if role is not None:
        row["role"] = role
    if slot is not None:
        row["parameter"] = slot
    return row


def _text_of_key(key: Any) -> str:
    """Return a key that is no text as `show` writes it."""
    return json.dumps(key).replace("[", "(").replace("]", ")") if isinstance(key, tuple) else str(key)


def _is_wrapper(tensor: torch.Tensor) -> bool:
    try:
        return tensor.untyped_storage().data_ptr() == 0 and tensor.numel() > 0
    except Exception:  # noqa: BLE001 - a wrapper has no storage at all
        return True


def tensors_of(value: Any) -> Iterator[tuple[Path_, torch.Tensor]]:
    """Yield all tensors with the keys that `show --json` gives them, each container once."""
    seen: set[int] = set()
    alive: list[Any] = []

    def below(keys: Path_, item: Any) -> Iterator[tuple[Path_, torch.Tensor]]:
        if isinstance(item, torch.Tensor):
            yield keys, item
            return
        if isinstance(item, _ATOMS) or id(item) in seen:
            return
        seen.add(id(item))
        alive.append(item)
        for key, child in _children(item):
            yield from below((*keys, key), child)

    yield from below((), value)


def _children(item: Any) -> Iterator[tuple[Any, Any]]:
    if type(item) in {dict, OrderedDict, defaultdict}:
        places = iter(range(len(item)))
        for key, child in item.items():
            # No text of a tensor is a name: as a key it is told by its place.
            yield f"Parameter {next(places)}" if isinstance(key, torch.Tensor) else key, child
    elif type(item) in {list, tuple}:
        yield from enumerate(item)
    elif type(item) in {set, frozenset}:
        yield from enumerate(list(item))
    elif not callable(item) or hasattr(item, "__dict__"):
        yield from _parts(item)


def _parts(item: Any) -> Iterator[tuple[Any, Any]]:
    """Yield arguments, pairs, items and attributes, as pickling the object again would write them."""
    if isinstance(item, torch.ScriptObject):  # packed weights: their state, and the name of their class
        yield ".state", item.__getstate__()
        return
    try:
        reduced = item.__reduce_ex__(2)
    except Exception:  # noqa: BLE001 - what cannot be pickled did not come out of a pickle
        return
    if not isinstance(reduced, str):
        yield from _reduced(reduced)


def _reduced(reduced: tuple[Any, ...]) -> Iterator[tuple[Any, Any]]:
    maker, args, *rest = reduced
    state, items, pairs = (*rest, None, None, None)[:3]
    if getattr(maker, "__name__", "") == "__newobj__":
        args = args[1:]
    elif maker is copyreg._reconstructor:
        args = ()
    yield from enumerate(args)
    yield from pairs or ()
    yield from enumerate(items or ())
    for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
        if isinstance(part, dict):
            yield from ((f".{key}", child) for key, child in part.items())
        elif part is not None:
            yield ".state", part


# --- files that torch.load does not read -----------------------------------------------------------------


def describe_safetensors(path: Path, truth: Truth) -> dict[str, Any]:
    """Return the oracle of a safetensors file, as its own library reads it."""
    from safetensors import safe_open

    with safe_open(path, framework="pt") as file:
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    rows = []
    for name, tensor in tensors.items():
        row = {
            "path": [name],
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "shape": list(tensor.shape),
            "device": None,
        }
        role = truth.role_of((name,))
        rows.append(row | ({} if role is None else {"role": role}))
    return {"container": "safetensors", "tensors": rows, "oracle_source": "safetensors"}


def members(path: Path) -> dict[str, bytes]:
    """Return the records of a zip."""
    with zipfile.ZipFile(io.BytesIO(path.read_bytes())) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def pickled(path: Path) -> Any:
    """Return what a plain pickle holds."""
    with path.open("rb") as file:
        return pickle.load(file)
