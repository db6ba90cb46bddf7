"""The models of a checkpoint: state dicts and whole modules, and what is odd about the names in them.

Rows are grouped by the text of their paths, not by their keys: Python hashes tuples of integers without a
secret, so that a file could make them collide.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from inspector.model.checkpoint import Checkpoint, Key, Tensor
from inspector.model.once import once
from inspector.model.roles.roles import WRAPPER_PREFIXES
from inspector.records import dataclass
from inspector.snippet.literals import is_reachable
from inspector.target.parts import is_loss_name, sorter_of, state_folders, weights_by_folder

Keys = tuple[Key, ...]
Shape = tuple[int, ...]

MOST_OF_A_KIND = 16
"""How many models, optimizers, ... a snippet names: a run has few, only a file made to stall us has more."""
_COPY = re.compile(r"(^|_)(best|last|latest|backup|init|initial|prev|previous|old)(_|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Model:
    """A state dict, or a whole module.

    Attributes:
        devices: The devices of its tensors, each once, in file order.
        is_mixed: Whether other things stand among them, which `load_state_dict` would not take.
        shapes: The shapes of its parameters in order, those that share their data counted once.
        strangers: Tensors that stand among its own and are none of them.
    """

    keys: Keys
    is_module: bool
    devices: tuple[str, ...]
    names: tuple[str, ...]
    is_mixed: bool
    is_average: bool = False
    shapes: tuple[Shape, ...] = ()
    dtypes: frozenset[str] = frozenset()
    strangers: tuple[str, ...] = ()

    @property
    def is_loss(self) -> bool:
        """Whether it is a loss, by its key: there is nothing in it to train."""
        return any(map(is_loss_name, self.keys))

    @property
    def prefixes(self) -> tuple[str, ...]:
        """The prefixes that every name begins with, the outermost first, each once at most."""
        first = [prefix for prefix in WRAPPER_PREFIXES if self._all_start_with(prefix)]
        then = [prefix for prefix in WRAPPER_PREFIXES if first and self._all_start_with(first[0] + prefix)]
        return (*first, *(prefix for prefix in then if prefix not in first))

    @property
    def bare_names(self) -> frozenset[str]:
        """The names without those prefixes."""
        prefix = "".join(self.prefixes)
        return frozenset(name.removeprefix(prefix) for name in self.names)

    def _all_start_with(self, prefix: str) -> bool:
        return bool(self.names) and all(name.startswith(prefix) for name in self.names)


def has_model(checkpoint: Checkpoint) -> bool:
    """Return whether there is a model."""
    return bool(homes(checkpoint))


@once
def has_parameters(checkpoint: Checkpoint) -> bool:
    """Return whether an object in the file is a module: it keeps parameters in an attribute of its own."""
    return any("._parameters/" in tensor.path for tensor in checkpoint.tensors)


@once
def find_models(checkpoint: Checkpoint) -> tuple[Model, ...]:
    """List the models; of several copies of one, such as the last and the best, the first."""
    found: dict[tuple[str, bool], list[Tensor]] = {}
    for path, is_module, tensors in homes(checkpoint):
        found.setdefault((path, is_module), []).extend(tensors)
    models: list[Model] = []
    known: set[tuple[str, ...]] = set()
    for (path, is_module), tensors in found.items():
        if len(models) == MOST_OF_A_KIND:
            break
        model = _describe(checkpoint, path, tensors, is_module=is_module)
        if not (_is_copy(model) and model.names in known):
            models.append(model)
            known.add(model.names)
    return tuple(models)


def _is_copy(model: Model) -> bool:
    return any(isinstance(key, str) and _COPY.search(key) for key in model.keys)


@once
def homes(checkpoint: Checkpoint) -> tuple[tuple[str, bool, list[Tensor]], ...]:
    """Return the tensors that stand side by side in a model, with the model's place and what it is."""
    return tuple(_iter_homes(checkpoint))


def _iter_homes(checkpoint: Checkpoint) -> Iterator[tuple[str, bool, list[Tensor]]]:
    sorter, states = sorter_of(checkpoint), state_folders(checkpoint)
    for folder, tensors in weights_by_folder(checkpoint).items():
        first = tensors[0]
        if any(str(tensor.keys[-1]).startswith(".") for tensor in tensors):  # attributes are no parameters
            continue
        module = sorter.module_of(first)
        length = len(first.keys) - 1 if module is None else module
        if is_reachable(first.keys[:length]) and (module is not None or folder in states):
            yield "/".join(folder.split("/")[:length]), module is not None, tensors


def _describe(checkpoint: Checkpoint, path: str, tensors: list[Tensor], *, is_module: bool) -> Model:
    own = {tensor.path for tensor in tensors}
    strangers = () if is_module else tuple(_strangers(checkpoint, path, own))
    return Model(
        keys=tensors[0].keys[: len(path.split("/")) if path else 0],
        is_module=is_module,
        devices=tuple(dict.fromkeys(tensor.device for tensor in tensors)),
        names=() if is_module else tuple(str(tensor.keys[-1]) for tensor in tensors),
        is_mixed=bool(strangers),
        is_average=all(tensor.role == "ema" for tensor in tensors),
        shapes=tuple(_parameters(tensors)),
        dtypes=frozenset(tensor.dtype for tensor in tensors),
        strangers=tuple(dict.fromkeys(name for name in strangers if name))[:MOST_OF_A_KIND],
    )


def _parameters(tensors: list[Tensor]) -> Iterator[Shape]:
    """Yield the shapes of parameters as `Module.parameters` does: tied ones once."""
    first: dict[str, Tensor] = {}
    others: set[object] = set()
    for tensor in tensors:
        if tensor.role == "buffer":
            continue
        known = tensor if tensor.storage is None else first.setdefault(tensor.storage, tensor)
        if known is not tensor:
            if (known.storage_offset, known.shape) == (tensor.storage_offset, tensor.shape):
                continue
            view = (tensor.storage, tensor.storage_offset, str(tensor.shape))
            if view in others:
                continue
            others.add(view)
        yield tensor.shape


def _strangers(checkpoint: Checkpoint, home: str, own: set[str]) -> Iterator[str]:
    """Yield what stands among the tensors of a state dict: the name of a tensor, and nothing of the rest."""
    start = f"{home}/" if home else ""
    place = start.count("/")
    for tensor in checkpoint.tensors:
        if tensor.part_of is None and tensor.path not in own and _is_stranger(tensor.path, start, own):
            key = tensor.keys[place]
            is_tensor = len(tensor.keys) == place + 1 and tensor.layout != "storage"
            yield key if is_tensor and isinstance(key, str) else ""
    yield from ("" for value in checkpoint.values if _is_stranger(value.path, start, own))


def _is_stranger(path: str, start: str, own: set[str]) -> bool:
    if not path.startswith(start):
        return False
    name = path[len(start) :].partition("/")[0]
    # The state dict's own attributes, and what `get_extra_state` gave, belong to it.
    return start + name not in own and not name.startswith("._metadata") and not name.endswith("_extra_state")
