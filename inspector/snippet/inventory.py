"""What a checkpoint offers for loading: where its state dicts, counters and random states stand.

Rows are looked at, never the file. Places are told by what stands there (a scheduler's state has `last_epoch`
beside `base_lrs`), not by their keys, which every training script chooses for itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from itertools import islice

from inspector.model.checkpoint import Checkpoint, Optimizer, Tensor, ValueRow
from inspector.model.roles.devices import is_accelerator
from inspector.model.roles.roles import role_of_key
from inspector.records import dataclass, replace
from inspector.snippet.literals import is_reachable
from inspector.snippet.models import MOST_OF_A_KIND, Keys, Model, find_models
from inspector.snippet.traits import is_lightning

_SCHEDULER_KEYS = frozenset({"base_lrs", "_last_lr", "_step_count", "num_bad_epochs"})
_SCALER_KEYS = frozenset({"scale", "_growth_tracker"})
# What `set_rng_state` takes: the generator's state as it lies in memory. Older ones had other sizes.
_MOST_LOOSE = 4
_MOST_PLAIN = 8
_CPU_STATE_NBYTES = 5056
_CUDA_STATE_NBYTES = 16
_COUNTERS = (
    ("epoch", ("epoch", "current_epoch", "last_epoch", "epochs")),
    ("step", ("global_step", "step", "iteration", "iter", "global_steps", "steps")),
)
_Values = dict[str, ValueRow]
"""By path: text has a hash that no file can foresee, unlike keys."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Inventory:
    """The places of everything that a training run restores: empty or None where there is no such thing.

    Attributes:
        averages: Objects that keep averaged weights, with a state dict of their own.
        python_state: The random state of Python's `random`.
        plain: The keys of other values at the top that are no tensors: arguments, a configuration, scores.
    """

    models: tuple[Model, ...]
    optimizers: tuple[Optimizer, ...]
    schedulers: tuple[Keys, ...]
    scalers: tuple[Keys, ...]
    averages: tuple[Keys, ...]
    loose: tuple[Keys, ...]
    cpu_state: Keys | None
    cuda_states: tuple[Keys, ...]
    python_state: Keys | None
    numpy_state: Keys | None
    counters: tuple[tuple[str, Keys], ...]
    plain: tuple[Keys, ...] = ()


def take_inventory(checkpoint: Checkpoint) -> Inventory:
    """Look through a checkpoint's rows."""
    values = {value.path: value for value in checkpoint.values if value.keys}
    mappings: dict[str, set[str]] = defaultdict(set)
    for path in values:
        above, _, name = path.rpartition("/")
        mappings[above].add(name)
    states = [tensor for tensor in checkpoint.tensors if tensor.role == "rng" and is_reachable(tensor.keys)]
    models, averages = find_models(checkpoint), tuple(_averages(checkpoint, mappings))
    reachable = (optimizer for optimizer in checkpoint.optimizers if is_reachable(optimizer.keys))
    found = Inventory(
        models=tuple(
            model for model in models if not any(_is_below(model.keys, place) for place in averages)
        ),
        optimizers=tuple(islice(reachable, MOST_OF_A_KIND)),
        schedulers=_outermost(
            values[_join(path, "last_epoch")].keys[:-1]
            for path, names in mappings.items()
            if "last_epoch" in names and names & _SCHEDULER_KEYS
        ),
        scalers=_outermost(
            values[_join(path, "scale")].keys[:-1]
            for path, names in mappings.items()
            if names >= _SCALER_KEYS
        ),
        averages=averages,
        loose=_loose(checkpoint),
        cpu_state=next((state.keys for state in states if state.nbytes == _CPU_STATE_NBYTES), None),
        cuda_states=tuple(state.keys for state in states if _is_cuda_state(state))[:MOST_OF_A_KIND],
        python_state=_place_of(values, _is_python_state),
        numpy_state=_place_of(values, _is_numpy_state),
        counters=tuple(_counters(values)),
    )
    return replace(found, plain=tuple(islice(_plain(checkpoint, found), _MOST_PLAIN)))


def _plain(checkpoint: Checkpoint, found: Inventory) -> Iterator[Keys]:
    """Yield what stands at the top without a tensor in it, as code may ask for anything there."""
    if checkpoint.root != "mapping" or is_lightning(checkpoint) or any(not one.keys for one in found.models):
        return
    optimizers = (optimizer.keys for optimizer in found.optimizers)
    places = (*optimizers, *found.schedulers, *found.scalers, *(keys for _, keys in found.counters))
    states = (keys for keys in (found.python_state, found.numpy_state) if keys is not None)
    taken = {str(keys[0]) for keys in (*places, *states, *(row.keys for row in checkpoint.tensors)) if keys}
    tops = dict.fromkeys(row.keys[0] for row in checkpoint.values if row.keys and is_reachable(row.keys[:1]))
    texts = (key for key in tops if isinstance(key, str) and role_of_key(key) in {None, "other"})
    yield from ((key,) for key in texts if key not in taken)


def _outermost(places: Iterator[Keys]) -> tuple[Keys, ...]:
    """Leave out what stands below another: a chained scheduler's state holds those of its parts."""
    kept: list[Keys] = []
    for keys in sorted(filter(is_reachable, places), key=len):
        if len(kept) < MOST_OF_A_KIND and not any(keys[: len(outer)] == outer for outer in kept):
            kept.append(keys)
    return tuple(kept)


def _averages(checkpoint: Checkpoint, mappings: dict[str, set[str]]) -> Iterator[Keys]:
    """Yield the places of averages that are no state dict of a model: lists, and numbers beside them."""
    found: dict[str, Keys] = {}
    for tensor in checkpoint.tensors:
        if tensor.role != "ema" or len(found) == MOST_OF_A_KIND:
            continue
        place = next((at for at, key in enumerate(tensor.keys, start=1) if role_of_key(key) == "ema"), 0)
        path = "/".join(tensor.path.split("/")[:place])
        is_nested = len(tensor.keys) > place + 1
        is_listed = isinstance(tensor.keys[-1], int) and len(tensor.keys) > place
        if (
            path not in found
            and is_reachable(tensor.keys)
            and (is_listed or (is_nested and path in mappings))
        ):
            found[path] = tensor.keys[:place]
            yield tensor.keys[:place]


def _is_below(keys: Keys, place: Keys) -> bool:
    return keys[: len(place)] == place


def _loose(checkpoint: Checkpoint) -> tuple[Keys, ...]:
    """Return the few tensors at the top that code uses as they are, where they were on an accelerator."""
    found = [
        tensor.keys
        for tensor in checkpoint.tensors
        if tensor.role == "other" and len(tensor.keys) == 1 and is_accelerator(tensor.device)
    ]
    found = [keys for keys in found if isinstance(keys[0], str) and is_reachable(keys)]
    return tuple(found) if len(found) <= _MOST_LOOSE else ()


def _is_cuda_state(state: Tensor) -> bool:
    named = any(isinstance(key, str) and "cuda" in key.lower() for key in state.keys)
    return named and state.nbytes == _CUDA_STATE_NBYTES


def _place_of(values: _Values, is_state: Callable[[_Values, str], bool]) -> Keys | None:
    for path, value in values.items():
        if value.keys[-1] == 0 and is_reachable(value.keys) and is_state(values, path.rpartition("/")[0]):
            return value.keys[:-1]
    return None


def _is_python_state(values: _Values, path: str) -> bool:
    """Recognize the value of `random.getstate()`: (3, 625 numbers, None)."""
    return _types(values, path, 3) == ["int", "tuple", "NoneType"] and values[_join(path, "0")].text == "3"


def _is_numpy_state(values: _Values, path: str) -> bool:
    """Recognize the value of `numpy.random.get_state()`: ("MT19937", array, position, ...)."""
    return _types(values, path, 2) == ["str", "numpy.ndarray"] and values[_join(path, "0")].text == "MT19937"


def _types(values: _Values, path: str, count: int) -> list[str]:
    places = (_join(path, str(index)) for index in range(count))
    return [values[place].type for place in places if place in values]


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name


def _counters(values: _Values) -> Iterator[tuple[str, Keys]]:
    for variable, names in _COUNTERS:
        for name in names:
            if name in values and values[name].type == "int":
                yield variable, (name,)
                break
