"""What is inside a value: its children by key, whatever kind of container it is.

The order and the keys are those that `show --json` promises: mapping keys, sequence indices, and an
object's attributes with a leading dot.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain, repeat
from typing import Generic, TypeGuard, TypeVar, cast

from inspector.model.checkpoint import Key, OddKey
from inspector.model.tensors.numpy_arrays import describe_array, describe_bytes, describe_scalar
from inspector.model.tensors.rebuild import looks_like_tensor
from inspector.model.values.text import path_key, twin_of
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value

# Everything that a value is made of, and one walk through all of it.
#
# Unlike `children_of`, which lists what is shown, this leaves out nothing that a pickle refers to: keys of
# mappings, what objects are made with, and what is called to make them.

_CONTAINERS = frozenset({list, tuple, Dict, Set, PersistentId, Call})


def parts_of(value: Value) -> Iterable[Value]:
    """Return the values that a value is made of; of a call's function only what is not just a name."""
    if isinstance(value, list | tuple):
        return value
    if isinstance(value, Dict):
        return [part for pair in value.pairs for part in pair]
    if isinstance(value, Set):
        return value.items
    if isinstance(value, PersistentId):
        return [value.pid]
    if not isinstance(value, Call):
        return ()
    func = () if isinstance(value.func, Global) else (value.func,)
    pairs = [part for pair in value.pairs or () for part in pair]
    return [*func, value.args, value.kwargs, value.state, *(value.items or ()), *pairs]


def iter_values(root: Value, below: Callable[[Value], Iterable[Value]] = parts_of) -> Iterator[Value]:
    """Go through a value and all below it, the last first; what can hold others comes once, however shared.

    A stack of its own keeps track, so that no depth of nesting exhausts Python's. What is below a value is
    asked for after the value was given out, so it may have been changed by then.
    """
    seen: dict[int, Value] = {}  # what is known by its identity must live on
    stack: list[Value] = [root]
    while stack:
        value = stack.pop()
        if type(value) in _CONTAINERS:
            if id(value) in seen:
                continue
            seen[id(value)] = value
            yield value
            stack.extend(below(value))
        else:
            yield value


_MOST_PARTS = 8
_SCALARS = (type(None), bool, int, float, str, bytes, Blob, Global)
_SCALAR_TYPES = frozenset(_SCALARS)
# Called with what fills them; everything else shows its arguments by their index.
_MAPPINGS = frozenset({"collections.OrderedDict", "collections.Counter", "builtins.dict"})
_SEQUENCES = frozenset(
    {"builtins.set", "builtins.frozenset", "builtins.list", "builtins.tuple", "collections.deque"}
)
# Their arguments are their value, not their contents.
_CLOSED = frozenset({"torch.Size", "torch.device", "torch.serialization._get_layout", "builtins.complex"})


Children = list[tuple[Key, Value]]
First = TypeVar("First")


class Lazy(Generic[First]):
    """Pairs that are made only while somebody goes through them.

    A list of all pairs would take ten times as much memory as a sequence itself, and objects that are nested
    in one another can share what they hold.
    """

    __slots__ = ("_count", "_make")

    def __init__(self, count: int, make: Callable[[], Iterator[tuple[First, Value]]]) -> None:
        self._count = count
        self._make = make

    def __len__(self) -> int:
        """How many there are."""
        return self._count

    def __iter__(self) -> Iterator[tuple[First, Value]]:
        """Go through them."""
        return self._make()


Inside = Children | Lazy[Key]
"""What is inside a value."""
_Pairs = list[tuple[Value, Value]] | Lazy[Value]


def _numbered(items: list[Value] | tuple[Value, ...]) -> Lazy[Key]:
    return Lazy(len(items), partial(enumerate, items))


def _renamed(pairs: _Pairs, step: Callable[[Value], Key]) -> Lazy[Key]:
    return Lazy(len(pairs), lambda: ((step(key), item) for key, item in pairs))


def _couples(items: list[Value]) -> Lazy[Value]:
    """Return the pairs of a list of pairs, whatever else is in it."""
    return Lazy(
        sum(map(_is_couple, items)), lambda: ((item[0], item[1]) for item in items if _is_couple(item))
    )


def _is_couple(item: Value) -> TypeGuard[tuple[Value, Value]]:
    return isinstance(item, list | tuple) and len(item) == 2


def told_apart(*parts: Inside) -> Inside:
    """Return children so that no two are the same step: 1 and "1" are two keys, and so are None and "None".

    A pickle can give a key twice, too. The last text keeps its plain step: it is what loading leaves there.

    Args:
        parts: The children, one kind behind the other; those of a list are entries of a mapping.
    """
    children: Inside = (
        parts[0] if len(parts) == 1 else Lazy(sum(map(len, parts)), partial(chain.from_iterable, parts))
    )
    steps = [key for key, _ in children]
    keys = [key if isinstance(key, str) else str(int(key)) for key in steps]
    if len(set(keys)) == len(keys):
        return children
    in_pairs = chain.from_iterable(repeat(isinstance(part, list), len(part)) for part in parts)
    turns = _turns_of(
        keys, [type(step) is str and is_in for step, is_in in zip(steps, in_pairs, strict=True)]
    )
    return Lazy(
        len(keys),
        lambda: (
            (twin_of(key, turn), value) if turn else (key, value)
            for (key, value), turn in zip(children, turns, strict=True)
        ),
    )


def _turns_of(keys: list[str], is_text: list[bool]) -> array[int]:
    """Return for each key how many that read the same go before it: 0 for the one with the plain step."""
    turns, counts = array("I", bytes(4 * len(keys))), dict[str, int]()
    for going in (True, False):
        for place in reversed(range(len(keys))):
            if is_text[place] == going:
                turns[place] = counts.get(keys[place], 0)
                counts[keys[place]] = turns[place] + 1
    return turns


def breadth_of(value: Value) -> int:
    """Return how many parts `children_of` and its like look at: what asking them costs, before it is paid."""
    if isinstance(value, list | tuple):
        return len(value)
    if isinstance(value, Dict):
        return len(value.pairs)
    if isinstance(value, Set):
        return len(value.items)
    if not isinstance(value, Call):
        return 0
    breadth = len(value.items or ()) + len(value.pairs or ())
    if value.state is not None or value.kwargs is not None:
        breadth += _breadth_of_parts(value.state) + _breadth_of_parts(value.kwargs)
    return breadth + _breadth_of_parts(value.args)


def _breadth_of_parts(value: Value) -> int:
    """Return the breadth of arguments or of a state, and of what they hold at the place of contents."""
    parts = value[:_MOST_PARTS] if isinstance(value, tuple | list) else [value]
    inside = sum(_own_breadth(part) for part in parts if type(part) not in _SCALAR_TYPES)
    return inside + (len(value) if isinstance(value, tuple | list) else 0)


def _own_breadth(value: Value) -> int:
    if isinstance(value, list | tuple):
        return len(value)
    if isinstance(value, Dict):
        return len(value.pairs)
    if isinstance(value, Set):
        return len(value.items)
    if isinstance(value, Call):  # a mapping given as the state
        args = value.args if isinstance(value.args, tuple) else ()
        return len(value.pairs or ()) + sum(len(arg) for arg in args[:1] if isinstance(arg, list | tuple))
    return 0


def children_of(value: Value) -> Inside:
    """Return what is inside a value, or nothing for what is shown as one leaf.

    A sequence of plain numbers and texts is one leaf: 624 words of a random generator's state are no news.
    """
    if isinstance(value, Dict):
        return told_apart(_pairs_by_key(value.pairs))
    if isinstance(value, list | tuple):
        return _items(value)
    if isinstance(value, Set):
        return _items(value.items)
    if isinstance(value, Call):
        return told_apart(*_children_of_call(value))
    return _items([value.pid] if isinstance(value, PersistentId) else [])


def mapping_pairs(value: Value) -> list[tuple[Value, Value]] | None:
    """Return the pairs of a dictionary or of an object that is one, such as OrderedDict; None for others."""
    if isinstance(value, Dict):
        return value.pairs
    parts = _mapping_parts(value)
    return None if parts is None else list(chain.from_iterable(parts))


def _mapping_parts(value: Value) -> list[_Pairs] | None:
    """Return the pairs of a mapping in parts that are not copied; None for what is none."""
    if isinstance(value, Dict):
        return [value.pairs]
    if not isinstance(value, Call):
        return None
    name = value.func.present if isinstance(value.func, Global) else ""
    own: list[_Pairs] = [value.pairs] if value.pairs else []
    if name in _MAPPINGS:
        return [*_given_pairs(value), *own]
    return own if own or name == "collections.defaultdict" else None


def attributes_of(state: Value) -> Children:
    """Return what BUILD sets: a dict of attributes, or (dict, slots); anything else as `.state`."""
    return list(chain.from_iterable(_attributes(state)))


def find_attribute(state: Value, name: str) -> Value:
    """Return the first attribute of this name that BUILD sets, or None; the others are not written down."""
    return next((item for key, item in chain.from_iterable(_attributes(state)) if key == name), None)


def attribute_pairs(state: Value, name: str) -> Iterator[tuple[Value, Value]]:
    """Yield the pairs of the plain dicts among what BUILD sets that have this attribute."""
    for part in state if isinstance(state, tuple) and len(state) == 2 else (state,):
        pairs = part.pairs if isinstance(part, Dict) else ()
        yield from (pair for pair in pairs if isinstance(pair[0], str) and f".{pair[0]}" == name)


def _attributes(state: Value) -> list[Inside]:
    if state is None:
        return []
    parts = state if isinstance(state, tuple) and len(state) == 2 else (state,)
    if len(parts) == 2 and any(part is not None and not isinstance(part, Dict) for part in parts):
        parts = (state,)
    children: list[Inside] = []
    for part in parts:
        mapping = _mapping_parts(part)
        if mapping is not None:
            children += [_renamed(pairs, _attribute_step) for pairs in mapping]
        elif part is not None:
            children.append([(".state", part)])
    return children


def _attribute_step(key: Value) -> Key:
    return f".{path_key(key)}"


def _items(items: list[Value] | tuple[Value, ...]) -> Inside:
    return [] if all(isinstance(item, _SCALARS) for item in items) else _numbered(items)


def _pairs_by_key(pairs: list[tuple[Value, Value]]) -> Children:
    """Return pairs by their key as a step: nearly all are just that, and stay what they are."""
    if all(type(key) is str for key, _ in pairs):
        return cast("Children", pairs)
    steps = zip(mapping_steps(pairs), pairs, strict=True)
    return [cast("tuple[Key, Value]", pair) if step is pair[0] else (step, pair[1]) for step, pair in steps]


def mapping_steps(pairs: list[tuple[Value, Value]]) -> Iterator[Key]:
    """Yield mapping keys as path steps; a tensor among them, which has no short text, by its number."""
    tensors = 0
    for key, _ in pairs:
        if type(key) is Call and looks_like_tensor(key):
            yield OddKey(f"Parameter {tensors}")
            tensors += 1
        else:
            yield path_key(key)


def _given_pairs(call: Call) -> list[_Pairs]:
    """Read the argument of a mapping's constructor: a dictionary, or a list of pairs as Python 2 wrote it."""
    first = call.args[0] if isinstance(call.args, tuple) and call.args else None
    if isinstance(first, Dict):
        return [first.pairs]
    return [_couples(first)] if isinstance(first, list) and first else []


def _children_of_call(call: Call) -> list[Inside]:
    name = call.func.present if isinstance(call.func, Global) else ""
    array = describe_array(call)
    if array is not None:
        return [_items(array.items or ())]
    if name in _CLOSED or describe_bytes(call) is not None or describe_scalar(call) is not None:
        return []
    parts: list[Inside] = []
    if name in _MAPPINGS:
        parts += [_renamed(pairs, path_key) for pairs in _given_pairs(call)]
    else:
        parts.append(_args_of(call, name))
    parts.append(_pairs_by_key(call.pairs or []))
    parts.append(_numbered(call.items or ()))
    parts += [*_attributes(call.kwargs), *_attributes(call.state)]
    return [part for part in parts if part]


def _args_of(call: Call, name: str) -> Inside:
    args = call.args if isinstance(call.args, tuple) else (call.args,)
    if name in _SEQUENCES and args and isinstance(args[0], list | tuple):
        return _items(args[0])
    if name.startswith("copyreg."):  # (class, base, the base's value): only the last is contents
        return _contents(args[2]) if len(args) == 3 else []
    return _items(args)


def unlisted_arguments(call: Call) -> tuple[Value, ...]:
    """Return the arguments of a call that `children_of` lists nothing of, such as plain ones beside contents.

    How the protocols of pickle spell the making of an object is no argument: `copyreg` is handed its class.
    """
    name = call.func.present if isinstance(call.func, Global) else ""
    args = call.args if isinstance(call.args, tuple) else (call.args,)
    if name.startswith("copyreg."):
        is_bare = len(args) == 3 and args[2] is None and name != "copyreg.__newobj__"
        return () if is_bare else args[1:]
    if name in _MAPPINGS:
        return args[1:] if _given_pairs(call) else args
    if name in _SEQUENCES and args and isinstance(args[0], list | tuple):
        return args[1:]
    return () if len(_args_of(call, name)) else args


def _contents(value: Value) -> Inside:
    if isinstance(value, Dict):
        return _pairs_by_key(value.pairs)
    return _items(value) if isinstance(value, list | tuple) else []
