"""Oddities: what a stream does that no honest writer does, or that readers understand differently."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.records import dataclass

if TYPE_CHECKING:
    from typing_extensions import override
else:

    def override(method):  # noqa: ANN001, ANN201  # seen by nobody who checks types
        """Mark a method that takes the place of one in a base class (`typing` has it from 3.12 on)."""
        return method


@dataclass(frozen=True, slots=True)
class Note:
    """One oddity.

    Attributes:
        kind: A stable word for it, such as `stack-global-operands`.
        offset: The byte of the instruction, within its stream.
        text: What is odd, in one sentence.
    """

    kind: str
    offset: int
    text: str

    @override
    def __str__(self) -> str:
        """The sentence with its place."""
        return f"{self.text} (byte {self.offset:,})"
