"""What a pickle machine remembers between two instructions, and the exceptions that end it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from inspector.limits import Limits
from inspector.pickles.oddities import Oddity, OddityKind, StreamFault
from inspector.pickles.values import Call, Dict, Global, PersistentId, Set, Value, noun_for
from inspector.progress import Progress

_SHORT_NBYTES = 1 << 12
_FEW = 4
WEIGHT_SHIFT = 4
"""A str counts as one more literal for each 16 bytes."""
MOST_ODDITIES = 1000
"""How many are kept: more of them tell nothing new."""


class Expected(NamedTuple):
    """What is known beforehand of the streams of one program."""

    # functions that it calls for each of many values, and that do nothing but make it, with how many
    # arguments, or one more. Such calls are not listed.
    common: Mapping[str, int] = MappingProxyType({})
    # functions whose results are looked into when their state is set, be it to None
    stateful: frozenset[str] = frozenset()
    package: str = ""  # the package whose names are no news


class StoppedError(Exception):
    """The machine met STOP; `end` is the offset behind it. Control flow, never an error for the user."""

    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


class BrokenStreamError(Exception):
    """The instruction cannot be carried out; the text says why. The machine adds the place."""


class EmptySlotError(BrokenStreamError):
    """A memo slot is read before it is filled."""


class CutOffError(BrokenStreamError):
    """The instruction's operand runs past the bytes there are."""


class PausedError(Exception):
    """The machine is to look at frames and budgets, and to go on at `start`. Never an error for the user."""

    def __init__(self, start: int) -> None:
        super().__init__(start)
        self.start = start


class State:
    """The stack, marks and memo of one machine, and what it saw.

    Attributes:
        marked: For each mark, the stack below it.
        memo: Remembered values by their slot: a list for as long as the slots are filled in order, as every
            pickler does, which takes a tenth of the memory; else a dict.
        handed: Lists that were handed to calls, and tuples of many that were looked through, by their id.
        firsts: Each opcode byte met, in that order, with how many persistent ids and names stand before it.
        table: The handler of each opcode byte, see `handlers.first_use`.
        created: How many containers, calls and other nodes were made.
        literals: How many numbers and short strs; long ones count once more for each 16 bytes.
        frame_end: Where the present frame ends; 0 before the first.
        resolve: Returns what takes the place of a persistent id; None keeps the id.
    """

    __slots__ = (
        "calls",
        "created",
        "ends_s",
        "expected",
        "faults",
        "firsts",
        "frame_end",
        "globals",
        "handed",
        "limits",
        "literals",
        "marked",
        "memo",
        "oddities",
        "persistent_ids",
        "progress",
        "protocol",
        "resolve",
        "root",
        "short_nbytes",
        "stack",
        "table",
    )

    def __init__(self, limits: Limits, table: list[Handler] | None = None) -> None:
        self.limits = limits
        self.stack: list[Value] = []
        self.marked: list[list[Value]] = []
        self.memo: list[Value] | dict[int, Value] = []
        self.globals: dict[tuple[str, str], Global] = {}
        self.handed: dict[int, Value] = {}
        self.persistent_ids: list[PersistentId] = []
        self.calls: list[Call] = []
        self.faults: set[StreamFault] = set()
        self.firsts: dict[int, tuple[int, int]] = {}
        self.table = table or []
        self.ends_s = math.inf
        self.expected = Expected()
        self.progress: Progress | None = None
        self.created = 0
        self.literals = 0
        self.frame_end = 0
        self.protocol = 0
        self.oddities: list[Oddity] = []
        self.root: Value = None
        self.resolve: Callable[[PersistentId], Value] | None = None
        self.short_nbytes = min(_SHORT_NBYTES, limits.text_nbytes)

    @property
    def weight(self) -> int:
        """How many values were made, those that take less memory counted as less."""
        sparse = len(self.memo) if isinstance(self.memo, dict) else len(self.memo) // 8
        return self.created + self.literals // 2 + sparse

    def pop_mark(self) -> list[Value]:
        """Take everything above the topmost mark, and the mark."""
        items = self.stack
        self.stack = self.marked.pop()
        self.created += 1
        return items

    def hand_over(self, args: Value) -> None:
        """Note what a call or a BUILD is given: Python copies what stands in it, and here it is shared.

        `OrderedDict` copies pairs, `__dict__.update` a state. Whatever is put into such a container later is
        in the object here and not in Python's, so it makes the stream odd.
        """
        for value in self._looked_through(args):
            if type(value) is Dict or type(value) is Set:
                value.copied = True
            elif type(value) is list or type(value) is tuple:
                for inner in self._looked_through(value):
                    if type(inner) is list:
                        self.handed[id(inner)] = inner
                if type(value) is list:
                    self.handed[id(value)] = value

    def _looked_through(self, values: Value) -> Sequence[Value]:
        """Return the items of a tuple or list; none of one with many that was looked through before."""
        if type(values) is not tuple and type(values) is not list:
            return (values,)
        if len(values) > _FEW:
            if id(values) in self.handed:
                return ()
            if type(values) is tuple:
                self.handed[id(values)] = values
        return values

    def note_change(self, target: Value, pos: int) -> None:
        """Note that something is put into a container whose contents were copied."""
        if getattr(target, "copied", False) or (self.handed and id(target) in self.handed):
            self.note(OddityKind.CHANGED_LATER, pos, noun_for(target))

    def remember(self, slot: int, value: Value) -> None:
        """Put a value into a slot of the memo, in whatever order the slots come."""
        memo = self.memo
        if isinstance(memo, dict):
            memo[slot] = value
        elif slot == len(memo):
            memo.append(value)
        elif slot < len(memo):
            memo[slot] = value
        else:
            self.memo = {**dict(enumerate(memo)), slot: value}

    def tick(self) -> None:
        """Look at the clock, before anything slow: the machine itself looks only now and then."""
        if self.progress is not None:
            self.progress.advance(0)
        if time.thread_time() > self.ends_s:
            raise BrokenStreamError(f"the pickle takes longer than {self.limits.seconds:g} s to read")

    def add_pairs(self, count: int) -> None:
        """Count the pairs that one instruction makes, before it does: the machine looks only now and then."""
        self.created += count
        self._check(self.created)

    def add_text(self, nbytes: int) -> None:
        """Count a str before it is made, which takes up to four times its length."""
        self.literals += 1 + (nbytes >> WEIGHT_SHIFT)
        self._check(self.literals // 2)

    def _check(self, weight: int) -> None:
        if weight > self.limits.values:
            raise BrokenStreamError(f"the pickle makes more than {self.limits.values:,} values")

    def use_global(self, module: str, name: str) -> Global:
        """Count one more use of a global and give its node, one for each name."""
        key = (module, name)
        node = self.globals.get(key)
        if node is None:
            if len(self.globals) >= self.limits.names:
                raise BrokenStreamError(f"the pickle imports more than {self.limits.names:,} names")
            node = self.globals[key] = Global(module, name)
            node.after = len(self.persistent_ids)
            arity = self.expected.common.get(node.dotted)
            node.common, node.arity = arity is not None, arity or 0
            self.created += 3  # two strs and their place in the table
        node.count += 1
        return node

    def note(self, kind: OddityKind, offset: int, *values: str) -> None:
        """Record an oddity of the instruction whose operand starts at `offset`."""
        if len(self.oddities) < MOST_ODDITIES:
            self.oddities.append(Oddity(kind, offset - 1, values))


Handler = Callable[[State, bytes, int], int]
"""What every opcode has: `handler(state, data, offset of the operand) -> offset of the next instruction`."""
