"""What a window that compares two checkpoints shows, as one frozen value."""

from __future__ import annotations

from typing import Literal

from inspector.progress import Progress
from inspector.records import dataclass
from inspector.report.comparing.rows import DiffRow
from inspector.session.screen import FailurePage


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedFile:
    """One of the two files.

    Attributes:
        path: Where it is.
        name: What it is called in the window: its name, or more of its path where both have the same.
        line: Its format and size; empty until it is known.
    """

    path: str
    name: str
    line: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindChoice:
    """A kind of difference that the list can be narrowed to.

    Attributes:
        id: The kind.
        label: What it is called.
        count: How many rows are of it.
        chosen: Whether the list is narrowed to it.
    """

    id: str
    label: str
    count: int
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class RowGroup:
    """Rows that stand together.

    Attributes:
        title: What they have in common: a place in the files, or what they are.
        detail: How many there are.
        rows: Their numbers.
    """

    title: str
    detail: str
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class FactPair:
    """One fact of both files.

    Attributes:
        label: What it is.
        a: In the first.
        b: In the second.
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
        row: Its number.
        title: Its path.
        detail: What differs, in words.
        facts: What both files say of it.
        numbers: By how much the numbers differ, in words; empty until that was asked for.
        can_measure: Whether it can be asked for.
        measuring: How far that is; None while it does not run.
        failure: Why it failed; empty if it has not.
    """

    row: int
    title: str
    detail: str
    facts: tuple[FactPair, ...]
    numbers: str = ""
    can_measure: bool = False
    measuring: Progress | None = None
    failure: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompareScreen:
    """All that the window shows.

    Attributes:
        phase: Whether the files are read, compared, or could not be.
        title: The title of the window.
        a: The first file.
        b: The second.
        tone: `good` where they are equal, `warning` where they differ, `bad` where loading one is dangerous.
        verdict: Whether they are equal, in one sentence.
        alerts: What is said before all else, a sentence each.
        notes: What could not be compared, and what became of names.
        kinds: The kinds of difference that there are.
        only_differences: Whether rows that are equal are left out.
        rows: All rows, those that are equal as well.
        groups: The rows that are listed.
        shown: How many those are.
        query: The search that they are found by.
        status: The same in words.
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
    groups: tuple[RowGroup, ...] = ()
    shown: int = 0
    query: str = ""
    status: str = ""
    selection: Selection | None = None
    progress: Progress | None = None
    failure: FailurePage | None = None
