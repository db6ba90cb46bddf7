"""Inert values written as a pickle again: what torch.save would have written of the same objects."""

from __future__ import annotations

import re
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from inspector.containers.persistent_ids import STORAGE_DTYPES, StorageId, parse_storage_id
from inspector.containers.rebuilds import VIEWS
from inspector.errors import DamagedError, ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.model.tensors.dtypes import known_dtype
from inspector.model.tensors.views import contiguous
from inspector.model.values.children import mapping_pairs
from inspector.pickles.machine import Stream, read_pickle
from inspector.pickles.values import (
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
from inspector.progress import Progress
from inspector.records import dataclass, field, replace

_ORDERED = "collections.OrderedDict"
_MOST_AT_ONCE = 64  # dimensions that are written without asking whether others share them


UNTYPED = ("torch.storage", "UntypedStorage")
"""Module and name of the class of storages without an element type."""

_CLASSES = {
    dtype: ("torch", f"{name}Storage") for name, (dtype, _) in STORAGE_DTYPES.items() if "ntyped" not in name
}


def storage_class(dtype: str | None) -> tuple[str, str]:
    """Return module and name of the class of storages of an element type, or of none."""
    return UNTYPED if dtype is None else _CLASSES[dtype]


def as_written(storage: StorageId) -> StorageId:
    """Return a storage as torch.save writes it: of bytes, where no class stands for its element type."""
    if storage.untyped or storage.dtype in _CLASSES:
        return storage
    return storage._replace(dtype="uint8", itemsize=1, numel=storage.nbytes, untyped=True)


class StorageName(NamedTuple):
    """What the pickle says of a storage.

    Attributes:
        numel: How many elements it has; bytes for untyped ones.
    """

    cls: tuple[str, str]
    key: str
    location: str
    numel: int


class Naming(Protocol):
    """Decides what becomes of storages."""

    def name_storage(self, node: PersistentId) -> StorageName | None:
        """Return what is written for a storage's persistent id; None for an id of something else."""

    def move_view(self, call: Call) -> int | None:
        """Return the offset, in elements, at which a view of a storage begins there; None to leave it."""


def filled_pairs(call: Call) -> tuple[Value, list[tuple[Value, Value]]]:
    """Return the arguments that an object is made with, and the pairs that it is filled with.

    What Python 2 gave an OrderedDict as an argument, a list of lists, counts as pairs: `weights_only` takes
    such a list as little as an entry of it could be left out.
    """
    pairs, args = call.pairs or [], call.args
    func = call.func
    if type(func) is not Global or func.dotted != _ORDERED or call.kind == "newobj":
        return args, pairs
    first = args[0] if isinstance(args, tuple) and len(args) == 1 else None
    is_pairs = isinstance(first, list) and all(
        isinstance(item, list | tuple) and len(item) == 2 for item in first
    )
    return ((), mapping_pairs(call) or []) if is_pairs or isinstance(first, Dict) else (args, pairs)


def view_of(call: Call) -> PersistentId | None:
    """Return the persistent id that a call rebuilds a view of; None if it is no such call."""
    func, args = call.func, call.args
    if type(func) is not Global or func.name not in VIEWS or func.package != "torch":
        return None
    if type(args) is not tuple or len(args) < 4 or type(args[0]) is not PersistentId:
        return None
    return args[0] if type(args[1]) is int else None


def is_usual(args: tuple[Any, ...]) -> bool:
    """Return whether the arguments of `_rebuild_tensor_v2` are those that torch gives, without any hooks."""
    if len(args) != 6 or type(args[4]) is not bool or type(args[5]) is not Call:
        return False
    hooks = args[5]
    if hooks.state is not None or hooks.pairs or hooks.args != () or type(hooks.func) is not Global:
        return False
    if parse_storage_id(args[0]) is None:
        return False
    if not all(type(numbers) is tuple and len(numbers) <= _MOST_AT_ONCE for numbers in args[2:4]):
        return False
    return all(type(number) is int for numbers in args[2:4] for number in numbers)


def refuse_stored(_tensor: StoredTensor) -> Call:
    """Refuse a tensor where nothing is known of storages."""
    raise ExportError("a tensor stands where none can be written")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writing:
    """How values are written.

    Attributes:
        prefixes: What is removed from the front of a mapping's keys, by its identity.
        names_are_present: Whether names must not be taken for those of Python 2; see `names_are_present`.
    """

    naming: Naming | None = None
    prefixes: Mapping[int, str] = field(default_factory=dict)
    data: bytes = b""
    legacy: bool = False
    names_are_present: bool = False
    rebuilt: Callable[[StoredTensor], Call] = refuse_stored
    progress: Progress = field(default_factory=Progress)

    def entries(self, owner: Value, pairs: Sequence[tuple[Value, Value]]) -> Sequence[tuple[Value, Value]]:
        """Return the pairs of a mapping as they are written."""
        prefix = self.prefixes.get(id(owner))
        if not prefix:
            return pairs
        return [(key.removeprefix(prefix) if isinstance(key, str) else key, value) for key, value in pairs]

    def bytes_of(self, value: Blob) -> bytes:
        """Return what was left in the stream for its length."""
        data = self.data[value.offset : value.offset + value.nbytes]
        if len(data) < value.nbytes:
            raise ExportError(
                f"a value of {value.nbytes:,} bytes, which is no tensor, is too large to be written again",
                remedy="leave it out with --exclude, or ask for --format state-dict",
            )
        return data


# --- whether the objects of a stream can be written again so that they load as the same ---------------------

TOO_ODD = "the object is made in a way that cannot be written again"
_EXTENSION = re.compile(r"extension_-?\d+")
_PRESENT = 3
"""From this protocol on, Python takes names for what they are; below, some are those of Python 2."""


def refuse_odd(stream: Stream) -> None:
    """Refuse to write objects again that readers understand differently: which would they be?"""
    if stream.oddities:
        raise DamagedError(
            "the objects are written in a way that programs read differently, so they are not written again",
            where=str(stream.oddities[0]),
            remedy="do not load the file: no honest program writes that",
        )


def refuse_name(module: str, name: str) -> None:
    """Refuse a name to import that would be another one in a copy."""
    both = f"{module}.{name}"
    if "\n" in both:
        raise ExportError(TOO_ODD, where="a name of two lines")
    if "\\" in both or not _is_unicode(both):
        raise ExportError(TOO_ODD, where=f"a name that is no text: {both!a}")
    if module == "copyreg" and _EXTENSION.fullmatch(name):
        raise ExportError(
            "only the program that wrote the file knows what an extension code stands for", where=name
        )


def names_are_present(stream: Stream) -> bool:
    """Return whether a name of the stream would be taken for one of Python 2 below protocol 3."""
    return stream.protocol >= _PRESENT and any(
        node.module in IMPORT_MAPPING or (node.module, node.name.partition(".")[0]) in NAME_MAPPING
        for node in stream.globals
    )


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


# ------------------------------------------------------------------------------------------------------------
# Tensors of formats without a pickle as torch.save would write them: as calls of its rebuild functions.
#
# A storage class stands for an element type; types that came after those classes are written with the third
# generation's function, which names the type beside a storage of bytes (`_reduce_ex_internal` in
# `torch/_tensor.py`).

_STRIDED = "strided"


class Rebuilding:
    """Makes the calls, one for each tensor however often it is met, so that what is shared stays shared."""

    def __init__(self, storage_ids: Mapping[str, StorageId]) -> None:
        self._storage_ids = storage_ids
        self._calls: dict[int, tuple[StoredTensor, Call]] = {}
        self._nodes: dict[str, PersistentId] = {}
        self._names: dict[tuple[str, str], Global] = {}

    def call_for(self, tensor: StoredTensor) -> Call:
        """Return the call that rebuilds a tensor."""
        made = self._calls.get(id(tensor))
        if made is None:
            made = self._calls[id(tensor)] = tensor, self._make(tensor)
        return made[1]

    def _make(self, tensor: StoredTensor) -> Call:
        storage = self._storage_ids.get(tensor.key)
        if storage is None or known_dtype(tensor.dtype) is None or tensor.layout != _STRIDED:
            raise ExportError(f"torch has no {tensor.layout} tensors of {tensor.dtype}")
        hooks = Call(self._name("collections", "OrderedDict"), (), "reduce")
        stride = contiguous(tensor.shape) if tensor.stride is None else tensor.stride
        place = (self._node(storage), tensor.offset, tensor.shape, stride)
        args: tuple[Value, ...] = (*place, tensor.requires_grad, hooks)
        written = as_written(storage)
        if written.untyped or written.dtype != tensor.dtype:
            args = (*args, self._name("torch", tensor.dtype))
        name = "_rebuild_tensor_v2" if len(args) == len(place) + 2 else "_rebuild_tensor_v3"
        return Call(self._name("torch._utils", name), args, "reduce")

    def _name(self, module: str, name: str) -> Global:
        return self._names.get((module, name)) or self._names.setdefault((module, name), Global(module, name))

    def _node(self, storage: StorageId) -> PersistentId:
        node = self._nodes.get(storage.key)
        if node is None:
            node = self._nodes[storage.key] = PersistentId(None)
            node.meaning = storage
        return node


# ------------------------------------------------------------------------------------------------------------
# Inert values written as a pickle again: what torch.save would have written of the same objects.
#
# Protocol 2 is what torch.save uses and what `weights_only=True` reads; the instructions are those of
# Python's own pickler (`save_reduce`, `_batch_setitems`, ... in `Lib/pickle.py`), memoizing all that can be
# met twice. Its own stack keeps track, so that no depth of nesting can exhaust Python's.
#
# What is written loads as the very objects of the source, or a sentence names what cannot be held.

__all__ = ["Writing", "write_pickle"]

_STOP = b"."
_ASK_EACH = 8192
_MODULE = "module"
_TUPLES = {1: b"\x85", 2: b"\x86", 3: b"\x87"}
_MOST_AGAIN = 1000
"""How often something may be met while it is being made: an honest object needs a handful."""
_OF_ITSELF = "an object of the checkpoint is made of itself, which cannot be written again"
_ENDLESS = replace(DEFAULT_LIMITS, text_nbytes=DEFAULT_LIMITS.pickle_nbytes)

_U4 = struct.Struct("<I")
_I4 = struct.Struct("<i")
_U2 = struct.Struct("<H")
_F8 = struct.Struct(">d")


class _Later(NamedTuple):
    """Something to do once the values before it have been written.

    Attributes:
        rest: What fills it, last things first.
    """

    code: bytes
    value: Value = None
    is_memoized: bool = False
    rest: Sequence[Any] = ()


class _Fill(NamedTuple):
    """What an object is filled with once it has been made, and the instruction that does it."""

    items: Sequence[Any]
    end: bytes
    in_pairs: bool = False


def write_pickle(root: Value, writing: Writing) -> bytes:
    """Write a value as a pickle of protocol 2."""
    return _Writer(writing).run(root)


class _Writer:
    def __init__(self, writing: Writing) -> None:
        self._how = writing
        # Below protocol 3, Python takes some names for those of Python 2.
        self._builtins = "builtins" if writing.names_are_present else "__builtin__"
        self._out = bytearray(b"\x80\x03" if writing.names_are_present else b"\x80\x02")
        self._todo: list[Any] = []
        self._slots: dict[object, int] = {}
        self._open: set[int] = set()
        self._again = 0
        self._kept: list[Value] = []  # what the slots are told by must live on

    def run(self, root: Value) -> bytes:
        todo, done = self._todo, 0
        todo.append(root)
        while todo:
            item = todo.pop()
            _WRITE[type(item)](self, item)
            done += 1
            if done % _ASK_EACH == 0:
                self._how.progress.advance(0)
        return bytes(self._out + _STOP)

    # --- the memo -------------------------------------------------------------------------------------------

    def finish(self, item: _Later) -> None:
        self._out += item.code
        if not item.is_memoized:
            return
        self._open.discard(id(item.value))
        if id(item.value) in self._slots:
            self._out += b"0"  # it was met, and made, while its parts were being written
            self._get(id(item.value))
        else:
            self._put(id(item.value))
            self._todo += item.rest

    def _put(self, name: object) -> None:
        slot = self._slots[name] = len(self._slots)
        self._out += b"q" + bytes([slot]) if slot < 256 else b"r" + _U4.pack(slot)

    def _get(self, name: object) -> bool:
        slot = self._slots.get(name)
        if slot is None:
            return False
        self._out += b"h" + bytes([slot]) if slot < 256 else b"j" + _U4.pack(slot)
        return True

    def _begin(self, value: Value) -> bool:
        """Note that a value is being written; False if it has been, and was fetched from the memo."""
        if self._get(id(value)):
            return False
        if id(value) in self._open:
            # Nothing endless: a list or an object on the way round has its slot before it is filled.
            self._again += 1
            if self._again > _MOST_AGAIN or (isinstance(value, Set) and not value.frozen):
                raise ExportError(_OF_ITSELF)
        self._open.add(id(value))
        self._kept.append(value)
        return True

    # --- plain values ---------------------------------------------------------------------------------------

    def none(self, _: Value) -> None:
        self._out += b"N"

    def boolean(self, value: bool) -> None:  # noqa: FBT001 - it is the value to write
        self._out += b"\x88" if value else b"\x89"

    def integer(self, value: int) -> None:
        if 0 <= value < 1 << 16:
            self._out += b"K" + bytes([value]) if value < 256 else b"M" + _U2.pack(value)
        elif -(1 << 31) <= value < 1 << 31:
            self._out += b"J" + _I4.pack(value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            size = bytes([len(data)]) if len(data) < 256 else _I4.pack(len(data))
            self._out += (b"\x8a" if len(data) < 256 else b"\x8b") + size + data

    def real(self, value: float) -> None:
        self._out += b"G" + _F8.pack(value)

    def text(self, value: str) -> None:
        if not self._get(value):
            data = value.encode("utf-8", "surrogatepass")
            self._out += b"X" + _U4.pack(len(data)) + data
            self._put(value)

    def string(self, value: ByteString) -> None:
        """Write a byte string of Python 2 as one, whatever encoding it is in."""
        if not self._get((ByteString, value)):
            raw = value.raw
            self._out += b"U" + bytes([len(raw)]) if len(raw) < 256 else b"T" + _I4.pack(len(raw))
            self._out += raw
            self._put((ByteString, value))

    def octets(self, value: bytes) -> None:
        """Write bytes as protocol 2 does, which has none: a text to be encoded."""
        if not self._get(id(value)):
            self.name(("_codecs", "encode"))
            self._encoded(value, "latin1")
            self._out += b"\x86R"
            self._remember(value)

    def changeable(self, value: bytes) -> None:
        """Write a byte array as protocol 2 does: a call with a text and its encoding."""
        if not self._get(id(value)):
            self.name((self._builtins, "bytearray"))
            self._encoded(value, "latin-1")
            self._out += b"\x86R"
            self._remember(value)

    def _encoded(self, value: bytes, encoding: str) -> None:
        data = value.decode("latin-1").encode()
        self._out += b"X" + _U4.pack(len(data)) + data
        self.text(encoding)

    def _remember(self, value: Value) -> None:
        self._kept.append(value)
        self._put(id(value))

    def blob(self, value: Blob) -> None:
        if self._get(id(value)):
            return
        data = self._how.bytes_of(value)
        write = _WRITE_LARGE.get(value.kind)
        if write is None:
            raise ExportError(TOO_ODD, where=_LARGE.get(value.kind, f"an integer of {value.nbytes:,} digits"))
        write(self, data)
        self._remember(value)

    # --- names ----------------------------------------------------------------------------------------------

    def name(self, name: tuple[str, str]) -> None:
        if not self._get(name):
            refuse_name(*name)
            self._out += f"c{name[0]}\n{name[1]}\n".encode()
            self._put(name)

    def imported(self, value: Global) -> None:
        """Write a name to import; one within a class, which protocol 2 lacks, is fetched step by step."""
        first, *rest = value.name.split(".")
        for _ in rest:
            self.name((self._builtins, "getattr"))
        self.name((value.module, first))
        for step in rest:
            self.text(step)
            self._out += b"\x86R"

    # --- containers -----------------------------------------------------------------------------------------

    def sequence(self, value: list[Value]) -> None:
        if self._begin(value):
            self.finish(_Later(b"]", value, is_memoized=True))
            self.fill(_Fill(value, b"e"))

    def mapping(self, value: Dict) -> None:
        if self._begin(value):
            self.finish(_Later(b"}", value, is_memoized=True))
            self.fill(_Fill(self._how.entries(value, value.pairs), b"u", in_pairs=True))

    def group(self, value: tuple[Value, ...]) -> None:
        if not value:
            self._out += b")"
        elif self._begin(value):
            self._todo.append(_Later(self._tuple_end(value), value, is_memoized=True))
            self._todo += reversed(value)

    def _tuple_end(self, value: tuple[Value, ...]) -> bytes:
        if len(value) not in _TUPLES:
            self._out += b"("
        return _TUPLES.get(len(value), b"t")

    def collection(self, value: Set) -> None:
        """Write a set as a call of its class with a list, as protocols before 4 do."""
        if self._begin(value):
            self.name((self._builtins, "frozenset" if value.frozen else "set"))
            self._out += b"]"
            self._todo.append(_Later(b"\x85R", value, is_memoized=True))
            self.fill(_Fill(value.items, b"e"))

    def fill(self, fill: _Fill) -> None:
        items = fill.items
        if items:
            self._out += b"("
            self._todo.append(_Later(fill.end))
            self._todo += reversed([part for pair in items for part in pair] if fill.in_pairs else items)

    # --- objects --------------------------------------------------------------------------------------------

    def call(self, value: Call) -> None:
        """Write an object: what makes it, then what fills it."""
        node = view_of(value)
        if (node is not None and self._view(value, node)) or not self._begin(value):
            return
        args, pairs = filled_pairs(value)
        offset = None if node is None else self._moved(value)
        if offset is not None and isinstance(args, tuple):
            args = (args[0], offset, *args[2:])
            self._kept.append(args)
        rest: list[Any] = [] if value.state is None else [_Later(b"b"), value.state]
        if pairs:
            rest.append(_Fill(self._how.entries(value, pairs), b"u", in_pairs=True))
        if value.items:
            rest.append(_Fill(value.items, b"e"))
        if value.kwargs is not None:
            # Of protocol 4, but unpicklers take it at any; a call could not be told from others.
            made = _Later(b"\x92", value, is_memoized=True, rest=rest)
            self._todo += (made, value.kwargs, args, value.func)
        elif value.kind == "inst" and isinstance(args, tuple):
            self._out += b"("
            self._todo += (_Later(b"o", value, is_memoized=True, rest=rest), *reversed(args), value.func)
        else:
            code = b"\x81" if value.kind == "newobj" else b"R"
            self._todo += (_Later(code, value, is_memoized=True, rest=rest), args, value.func)

    def _moved(self, view: Call) -> int | None:
        return None if self._how.naming is None else self._how.naming.move_view(view)

    def stored(self, value: StoredTensor) -> None:
        self.call(self._how.rebuilt(value))

    def _view(self, value: Call, node: PersistentId) -> bool:
        """Write a tensor at once if it is like nearly all of them, which halves the time of large files."""
        args: tuple[Any, ...] = value.args if isinstance(value.args, tuple) else ()
        if value.state is not None or not is_usual(args) or id(value) in self._slots:
            return False
        offset = self._moved(value)
        self.imported(cast("Global", value.func))
        self._out += b"("
        self.persistent(node)
        self.integer(args[1] if offset is None else offset)
        for numbers in args[2:4]:
            self._out += b"" if len(numbers) in _TUPLES or not numbers else b"("
            for number in numbers:
                self.integer(number)
            self._out += _TUPLES.get(len(numbers), b"t") if numbers else b")"
        self.boolean(args[4])
        self.imported(args[5].func)
        self._out += b")RtR"
        self._kept.append(value)
        self._put(id(value))
        return True

    def persistent(self, value: PersistentId) -> None:
        name = None if self._how.naming is None else self._how.naming.name_storage(value)
        if name is not None:
            self._storage(name)
            return
        pid = value.pid
        is_module = isinstance(pid, tuple) and len(pid) > 1 and pid[0] == _MODULE
        if is_module and isinstance(pid, tuple) and not self._how.legacy:
            self._todo.append(pid[1])  # the legacy container alone keeps a class's source beside it
        else:
            self._todo += (_Later(b"Q"), pid)

    def _storage(self, name: StorageName) -> None:
        self._out += b"("
        self.text("storage")
        self.name(name.cls)
        self.text(name.key)
        self.text(name.location)
        self.integer(name.numel)
        self._out += b"NtQ" if self._how.legacy else b"tQ"


_WRITE: dict[type, Callable[[_Writer, Any], None]] = {
    _Later: _Writer.finish,
    _Fill: _Writer.fill,
    type(None): _Writer.none,
    bool: _Writer.boolean,
    int: _Writer.integer,
    float: _Writer.real,
    str: _Writer.text,
    ByteString: _Writer.string,
    bytes: _Writer.octets,
    ByteArray: _Writer.changeable,
    list: _Writer.sequence,
    tuple: _Writer.group,
    Blob: _Writer.blob,
    Global: _Writer.imported,
    Dict: _Writer.mapping,
    Set: _Writer.collection,
    Call: _Writer.call,
    PersistentId: _Writer.persistent,
    StoredTensor: _Writer.stored,
}

_WRITE_LARGE: dict[str, Callable[[_Writer, Any], None]] = {
    "text": lambda writer, data: writer.text(data.decode("utf-8", "surrogatepass")),
    "text-line": lambda writer, data: _WRITE[str](writer, _read_line(b"V" + data)),
    "string": lambda writer, data: writer.string(ByteString.of(data)),
    "string-line": lambda writer, data: _WRITE[ByteString](writer, _read_line(b"S" + data)),
    "bytes": _Writer.octets,
    "bytearray": _Writer.changeable,
    "int": lambda writer, data: writer.integer(int.from_bytes(data, "little", signed=True)),
}
_LARGE = {"buffer": "a buffer that is not in the pickle"}


def _read_line(instruction: bytes) -> Value:
    return read_pickle(instruction + b"\n.", limits=_ENDLESS).root
