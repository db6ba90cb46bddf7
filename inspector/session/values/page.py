"""What the window shows of values, as frozen records; `session.screen.Screen` holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inspector.records import dataclass

if TYPE_CHECKING:
    from inspector.progress import Progress
    from inspector.values.statistics import Statistics


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceChoice:
    """Which two dimensions of a tensor are looked at, and where in the others.

    Attributes:
        row: The dimension of the rows; None for a single row.
        column: That of the columns; None for a single column.
        index: An index for each dimension; those of the two do not matter.
    """

    row: int | None
    column: int | None
    index: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """A slice as a picture: of each block of elements the one that is farthest from zero.

    Attributes:
        seen: How many of them, from the first on, are in the picture.
        cells: The numbers, as float32 row by row.
        levels: How they are colored, a byte for each: 0 and 254 are the ends, 127 is zero, 255 is NaN.
        limit: The magnitude that the ends stand for.
        is_clipped: Whether there are larger ones, which are colored like them.
    """

    shape: tuple[int, int]
    seen: tuple[int, int]
    steps: tuple[int, int]
    rows: int
    columns: int
    cells: bytes
    levels: bytes
    limit: float
    is_clipped: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class CellBlock:
    """Some cells of the table: where they begin, with how many digits, and their texts."""

    row: int
    column: int
    digits: int
    texts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanRow:
    """A line of what a scan found: the tensor, its row in the tree, and what is odd about it."""

    path: str
    node: int
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ScanPage:
    """The scan of all tensors: nothing yet, how far it is, or what it found.

    Attributes:
        progress: The running scan, or None.
        sentence: What it found, or why it failed; empty before it.
    """

    progress: Progress | None = None
    sentence: str = ""
    is_odd: bool = False
    rows: tuple[ScanRow, ...] = ()
    more: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TakenPage:
    """The files of rows that are dragged out.

    Attributes:
        stage: Whether they are being written, are there, or cannot be written.
        sentence: Why they cannot be written; else empty.
    """

    stage: Literal["writing", "ready", "failed"]
    progress: Progress
    sentence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ValuesPage:
    """What is known of the values of the selected tensor.

    Attributes:
        row: The tensor's row in the checkpoint; None where no tensor is selected.
        refusal: Why there are no values; else empty.
        progress: The running work, or None.
        error: Why it failed; else empty.
        statistics: The figures; None before they are known.
        shape: The shape that slices are taken of; empty where there are none.
        choice: The slice that is looked at; None where there are none.
        picture: It as a picture; None before that is there, and where there is none.
        picture_note: How to read it, or why there is none.
        forms: The files that it can be saved as: the suffix of each, and what it is.
        no_forms: Why it cannot be saved; empty where it can.
        no_code: Why there is no code that loads it alone; empty where there is.
        is_saving: Whether a tensor is being saved, this or another.
        saved: What becomes or became of it; else empty.
    """

    row: int | None = None
    title: str = ""
    facts: str = ""
    refusal: str = ""
    progress: Progress | None = None
    error: str = ""
    lines: tuple[tuple[str, str], ...] = ()
    has_rank: bool = False
    statistics: Statistics | None = None
    summary: str = ""
    shape: tuple[int, ...] = ()
    choice: SliceChoice | None = None
    picture: Picture | None = None
    picture_note: str = ""
    forms: tuple[tuple[str, str], ...] = ()
    no_forms: str = ""
    no_code: str = ""
    cells: CellBlock | None = None
    scan: ScanPage = ScanPage()
    is_saving: bool = False
    saved: str = ""


def first_choice(shape: tuple[int, ...]) -> SliceChoice:
    """Return the slice that is looked at first: the two longest dimensions, at the beginning of all others.

    A vector is a column.
    """
    index = (0,) * len(shape)
    if len(shape) < 2:
        return SliceChoice(row=0 if shape else None, column=None, index=index)
    longest = sorted(range(len(shape)), key=lambda axis: -shape[axis])[:2]
    return SliceChoice(row=min(longest), column=max(longest), index=index)
