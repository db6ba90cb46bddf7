"""What a file of states says, as far as joining needs it: shapes, groups, paddings, names."""

from __future__ import annotations

from inspector.pickles.values import Call, Dict, Global, Value

_MOST = 1 << 62
_MOST_DIMENSIONS = 64


def entry(value: Value, *keys: str) -> Value:
    """Return what the keys of nested dictionaries lead to; None where they lead nowhere."""
    for key in keys:
        pairs = pairs_of(value)
        value = next((item for name, item in pairs if isinstance(name, str) and name == key), None)
    return value


def pairs_of(value: Value) -> list[tuple[Value, Value]]:
    """Return the entries of a dict or an OrderedDict."""
    if isinstance(value, Dict):
        return value.pairs
    return value.pairs or [] if isinstance(value, Call) else []


def named(value: Value) -> dict[str, Value]:
    """Return the entries of a mapping whose keys are texts."""
    return {str(key): item for key, item in pairs_of(value) if isinstance(key, str)}


def items_of(value: Value) -> list[Value]:
    """Return the items of a list or a tuple, and anything else but None as the only item."""
    if isinstance(value, list | tuple):
        return list(value)
    return [] if value is None else [value]


def shapes_of(value: Value) -> list[dict[str, tuple[int, ...]]]:
    """Return the shapes of parameters by name, for each group; groups that are damaged are empty."""
    found = []
    for group in items_of(value):
        shapes = {name: size_of(size) for name, size in named(group).items()}
        known = {name: shape for name, shape in shapes.items() if shape is not None}
        found.append(known if len(known) == len(shapes) else {})
    return found


def size_of(value: Value) -> tuple[int, ...] | None:
    """Read a `torch.Size`, or a tuple or list of sizes."""
    if isinstance(value, Call) and isinstance(value.func, Global) and value.func.name == "Size":
        value = value.args[0] if isinstance(value.args, tuple) and value.args else ()
    if not isinstance(value, tuple | list) or len(value) > _MOST_DIMENSIONS:
        return None
    sizes = tuple(one for one in value if type(one) is int and 0 <= one < _MOST)
    return sizes if len(sizes) == len(value) else None


def stage_of(state: Value) -> int | None:
    """Return the ZeRO stage of an optimizer's state: as it says, else as its names say."""
    stage = entry(state, "zero_stage")
    if isinstance(stage, Call) and isinstance(stage.args, tuple) and stage.args:
        stage = stage.args[0]
    if type(stage) is int:
        return stage
    names = named(state)
    if "fp32_flat_groups" in names:
        return 3
    return 2 if "single_partition_of_fp32_groups" in names else None


def count_of(value: Value) -> int:
    """Return a number of ranks; of several the largest; 0 where it says none."""
    return max((one for one in items_of(value) if type(one) is int and 0 < one < _MOST), default=0)
