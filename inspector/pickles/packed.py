"""Calls that runs of instructions make: what is the same in nearly all of them is kept once, in columns.

A tensor's call has a tuple of arguments with two of sizes and a call for its hooks: half of what it takes.
They are made for one call when somebody asks for just these objects, and counted then; whoever only reads
what they say takes `Call.told`.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import TYPE_CHECKING, Protocol

from inspector.errors import PickleError

if TYPE_CHECKING:
    from inspector.pickles.values import Call, PersistentId, Value

MADE = 2
"""What the arguments of one call count as, beyond their sizes and strides."""


class Numbers(Protocol):
    """Numbers as a run holds them; see `runs`."""

    @property
    def first(self) -> int:
        """The number before the sizes."""

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes."""

    @property
    def created(self) -> int:
        """How many values their instructions make."""


class Later(Enum):
    """What a slot of the memo holds before the arguments of a call are made, by the place within those."""

    SIZES = 2
    STRIDES = 3
    HOOKS = 5
    ARGS = -1


class Room:
    """How many values may still be made of calls that are packed, long after their pickle was read.

    Attributes:
        used: What the pickle took without them.
        made: What was made of them since.
    """

    __slots__ = ("_most", "made", "used")

    def __init__(self, most: int) -> None:
        self._most = most
        self.used = 0
        self.made = 0

    @property
    def weight(self) -> int:
        """How many values that comes to: what is made later stands beside the columns that it is made of."""
        return 2 * self.made

    def take(self, count: int) -> None:
        """Count values that are about to be made.

        Raises:
            PickleError: They are more than the limits allow.
        """
        self.made += count
        if self.used + self.weight > self._most:
            raise PickleError(
                f"the pickle makes more than {self._most:,} values",
                remedy="save its tensors in several files, or as safetensors",
            )


class Packed:
    """The arguments of the calls of some runs, in columns."""

    __slots__ = ("_flags", "_nodes", "_places", "_room", "_steps")

    def __init__(
        self,
        nodes: Sequence[PersistentId],
        places: Sequence[Numbers],
        steps: Sequence[Numbers],
        flags: Sequence[tuple[Value, ...]],
        room: Room,
    ) -> None:
        """Keep what the calls were given, one in each place of all columns.

        Args:
            nodes: The storages.
            places: Offsets and sizes.
            steps: Strides.
            flags: Whether they require gradients, and what makes their hooks.
            room: What all that is made counts in.
        """
        self._nodes = nodes
        self._places = places
        self._steps = steps
        self._flags = flags
        self._room = room

    def told(self, row: int) -> tuple[Value, ...]:
        """Return the arguments of a call to be read and forgotten: without its hooks, its sizes shared."""
        place = self._places[row]
        return self._nodes[row], place.first, place.sizes, self._steps[row].sizes, self._flags[row][0], None

    def make(self, row: int, call: type[Call]) -> tuple[Value, ...]:
        """Return the arguments of a call as objects of their own.

        Raises:
            PickleError: There is no room for more.
        """
        place, steps, (grad, maker) = self._places[row], self._steps[row], self._flags[row]
        self._room.take(MADE + place.created + steps.created)
        hooks = call(maker, (), "reduce")
        return self._nodes[row], place.first, (*place.sizes,), (*steps.sizes,), grad, hooks
