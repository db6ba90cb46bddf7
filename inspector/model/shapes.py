"""What is inside a value: its children by key, whatever kind of container it is.

The order and the keys are those that `show --json` promises: mapping keys, sequence indices, and an
object's attributes with a leading dot.
"""

from __future__ import annotations

from inspector.model.checkpoint import Key
from inspector.model.texts import key_of
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value

_SCALARS = (type(None), bool, int, float, str, bytes, Blob, Global)
# Called with what fills them; everything else shows its arguments by their index.
_MAPPINGS = frozenset({"collections.OrderedDict", "collections.Counter", "builtins.dict", "__builtin__.dict"})
_SEQUENCES = frozenset(
    {"builtins.set", "builtins.frozenset", "builtins.list", "builtins.tuple", "__builtin__.set", "collections.deque"}
)
# Their arguments are their value, not their contents.
_CLOSED = ("torch.Size", "torch.device", "torch.serialization._get_layout", "_codecs.encode", "builtins.complex")
# Arrays and scalars of NumPy (`numpy._core.multiarray` since 2.0): one leaf, their bytes are no children.
_ARRAYS = ("multiarray._reconstruct", "multiarray.scalar")

Children = list[tuple[Key, Value]]


def children_of(value: Value) -> Children:
    """Give what is inside a value, or nothing for what is shown as one leaf.

    A sequence of plain numbers and texts is one leaf: 624 words of a random generator's state are no news.
    """
    if isinstance(value, list | tuple):
        return [] if all(isinstance(item, _SCALARS) for item in value) else list(enumerate(value))
    if isinstance(value, Dict):
        return [(key_of(key), item) for key, item in value.pairs]
    if isinstance(value, Set):
        return children_of(value.items)
    if isinstance(value, Call):
        return _children_of_call(value)
    return children_of([value.pid]) if isinstance(value, PersistentId) else []


def mapping_pairs(value: Value) -> list[tuple[Value, Value]] | None:
    """Give the pairs of a dictionary or of an object that is one, such as OrderedDict; None for others."""
    if isinstance(value, Dict):
        return value.pairs
    if not isinstance(value, Call):
        return None
    pairs = list(value.pairs or [])
    name = value.func.dotted if isinstance(value.func, Global) else ""
    if name in _MAPPINGS and isinstance(value.args, tuple) and value.args:
        pairs = _pairs_of(value.args[0]) + pairs
    return pairs if pairs or name in _MAPPINGS or name == "collections.defaultdict" else None


def _pairs_of(value: Value) -> list[tuple[Value, Value]]:
    """Read the argument of a mapping's constructor: a dictionary, or a list of pairs as Python 2 wrote it."""
    if isinstance(value, Dict):
        return value.pairs
    items = value if isinstance(value, list) else []
    return [(item[0], item[1]) for item in items if isinstance(item, list | tuple) and len(item) == 2]


def _children_of_call(call: Call) -> Children:
    name = call.func.dotted if isinstance(call.func, Global) else ""
    if name in _CLOSED or name.endswith(_ARRAYS):
        return []
    children: Children = [] if name in _MAPPINGS else _args_of(call, name)
    children += [(key_of(key), item) for key, item in mapping_pairs(call) or []]
    children += list(enumerate(call.items or []))
    return children + attributes_of(call.kwargs) + attributes_of(call.state)


def _args_of(call: Call, name: str) -> Children:
    args = call.args if isinstance(call.args, tuple) else (call.args,)
    if name in _SEQUENCES:
        return children_of(args[0]) if args else []
    if name.startswith(("copyreg.", "copy_reg.")):  # the class, its base and the base's value: no contents
        return []
    if all(isinstance(item, _SCALARS) for item in args):
        return []
    return list(enumerate(args))


def attributes_of(state: Value) -> Children:
    """Give what BUILD sets: a dictionary of attributes, or (dictionary, slots); anything else as `.state`."""
    if state is None:
        return []
    if isinstance(state, tuple) and len(state) == 2 and all(part is None or isinstance(part, Dict) for part in state):
        return attributes_of(state[0]) + attributes_of(state[1])
    pairs = mapping_pairs(state)
    if pairs is None:
        return [(".state", state)]
    return [(f".{key_of(key)}", item) for key, item in pairs]
