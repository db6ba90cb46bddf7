"""The models of a checkpoint: state dicts and whole modules, and what is odd about the names in them.

Rows are grouped by the text of their paths, not by their keys: Python hashes tuples of integers without a
secret, so that a file could make them collide.
"""

from __future__ import annotations

from collections.abc import Iterator

from inspector.model.checkpoint import Checkpoint, Key, Tensor
from inspector.records import dataclass

Keys = tuple[Key, ...]

PREFIXES = ("module.", "_orig_mod.")
"""What DataParallel (also distributed) and torch.compile put before every name."""
MOST_OF_A_KIND = 16
"""How many models, optimizers, ... a snippet names: a run has few, only a file made to stall us has more."""
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


def has_model(checkpoint: Checkpoint) -> bool:
    """Return whether there is a model; quickly, as the first tensors usually are of one."""
    return any(_is_weight(tensor) and _home(tensor.keys[:-1]) is not None for tensor in checkpoint.tensors)


def has_parameters(checkpoint: Checkpoint) -> bool:
    """Return whether an object in the file is a module: it keeps parameters in an attribute of its own."""
    return any("._parameters/" in tensor.path for tensor in checkpoint.tensors)


def find_models(checkpoint: Checkpoint) -> tuple[Model, ...]:
    """List the models; of several copies of one, such as the last and the best, the first."""
    folders: dict[str, list[Tensor]] = {}
    for tensor in checkpoint.tensors:
        if _is_weight(tensor):
            folders.setdefault(tensor.path.rpartition("/")[0], []).append(tensor)
    found: dict[tuple[str, bool], list[Tensor]] = {}
    for folder, tensors in folders.items():
        home = _home(tensors[0].keys[:-1])
        if home is not None:
            keys, is_module = home
            path = "/".join(folder.split("/")[: len(keys)])
            found.setdefault((path, is_module), []).extend(tensors)
    models: dict[tuple[str, ...], Model] = {}
    for (path, is_module), tensors in found.items():
        names = () if is_module else tuple(str(tensor.keys[-1]) for tensor in tensors)
        architecture = names or (path,)
        if architecture not in models and len(models) < MOST_OF_A_KIND:
            models[architecture] = Model(
                keys=tensors[0].keys[: len(path.split("/")) if path else 0],
                is_module=is_module,
                devices=tuple(dict.fromkeys(tensor.device for tensor in tensors)),
                names=names,
                is_mixed=not is_module and _is_mixed(checkpoint, path, tensors),
            )
    return tuple(models.values())


def _is_weight(tensor: Tensor) -> bool:
    """Return whether a tensor can be part of a model: it stands under a name and is not a part itself."""
    if tensor.part_of is not None or tensor.role not in {"parameter", "buffer"}:
        return False
    return bool(tensor.keys) and isinstance(tensor.keys[-1], str)


def _home(above: Keys) -> tuple[Keys, bool] | None:
    """Return the place of the model, and whether it is a whole module, for the keys above a tensor's name."""
    keys, is_module = above, False
    for place, key in enumerate(above):
        if key in _MODULE_DICTIONARIES:
            keys, is_module = above[:place], True
            break
    # What hangs from an object's attribute cannot be reached by keys.
    reachable = not any(isinstance(key, str) and key.startswith(".") for key in keys)
    return (keys, is_module) if reachable else None


def _is_mixed(checkpoint: Checkpoint, home: str, tensors: list[Tensor]) -> bool:
    own = {tensor.path for tensor in tensors}
    start = f"{home}/" if home else ""
    return any(path not in own and _is_stranger(path, start, own) for path in _paths(checkpoint))


def _paths(checkpoint: Checkpoint) -> Iterator[str]:
    yield from (tensor.path for tensor in checkpoint.tensors if tensor.part_of is None)
    yield from (value.path for value in checkpoint.values)


def _is_stranger(path: str, start: str, own: set[str]) -> bool:
    if not path.startswith(start):
        return False
    name = path[len(start) :].partition("/")[0]
    # The state dict's own attributes, and what `get_extra_state` gave, belong to it.
    return start + name not in own and not name.startswith("._metadata") and not name.endswith("_extra_state")
