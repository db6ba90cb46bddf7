"""What is inside a value: its children by key, whatever kind of container it is.

The order and the keys are those that `show --json` promises: mapping keys, sequence indices, and an
object's attributes with a leading dot.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from inspector.model.arrays import describe_array, describe_bytes, describe_scalar
from inspector.model.checkpoint import Key
from inspector.model.texts import key_of
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value

_SCALARS = (type(None), bool, int, float, str, bytes, Blob, Global)
# Called with what fills them; everything else shows its arguments by their index.
_MAPPINGS = frozenset({"collections.OrderedDict", "collections.Counter", "builtins.dict", "__builtin__.dict"})
_SEQUENCES = frozenset(
    {
        "builtins.set",
        "builtins.frozenset",
        "builtins.list",
        "builtins.tuple",
        "__builtin__.set",
        "__builtin__.frozenset",
        "__builtin__.list",
        "__builtin__.tuple",
        "collections.deque",
    }
)
# Their arguments are their value, not their contents.
_CLOSED = frozenset(
    {
        "torch.Size",
        "torch.device",
        "torch.serialization._get_layout",
        "builtins.complex",
        "__builtin__.complex",
    }
)


class Numbered:
    """The items of a sequence by their index, made only while somebody goes through them.

    A list of all pairs would take ten times as much memory as the sequence itself.
    """

    __slots__ = ("items",)

    def __init__(self, items: list[Value] | tuple[Value, ...]) -> None:
        self.items = items

    def __len__(self) -> int:
        """How many there are."""
        return len(self.items)

    def __iter__(self) -> Iterator[tuple[int, Value]]:
        """Go through them."""
        return enumerate(self.items)


Children = list[tuple[Key, Value]]


def children_of(value: Value) -> Children | Numbered:
    """Give what is inside a value, or nothing for what is shown as one leaf.

    A sequence of plain numbers and texts is one leaf: 624 words of a random generator's state are no news.
    """
    if isinstance(value, Dict):
        return _pairs_by_key(value.pairs)
    if isinstance(value, list | tuple):
        return _items(value)
    if isinstance(value, Set):
        return _items(value.items)
    if isinstance(value, Call):
        return _children_of_call(value)
    return _items([value.pid] if isinstance(value, PersistentId) else [])


def mapping_pairs(value: Value) -> list[tuple[Value, Value]] | None:
    """Give the pairs of a dictionary or of an object that is one, such as OrderedDict; None for others."""
    if isinstance(value, Dict):
        return value.pairs
    if not isinstance(value, Call):
        return None
    pairs = value.pairs or []
    name = value.func.dotted if isinstance(value.func, Global) else ""
    if name in _MAPPINGS and isinstance(value.args, tuple) and value.args:
        pairs = _pairs_of(value.args[0]) + pairs
    return pairs if pairs or name in _MAPPINGS or name == "collections.defaultdict" else None


def attributes_of(state: Value) -> Children:
    """Give what BUILD sets: a dictionary of attributes, or (dictionary, slots); anything else as `.state`."""
    if state is None:
        return []
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    if len(parts) == 2 and any(part is not None and not isinstance(part, Dict) for part in parts):
        parts = (state,)
    children: Children = []
    for part in parts:
        pairs = mapping_pairs(part)
        if pairs is not None:
            children += [(f".{key_of(key)}", item) for key, item in pairs]
        elif part is not None:
            children.append((".state", part))
    return children


def _items(items: list[Value] | tuple[Value, ...]) -> Children | Numbered:
    return [] if all(isinstance(item, _SCALARS) for item in items) else Numbered(items)


def _pairs_by_key(pairs: list[tuple[Value, Value]]) -> Children:
    """Give pairs by their key as a step: nearly all are just that, and stay what they are."""
    if all(type(key) is str for key, _ in pairs):
        return cast("Children", pairs)
    steps = ((key_of(pair[0]), pair) for pair in pairs)
    return [cast("tuple[Key, Value]", pair) if step is pair[0] else (step, pair[1]) for step, pair in steps]


def _pairs_of(value: Value) -> list[tuple[Value, Value]]:
    """Read the argument of a mapping's constructor: a dictionary, or a list of pairs as Python 2 wrote it."""
    if isinstance(value, Dict):
        return value.pairs
    items = value if isinstance(value, list) else []
    return [(item[0], item[1]) for item in items if isinstance(item, list | tuple) and len(item) == 2]


def _children_of_call(call: Call) -> Children:
    name = call.func.dotted if isinstance(call.func, Global) else ""
    array = describe_array(call)
    if array is not None:
        return list(_items(array.items or ()))
    if name in _CLOSED or describe_bytes(call) is not None or describe_scalar(call) is not None:
        return []
    children: Children = [] if name in _MAPPINGS else [*_args_of(call, name)]
    children += _pairs_by_key(mapping_pairs(call) or [])
    children += enumerate(call.items or [])
    return children + attributes_of(call.kwargs) + attributes_of(call.state)


def _args_of(call: Call, name: str) -> Children | Numbered:
    args = call.args if isinstance(call.args, tuple) else (call.args,)
    if name in _SEQUENCES and args and isinstance(args[0], list | tuple):
        return _items(args[0])
    if name.startswith(
        ("copyreg.", "copy_reg.")
    ):  # (class, base, the base's value): only the last is contents
        return _contents(args[2]) if len(args) == 3 else []
    return _items(args)


def _contents(value: Value) -> Children | Numbered:
    if isinstance(value, Dict):
        return _pairs_by_key(value.pairs)
    return _items(value) if isinstance(value, list | tuple) else []
