"""Whether what torch's restricted unpickler lets a pickle call takes the arguments that it is given.

`arguments.json` holds, for each callable and number of arguments, the types that it takes at each position.
It is written by `tests/hostile/making_arguments.py`, which calls torch 2.13 thousands of times. Where the
value decides as well as its type, `argument_values` does. Neither depends on the machine: a device or a CUDA
tensor counts as one that the machine has.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from pathlib import Path

from inspector.containers.persistent_ids import STORAGE_DTYPES
from inspector.containers.rebuilds import JAGGED, JUDGED, REBUILDS
from inspector.model.arguments.kinds import (
    PARAMETER,
    STORAGE,
    TENSOR,
    UNKNOWN,
    is_tensor_class,
    kind_of,
    kind_of_name,
    listed_name,
)
from inspector.model.arguments.tensors import (
    TENSOR_RULES,
    has_no_gradient,
    may_be_state,
    takes_elements_of,
    takes_sparse_parts,
)
from inspector.model.arguments.values import ITERABLE, RULES, Args, items_of, known_shape
from inspector.pickles.values import Call, Dict, Global, Set, Value, present_name

# NumPy's random generators, as they pickle themselves: what makes them, and of which type they are.
#
# The makers are functions that call what they are handed: `__generator_ctor(name, maker)` returns
# `Generator(maker(name))`. So they count as harmless only with the arguments that NumPy writes, see
# `numpy/random/_pickle.py` and the `__reduce__` of its classes, in every release since 1.17. torch sets a
# state on objects of listed types alone, and the file need not name that of the object which such a call
# returns.

_PICKLE = "numpy.random._pickle."
_BIT_MAKER, _SEED_MAKER = (
    f"{_PICKLE}__bit_generator_ctor",
    ("numpy.random.bit_generator.__pyx_unpickle_SeedSequence"),
)
_SEED = "numpy.random.bit_generator.SeedSequence"
_BIT_TYPES = {
    "MT19937": "numpy.random._mt19937.MT19937",
    "PCG64": "numpy.random._pcg64.PCG64",
    "PCG64DXSM": "numpy.random._pcg64.PCG64DXSM",
    "Philox": "numpy.random._philox.Philox",
    "SFC64": "numpy.random._sfc64.SFC64",
}
_OF_BITS = {
    f"{_PICKLE}__generator_ctor": "numpy.random._generator.Generator",
    f"{_PICKLE}__randomstate_ctor": "numpy.random.mtrand.RandomState",
}
_MOST_SEED_PARTS = 3

RANDOM_TYPES = frozenset({*_BIT_TYPES.values(), *_OF_BITS.values(), _SEED})
"""The classes."""


def takes_random(name: str, args: Value) -> bool:
    """Return whether a maker of random generators is given what NumPy gives it; True for all other names."""
    rule = _RULES.get(name)
    return rule is None or (isinstance(args, tuple) and rule(args))


def random_type(call: Call) -> str | None:
    """Return the class of the random generator that a call makes; None for any other call."""
    name = _dotted(call.func)
    args = call.args if isinstance(call.args, tuple) else ()
    if name == _BIT_MAKER:
        return _bit_type(args[0]) if args else _BIT_TYPES["MT19937"]
    return _SEED if name == _SEED_MAKER else _OF_BITS.get(name)


def _bit_type(value: Value) -> str | None:
    """Return the class that a bit generator's name or class stands for."""
    if isinstance(value, str):
        return _BIT_TYPES.get(value)
    name = _dotted(value)
    return name if name in _BIT_TYPES.values() else None


def _takes_bits(args: tuple[Value, ...]) -> bool:
    return not args or (len(args) == 1 and _bit_type(args[0]) is not None)


def _takes_generator(args: tuple[Value, ...]) -> bool:
    if not args:
        return True
    first, *others = args
    is_made = isinstance(first, Call) and _dotted(first.func) == _BIT_MAKER
    return (is_made or _bit_type(first) is not None) and [_dotted(other) for other in others] in (
        [],
        [_BIT_MAKER],
    )


def _takes_seed(args: tuple[Value, ...]) -> bool:
    if len(args) != _MOST_SEED_PARTS:
        return False
    made, checksum, state = args
    return _dotted(made) == _SEED and type(checksum) is int and (state is None or isinstance(state, tuple))


_RULES: dict[str, Callable[[tuple[Value, ...]], bool]] = {
    _BIT_MAKER: _takes_bits,
    _SEED_MAKER: _takes_seed,
    **dict.fromkeys(_OF_BITS, _takes_generator),
}


def _dotted(value: Value) -> str:
    return value.dotted if isinstance(value, Global) else ""


_LONG = 16  # what a call with more in one argument was found to be is remembered
# Their `__new__` looks at no argument: `__init__` does, and NEWOBJ does not call it.
_MADE_OF_ANYTHING = frozenset(
    {
        *("builtins.bytearray", "builtins.set", "collections.Counter", "collections.OrderedDict"),
        "torch.storage.TypedStorage",
    }
)
_ITERABLE_BY_BYTES = frozenset({TENSOR, PARAMETER, STORAGE})
_SPARE = 8
_FROM_TYPE, _JAGGED = "torch._tensor._rebuild_from_type_v2", f"torch.nested._internal.nested_tensor.{JAGGED}"
# Where common functions are told whether gradients are wanted, and how many arguments they have.
_PLAIN = {one.name: (one.grad_at, one.arity) for one in REBUILDS if one.common}
# They take a class, or an array, that the user must have allowed: nobody knows more of it.
_TAKE_WHAT_IS_ALLOWED = {
    "torch._utils._rebuild_device_tensor_from_numpy": 4,
    "torch._utils._rebuild_wrapper_subclass": 8,
}
Table = dict[str, dict[int, tuple[frozenset[str], ...]]]


class Arguments:
    """Judges calls of one checkpoint, whose values stay alive meanwhile; each crowd of values once."""

    def __init__(self) -> None:
        self._known: dict[tuple[object, ...], bool] = {}

    def may_take(self, name: str, call: Call) -> bool:
        """Return whether a call of a name may succeed, as far as its arguments tell."""
        args = call.args
        if not (_is_crowd(args) if isinstance(args, list | tuple) else _is_long(args)):
            return _may_take(name, call)
        parts = args if isinstance(args, list | tuple) and len(args) <= _SPARE else (args,)
        key = (name, call.kind, *map(id, parts))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _may_take(name, call)
        return found


def is_plain(call: Call, dtype: str) -> bool:
    """Return quickly whether a call is that of nearly every tensor, which torch takes if its view is true."""
    func, args = call.func, call.args
    if type(func) is not Global or not func.common or type(args) is not tuple:
        return False
    place, count = _PLAIN.get(func.name, (0, -1))
    if len(args) != count or not call.state is call.items is call.pairs is None:
        return False
    if place < 0:  # `_rebuild_tensor` is not told
        return type(args[1]) is int
    wants = args[place]
    if type(wants) is not bool or (wants and has_no_gradient(dtype)):
        return False
    if func.name == "_rebuild_parameter":
        return type(args[0]) is Call and is_plain(args[0], dtype)
    return type(args[1]) is int and not (wants and func.name == "_rebuild_tensor_v3")


def is_judged(name: str) -> bool:
    """Return whether a name is on torch's list, so that anything is known of what it takes."""
    return kind_of_name(name) != UNKNOWN


def _may_take(name: str, call: Call) -> bool:
    name = present_name(name)
    kind = kind_of_name(name)
    if kind == UNKNOWN:
        return isinstance(call.args, list | tuple) and takes_random(name, call.args)
    if kind not in {"function", "type"} or (kind == "function" and call.kind == "newobj"):
        return False
    given = kind_of(call.args)
    if call.kind == "newobj" and name in _MADE_OF_ANYTHING:
        return given in ITERABLE | _ITERABLE_BY_BYTES and known_shape(call.args) != ()
    if given not in ITERABLE:
        return False
    return _takes(name, tuple(items_of(call.args)))


def _takes(name: str, args: Args) -> bool:
    entry, dtype = _entry(name)
    kinds = [kind_of(arg) for arg in args]
    if UNKNOWN in kinds and entry in _TAKE_WHAT_IS_ALLOWED:
        return len(args) == _TAKE_WHAT_IS_ALLOWED[entry]
    places = _table()[entry].get(len(args))
    if places is None:
        return False
    if not all(kind in place or kind == UNKNOWN for kind, place in zip(kinds, places, strict=True)):
        return False
    if entry in _OF_TYPES:
        return _OF_TYPES[entry](dtype, args)
    rule = _CHECK_RULES.get(entry)
    return rule is None or rule(args)


def _rebuilds_type(args: Args) -> bool:
    """Check `_rebuild_from_type_v2`: a function, the class of its result, its arguments, a state."""
    function, new_type, given, state = args
    made = Call(function, given, "reduce")
    # None of the functions of torch's list makes anything but tensors when it is called with tensors.
    if not isinstance(given, tuple):
        return False
    name = listed_name(function)
    is_made = (name in JUDGED and _may_take(name, made)) or (name == _JAGGED and _are_named(given))
    is_type = listed_name(new_type) in {"torch.Tensor", "torch.nn.parameter.Parameter"}
    return is_made and (is_type or kind_of(new_type) == UNKNOWN) and may_be_state(state)


def _are_named(given: tuple[Value, ...]) -> bool:
    """Return whether arguments are one dictionary of arguments by name."""
    return len(given) == 1 and isinstance(given[0], Dict) and all(type(k) is str for k, _ in given[0].pairs)


_OF_TYPES = {
    "torch.FloatTensor": takes_elements_of,
    "torch.Tensor": takes_elements_of,
    "torch.sparse.FloatTensor": takes_sparse_parts,
}
_CHECK_RULES = {**RULES, **TENSOR_RULES, _FROM_TYPE: _rebuilds_type}


@lru_cache(maxsize=256)
def _entry(name: str) -> tuple[str, str]:
    """Return the name under which the table holds a callable, and the element type where it is one's class.

    One class of tensors stands for all of its kind.
    """
    if name == "torch.Tensor" or not is_tensor_class(name):
        return name, ""
    dtype = STORAGE_DTYPES[name.rpartition(".")[2].removesuffix("Tensor")][0]
    return ("torch.sparse.FloatTensor" if ".sparse." in name else "torch.FloatTensor"), dtype


def _is_crowd(args: Sequence[Value]) -> bool:
    return len(args) > _LONG or any(map(_is_long, args[:_SPARE]))


def _is_long(value: Value) -> bool:
    if isinstance(value, Call):
        given = value.args[0] if isinstance(value.args, tuple) and value.args else None
        return len(value.pairs or ()) > _LONG or (not isinstance(given, Call) and _is_long(given))
    items = value.pairs if isinstance(value, Dict) else value.items if isinstance(value, Set) else value
    return isinstance(items, str | bytes | list | tuple) and len(items) > _LONG


@cache
def _table() -> Table:
    document = json.loads(Path(__file__).with_name("arguments.json").read_text(encoding="utf-8"))
    table = {
        name: {
            int(count): tuple(frozenset(kinds.split()) for kinds in places) for count, places in rows.items()
        }
        for name, rows in document.items()
    }
    for count, (*places, states) in table[_FROM_TYPE].items():
        # torch was asked with tuples of anything but (attributes, slots), which `may_be_state` knows.
        table[_FROM_TYPE][count] = (*places, states | {"tuple"})
    return table
