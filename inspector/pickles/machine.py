"""The pickle machine: a bounded, symbolic interpreter of protocols 0 to 5.

It keeps the stack, the marks and the memo of a real unpickler and does with inert values what that would do
with live ones. Every budget of `Limits` is checked, and cancellation asked for, each 8192 instructions.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from itertools import repeat
from operator import length_hint

from inspector.errors import BrokenOffError, InvalidPickleError, PickleError
from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.handlers import HANDLERS, first_use
from inspector.pickles.instructions import OPCODES, instruction_end
from inspector.pickles.oddities import Oddity, OddityKind, StreamFault
from inspector.pickles.state import (
    BrokenStreamError,
    EmptySlotError,
    Expected,
    PausedError,
    State,
    StoppedError,
)
from inspector.pickles.values import Call, Global, PersistentId, Value
from inspector.progress import Progress
from inspector.records import dataclass
from inspector.units import cut_text, escape_text

BATCH = 8192
_MOST_NAME = 100
_MOST_NAMED = 3
_TENSOR_VALUES = 11  # of a tensor in a state dict with its name
Extend = Callable[[int], bytes]
"""Given the bytes there are, returns more of the same stream, or as many when there are no more."""
Resolve = Callable[[PersistentId], Value]
"""Returns what a persistent id stands for; the id itself where that is unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stream:
    """A pickle stream that was read to its STOP."""

    root: Value
    data: bytes  # its bytes from the first instruction on; what follows STOP may be there too
    end: int  # the offset behind STOP, within `data`
    globals: tuple[Global, ...]
    persistent_ids: tuple[PersistentId, ...]
    # every call but those that make plain tensors, in the order in which they would be made
    calls: tuple[Call, ...]
    faults: frozenset[StreamFault]  # what stops real unpicklers and is no oddity
    opcodes: frozenset[int]
    # the same in the order of their first use, each with how many persistent ids and how many names stand
    # before that
    firsts: Mapping[int, tuple[int, int]]
    protocol: int
    oddities: tuple[Oddity, ...]


class Machine:
    """Executes one stream. `run` may be called once."""

    def __init__(
        self,
        data: bytes,
        *,
        name: str,
        limits: Limits = DEFAULT_LIMITS,
        progress: Progress | None = None,
        extend: Extend | None = None,
        resolve: Resolve | None = None,
    ) -> None:
        """Prepare to read `data`, which starts at the stream's first byte.

        Args:
            data: The stream, or the beginning of it when `extend` is given.
            name: What error messages call it.
            extend: Returns a longer beginning of the stream when the data ends before STOP.
            resolve: Returns what takes the place of a persistent id.
        """
        self.state = State(limits, [first_use] * 256)
        self.state.resolve = resolve
        self._data = data
        self._name = name
        self._limits = limits
        self._progress = progress
        self._extend = extend
        self._executed = 0
        self._pos = 0  # of the next instruction, or of the one that failed

    def run(self) -> Stream:
        """Execute the stream up to its STOP."""
        self.state.ends_s = self._limits.started().ends_s
        self.state.progress = self._progress
        while True:
            try:
                self._run_batch()
            except StoppedError as stopped:
                return self._stream(stopped.end)
            except PausedError as paused:
                self._pos = paused.start
            except (IndexError, struct.error, ValueError, BrokenStreamError) as error:
                self._recover(error)
            self._check_budget()

    def seen(self) -> Stream:
        """Return what was read so far of a stream that breaks off; its root is all that is on the stack."""
        state = self.state
        state.root = [*(value for values in state.marked for value in values), *state.stack]
        return self._stream(self._pos)

    def at(self, offset: int) -> int:
        """Return the place of a byte of the data in what it was read from, for messages."""
        return offset

    def step(self, start: int) -> int:
        """Execute the one instruction at `start` and return the offset behind it."""
        return HANDLERS[self._data[start]](self.state, self._data, start + 1)

    def _run_batch(self) -> None:
        data, state, pos = self._data, self.state, self._pos
        table, frame_end = state.table, state.frame_end
        start = pos
        steps = repeat(None, BATCH)
        try:
            if pos >= frame_end:
                for _ in steps:
                    pos = table[data[pos]](state, data, pos + 1)
            else:  # The same, but it must not miss the frame's end; asking costs a tenth.
                while pos < frame_end and next(steps, steps) is None:
                    start = pos
                    pos = table[data[pos]](state, data, pos + 1)
        finally:
            self._pos = pos
            self._executed += BATCH - length_hint(steps)
        if start < frame_end < pos:
            state.note(OddityKind.FRAME_STRADDLE, start + 1)

    def _recover(self, error: Exception) -> None:
        """Fetch more of the stream if the instruction was merely cut off; else raise what is wrong."""
        data, start = self._data, self._pos
        known = start >= len(data) or data[start] in OPCODES
        if not known or instruction_end(data, start) is not None:
            is_invalid = not known or isinstance(error, IndexError | EmptySlotError)
            raise self._error(_reason(error), start, InvalidPickleError if is_invalid else PickleError)
        if self._extend is not None:
            if len(data) >= self._limits.pickle_nbytes:
                raise self._error(f"the pickle is longer than {self._limits.pickle_nbytes:,} bytes", start)
            self._data = self._extend(len(data))
        if len(self._data) <= len(data):
            raise self._error("the pickle breaks off before its end", start, BrokenOffError)

    def _check_budget(self) -> None:
        limits, state, pos = self._limits, self.state, self._pos
        if self._executed > limits.opcodes:
            raise self._error(f"the pickle has more than {limits.opcodes:,} instructions", pos)
        if state.weight > limits.values:
            raise self._error(f"the pickle makes more than {limits.values:,} values", pos)
        if len(state.marked) > limits.marks:
            raise self._error(f"the pickle nests more than {limits.marks:,} marks", pos)
        try:
            state.tick()
        except BrokenStreamError as error:
            raise self._error(str(error), pos) from None

    def _stream(self, end: int) -> Stream:
        state = self.state
        return Stream(
            root=state.root,
            data=self._data,
            end=end,
            globals=tuple(state.globals.values()),
            persistent_ids=tuple(state.persistent_ids),
            calls=tuple(state.calls),
            faults=frozenset(state.faults),
            opcodes=frozenset(code for code in OPCODES if state.table[code] is not first_use),
            firsts={code: at for code, at in state.firsts.items() if code in OPCODES},
            protocol=state.protocol,
            oddities=tuple(state.oddities),
        )

    def _error(self, what: str, offset: int, kind: type[PickleError] = PickleError) -> PickleError:
        data = self._data
        opcode = OPCODES.get(data[offset]) if offset < len(data) else None
        at = f"{self._name}, byte {self.at(offset):,}"
        where = at if opcode is None else f"{at}, {opcode.name}"
        return kind(what, where=where, remedy=_warning(self.state) or _advice(self.state))


def _warning(state: State) -> str | None:
    """Return what runs although the pickle is broken: all that stands before the place where it breaks."""
    news = [node for node in state.globals.values() if not node.common]
    package = state.expected.package
    names = [cut_text(escape_text(node.dotted), _MOST_NAME) for node in news if node.package != package]
    if not names or not state.calls:
        return None
    return (
        "loading it would still call what stands before that byte, and it imports "
        f"{', '.join(names[:_MOST_NAMED])}{' and more' if len(names) > _MOST_NAMED else ''}"
    )


def _advice(state: State) -> str | None:
    most = state.limits.values // _TENSOR_VALUES
    if state.weight <= state.limits.values or len(state.persistent_ids) < most // 2:
        return None
    return f"some {most:,} tensors are read of one pickle: save them in several files, or as safetensors"


def _reason(error: Exception) -> str:
    if isinstance(error, BrokenStreamError):
        return str(error)
    if isinstance(error, ValueError):
        return "the pickle has an operand that cannot be read"
    return "the pickle takes what is not on its stack"


def growing_machine(
    read: Callable[[int], bytes],
    *,
    name: str,
    limits: Limits,
    progress: Progress | None = None,
    resolve: Resolve | None = None,
    first_nbytes: int = 1 << 16,
) -> Machine:
    """Return what reads a pickle that only its own STOP ends; `read` returns its first so many bytes."""

    def extend(nbytes: int) -> bytes:
        return read(min(2 * nbytes + first_nbytes, limits.pickle_nbytes))

    return Machine(extend(0), name=name, limits=limits, progress=progress, extend=extend, resolve=resolve)


def read_pickle(
    data: bytes,
    *,
    name: str = "pickle",
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
    extend: Extend | None = None,
    expected: Expected | None = None,
) -> Stream:
    """Read one pickle stream into inert values; see `Machine` for the arguments and errors."""
    machine = Machine(data, name=name, limits=limits, progress=progress, extend=extend)
    machine.state.expected = expected or machine.state.expected
    return machine.run()
