"""Inert values written as a pickle again: what torch.save would have written of the same objects.

Protocol 2 is what torch.save uses and what `weights_only=True` reads; the instructions are those of Python's
own pickler (`save_reduce`, `_batch_setitems`, ... in `Lib/pickle.py`), memoizing all that can be met twice. A
stack of its own keeps track, so that no depth of nesting can exhaust Python's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

from inspector.errors import ExportError
from inspector.model.shapes import mapping_pairs
from inspector.pickles.values import Blob, Call, Dict, Global, PersistentId, Set, Value
from inspector.remap.form_views import StorageName, Writing, is_usual, view_of

__all__ = ["Writing", "write_pickle"]

_PROTOCOL = b"\x80\x02"
_STOP = b"."
_ASK_EACH = 8192
_ORDERED = "collections.OrderedDict"
_MODULE = "module"
_TUPLES = {1: b"\x85", 2: b"\x86", 3: b"\x87"}
_TOO_ODD = "the object is made in a way that cannot be written again"

_U4 = struct.Struct("<I")
_I4 = struct.Struct("<i")
_U2 = struct.Struct("<H")
_F8 = struct.Struct(">d")


class _Later(NamedTuple):
    """Something to do once the values before it have been written: bytes to write, then a slot to fill."""

    code: bytes
    value: Value = None
    is_memoized: bool = False


class _Fill(NamedTuple):
    """What an object is filled with once it has been made, and the instruction that does it."""

    items: Sequence[Any]
    end: bytes
    in_pairs: bool = False


def write_pickle(root: Value, writing: Writing) -> bytes:
    """Write a value as a pickle of protocol 2.

    Raises:
        ExportError: It holds something that cannot be written.
        CancelledError: The work was cancelled.
    """
    return _Writer(writing).run(root)


class _Writer:
    def __init__(self, writing: Writing) -> None:
        self._how = writing
        self._out = bytearray(_PROTOCOL)
        self._todo: list[Any] = []
        self._slots: dict[int | str | tuple[str, str], int] = {}
        self._open: set[int] = set()
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
        """Write what comes behind a value, and remember the value."""
        self._out += item.code
        if item.is_memoized:
            self._open.discard(id(item.value))
            self._put(id(item.value))

    def _put(self, name: int | str | tuple[str, str]) -> None:
        slot = self._slots[name] = len(self._slots)
        self._out += b"q" + bytes([slot]) if slot < 256 else b"r" + _U4.pack(slot)

    def _get(self, name: int | str | tuple[str, str]) -> bool:
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
            raise ExportError("an object of the checkpoint is made of itself, which cannot be written again")
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

    def octets(self, value: bytes) -> None:
        """Write bytes as protocol 2 does, which has none: a text to be encoded."""
        self.name(("_codecs", "encode"))
        self.text(value.decode("latin-1"))
        self.text("latin1")
        self._out += b"\x86R"

    def blob(self, value: Blob) -> None:
        """Write what was left in the stream for its length."""
        data = self._how.data[value.offset : value.offset + value.nbytes]
        if value.kind == "text":
            self.text(data.decode("utf-8", "surrogateescape"))
        elif value.kind == "bytes":
            self.octets(data)
        else:
            raise ExportError(_TOO_ODD, where=f"a value of {value.nbytes:,} bytes")

    # --- names ----------------------------------------------------------------------------------------------

    def name(self, name: tuple[str, str]) -> None:
        """Write a name to import."""
        if not self._get(name):
            if "\n" in name[0] + name[1]:
                raise ExportError(_TOO_ODD, where="a name of two lines")
            self._out += f"c{name[0]}\n{name[1]}\n".encode()
            self._put(name)

    def imported(self, value: Global) -> None:
        """Write a name to import; one within a class, which protocol 2 lacks, is fetched step by step."""
        first, *rest = value.name.split(".")
        for _ in rest:
            self.name(("__builtin__", "getattr"))
        self.name((value.module, first))
        for step in rest:
            self.text(step)
            self._out += b"\x86R"

    # --- containers -----------------------------------------------------------------------------------------

    def sequence(self, value: list[Value]) -> None:
        """Write a list."""
        if self._begin(value):
            self.finish(_Later(b"]", value, is_memoized=True))
            self.fill(_Fill(self._how.edits.items(value, value), b"e"))

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
            self.name(("__builtin__", "frozenset" if value.frozen else "set"))
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
        pairs, args = value.pairs or [], value.args
        if type(value.func) is Global and value.func.dotted == _ORDERED:
            # Python 2 gave it a list of lists, which `weights_only` takes as little as an entry left out.
            pairs, args = mapping_pairs(value) or [], ()
        offset = None if node is None else self._how.naming.move_view(value)
        if offset is not None and isinstance(args, tuple):
            args = (args[0], offset, *args[2:])
            self._kept.append(args)
        todo = self._todo
        if value.state is not None:
            todo += (_Later(b"b"), value.state)
        if pairs:
            todo.append(_Fill(self._how.edits.entries(value, pairs), b"u", in_pairs=True))
        if value.items:
            todo.append(_Fill(value.items, b"e"))
        if value.kwargs is not None:
            self.name(("copyreg", "__newobj_ex__"))
            todo += (_Later(b"\x87R", value, is_memoized=True), value.kwargs, args, value.func)
        else:
            is_new = value.kind == "newobj" or (value.kind == "inst" and not args)
            todo += (_Later(b"\x81" if is_new else b"R", value, is_memoized=True), args, value.func)

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
    bytes: _Writer.octets,
    list: _Writer.sequence,
    tuple: _Writer.group,
    Blob: _Writer.blob,
    Global: _Writer.imported,
    Dict: _Writer.mapping,
    Set: _Writer.collection,
    Call: _Writer.call,
    PersistentId: _Writer.persistent,
}
