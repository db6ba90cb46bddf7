"""Values as short digests: equal for values that load as equal ones, however they are spelled.

A row shows 200 characters of a value. Two texts can agree in those and differ behind them, so what is
compared is all of the value. Nothing of it is hashed by Python or recursed into.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable

from inspector.containers.persistent_ids import parse_storage_id
from inspector.model.tensors.numpy_arrays import describe_array, describe_bytes
from inspector.pickles.values import (
    BLOB_TYPES,
    Blob,
    ByteArray,
    ByteString,
    Call,
    Dict,
    Global,
    PersistentId,
    Set,
    StoredTensor,
    Value,
)

_NBYTES = 16
_CONTAINERS = frozenset({list, tuple, Dict, Set, Call, PersistentId})
_SPELLED = {"text": "str", "string": "str", "bytes": "bytes", "bytearray": "bytearray"}
"""Large values whose payload stands in the stream as it is."""
_SETS = {"builtins.set": "set", "builtins.frozenset": "frozenset"}
_STEP = 64  # numbers that are written together cost about as much as one part
_CYCLE = b"within itself"
_SAME = "same"
"""What only spells another value."""
_MOST_DEEP = 4096
"""How deep values are entered: Python writes and reads none that are nested a thousand deep."""
_TOO_DEEP = b"deeper than values are entered"
_MOST_BITS, _FEW = 64, 8
_NUMBERS = frozenset({type(None), bool, int, float})
_KEPT = 1 << 16  # digests that are remembered: values that stand in many places are few


class _Open:
    """A container whose parts are being digested."""

    __slots__ = ("found", "is_ordered", "parts", "tag", "value")

    def __init__(self, value: Value, tag: str, parts: Iterable[Value], *, is_ordered: bool = True) -> None:
        self.value = value
        self.tag = tag
        self.parts = iter(parts)
        self.is_ordered = is_ordered
        self.found: list[bytes] = []


class Tokens:
    """Digests the values of one file.

    Attributes:
        is_cut: Whether values were nested too deeply to be digested wholly: equal digests prove nothing then.
    """

    def __init__(self, data: bytes, look: Callable[[], object]) -> None:
        """Begin.

        Args:
            data: What large values are still in.
            look: Called for each part that is looked at; raises where the work is to end.
        """
        self._data = data
        self._look = look
        self.is_cut = False
        self._known: dict[int, tuple[Value, bytes]] = {}

    def of(self, value: Value) -> bytes:
        """Return the digest of a value."""
        if type(value) not in _CONTAINERS:
            return self._plain(value)
        known = self._known.get(id(value))
        return self._digest(value) if known is None else known[1]

    def _digest(self, root: Value) -> bytes:
        """Digest a container from its innermost parts on, with a stack of its own."""
        stack = [self._opened(root)]
        entered = {id(root)}
        while True:
            top = stack[-1]
            for part in top.parts:
                self._look()
                found = self._unopened(part, entered)
                if found is None:
                    stack.append(self._opened(part))
                    entered.add(id(part))
                    break
                top.found.append(found)
            else:
                stack.pop()
                entered.discard(id(top.value))
                parts = top.found if top.is_ordered else sorted(top.found)
                made = parts[0] if top.tag == _SAME else _hash(top.tag, *parts)
                if len(self._known) < _KEPT:
                    self._known[id(top.value)] = top.value, made
                if not stack:
                    return made
                stack[-1].found.append(made)

    def _unopened(self, value: Value, entered: set[int]) -> bytes | None:
        """Return the digest of a part that is not to be entered; None for one that is."""
        if type(value) not in _CONTAINERS:
            return self._plain(value)
        if id(value) in entered:
            return _hash("cycle", _CYCLE)
        if id(value) in self._known:
            return self._known[id(value)][1]
        if len(entered) < _MOST_DEEP:
            return None
        self.is_cut = True
        return _hash("cut", _TOO_DEEP)

    def _opened(self, value: Value) -> _Open:
        if isinstance(value, list | tuple):
            if _are_numbers(value):  # the words of a generator, the indices of a data set
                self._look_at(len(value))
                return _Open(value, f"{type(value).__name__} of numbers", (repr(value),))
            return _Open(value, type(value).__name__, value)
        if isinstance(value, Dict):
            return _Open(value, "dict", value.pairs, is_ordered=False)
        if isinstance(value, Set):
            return _Open(value, "frozenset" if value.frozen else "set", value.items, is_ordered=False)
        if isinstance(value, PersistentId):
            return _opened_id(value)
        assert isinstance(value, Call)  # noqa: S101 - nothing else is a container
        return _opened_call(value)

    def _look_at(self, parts: int) -> None:
        for _ in range(0, parts, _STEP):
            self._look()

    def _plain(self, value: Value) -> bytes:
        if isinstance(value, Blob):
            data = self._data[value.offset : value.offset + value.nbytes]
            return _hash(_SPELLED.get(value.kind, f"{value.kind}:{BLOB_TYPES[value.kind]}"), data)
        return _hash(*_spelling(value))


def _are_numbers(items: list[Value] | tuple[Value, ...]) -> bool:
    """Return whether all are numbers whose digits are soon written, and many."""
    return (
        len(items) > _FEW
        and _NUMBERS.issuperset(map(type, items))
        and all(type(item) is not int or item.bit_length() <= _MOST_BITS for item in items)
    )


def _spelling(value: Value) -> tuple[str, bytes]:
    """Return the type of a value without parts, and the value as bytes."""
    if isinstance(value, str):
        raw = value.raw if isinstance(value, ByteString) else value.encode("utf-8", "surrogatepass")
        return "str", raw
    if isinstance(value, bytes):
        return "bytearray" if isinstance(value, ByteArray) else "bytes", value
    if isinstance(value, Global):
        return "global", value.present.encode("utf-8", "surrogatepass")
    if isinstance(value, StoredTensor):
        return "tensor", f"{value.dtype} {value.shape} {value.layout}".encode()
    if isinstance(value, int) and not isinstance(value, bool):
        return "int", f"{value:x}".encode()  # the digits of a huge number take long
    return type(value).__name__, repr(value).encode()


def _opened_id(value: PersistentId) -> _Open:
    """Open a persistent id; a storage's key and place say nothing of what is in it."""
    storage = parse_storage_id(value)
    if storage is None:
        return _Open(value, "persistent id", [value.pid])
    return _Open(value, "storage", [storage.dtype, storage.numel])


def _opened_call(value: Call) -> _Open:
    """Open a call; bytes and arrays are what they hold, in whichever protocol."""
    name = value.func.present.replace("numpy._core.", "numpy.core.") if isinstance(value.func, Global) else ""
    args = value.args if isinstance(value.args, tuple) else (value.args,)
    if describe_bytes(value) is not None:
        raw = _raw_of(value)
        return _Open(value, _SAME, [ByteArray(raw) if name == "builtins.bytearray" else raw])
    if describe_array(value) is not None:
        return _Open(value, "array", _array_parts(value, args))
    if name in _SETS and len(args) == 1 and isinstance(args[0], list | tuple):  # as protocol 2 writes them
        return _Open(value, _SETS[name], args[0], is_ordered=False)
    pairs: list[Value] = list(value.pairs or ())
    func: list[Value] = [name] if name else [value.func]
    parts = [*func, tuple(args), value.kwargs, value.state, list(value.items or ()), pairs]
    return _Open(value, "call", parts)


def _raw_of(value: Value) -> bytes:
    """Return bytes, which protocol 2 spells as a text in Latin-1 or as a call of their type."""
    if isinstance(value, bytes):
        return value
    assert isinstance(value, Call)  # noqa: S101 - there is no other spelling
    first = value.args[0] if isinstance(value.args, tuple) and value.args else b""
    return first.encode("latin-1", "replace") if isinstance(first, str) else _raw_of(first)


def _array_parts(value: Call, args: tuple[Value, ...]) -> list[Value]:
    """Return type, shape, order and data of an array, wherever they stand."""
    if isinstance(value.state, tuple):
        _, shape, dtype, order, data = value.state
        return [dtype, shape, "F" if order is True else "C", data]
    data, dtype, shape, order = args
    return [dtype, shape, order, data]


def _hash(tag: str, *parts: bytes) -> bytes:
    found = hashlib.blake2b(tag.encode(), digest_size=_NBYTES)
    for part in parts:
        found.update(len(part).to_bytes(8, "little"))
        found.update(part)
    return found.digest()
