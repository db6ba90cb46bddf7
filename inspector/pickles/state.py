"""What a pickle machine remembers between two instructions, and how it tells that it is at an end."""

from __future__ import annotations

from collections.abc import Callable

from inspector.limits import Limits
from inspector.pickles.notes import Note
from inspector.pickles.values import Global, PersistentId, Value

MOST_NOTES = 1000
"""Notes beyond this many say nothing new."""


class StoppedError(Exception):
    """The machine met STOP; `end` is the offset behind it. Control flow, never an error for the user."""

    def __init__(self, end: int) -> None:
        super().__init__(end)
        self.end = end


class BrokenStreamError(Exception):
    """The instruction cannot be carried out; the text says why. The machine adds the place."""


class CutOffError(BrokenStreamError):
    """The instruction's operand runs past the bytes there are."""


class State:
    """The stack, marks and memo of one machine, and what it saw.

    Attributes:
        limits: The budgets that handlers check themselves.
        stack: Values above the topmost mark.
        marked: For each mark, the stack below it.
        memo: Remembered values by their slot.
        globals: Every global by (module, name), in the order of first use.
        persistent_ids: Every persistent id, in order.
        opcodes: 1 for each opcode byte seen.
        created: How many containers and calls were made.
        protocol: The protocol declared.
        notes: Oddities.
        root: The value that STOP found.
    """

    __slots__ = (
        "created",
        "globals",
        "limits",
        "marked",
        "memo",
        "notes",
        "opcodes",
        "persistent_ids",
        "protocol",
        "root",
        "stack",
    )

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.stack: list[Value] = []
        self.marked: list[list[Value]] = []
        self.memo: dict[int, Value] = {}
        self.globals: dict[tuple[str, str], Global] = {}
        self.persistent_ids: list[PersistentId] = []
        self.opcodes = bytearray(256)
        self.created = 0
        self.protocol = 0
        self.notes: list[Note] = []
        self.root: Value = None

    def pop_mark(self) -> list[Value]:
        """Take everything above the topmost mark, and the mark.

        Raises:
            IndexError: There is no mark.
        """
        items = self.stack
        self.stack = self.marked.pop()
        self.created += 1
        return items

    def use_global(self, module: str, name: str) -> Global:
        """Count one more use of a global and give its node, one for each name."""
        key = (module, name)
        node = self.globals.get(key)
        if node is None:
            node = self.globals[key] = Global(module, name)
        node.count += 1
        return node

    def note(self, kind: str, offset: int, text: str) -> None:
        """Record an oddity of the instruction whose operand starts at `offset`."""
        if len(self.notes) < MOST_NOTES:
            self.notes.append(Note(kind, offset - 1, text))


Handler = Callable[[State, bytes, int], int]
"""What every opcode has: `handler(state, data, offset of the operand) -> offset of the next instruction`."""
