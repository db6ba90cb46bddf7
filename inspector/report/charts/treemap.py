"""A treemap of modules: rectangles whose areas are bytes, in exact proportion at every depth.

Squarified after Bruls, Huizing and van Wijk (https://vanwijk.win.tue.nl/stm.pdf). Groups have no frames that
take room, so that any two rectangles of a picture can be compared. Only what can be seen is laid out: the
largest groups first, down to cells of some pixels; what is smaller stands in one cell for each group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from heapq import heappop, heappush
from typing import Literal, NamedTuple

from inspector.records import dataclass
from inspector.report.charts.areas import Areas

_LEAST_PIXELS = 140.0
"""The smallest area of a cell that stands for one row."""
_LEAST_GROUP = 900.0
"""The smallest area of a group whose rows are drawn."""
_LEAST_SIDE = 8.0
_MOST_CELLS = 1500
"""How many cells of the smallest size a picture would have: in a large one, cells are larger."""
_MOST_VISITED = 40_000
"""How many rows are looked at for one picture."""

Direction = Literal["left", "right", "up", "down"]
What = Literal["row", "rest", "own", "loose"]
"""`row`: a row with all below it. `rest`: the smaller rows below it. `own`: its bytes without those of its
parts. `loose`: what is stored, and belongs to no row."""


class Box(NamedTuple):
    """A rectangle, in pixels."""

    x: float
    y: float
    width: float
    height: float

    @property
    def area(self) -> float:
        """Its area."""
        return self.width * self.height

    def holds(self, x: float, y: float) -> bool:
        """Return whether a point is in it."""
        return self.x <= x < self.x + self.width and self.y <= y < self.y + self.height


class Cell(NamedTuple):
    """One rectangle of the picture.

    Attributes:
        nbytes: Its bytes.
        shown: For `rest`, the rows below `node` that have cells of their own.
    """

    node: int
    what: What
    nbytes: int
    box: Box
    shown: tuple[int, ...] = ()


class Frame(NamedTuple):
    """A group whose rows are drawn, and how deep it is below the root of the picture."""

    node: int
    depth: int
    box: Box


@dataclass(frozen=True, slots=True)
class Picture:
    """A treemap.

    Attributes:
        cells: The rectangles, which fill it without a gap.
    """

    root: int
    cells: tuple[Cell, ...]
    frames: tuple[Frame, ...]

    def cell_at(self, x: float, y: float) -> int | None:
        """Return the index of the cell at a point."""
        return next((index for index, cell in enumerate(self.cells) if cell.box.holds(x, y)), None)

    def box_of(self, node: int, parents: Sequence[int]) -> Box | None:
        """Return where a row is, or the first of its parents that has a place of its own; None if outside."""
        frames = {frame.node: frame.box for frame in self.frames}
        cells = {cell.node: cell.box for cell in self.cells if cell.what == "row"}
        rests = {cell.node: cell.box for cell in self.cells if cell.what == "rest"}
        for place, row in enumerate((node, *parents)):
            found = cells.get(row) or (frames.get(row) if place == 0 else rests.get(row))
            if found is not None:
                return found
        return None

    def step(self, index: int, direction: Direction) -> int:
        """Return the nearest cell in a direction, or the same where there is none."""
        here = self.cells[index].box
        far = [
            (_distance(here, cell.box, direction), other)
            for other, cell in enumerate(self.cells)
            if other != index and _is_towards(here, cell.box, direction)
        ]
        return min(far)[1] if far else index


def lay_out(areas: Areas, root: int, width: float, height: float, beyond: tuple[int, ...] = ()) -> Picture:
    """Lay out the rows below a row; nothing where it has no bytes.

    Args:
        areas: The bytes of the rows.
        beyond: Rows right below it that are left out, as is what is no row: the map of a cell of the rest.
    """
    total = areas.nbytes(root)
    if beyond:
        total -= sum(map(areas.nbytes, beyond)) + areas.own_nbytes(root) + areas.loose_nbytes * (root == 0)
    if not total or width <= 0 or height <= 0:
        return Picture(root, (), ())
    scale = width * height / total
    cells: list[Cell] = []
    frames: list[Frame] = []
    whole = Cell(root, "rest" if beyond else "row", total, Box(0.0, 0.0, width, height), beyond)
    waiting = [(-total, root, 0, whole)]
    budget = _MOST_VISITED
    while waiting:
        _, node, depth, cell = heappop(waiting)
        budget -= len(areas.tree.nodes[node].children)
        below = _rows_below(areas, total, cell, scale) if budget >= 0 or depth == 0 else ()
        if not below:
            cells.append(cell)
            continue
        frames.append(Frame(node, depth, cell.box))
        for inner in squarify(below, cell.box):
            if inner.what == "row" and _is_roomy(inner.box):
                heappush(waiting, (-inner.nbytes, inner.node, depth + 1, inner))
            else:
                cells.append(inner)
    return Picture(root, tuple(cells), tuple(sorted(frames, key=lambda frame: frame.depth)))


def squarify(cells: Sequence[Cell], box: Box) -> Iterator[Cell]:
    """Yield cells with places that fill a box, in rows along its shorter side, as square as they can be.

    Args:
        cells: The cells, the largest first for the best result; none has 0 bytes.
    """
    left = sum(cell.nbytes for cell in cells)
    start = 0
    while start < len(cells):
        side = min(box.width, box.height)
        stop, taken = _row(cells, start, side, box.area / left)
        is_last = stop == len(cells)
        yield from _place(cells[start:stop], taken, box, 1.0 if is_last else taken / left)
        box = _without(box, taken / left)
        left -= taken
        start = stop


def _row(cells: Sequence[Cell], start: int, side: float, scale: float) -> tuple[int, int]:
    """Return where the next row ends, and its bytes: it grows while that makes its worst cell more square."""
    taken, worst, largest, smallest = 0, 0.0, 0, 0
    for stop in range(start, len(cells)):
        nbytes = cells[stop].nbytes
        largest, smallest = max(largest, nbytes), min(smallest or nbytes, nbytes)
        length = (taken + nbytes) * scale / side if side else 0.0  # how thick the row would be
        ratio = max(largest * scale / length**2, length**2 / (smallest * scale)) if length else 0.0
        if stop > start and ratio > worst:
            return stop, taken
        taken, worst = taken + nbytes, ratio
    return len(cells), taken


def _place(cells: Sequence[Cell], taken: int, box: Box, share: float) -> Iterator[Cell]:
    """Yield the cells of one row with their places."""
    is_wide = box.width >= box.height
    before = 0
    for cell in cells:
        start, end = before / taken, (before + cell.nbytes) / taken
        before += cell.nbytes
        if is_wide:
            place = Box(box.x, box.y + box.height * start, box.width * share, box.height * (end - start))
        else:
            place = Box(box.x + box.width * start, box.y, box.width * (end - start), box.height * share)
        yield cell._replace(box=place)


def _without(box: Box, share: float) -> Box:
    """Return what a row leaves of a box."""
    if box.width >= box.height:
        return Box(box.x + box.width * share, box.y, box.width * (1 - share), box.height)
    return Box(box.x, box.y + box.height * share, box.width, box.height * (1 - share))


def _is_roomy(box: Box) -> bool:
    return box.area >= _LEAST_GROUP and min(box.width, box.height) >= _LEAST_SIDE


def _rows_below(areas: Areas, whole: int, cell: Cell, scale: float) -> Sequence[Cell]:
    """Return what a cell consists of, the largest first; nothing where it would fall apart into crumbs."""
    node = cell.node
    least = max(_LEAST_PIXELS / scale, whole / _MOST_CELLS)
    large, small, count = [], 0, 0
    last = node
    for child, nbytes in _in(areas, cell):
        if nbytes >= least:
            large.append((nbytes, child))
        else:
            small, count, last = small + nbytes, count + 1, child
    if count == 1:
        large.append((small, last))
        small = 0
    if not large:
        return ()
    large.sort(key=lambda item: (-item[0], item[1]))
    found = [Cell(child, "row", nbytes, cell.box) for nbytes, child in large]
    if small:
        found.append(Cell(node, "rest", small, cell.box, (*cell.shown, *(child for _, child in large))))
    return [*found, *_no_rows(areas, cell)]


def _in(areas: Areas, cell: Cell) -> Iterator[tuple[int, int]]:
    """Yield the rows of a cell with their bytes: those of the rest have no cells elsewhere."""
    elsewhere = frozenset(cell.shown)
    return (row for row in areas.below(cell.node) if row[0] not in elsewhere)


def _no_rows(areas: Areas, cell: Cell) -> Iterator[Cell]:
    """Yield what a row has beside the rows below it."""
    if cell.what == "rest":
        return
    if own := areas.own_nbytes(cell.node):
        yield Cell(cell.node, "own", own, cell.box)
    if cell.node == 0 and areas.loose_nbytes:
        yield Cell(0, "loose", areas.loose_nbytes, cell.box)


def _is_towards(here: Box, there: Box, direction: Direction) -> bool:
    """Return whether a box begins where another one ends, or behind that."""
    slack = 0.5
    return {
        "left": there.x + there.width <= here.x + slack,
        "right": there.x >= here.x + here.width - slack,
        "up": there.y + there.height <= here.y + slack,
        "down": there.y >= here.y + here.height - slack,
    }[direction]


def _distance(here: Box, there: Box, direction: Direction) -> float:
    """Return how far a box is, and more where it is not straight ahead."""
    across = direction in {"left", "right"}
    mine, other = (here, there) if across else (_turned(here), _turned(there))
    ahead = max(other.x - mine.x - mine.width, mine.x - other.x - other.width, 0.0)
    center = mine.y + mine.height / 2
    beside = max(other.y - center, center - other.y - other.height, 0.0)
    return ahead + 3 * beside


def _turned(box: Box) -> Box:
    return Box(box.y, box.x, box.height, box.width)
