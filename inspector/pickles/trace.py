"""Where in a stream the texts stand that somebody wants to change.

A pickle is postfix: each value on the stack was made by one unbroken run of instructions, so it is enough to
remember where each run starts. The trace executes a stream a second time, slower, and keeps that beside the
stack. It is made only for an export; opening a file does not pay for it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.instructions import CODES, U4, instruction_end
from inspector.pickles.machine import Machine
from inspector.pickles.state import StoppedError
from inspector.pickles.values import Call, Global, Value
from inspector.progress import Progress

_GETS = {CODES["GET"]: 0, CODES["BINGET"]: 1, CODES["LONG_BINGET"]: 4}
_PUTS = {CODES["PUT"]: 0, CODES["BINPUT"]: 1, CODES["LONG_BINPUT"]: 4}
_TUPLES = {CODES["TUPLE1"]: 1, CODES["TUPLE2"]: 2, CODES["TUPLE3"]: 3}
_MARK, _TUPLE, _MEMOIZE, _DUP, _REDUCE = (
    CODES[name] for name in ("MARK", "TUPLE", "MEMOIZE", "DUP", "REDUCE")
)
_ASK_EACH = 8192


@dataclass(frozen=True, slots=True)
class Push:
    """One instruction that puts a watched text on the stack.

    Attributes:
        start: Where the instruction starts.
        end: Where it ends.
        text: The text.
        base: Start of the push that this one repeats from the memo or the stack, or None for a literal.
    """

    start: int
    end: int
    text: str
    base: int | None


@dataclass(slots=True)
class Trace:
    """What a stream does with watched texts.

    Attributes:
        pushes: Every push of a watched text by where it starts, in order.
        elements: For each tuple that holds a watched text, by its `id`: the tuple and where the instructions
            of each element start.
        calls: Every call, by REDUCE, of a watched name.
        frames: Where FRAME instructions start.
        pids: Every persistent id, in order.
    """

    pushes: dict[int, Push] = field(default_factory=dict)
    elements: dict[int, tuple[tuple[Value, ...], tuple[int, ...]]] = field(default_factory=dict)
    calls: list[Call] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    pids: list[Value] = field(default_factory=list)

    def place_of(self, owner: Value, index: int) -> int | None:
        """Give where the instructions of a tuple's element start; None if it was not built literally."""
        found = self.elements.get(id(owner))
        return None if found is None or index >= len(found[1]) else found[1][index]


def trace_pickle(
    data: bytes,
    *,
    texts: frozenset[str],
    names: frozenset[str] = frozenset(),
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> Trace:
    """Execute a complete stream and trace the watched texts and calls.

    Args:
        data: The stream; it must have been read before without an error.
        texts: The texts to watch.
        names: The names, without their module, whose calls to collect.
        limits: The budgets that the stream was read with.
        progress: Asked for cancellation.

    Raises:
        CancelledError: The work was cancelled.
    """
    return _Tracer(data, texts, names, limits, progress or Progress()).run()


class _Tracer:
    def __init__(
        self, data: bytes, texts: frozenset[str], names: frozenset[str], limits: Limits, progress: Progress
    ) -> None:
        self._data = data
        self._texts = texts
        self._names = names
        self._progress = progress
        self._machine = Machine(data, name="pickle", limits=limits)
        self._state = self._machine.state
        self._starts: list[int] = []  # beside the stack: where each value's instructions start
        self._marked: list[
            tuple[list[int], int]
        ] = []  # beside the marks: the starts below, and the mark's place
        self._memo: dict[int, int] = {}  # beside the memo
        self._trace = Trace()

    def run(self) -> Trace:
        pos, executed = 0, 0
        try:
            while True:
                executed += 1
                if executed % _ASK_EACH == 0:
                    self._progress.advance(0)
                pos = self._step(pos)
        except StoppedError:
            self._trace.pids = [node.pid for node in self._state.persistent_ids]
            return self._trace

    def _step(self, pos: int) -> int:
        code = self._data[pos]
        base = self._base_of(code, pos)
        marks = len(self._marked)
        depth = len(self._starts)
        end = self._machine.step(pos)
        if code == _MARK:
            self._marked.append((self._starts, pos))
            self._starts = []
        elif len(self._state.marked) < marks:
            self._close_mark(code)
        else:
            self._follow_stack(code, pos, depth)
        self._record(code, pos, end, base)
        return end

    def _base_of(self, code: int, pos: int) -> int | None:
        """Say which push the instruction repeats, before it is executed."""
        if code in _GETS:
            return self._memo.get(_slot(self._data, pos, _GETS[code]))
        return self._starts[-1] if code == _DUP and self._starts else None

    def _close_mark(self, code: int) -> None:
        items = self._starts
        self._starts, mark = self._marked.pop()
        stack = self._state.stack
        if len(stack) > len(self._starts):
            self._starts.append(mark)
            if code == _TUPLE:
                self._keep_tuple(stack[-1], items)

    def _follow_stack(self, code: int, pos: int, depth: int) -> None:
        count = len(self._state.stack)
        if count > depth:
            self._starts.append(pos)
            return
        if code in _TUPLES:
            self._keep_tuple(self._state.stack[-1], self._starts[-_TUPLES[code] :])
        del self._starts[count:]

    def _keep_tuple(self, made: Value, starts: list[int]) -> None:
        if isinstance(made, tuple) and any(type(item) is str and item in self._texts for item in made):
            self._trace.elements[id(made)] = (made, tuple(starts))

    def _record(self, code: int, pos: int, end: int, base: int | None) -> None:
        stack = self._state.stack
        if code == _MEMOIZE:
            self._memo[len(self._state.memo) - 1] = self._starts[-1]
        elif code in _PUTS:
            self._memo[_slot(self._data, pos, _PUTS[code])] = self._starts[-1]
        elif code == CODES["FRAME"]:
            self._trace.frames.append(pos)
        elif code == _REDUCE:
            call = stack[-1]
            if isinstance(call, Call) and isinstance(call.func, Global) and call.func.name in self._names:
                self._trace.calls.append(call)
        elif stack and self._starts[-1] == pos:
            text = stack[-1]
            if type(text) is str and text in self._texts:
                self._trace.pushes[pos] = Push(pos, end, text, base)


def _slot(data: bytes, pos: int, width: int) -> int:
    """Read the memo slot of a GET or PUT at `pos`; width 0 is the line of protocol 0."""
    if width == 1:
        return data[pos + 1]
    if width == 4:
        return int(U4.unpack_from(data, pos + 1)[0])
    end = instruction_end(data, pos) or pos + 1
    return int(data[pos + 1 : end - 1])
