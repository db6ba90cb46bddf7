"""Where a stream pushes the strs and devices that a caller wants to change.

A pickle is postfix: each value on the stack was made by one unbroken run of instructions, so it is enough to
remember where each run starts. The trace executes a stream a second time, slower, and keeps that beside the
stack. It is made only for an export; opening a file does not pay for it.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import repeat
from typing import Generic, NamedTuple, TypeGuard, TypeVar

from inspector.limits import DEFAULT_LIMITS, Limits
from inspector.pickles.handlers import HANDLERS
from inspector.pickles.instructions import CODES, U4
from inspector.pickles.state import State, StoppedError
from inspector.pickles.values import Call, Dict, Global, Value
from inspector.progress import Progress
from inspector.records import dataclass, field

T = TypeVar("T")
_BATCH = 8192
_TEXTS = (
    *("STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
)
_CLOSERS = ("POP", "POP_MARK", "APPENDS", "ADDITEMS", "LIST", "FROZENSET", "INST", "OBJ")
_SHORT_TUPLES = {CODES["TUPLE1"]: 1, CODES["TUPLE2"]: 2, CODES["TUPLE3"]: 3}
_ONE_BYTE_SLOTS = frozenset({CODES["BINGET"], CODES["BINPUT"]})
_FOUR_BYTE_SLOTS = frozenset({CODES["LONG_BINGET"], CODES["LONG_BINPUT"]})


@dataclass(frozen=True, slots=True)
class Push(Generic[T]):
    """A run of instructions that puts a watched value on the stack."""

    start: int
    end: int
    value: T
    # start of the push that this one repeats from the memo or the stack; None where it is made
    base: int | None


class Built(NamedTuple):
    """A tuple that holds something watched."""

    made: tuple[Value, ...]
    starts: tuple[int, ...]
    close: int  # where the instruction stands that makes the tuple of them


class Item(NamedTuple):
    """A key and a watched text in a dict. Held on to, since it is looked up by its identity."""

    pair: tuple[Value, Value]
    start: int


class TracedCall(NamedTuple):
    """A call of a watched name: the call, and where its instructions start and end."""

    call: Call
    start: int
    end: int


@dataclass(slots=True)
class Trace:
    """What a stream does with what is watched."""

    # every push of a watched text by where it starts, in order
    texts: dict[int, Push[str]] = field(default_factory=dict)
    devices: dict[int, Push[Call]] = field(default_factory=dict)
    # every tuple that holds a watched text or a device, by its `id`
    tuples: dict[int, Built] = field(default_factory=dict)
    # every pair of a dict whose value is a watched text, by its `id`
    items: dict[int, Item] = field(default_factory=dict)
    calls: list[TracedCall] = field(default_factory=list)
    frames: list[int] = field(default_factory=list)
    # every persistent id made of a value, with where the instruction stands that makes it one
    pids: list[tuple[int, Value]] = field(default_factory=list)
    root: Value = None

    def place_of(self, owner: Value, index: int) -> int | None:
        """Return where the instructions of a tuple's element start; None if it was not built literally."""
        found = self.tuples.get(id(owner))
        return None if found is None or index >= len(found.starts) else found.starts[index]


def trace_pickle(
    data: bytes,
    *,
    texts: frozenset[str],
    names: frozenset[str] = frozenset(),
    device: str = "",
    limits: Limits = DEFAULT_LIMITS,
    progress: Progress | None = None,
) -> Trace:
    """Execute a complete stream and trace the watched texts, calls and devices.

    Args:
        data: The stream; it must have been read before without an error.
        names: The names, without their module, whose calls to collect.
        device: The dotted name of what is called to make a device.
    """
    return _Tracer(data, texts, names, device, limits).run(progress or Progress())


class _Tracer:
    def __init__(
        self, data: bytes, texts: frozenset[str], names: frozenset[str], device: str, limits: Limits
    ) -> None:
        self._data = data
        self._texts = texts
        self._names = names
        self._device = device
        self._state = State(limits)
        self._starts: list[int] = []  # beside the stack: where each value's instructions start
        self._marked: list[tuple[list[int], int]] = []  # beside the marks: the starts below, the mark's place
        self._memo: dict[int, int] = {}  # beside the memo, for watched values only: where they were pushed
        self._trace = Trace()
        self._follow = self._followers()

    def run(self, progress: Progress) -> Trace:
        pos = 0
        try:
            while True:
                progress.advance(0)
                pos = self._run_batch(pos)
        except StoppedError:
            self._trace.root = self._state.root
            return self._trace

    def _run_batch(self, pos: int) -> int:
        data, state, follow, handlers = self._data, self._state, self._follow, HANDLERS
        for _ in repeat(None, _BATCH):
            code = data[pos]
            special = follow[code]
            if special is not None:
                pos = special(pos)
                continue
            end = handlers[code](state, data, pos + 1)
            starts, count = self._starts, len(state.stack)
            if count > len(starts):
                starts.append(pos)
            elif count < len(starts):
                del starts[count:]
            pos = end
        return pos

    def _followers(self) -> list[Callable[[int], int] | None]:
        named: dict[str, Callable[[int], int]] = {
            "MARK": self._mark,
            "TUPLE": self._tuple,
            "GET": self._get,
            "BINGET": self._get,
            "LONG_BINGET": self._get,
            "PUT": self._put,
            "BINPUT": self._put,
            "LONG_BINPUT": self._put,
            "MEMOIZE": self._memoize,
            "DUP": self._dup,
            "REDUCE": self._reduce,
            "DICT": self._items,
            "SETITEM": self._item,
            "SETITEMS": self._items,
            "BINPERSID": self._binpersid,
            "FRAME": self._frame,
        }
        named |= dict.fromkeys(_TEXTS, self._text)
        named |= dict.fromkeys(_CLOSERS, self._close)
        named |= dict.fromkeys(("TUPLE1", "TUPLE2", "TUPLE3"), self._short_tuple)
        by_code = {CODES[name]: function for name, function in named.items()}
        return [by_code.get(code) for code in range(256)]

    def _execute(self, pos: int) -> int:
        return HANDLERS[self._data[pos]](self._state, self._data, pos + 1)

    # --- pushes ---------------------------------------------------------------------------------------------

    def _text(self, pos: int) -> int:
        end = self._execute(pos)
        self._starts.append(pos)
        self._watch(pos, end, None)
        return end

    def _get(self, pos: int) -> int:
        end = self._execute(pos)
        self._starts.append(pos)
        base = self._memo.get(_slot(self._data, pos, end))
        if base is not None:
            self._watch(pos, end, base)
        return end

    def _dup(self, pos: int) -> int:
        base = self._starts[-1]
        end = self._execute(pos)
        self._starts.append(pos)
        self._watch(pos, end, base)
        return end

    def _watch(self, start: int, end: int, base: int | None) -> None:
        value = self._state.stack[-1]
        if isinstance(value, str) and value in self._texts:
            self._trace.texts[start] = Push(start, end, value, base)
        elif self._is_device(value):
            self._trace.devices[start] = Push(start, end, value, base)

    def _reduce(self, pos: int) -> int:
        end = self._execute(pos)
        self._starts.pop()
        start, call = self._starts[-1], self._state.stack[-1]
        if self._is_device(call):
            self._trace.devices[start] = Push(start, end, call, None)
        elif isinstance(call, Call) and isinstance(call.func, Global) and call.func.name in self._names:
            self._trace.calls.append(TracedCall(call, start, end))
        return end

    def _binpersid(self, pos: int) -> int:
        self._trace.pids.append((pos, self._state.stack[-1]))
        return self._execute(pos)

    # --- the memo -------------------------------------------------------------------------------------------

    def _put(self, pos: int) -> int:
        end = self._execute(pos)
        self._remember(_slot(self._data, pos, end))
        return end

    def _memoize(self, pos: int) -> int:
        self._remember(len(self._state.memo))
        return self._execute(pos)

    def _remember(self, slot: int) -> None:
        """Note where the value was pushed that a slot gives from now on.

        What starts with a watched push may be more than that push; `_watch` looks at what is really fetched.
        """
        start = self._starts[-1]
        if start in self._trace.texts or start in self._trace.devices:
            self._memo[slot] = start

    # --- marks and tuples -----------------------------------------------------------------------------------

    def _mark(self, pos: int) -> int:
        self._marked.append((self._starts, pos))
        self._starts = []
        return self._execute(pos)

    def _close(self, pos: int) -> int:
        """Follow what takes all above a mark and maybe leaves one value; POP may take one value only."""
        marks = len(self._state.marked)
        end = self._execute(pos)
        if len(self._state.marked) == marks:
            self._starts.pop()
            return end
        self._starts, mark = self._marked.pop()
        if len(self._state.stack) > len(self._starts):
            self._starts.append(mark)
        return end

    def _tuple(self, pos: int) -> int:
        starts = self._starts
        end = self._close(pos)
        self._keep_tuple(starts, pos)
        return end

    def _short_tuple(self, pos: int) -> int:
        end = self._execute(pos)
        count = _SHORT_TUPLES[self._data[pos]]
        self._keep_tuple(self._starts[-count:], pos)
        del self._starts[len(self._state.stack) :]
        return end

    def _keep_tuple(self, starts: list[int], close: int) -> None:
        made = self._state.stack[-1]
        if isinstance(made, tuple) and any(self._is_watched(item) for item in made):
            self._trace.tuples[id(made)] = Built(made, tuple(starts), close)

    def _is_watched(self, item: Value) -> bool:
        return item in self._texts if isinstance(item, str) else self._is_device(item)

    # --- dicts ----------------------------------------------------------------------------------------------

    def _items(self, pos: int) -> int:
        starts = self._starts
        end = self._close(pos)
        self._keep_items(starts)
        return end

    def _item(self, pos: int) -> int:
        starts = self._starts[-2:]
        end = self._execute(pos)
        del self._starts[-2:]
        self._keep_items(starts)
        return end

    def _keep_items(self, starts: list[int]) -> None:
        made = self._state.stack[-1]
        count = len(starts) // 2
        if not count or not isinstance(made, Dict):
            return
        for pair, start in zip(made.pairs[-count:], starts[1::2], strict=False):
            if isinstance(pair[1], str) and pair[1] in self._texts:
                self._trace.items[id(pair)] = Item(pair, start)

    def _frame(self, pos: int) -> int:
        self._trace.frames.append(pos)
        return self._execute(pos)

    def _is_device(self, value: Value) -> TypeGuard[Call]:
        if type(value) is not Call or not isinstance(value.func, Global):
            return False
        return value.func.dotted == self._device


def _slot(data: bytes, pos: int, end: int) -> int:
    if data[pos] in _ONE_BYTE_SLOTS:
        return data[pos + 1]
    if data[pos] in _FOUR_BYTE_SLOTS:
        return int(U4.unpack_from(data, pos + 1)[0])
    return int(data[pos + 1 : end - 1])
