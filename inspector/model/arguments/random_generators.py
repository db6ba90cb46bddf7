"""NumPy's random generators, as they pickle themselves: what makes them, and of which type they are.

The makers are functions that call what they are handed: `__generator_ctor(name, maker)` returns
`Generator(maker(name))`. So they count as harmless only with the arguments that NumPy writes, see
`numpy/random/_pickle.py` and the `__reduce__` of its classes, in every release since 1.17. torch sets a state
on objects of listed types alone, and the file need not name that of the object which such a call returns.
"""

from __future__ import annotations

from collections.abc import Callable

from inspector.pickles.values import Call, Global, Value

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
