"""What a window that compares two checkpoints shows, as one frozen value."""

from __future__ import annotations

from typing import Literal

from inspector.progress import Progress
from inspector.records import dataclass, field
from inspector.report.comparing.rows import DiffRow
from inspector.session.comparing.listing import Figures, Found, Listing, Order, Shape
from inspector.session.screen import FailurePage


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFile:
    """One of the two files.

    Attributes:
        name: What it is called in the window: its name, or more of its path where both have the same.
        line: Its format and size; empty until it is known.
    """

    path: str
    name: str
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChoice:
    """A kind of difference that the list can be narrowed to."""

    id: str
    label: str
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPair:
    """One fact of both files.

    Attributes:
        differs: Whether it is not the same.
    """

    label: str
    a: str
    b: str
    differs: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The row that is selected.

    Attributes:
        numbers: By how much the numbers differ, or why that cannot be told; empty until it is known.
    """

    row: int
    title: str
    detail: str
    facts: tuple[FactPair, ...]
    numbers: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareScreen:
    """All that the window shows.

    Attributes:
        phase: Whether the files are read, compared, or could not be.
        tone: `good` where they are equal, `warning` where they differ, `bad` where loading one is dangerous.
        notes: What could not be compared, and what became of names.
        shape: The rows as a tree; None until they are known, and `listing` what of it is listed.
        figures: Of each node by how much it differs; empty until any numbers were compared.
        most: The largest figure of each column.
        measuring: How far comparing numbers is; None while it does not run.
        measured: What came of that, or why it failed; empty before.
        can_measure: What a button that compares the numbers says; empty where all were.
        selection: The selected row; None without one.
        progress: How far reading is; None when it is over.
        failure: Why the files could not be compared.
    """

    phase: Literal["opening", "ready", "failed"]
    title: str
    a: ComparedFile
    b: ComparedFile
    tone: Literal["good", "warning", "bad", "neutral"] = "neutral"
    verdict: str = ""
    alerts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    kinds: tuple[KindChoice, ...] = ()
    only_differences: bool = True
    rows: tuple[DiffRow, ...] = ()
    shape: Shape | None = None
    listing: Listing | None = None
    order: Order = Order()
    found: Found = field(default_factory=dict)
    figures: tuple[Figures | None, ...] = ()
    most: tuple[float, ...] = ()
    measuring: Progress | None = None
    measured: str = ""
    can_measure: str = ""
    shown: int = 0
    query: str = ""
    status: str = ""
    selection: Selection | None = None
    progress: Progress | None = None
    failure: FailurePage | None = None
