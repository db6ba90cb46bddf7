"""Inert values written as a pickle again: what torch.save would have written of the same objects.

Protocol 2 is what torch.save uses and what `weights_only=True` reads; the instructions are those of Python's
own pickler (`save_reduce`, `_batch_setitems`, ... in `Lib/pickle.py`), memoizing all that can be met twice.
Its own stack keeps track, so that no depth of nesting can exhaust Python's.

What is written loads as the very objects of the source, or a sentence names what cannot be held.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from inspector.errors import ExportError
from inspector.limits import DEFAULT_LIMITS
from inspector.pickles.machine import read_pickle
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
from inspector.records import replace
from inspector.remap.objects.rewritable import TOO_ODD, refuse_name
from inspector.remap.objects.views import StorageName, Writing, filled_pairs, is_usual, view_of

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
        code: Bytes to write.
        value: What has been made by then, to be remembered.
        is_memoized: Whether it is.
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
        """Write what comes behind a value, remember the value, and have it filled."""
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
        """Write None."""
        self._out += b"N"

    def boolean(self, value: bool) -> None:  # noqa: FBT001 - it is the value to write
        """Write True or False."""
        self._out += b"\x88" if value else b"\x89"

    def integer(self, value: int) -> None:
        """Write a whole number."""
        if 0 <= value < 1 << 16:
            self._out += b"K" + bytes([value]) if value < 256 else b"M" + _U2.pack(value)
        elif -(1 << 31) <= value < 1 << 31:
            self._out += b"J" + _I4.pack(value)
        else:
            data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            size = bytes([len(data)]) if len(data) < 256 else _I4.pack(len(data))
            self._out += (b"\x8a" if len(data) < 256 else b"\x8b") + size + data

    def real(self, value: float) -> None:
        """Write a floating-point number."""
        self._out += b"G" + _F8.pack(value)

    def text(self, value: str) -> None:
        """Write a text."""
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
        """Write what was left in the stream for its length."""
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
        """Write a name to import."""
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
        """Write a list."""
        if self._begin(value):
            self.finish(_Later(b"]", value, is_memoized=True))
            self.fill(_Fill(value, b"e"))

    def mapping(self, value: Dict) -> None:
        """Write a dictionary."""
        if self._begin(value):
            self.finish(_Later(b"}", value, is_memoized=True))
            self.fill(_Fill(self._how.edits.entries(value, value.pairs), b"u", in_pairs=True))

    def group(self, value: tuple[Value, ...]) -> None:
        """Write a tuple."""
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
        """Write what an object is filled with."""
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
        offset = None if node is None else self._how.naming.move_view(value)
        if offset is not None and isinstance(args, tuple):
            args = (args[0], offset, *args[2:])
            self._kept.append(args)
        rest: list[Any] = [] if value.state is None else [_Later(b"b"), value.state]
        if pairs:
            rest.append(_Fill(self._how.edits.entries(value, pairs), b"u", in_pairs=True))
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

    def stored(self, value: StoredTensor) -> None:
        """Write a tensor of a format without a pickle."""
        self.call(self._how.rebuilt(value))

    def _view(self, value: Call, node: PersistentId) -> bool:
        """Write a tensor at once if it is like nearly all of them, which halves the time of large files."""
        args: tuple[Any, ...] = value.args if isinstance(value.args, tuple) else ()
        if value.state is not None or not is_usual(args) or id(value) in self._slots:
            return False
        offset = self._how.naming.move_view(value)
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
        """Write a persistent id."""
        name = self._how.naming.name_storage(value)
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
    """Read a text that is written with escapes."""
    return read_pickle(instruction + b"\n.", limits=_ENDLESS).root
