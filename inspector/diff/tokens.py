"""Values as short digests: equal for values that load as equal ones, however they are spelled.

A row shows 200 characters of a value. Two texts can agree in those and differ behind them, so what is
compared is all of the value. Nothing of it is hashed by Python or recursed into.

For a copy that is to be the same but for its devices, digests are exact: of how a value is spelled, the order
of its parts and which of them are one object. What may differ is left out and kept, see `Kept`.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable, Iterable, Mapping
from typing import cast

from inspector.containers.persistent_ids import parse_storage_id
from inspector.model.roles.hidden import MESH_TYPE, MESHES
from inspector.model.tensors.numpy_arrays import describe_array, describe_bytes
from inspector.model.tensors.rebuild import device_text
from inspector.model.tensors.storages import find_own_device
from inspector.model.values.children import attribute_pairs, mapping_pairs, unlisted_arguments
from inspector.model.values.embedded import is_checkpoint, payload_of
from inspector.model.values.text import class_of
from inspector.overriding import override
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
_SAME, _MODULE = "same", "module"
"""What only spells another value."""
_MOST_DEEP = 4096
"""How deep values are entered: Python writes and reads none that are nested a thousand deep."""
_TOO_DEEP = b"deeper than values are entered"
_MOST_BITS, _FEW = 64, 8
_NUMBERS = frozenset({type(None), bool, int, float})
_BYTES = frozenset({"bytes", "bytearray"})
_KEPT = 1 << 16  # digests that are remembered: values that stand in many places are few
_LOCATION = 3  # its place in a storage's persistent id
_MOST_DEVICE_CHARS, _MOST_INDEX = 64, 1 << 16
_PLAIN_TENSOR = "torch._utils._rebuild_tensor_v2"
_ORDERED = "collections.OrderedDict"
_WORD = 1 << 63


class _Open:
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

    def __init__(
        self,
        data: bytes,
        look: Callable[[], object],
        leaves: Mapping[int, bytes] | None = None,
        storages: Callable[[str], bytes] | None = None,
    ) -> None:
        """Begin.

        Args:
            look: Called for each part that is looked at; raises where the work is to end.
            leaves: The digests of tensors that are compared by other means, by their `id`. Then a class with
                its source beside it, as legacy files have that, is the same as one without.
            storages: Digests the bytes of a storage, by its key, where tensors are to be told by those.
        """
        self._data = data
        self._look = look
        self._leaves = leaves or {}
        self._is_rewritten = leaves is not None
        self._storages = storages
        self.is_cut = False
        self._known: dict[int, tuple[Value, bytes]] = {}

    def of(self, value: Value) -> bytes:
        """Return the digest of a value."""
        entered: set[int] = set()
        found = self._unopened(value, entered)
        return self._digest(value, entered) if found is None else found

    def _digest(self, root: Value, entered: set[int]) -> bytes:
        """Digest a container from its innermost parts on, with a stack of its own."""
        stack = [self._opened(root)]
        entered.add(id(root))
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
                self._keep(top.value, made)
                if not stack:
                    return made
                stack[-1].found.append(made)

    def _keep(self, value: Value, made: bytes) -> None:
        if len(self._known) < _KEPT:
            self._known[id(value)] = value, made

    def _unopened(self, value: Value, entered: set[int]) -> bytes | None:
        """Return the digest of a part that is not to be entered; None for one that is."""
        if id(value) in self._leaves:
            return self._leaves[id(value)]
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
            pid = value.pid if self._is_rewritten and isinstance(value.pid, tuple) else ()
            is_class = len(pid) > 1 and pid[0] == _MODULE
            return _Open(value, _SAME, pid[1:2]) if is_class else self._opened_id(value)
        assert isinstance(value, Call)  # noqa: S101 - nothing else is a container
        return _opened_call(value, has_classes=self._is_rewritten)

    def _opened_id(self, value: PersistentId) -> _Open:
        """Open a persistent id; a storage's key and place say nothing of what is in it."""
        storage = parse_storage_id(value)
        if storage is None:
            return _Open(value, "persistent id", [value.pid])
        contents = b"" if self._storages is None else self._storages(storage.viewed().key)
        return _Open(value, "storage", [storage.dtype, storage.numel, contents])

    def _look_at(self, parts: int) -> None:
        for _ in range(0, parts, _STEP):
            self._look()

    def _plain(self, value: Value) -> bytes:
        if isinstance(value, Blob):
            data = self._data[value.offset : value.offset + value.nbytes]
            return _hash(_SPELLED.get(value.kind, f"{value.kind}:{BLOB_TYPES[value.kind]}"), data)
        return _hash(*_spelling(value))


class Kept:
    """What exact digests leave out, in the order in which it stands, and what tells objects from one another.

    Attributes:
        devices: The texts of devices: of storages, `torch.device`, meshes, and tensors that name their own.
        files: The bytes that begin as a checkpoint does: such files have devices of their own.
        numbers: The objects met so far, with their number, by their `id`.
        skipped: Tuples of which one element is a device or such a file, with its place, by their `id`.
        keys: The keys of storages, numbered as they come, where nothing hangs on them; else None.
    """

    def __init__(self, *, has_keys: bool = True) -> None:
        self.keys: dict[str, int] | None = None if has_keys else {}
        self.devices: list[str] = []
        self.files: list[bytes] = []
        self.numbers: dict[int, tuple[Value, int]] = {}
        self.skipped: dict[int, int] = {}

    def key(self, key: Value) -> Value:
        """Return what a storage is told by."""
        return key if self.keys is None else self.keys.setdefault(str(key), len(self.keys))

    def skip(self, owner: tuple[Value, ...], place: int) -> None:
        """Leave out one element of a tuple, a device, wherever that stands."""
        if id(owner) not in self.skipped:
            self.skipped[id(owner)] = place
            self.devices.append(str(owner[place]))


class ExactTokens(Tokens):
    """Digests the values of one pickle so that only what is the very same but for devices has one digest."""

    def __init__(self, data: bytes, look: Callable[[], object], kept: Kept) -> None:
        super().__init__(data, look)
        self._kept = kept

    @override
    def _keep(self, value: Value, made: bytes) -> None:
        """Keep nothing: what is met again is the number that it has."""

    @override
    def _unopened(self, value: Value, entered: set[int]) -> bytes | None:
        if type(value) not in _CONTAINERS:
            return self._plain(value)
        device = _device_of(value)
        if device is not None:  # one object at several places may be several in the copy
            self._kept.devices.append(device)
            return _hash("device")
        numbers = self._kept.numbers
        known = numbers.get(id(value))
        if known is not None:
            return _hash("again", str(known[1]).encode())
        numbers[id(value)] = value, len(numbers)
        return self._tensor(value) if type(value) is Call else None

    def _tensor(self, value: Call) -> bytes | None:
        """Return the digest of a tensor as nearly all are, at once; None for any other value."""
        func, args = value.func, value.args
        if type(func) is not Global or func.dotted != _PLAIN_TENSOR or value.state is not None:
            return None
        node = args[0] if isinstance(args, tuple) and len(args) == 6 else None
        pid = node.pid if isinstance(node, PersistentId) else None
        if type(pid) is not tuple or len(pid) != _LOCATION + 2 or not _is_short(pid[_LOCATION]):
            return None
        tag, cls, key, location, numel = pid
        _, offset, sizes, steps, grad, hooks = cast("tuple[Value, ...]", args)
        counts = (numel, offset, *_plain_tuple(sizes), *_plain_tuple(steps))
        if not all(type(count) is int and -_WORD <= count < _WORD for count in counts):
            return None
        if not _is_empty(hooks):
            return None
        if type(cls) is not Global or type(key) is not str or type(tag) is not str or type(grad) is not bool:
            return None
        self._kept.devices.append(str(location))
        facts = tag, cls.module, cls.name, self._kept.key(key), numel, offset, sizes, steps, grad
        return _hash("tensor", repr(facts).encode("utf-8", "surrogatepass"))

    @override
    def _opened(self, value: Value) -> _Open:  # noqa: PLR0911 - one for each kind
        if isinstance(value, list) and _are_numbers(value) and "nan" not in (text := repr(value)):
            self._look_at(len(value))
            return _Open(value, "list of numbers", (text,))
        if isinstance(value, tuple):
            place = self._kept.skipped.get(id(value))
            parts = value if place is None else (*value[:place], *value[place + 1 :])
            return _Open(value, "tuple" if place is None else f"tuple without {place}", parts)
        if isinstance(value, list):
            return _Open(value, "list", value)
        if isinstance(value, Dict):
            return _Open(value, "dict", value.pairs)
        if isinstance(value, Set):
            return _Open(value, "frozenset" if value.frozen else "set", value.items)
        if isinstance(value, PersistentId):
            pid = value.pid
            if parse_storage_id(value) is None or not isinstance(pid, tuple) or not _is_short(pid[_LOCATION]):
                return _Open(value, "persistent id", [pid])
            self._kept.devices.append(str(pid[_LOCATION]))
            tag, cls, key, _, numel, *view = pid
            if view and isinstance(view[0], tuple) and view[0]:
                view[0] = (self._kept.key(view[0][0]), *view[0][1:])
            return _Open(value, "storage", (tag, cls, self._kept.key(key), numel, *view))
        assert isinstance(value, Call)  # noqa: S101 - nothing else is a container
        return self._opened_call(value)

    def _opened_call(self, value: Call) -> _Open:
        """Open a call: its parts as they stand, but for devices and files of torch among its arguments."""
        self._skip_parts(value)
        items, pairs = (None if held is None else tuple(held) for held in (value.items, value.pairs))
        parts = [value.kind, value.func, value.args, value.kwargs, value.state, items, pairs]
        return _Open(value, "call", parts)

    def _skip_parts(self, value: Call) -> None:
        kept = self._kept
        args = value.args
        own = find_own_device(value)
        if own is not None and _is_short(own.args[own.place]):
            kept.skip(own.args, own.place)
        elif class_of(value) in MESHES:
            for pair in attribute_pairs(value.state, MESH_TYPE):
                if _is_short(pair[1]):
                    kept.skip(pair, 1)
        elif isinstance(args, tuple) and args and (payload := payload_of(value, self._data)):
            kept.skipped[id(args)] = 0
            kept.files.append(payload)

    @override
    def _plain(self, value: Value) -> bytes:  # noqa: PLR0911 - one for each kind
        if isinstance(value, Blob):
            data = self._data[value.offset : value.offset + value.nbytes]
            if BLOB_TYPES[value.kind] in _BYTES and is_checkpoint(data):
                return self._file(BLOB_TYPES[value.kind], data)
            return _hash(f"large {value.kind}", data)
        if isinstance(value, bytes) and is_checkpoint(value):
            return self._file("bytearray" if isinstance(value, ByteArray) else "bytes", value)
        if isinstance(value, ByteString):
            return _hash("byte string", value.raw)
        if isinstance(value, Global):
            return _hash(
                "global", *(part.encode("utf-8", "surrogatepass") for part in (value.module, value.name))
            )
        if isinstance(value, float):
            return _hash("float", struct.pack("<d", value))  # NaN is many numbers
        if isinstance(value, StoredTensor):
            facts = [getattr(value, name) for name in StoredTensor.__slots__]
            return _hash("tensor", repr(facts).encode("utf-8", "surrogatepass"))
        return _hash(*_spelling(value))

    def _file(self, kind: str, data: bytes) -> bytes:
        self._kept.files.append(bytes(data))
        return _hash("file of torch", kind.encode())


def _device_of(value: Value) -> str | None:
    """Return the text of a `torch.device`, if it is no more than that."""
    if type(value) is not Call or device_text(value) is None or not isinstance(value.args, tuple):
        return None
    kind, *index = value.args
    if (
        not isinstance(kind, str)
        or len(kind) > _MOST_DEVICE_CHARS
        or any(part is not None for part in (value.kwargs, value.state))
    ):
        return None
    if not index:
        return str(kind)
    is_index = len(index) == 1 and type(index[0]) is int and 0 <= index[0] < _MOST_INDEX
    return str(kind) + f":{index[0]!r}" if is_index else None


def _is_short(value: Value) -> bool:
    return isinstance(value, str) and len(value) <= _MOST_DEVICE_CHARS


def _plain_tuple(value: Value) -> tuple[Value, ...]:
    """Return a tuple; of what is none, one of something that is no number."""
    return value if type(value) is tuple else (None,)


def _is_empty(hooks: Value) -> bool:
    """Return whether these are the hooks of a tensor that has none."""
    return (
        type(hooks) is Call
        and type(hooks.func) is Global
        and hooks.func.dotted == _ORDERED
        and hooks.args == ()
        and not (hooks.items or hooks.pairs or hooks.state is not None or hooks.kwargs is not None)
    )


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


def _opened_call(value: Call, *, has_classes: bool = False) -> _Open:
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
    if name == _ORDERED:  # Python 2 hands the pairs over, as a list of lists
        is_bare = len(args) == 1 and isinstance(args[0], list) and not args[0]
        args, pairs = () if is_bare else unlisted_arguments(value), [*(mapping_pairs(value) or [])]
    func: list[Value] = [name] if name and not has_classes else [value.func]
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
