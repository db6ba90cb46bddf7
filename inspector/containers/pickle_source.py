"""A pickle read straight from a file, whose large byte strings stay there.

A plain pickle has its tensors within, so it may be as large as any checkpoint. The machine sees the stream
without the payloads of its large instructions: they are jumped over where they stand, and a `Blob` says where
that is. What it needs to know of smaller ones, to find the bytes of a tensor later, is noted beside them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from inspector.containers.codings import LINE, PLAIN, TEXT
from inspector.containers.source import Source
from inspector.errors import BrokenOffError
from inspector.limits import Limits
from inspector.overriding import override
from inspector.pickles.handlers import HANDLERS
from inspector.pickles.instructions import CODES, OPCODES, U4, U8, instruction_end
from inspector.pickles.machine import Machine, Stream
from inspector.pickles.oddities import OddityKind
from inspector.pickles.state import CutOffError, Handler, PausedError, State
from inspector.pickles.values import Blob, BlobKind, Call, Global, Value
from inspector.progress import Progress
from inspector.records import replace

_FIRST_NBYTES = 1 << 12
_MOST_READ_NBYTES = 4 << 20
_LARGE_NBYTES = 1 << 14
_MOST_SLOTS = 64
_U1 = struct.Struct("<B")
_I4 = struct.Struct("<i")
ENCODE = ("_codecs", "encode")

# Opcodes whose payload may be bytes of a tensor: how their length is written, and what they push.
_COUNTED: dict[str, tuple[struct.Struct, BlobKind]] = {
    "SHORT_BINBYTES": (_U1, "bytes"),
    "BINBYTES": (U4, "bytes"),
    "BINBYTES8": (U8, "bytes"),
    "BYTEARRAY8": (U8, "bytearray"),
    "SHORT_BINUNICODE": (_U1, "text"),
    "BINUNICODE": (U4, "text"),
    "BINUNICODE8": (U8, "text"),
    "SHORT_BINSTRING": (_U1, "string"),
    "BINSTRING": (_I4, "string"),
}
_LINES = ("UNICODE", "STRING", "INT", "LONG")
_OTHERS = ("LONG1", "LONG4")


class PastEndError(CutOffError):
    """A payload ends behind the end of the source."""


class Place(NamedTuple):
    """Where the payload of an instruction stands."""

    offset: int
    nbytes: int
    spelling: int = PLAIN  # how bytes are spelled in it, see `codings`
    width: int = 0  # how many bytes its length has, which stands before it; 0 for a line, which has none


Hook = Callable[["PlainMachine", Call, int], int | None]
"""Called with a call that is complete and the place behind its instruction; returns the place in the source
to go on from, if that is another."""


class Hooks(NamedTuple):
    """What is called after each call of a name, and after each BUILD of what such a call made."""

    reduced: Hook | None = None
    built: Hook | None = None


NO_HOOKS = Hooks()


class PlainMachine(Machine):
    """Reads one stream of a source."""

    def __init__(
        self, source: Source, start: int, *, limits: Limits, progress: Progress, hooks: Hooks = NO_HOOKS
    ) -> None:
        super().__init__(b"", name="the pickle", limits=limits, progress=progress)
        self.source = source
        self._places: dict[int, tuple[Value, Place]] = {}
        self.start = start
        self._origin = start  # where the data begins in the source: it is a window that moves along
        self._read_nbytes = _FIRST_NBYTES
        self._passed = 0  # bytes that were in the window
        self._settled = 0
        self.frames: list[tuple[int, int]] = []  # where the lengths of its frames stand, and those lengths
        self._use("FRAME", self._framed)
        self._use("REDUCE", self._hooked("REDUCE", hooks.reduced))
        self._use("BUILD", self._hooked("BUILD", hooks.built))
        for opcode, (length, kind) in _COUNTED.items():
            self._use(opcode, self._counted(opcode, length, kind))
        for opcode in (*_LINES, *_OTHERS):
            self._use(opcode, self._noted(opcode))

    # --- where things are -----------------------------------------------------------------------------------

    @override
    def at(self, offset: int) -> int:
        """Return where a place of the data is in the source."""
        return self._origin + offset

    def place_of(self, value: Value) -> Place | None:
        """Return where the bytes stand that a value is written with; None where that is not known."""
        known = self._places.get(id(value))
        if known is None and isinstance(value, Blob) and value.kind == "text-line":
            return Place(value.offset, value.nbytes, LINE)
        return None if known is None else known[1]

    def replace(self, old: Call, new: Value) -> bool:
        """Put a value in the place of the topmost one, wherever the stream may still ask for it.

        An object that was just completed stands on the stack, and maybe in one of the last slots of the memo:
        nothing else had it yet.
        """
        state = self.state
        memo = state.memo
        if isinstance(memo, dict):
            return False
        first = max(len(memo) - _MOST_SLOTS, 0)
        for slot in range(len(memo) - 1, first - 1, -1):
            if memo[slot] is old:
                memo[slot] = new
                break
        else:
            if first:
                return False
        state.stack[-1] = new
        return True

    # --- handlers -------------------------------------------------------------------------------------------

    def _use(self, opcode: str, handler: Handler) -> None:
        """Have a handler of our own for an opcode, and note where that is used first."""
        code = CODES[opcode]

        def first(state: State, data: bytes, pos: int) -> int:
            state.firsts[code] = len(state.persistent_ids), len(state.globals)
            state.table[code] = handler
            return handler(state, data, pos)

        self.state.table[code] = first

    def _hooked(self, opcode: str, hook: Hook | None) -> Handler:
        original = HANDLERS[CODES[opcode]]
        if hook is None:
            return original

        def handler(state: State, data: bytes, pos: int) -> int:
            original(state, data, pos)
            call = state.stack[-1]
            if type(call) is Call and type(call.func) is Global:
                place = hook(self, call, self.at(pos))
                if place is not None:
                    self._jump(pos, place)
            return pos

        return handler

    def _framed(self, state: State, data: bytes, pos: int) -> int:
        end = HANDLERS[CODES["FRAME"]](state, data, pos)
        self.frames.append((self.at(pos), U8.unpack_from(data, pos)[0]))
        raise PausedError(end)

    def _counted(self, opcode: str, length: struct.Struct, kind: BlobKind) -> Handler:
        original = HANDLERS[CODES[opcode]]
        spelling = TEXT if kind == "text" else PLAIN
        is_bytes = kind in {"bytes", "bytearray"}
        most = min(_LARGE_NBYTES if is_bytes else self._limits.text_nbytes, self._limits.text_nbytes)

        def handler(state: State, data: bytes, pos: int) -> int:
            count: int = length.unpack_from(data, pos)[0]
            if count > most:
                self._jump_over(pos + length.size, Place(0, count, spelling, length.size), kind)
            end = original(state, data, pos)
            if is_bytes or (kind == "text" and ENCODE in state.globals):
                value = state.stack[-1]
                self._places[id(value)] = value, Place(self.at(end) - count, count, spelling, length.size)
            return end

        return handler

    def _noted(self, opcode: str) -> Handler:
        """Return a handler of what is always read whole; blobs say where they are in the source."""
        original = HANDLERS[CODES[opcode]]

        def handler(state: State, data: bytes, pos: int) -> int:
            end = original(state, data, pos)
            value = state.stack[-1]
            if isinstance(value, Blob):
                value.offset = self.at(value.offset)
            elif opcode == "UNICODE" and ENCODE in state.globals:
                self._places[id(value)] = value, Place(self.at(pos), end - 1 - pos, LINE)
            return end

        return handler

    def _jump_over(self, pos: int, place: Place, kind: BlobKind) -> None:
        """Push a payload, of which all but where it stands is given, and go on behind it."""
        start = self.at(pos)
        end = start + place.nbytes
        if not self.source.reaches(end):
            raise PastEndError("an operand runs past the end of the file")
        state = self.state
        state.literals += 1
        blob = Blob(kind, start, place.nbytes)
        self._places[id(blob)] = blob, place._replace(offset=start)
        state.stack.append(blob)
        self._jump(pos, end)

    def _jump(self, pos: int, place: int) -> None:
        state = self.state
        behind = pos + place - self.at(pos)
        if pos < state.frame_end < behind:
            state.note(OddityKind.FRAME_STRADDLE, pos)
        self._settle()
        self._passed += pos
        self._data, self._origin = b"", place
        self._read_nbytes = _FIRST_NBYTES
        state.frame_end = max(state.frame_end - behind, 0)
        raise PausedError(0)

    # --- the window -----------------------------------------------------------------------------------------

    @override
    def _recover(self, error: Exception) -> None:
        data, start = self._data, self._pos
        is_past_end = isinstance(error, PastEndError)
        known = start >= len(data) or data[start] in OPCODES
        if not is_past_end and (not known or instruction_end(data, start) is not None):
            super()._recover(error)
        more = b"" if is_past_end else self.source.read_upto(self.at(len(data)), self._read_nbytes)
        if not more:
            raise self._error("the pickle breaks off before its end", start, BrokenOffError)
        self._settle()
        self._passed += start
        if self._passed > self._limits.pickle_nbytes or len(data) - start > self._limits.pickle_nbytes:
            raise self._error(f"the pickle is longer than {self._limits.pickle_nbytes:,} bytes", start)
        self.state.frame_end = max(self.state.frame_end - start, 0)
        self._data, self._origin, self._pos = data[start:] + more, self._origin + start, 0
        self._read_nbytes = min(2 * self._read_nbytes, _MOST_READ_NBYTES)

    def _settle(self) -> None:
        """Count what was noted in the window from the start of the stream, since the window moves."""
        oddities, shift = self.state.oddities, self._origin - self.start
        for number in range(self._settled, len(oddities)):
            one = oddities[number]
            oddities[number] = replace(one, offset=one.offset + shift)
        self._settled = len(oddities)

    @override
    def _stream(self, end: int) -> Stream:
        self._settle()
        stream = super()._stream(end)
        return replace(stream, data=b"", end=self.at(end) - self.start, opcodes=frozenset(stream.firsts))
