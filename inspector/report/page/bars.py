"""A histogram as a block."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from inspector.report.words.values import sparkline


class Bars(NamedTuple):
    """A histogram."""

    caption: str
    counts: tuple[int, ...]
    edges: tuple[float, ...]
    width: int

    def plain(self) -> Iterator[str]:
        """Return it as one line of bars."""
        yield f"  {self.caption:<{self.width}}  |{sparkline(self.counts)}|"
