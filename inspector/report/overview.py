"""What a file is, in a dozen lines: the model, its training, the memory that it needs."""

from __future__ import annotations

from typing import NamedTuple

from inspector.model.checkpoint import Checkpoint
from inspector.records import dataclass
from inspector.report.charts.bars import Chart


class OverviewLine(NamedTuple):
    """A caption and what it says.

    Attributes:
        why: Where that is known from, or what it leaves out; may be empty.
        query: The search that finds what it speaks of; empty where none can be written.
    """

    caption: str
    text: str
    why: str = ""
    query: str = ""


class OverviewGroup(NamedTuple):
    """Lines under one title."""

    title: str
    lines: tuple[OverviewLine, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """What is shown of a file at first.

    Attributes:
        title: What it is, in a few words.
        chart: What its bytes are for, as one bar; None where it stores none.
    """

    title: str
    groups: tuple[OverviewGroup, ...]
    chart: Chart | None = None


def overview_of(checkpoint: Checkpoint) -> Overview:
    """Return what is known of a file whatever machine it is loaded on."""
    return Overview(title=str(len(checkpoint.tensors)), groups=())
