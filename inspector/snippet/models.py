"""The models of a checkpoint: state dicts and whole modules, and what is odd about the names in them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from inspector.model.checkpoint import Checkpoint, Key, Tensor

Keys = tuple[Key, ...]

PREFIXES = ("module.", "_orig_mod.")
"""What DataParallel (also distributed) and torch.compile put before every name."""
_MODULE_DICTIONARIES = frozenset({"._modules", "._parameters", "._buffers"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A state dict, or a whole module.

    Attributes:
        keys: Where it stands.
        is_module: Whether it is a whole module.
        devices: The devices of its tensors, each once, in file order.
        names: The names of its tensors, for a state dict.
        is_mixed: Whether other things stand among them, which `load_state_dict` would not take.
    """

    keys: Keys
    is_module: bool
    devices: tuple[str, ...]
    names: tuple[str, ...]
    is_mixed: bool

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes that every name begins with, the outermost first, each once at most."""
        first = [prefix for prefix in PREFIXES if self._all_start_with(prefix)]
        then = [prefix for prefix in PREFIXES if first and self._all_start_with(first[0] + prefix)]
        return (*first, *(prefix for prefix in then if prefix not in first))

    def _all_start_with(self, prefix: str) -> bool:
        return bool(self.names) and all(name.startswith(prefix) for name in self.names)


def find_models(checkpoint: Checkpoint) -> tuple[Model, ...]:
    """List the models; of several copies of one, such as the last and the best, the first."""
    found: dict[tuple[Keys, bool], list[Tensor]] = {}
    for tensor in checkpoint.tensors:
        home = _home(tensor)
        if home is not None:
            found.setdefault(home, []).append(tensor)
    models: dict[tuple[str, ...], Model] = {}
    for (keys, is_module), tensors in found.items():
        names = tuple(str(tensor.keys[-1]) for tensor in tensors)
        model = Model(
            keys=keys,
            is_module=is_module,
            devices=tuple(dict.fromkeys(tensor.device for tensor in tensors)),
            names=() if is_module else names,
            is_mixed=not is_module and _is_mixed(checkpoint, keys, tensors),
        )
        models.setdefault(names, model)
    return tuple(models.values())


def _home(tensor: Tensor) -> tuple[Keys, bool] | None:
    """Give the place of the model that a tensor belongs to, and whether that is a whole module."""
    if tensor.part_of is not None or tensor.role not in {"parameter", "buffer"}:
        return None
    keys, is_module = tensor.keys[:-1], False
    for place, key in enumerate(tensor.keys):
        if key in _MODULE_DICTIONARIES:
            keys, is_module = tensor.keys[:place], True
            break
    # What hangs from an object's attribute cannot be reached by keys.
    reachable = not any(isinstance(key, str) and key.startswith(".") for key in keys)
    named = bool(tensor.keys) and isinstance(tensor.keys[-1], str)
    return (keys, is_module) if named and reachable else None


def _is_mixed(checkpoint: Checkpoint, keys: Keys, tensors: list[Tensor]) -> bool:
    own = {tensor.keys for tensor in tensors}
    return any(_is_stranger(row, keys, own) for row in _rows(checkpoint))


def _rows(checkpoint: Checkpoint) -> Iterator[Keys]:
    yield from (tensor.keys for tensor in checkpoint.tensors if tensor.part_of is None)
    yield from (value.keys for value in checkpoint.values)


def _is_stranger(row: Keys, keys: Keys, own: set[Keys]) -> bool:
    depth = len(keys)
    if len(row) <= depth or row[:depth] != keys or row[: depth + 1] in own:
        return False
    name = row[depth]  # the state dict's own attributes, and what `get_extra_state` gave, belong to it
    return not isinstance(name, str) or not (name.startswith("._metadata") or name.endswith("_extra_state"))
