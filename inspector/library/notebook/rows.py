"""The tree in a notebook: `<details>` for groups, with a bound on how many rows there are in all.

The rows nearest to the root come first, and each group gets some of its own, so that a file with one long
list still shows what is beside it. What is left out is counted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from html import escape

from inspector.library.notebook.style import mark
from inspector.report.colors import NEUTRAL
from inspector.report.outline.node import Node, Tree
from inspector.units import cut_text, escape_text, format_count, format_nbytes

MOST_ROWS = 500
MOST_BESIDE = 60
"""How many rows of one group are shown."""
_MOST_OPEN = 24
"""How many rows are to be seen before anything is unfolded, as far as groups can be."""
_MOST_NAME, _MOST_PATH, _MOST_TEXT = 120, 300, 80
_MOST_DEVICES, _MOST_LEVELS = 4, 12


def text_of(text: str, most: int = _MOST_TEXT) -> str:
    """Return a text from a file as HTML: cut, with nothing invisible in it, and with no markup."""
    return escape(escape_text(cut_text(text, most)))


def tree_lines(tree: Tree) -> Iterator[str]:
    """Yield the rows of a tree, as many as may be."""
    shown = _shown(tree)
    unfolded = _unfolded(tree, shown)
    yield from _below(tree, shown, unfolded)


def _shown(tree: Tree) -> dict[int, list[int]]:
    """Return which rows are shown below each row that is shown, nearest to the root first."""
    shown: dict[int, list[int]] = {}
    waiting, count = deque([0]), 0
    while waiting and count < MOST_ROWS:
        id_ = waiting.popleft()
        children = tree.nodes[id_].children
        shown[id_] = children[: min(MOST_BESIDE, MOST_ROWS - count)]
        count += len(shown[id_])
        waiting.extend(child for child in shown[id_] if tree.nodes[child].children)
    return shown


def _unfolded(tree: Tree, shown: dict[int, list[int]]) -> set[int]:
    """Return the groups that are unfolded at first: nearest to the root first, while there is room.

    One that stands alone always is, one of which not all is shown else never.
    """
    count, found = len(shown.get(0, ())), set[int]()
    for id_, children in shown.items():
        node = tree.nodes[id_]
        fits = count + len(children) <= _MOST_OPEN and len(children) == len(node.children)
        is_alone = id_ and len(tree.nodes[node.parent].children) == 1
        if id_ and node.parent in {0, *found} and (fits or is_alone):
            count += len(children)
            found.add(id_)
    return found


def _below(tree: Tree, shown: dict[int, list[int]], unfolded: set[int]) -> Iterator[str]:
    """Yield all rows, to any depth without recursion: files nest as deep as they like."""
    stack: list[tuple[int, int] | str] = [*_within(tree, 0, shown, 0)]
    while stack:
        one = stack.pop()
        if isinstance(one, str):
            yield one
            continue
        id_, level = one
        cells = _cells(tree, tree.nodes[id_])
        if not tree.nodes[id_].children:
            yield f'<div class="{_kind(tree.nodes[id_])}">{cells}</div>'
            continue
        state, inner = " open" if id_ in unfolded else "", ' class="in"' if level < _MOST_LEVELS else ""
        yield f'<details{state}><summary class="row">{cells}</summary><div{inner}>'
        stack.append("</div></details>")
        stack.extend(_within(tree, id_, shown, level + 1))


def _within(tree: Tree, id_: int, shown: dict[int, list[int]], level: int) -> list[tuple[int, int] | str]:
    """Return what stands below a row, the last first: how many are left out, the rows with their level."""
    rows = shown.get(id_, [])
    more = len(tree.nodes[id_].children) - len(rows)
    words = f"{more:,} more" if rows else f"{format_count(more, 'row')}, not listed here"
    left_out = [f'<div class="row leaf soft"><span>{words}</span></div>'] if more else []
    return [*left_out, *((child, level) for child in reversed(rows))]


def _kind(node: Node) -> str:
    return "row leaf value" if node.kind == "value" else "row leaf"


def _cells(tree: Tree, node: Node) -> str:
    name = f'<span title="{text_of(node.path, _MOST_PATH)}">{text_of(node.name, _MOST_NAME)}</span>'
    if node.kind == "value":
        kind = f'<span class="soft">{text_of(node.type_text, 24)}</span>'
        return f"{name}<span>{text_of(node.text)}</span>{kind}"
    size = f"<span>{format_nbytes(node.nbytes)}</span>"
    if node.kind != "tensor" and not node.tensors:
        values = format_count(len(node.children), "entry", "entries")
        return f'{name}<span></span><span></span><span class="soft">{values}</span><span></span>'
    cells = f"<span>{text_of(node.shape_text)}</span><span>{text_of(node.type_text)}</span>"
    return f"{name}<span>{_device(tree, node)}</span>{cells}{size}"


def _device(tree: Tree, node: Node) -> str:
    colors = sorted({tree.colors[device] for device, _ in node.devices if device in tree.colors}, key=_order)
    dots = "".join(f'<i class="dot {mark(color)}"></i>' for color in colors[:_MOST_DEVICES])
    return f"{dots}{text_of(node.device_text)}"


def _order(color: int) -> tuple[bool, int]:
    """Return where a color stands among others: devices in their order, then what is neutral."""
    return color == NEUTRAL, color
