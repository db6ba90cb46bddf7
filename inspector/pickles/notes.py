"""Oddities: what a stream does that no honest writer does, or that readers understand differently."""

from __future__ import annotations

from inspector.overriding import override
from inspector.records import dataclass


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
