"""The map of modules: what it shows, and its words for each cell."""

from __future__ import annotations

from operator import sub
from typing import NamedTuple

from inspector.model.totals import lost_nbytes
from inspector.records import dataclass
from inspector.report.charts.areas import Areas, Coloring
from inspector.report.charts.treemap import Cell
from inspector.report.colors import device_name
from inspector.report.outline.node import Tree
from inspector.target.simulate import is_sent
from inspector.units import cut_text, escape_text, format_count, format_nbytes, format_shape, unescaped_path

_WHOLE = "Whole file"
_LOOSE = "in no tensor"
_MOST_PARTS = 4
_MOST_PATH = 300


class Crumb(NamedTuple):
    """A row on the way from the root of the tree to what the map shows."""

    node: int
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ModuleMap:
    """What the map of modules shows.

    Attributes:
        areas: The bytes of the rows.
        notes: What has no area, and why, a sentence each.
    """

    areas: Areas
    coloring: Coloring
    root: int
    crumbs: tuple[Crumb, ...]
    headline: str
    notes: tuple[str, ...]


def module_map(areas: Areas, coloring: Coloring, root: int) -> ModuleMap:
    """Return the map of the rows below one row."""
    count, nbytes = areas.tensors(root), areas.nbytes(root)
    nodes = areas.tree.nodes
    way = [root, *parents_of(areas.tree, root)] if root else [0]
    crumbs = tuple(Crumb(node, nodes[node].name if node else _WHOLE) for node in reversed(way))
    return ModuleMap(
        areas=areas,
        coloring=coloring,
        root=root,
        crumbs=crumbs,
        headline=f"{format_nbytes(nbytes)} in {format_count(count, 'tensor')}",
        notes=notes_on(areas),
    )


def parents_of(tree: Tree, node: int) -> list[int]:
    """Return the rows above a row, the nearest first; the root is the last."""
    found = []
    while (node := tree.nodes[node].parent) >= 0:
        found.append(node)
    return found


def root_for(tree: Tree, root: int, node: int) -> int:
    """Return the row whose map shows a row: the root of the present map, or the first above it that does."""
    if not 0 <= node < len(tree.nodes):
        return root
    above = {node, *parents_of(tree, node)}
    while root not in above:
        root = tree.nodes[root].parent
    return root


def notes_on(areas: Areas) -> tuple[str, ...]:
    """Return what the areas leave out, a sentence each."""
    checkpoint = areas.checkpoint
    tensors = [row for row in checkpoint.tensors if row.part_of is None]
    viewing = [row.storage for row in tensors if row.storage is not None and row.nbytes]
    shared = len(viewing) - len(set(viewing))
    meta = sum(row.device == "meta" and row.storage is None for row in tensors)
    inline = sum(is_sent(row) and row.device != "meta" for row in tensors)
    absent = list(filter(None, map(lost_nbytes, checkpoint.storages)))
    said = {
        f"{_tensors(shared)} a storage with an earlier one, where its bytes are counted.": shared,
        f"{_tensors(meta, 'is', 'are')} on the meta device, without data and so without an area.": meta,
        f"{_tensors(inline, 'is', 'are')} stored in the pickle itself, and without an area here.": inline,
        f"{format_nbytes(sum(absent))} in {format_count(len(absent), 'storage')} "
        f"{'is' if len(absent) == 1 else 'are'} missing from the file, and hatched.": len(absent),
        f"{format_nbytes(areas.loose_nbytes)} are stored and belong to no tensor.": areas.loose_nbytes,
    }
    return tuple(text for text, number in said.items() if number)


def _tensors(count: int, one: str = "shares", many: str = "share") -> str:
    return f"{format_count(count, 'tensor')} {one if count == 1 else many}"


# --- words for a cell ---------------------------------------------------------------------------------------


def parts_of(page: ModuleMap, cell: Cell) -> tuple[int, ...]:
    """Return the bytes of each kind in a cell; none for what belongs to no tensor."""
    areas, parts = page.areas, page.coloring.parts
    if cell.what == "loose":
        return (0,) * len(page.coloring.kinds)
    if cell.what == "own":
        return parts(cell.node, cell.node + 1)
    found = parts(cell.node, areas.end(cell.node))
    if cell.what == "rest":
        taken = [parts(cell.node, cell.node + 1), *(parts(row, areas.end(row)) for row in cell.shown)]
        found = tuple(map(sub, found, map(sum, zip(*taken, strict=True))))
    return found


def labels_of(page: ModuleMap, cell: Cell) -> tuple[str, ...]:
    """Return the names of a cell, the most telling first; what fits is drawn."""
    nodes = page.areas.tree.nodes
    name = nodes[cell.node].name
    if cell.what == "loose":
        return (_LOOSE,)
    if cell.what == "own":
        return (f"{name} (data)", name)
    if cell.what == "rest":
        count = tensors_of(page, cell)
        return (f"{format_count(count, 'smaller tensor')}", f"{count:,} smaller", f"{count:,}")
    above = nodes[cell.node].parent
    if above <= 0 or above == page.root:
        return (name,)
    step = nodes[above].path[-1:]
    return (f"{nodes[above].name}{step if step in {'/', '.'} else '/'}{name}", name)


def damage_in(page: ModuleMap, cell: Cell) -> str:
    """Return what is wrong in a cell: a word, or how many tensors of it are damaged."""
    areas, node = page.areas, cell.node
    marks = areas.tree.marks
    if not marks or cell.what == "loose":
        return ""
    if cell.what == "own" or not areas.tree.nodes[node].children:
        return marks.of(node, node)
    left_out = [(node, node), *((row, areas.end(row) - 1) for row in cell.shown)] if cell.shown else []
    count = marks.count(node, areas.end(node) - 1) - sum(marks.count(*rows) for rows in left_out)
    return f"{count:,} damaged" if count else ""


def facts_of(page: ModuleMap, cell: Cell) -> tuple[str, ...]:
    """Return what there is to be said of a cell, a line each; the first is what it is."""
    areas = page.areas
    shares = [f"{share_text(cell.nbytes, areas.nbytes(0))} of the file"]
    if page.root:
        shares.append(f"{share_text(cell.nbytes, areas.nbytes(page.root))} of what is shown")
    size = f"{format_nbytes(cell.nbytes)} ({cell.nbytes:,} bytes), {', '.join(shares)}"
    lines = [_name(page, cell), size, kinds_text(page, parts_of(page, cell)), *_more(page, cell)]
    lines.insert(1, damage_in(page, cell))
    return tuple(line for line in lines if line)


def _name(page: ModuleMap, cell: Cell) -> str:
    whole = path_shown(page.areas, cell.node)
    if cell.what == "loose":
        return "Stored bytes that belong to no tensor"
    if cell.what == "rest":
        return f"{format_count(tensors_of(page, cell), 'smaller tensor')} in {whole}"
    return f"{whole}, without its parts" if cell.what == "own" else whole


def path_shown(areas: Areas, node: int) -> str:
    """Return the path of a row, in full; a slice of a long list has its own words behind it."""
    row = areas.tree.nodes[node]
    if row.kind == "bucket":
        return f"{path_shown(areas, row.parent)}: {row.name}"
    shown = unescaped_path(row.path if row.kind == "tensor" else row.path.rstrip("/."))
    return escape_text(cut_text(shown, _MOST_PATH)) or row.name or _WHOLE


def kinds_text(page: ModuleMap, parts: tuple[int, ...]) -> str:
    """Name what bytes are of, the most first; with how much of each, where there are several."""
    kinds = sorted(zip(parts, page.coloring.kinds, strict=True), key=lambda item: -item[0])
    held = [(nbytes, kind) for nbytes, kind in kinds if nbytes]
    if len(held) < 2:
        return "".join(kind.label for _, kind in held)
    named = [f"{kind.label} {format_nbytes(nbytes)}" for nbytes, kind in held[:_MOST_PARTS]]
    return ", ".join([*named, *([f"{len(held) - _MOST_PARTS} more"] if len(held) > _MOST_PARTS else [])])


def _more(page: ModuleMap, cell: Cell) -> list[str]:
    """Return a tensor's type and shape, or what a group holds; and what a storage has beyond a tensor."""
    if cell.what in {"rest", "loose"}:
        return []
    areas = page.areas
    node = areas.tree.nodes[cell.node]
    lines = [format_count(node.parameters, "parameter")] if node.parameters else []
    if node.kind != "tensor":
        return [format_count(areas.tensors(cell.node), "tensor"), *lines]
    row = areas.checkpoint.tensors[node.index]
    lines.insert(
        0, f"{escape_text(row.dtype)}, {format_shape(row.shape)}, {row.role}, {device_name(row.device)}"
    )
    own = areas.own_nbytes(cell.node)
    if row.storage is not None and own > row.nbytes:
        lines.append(f"It shows {format_nbytes(row.nbytes)} of its storage of {format_nbytes(own)}.")
    return lines


def tensors_of(page: ModuleMap, cell: Cell) -> int:
    """Return how many tensors with bytes a cell stands for."""
    areas = page.areas
    if cell.what in {"own", "loose"}:
        return int(cell.what == "own")
    if cell.what == "row":
        return areas.tensors(cell.node)
    own = bool(areas.own_nbytes(cell.node))
    return areas.tensors(cell.node) - own - sum(map(areas.tensors, cell.shown))


def share_text(nbytes: int, total: int) -> str:
    """Return a share in percent."""
    share = nbytes / total
    return f"{share:.1%}" if share >= 0.001 else "<0.1%"
