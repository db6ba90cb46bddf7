"""What a notebook shows of a checkpoint: verdict, devices, findings and the tree, as HTML without scripts.

All that comes from the file is text: cut, escaped, and with its invisible characters made visible. Without
the style sheet, which some places take out, it is a list that can be unfolded.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Collection, Iterator
from functools import cache
from html import escape
from typing import Any

from inspector.model.checkpoint import Checkpoint
from inspector.model.findings import Finding
from inspector.model.totals import DeviceTotal, device_totals
from inspector.report.colors import NEUTRAL, device_colors, device_name
from inspector.report.outline.node import Node, Tree
from inspector.report.tree import build_tree
from inspector.resources import resource_path
from inspector.safety.verdict import SafetyVerdict
from inspector.safety.words import verdict_words
from inspector.units import cut_text, escape_text, format_count, format_nbytes

# The look of a page in a notebook: two palettes, chosen by what notebooks put around it.
#
# Everything is scoped below one class, and nothing has an id: many of these pages stand in one document.
# Text is in the notebook's own color, so that it can be read on any background.

SCOPE = "ckpt-inspector"
_DARK = (
    f"body.vscode-dark .{SCOPE}",
    f"html[theme=dark] .{SCOPE}",
    f'[data-jp-theme-light="false"] .{SCOPE}',
    f"[data-theme=dark] .{SCOPE}",
)
"""VS Code, Colab, JupyterLab, and the generators of sites; others are left to what the system prefers."""
_LIGHT = (
    f"body.vscode-light .{SCOPE}",
    f"html[theme=light] .{SCOPE}",
    f'[data-jp-theme-light="true"] .{SCOPE}',
    f"[data-theme=light] .{SCOPE}",
)
_WRONG = "wrong"
"""The color of the mark before what is wrong."""
_RULES = """
.S{font:13px/1.5 system-ui,sans-serif;max-width:70em;overflow-wrap:anywhere}
.S *{box-sizing:border-box}
.S .head{font-weight:600}
.S .soft{opacity:.8}
.S .bad{font-weight:600}
.S .bad::before{content:"\\26A0\\FE0E";margin-right:.3em;color:var(--wrong)}
.S .line{margin:.15em 0}
.S .bar{display:flex;height:.7em;margin:.4em 0;border:1px solid;border-radius:3px;overflow:hidden}
.S .bar span{display:block;min-width:2px}
.S .chip{display:inline-block;margin-right:1.2em}
.S .dot{display:inline-block;width:.75em;height:.75em;margin-right:.4em;border:1px solid;border-radius:2px}
.S .tree{margin-top:.5em;max-height:32em;overflow:auto;border-top:1px solid;border-bottom:1px solid;
scrollbar-color:rgba(128,128,128,.7) transparent}
.S .in{padding-left:1.1em}
.S .row{display:grid;grid-template-columns:minmax(9em,1fr) 13em 9em 9em 5.5em;column-gap:1em;padding:1px 4px}
.S .row>span:last-child{text-align:right}
.S .value{grid-template-columns:minmax(9em,1fr) 27em 11.5em}
.S .row:hover{background:rgba(128,128,128,.18)}
.S summary{cursor:pointer;list-style:none}
.S summary::-webkit-details-marker{display:none}
.S summary>span:first-child{padding-left:1em;position:relative}
.S summary>span:first-child::before{content:"\\25B8";position:absolute;left:0}
.S details[open]>summary>span:first-child::before{content:"\\25BE"}
.S .leaf>span:first-child{padding-left:1em}
@media (max-width:46em){.S .row{grid-template-columns:minmax(8em,1fr) 7.5em 7.5em 6em 4.5em;column-gap:.5em}
.S .value{grid-template-columns:minmax(8em,1fr) 16em 11em}}
"""


def mark(color: int) -> str:
    """Return the class of a device's color, by its number."""
    return "cpu" if color == NEUTRAL else f"d{color % len(_theme('light')['devices'])}"


@cache
def style() -> str:
    """Return the style sheet."""
    light, dark = _palette("light"), _palette("dark")
    swatches = "".join(
        f".S .{name}{{background:var(--{name})}}\n" for name in _colors("light") if name != _WRONG
    )
    rules = [
        f".S{{{light}}}",
        f"@media (prefers-color-scheme:dark){{.S{{{dark}}}}}",
        f"{','.join(_LIGHT)}{{{light}}}",
        f"{','.join(_DARK)}{{{dark}}}",
    ]
    return "\n".join([*rules, _RULES.strip(), swatches]).replace(".S", f".{SCOPE}")


def _palette(theme: str) -> str:
    return ";".join(f"--{name}:{color}" for name, color in _colors(theme).items())


def _colors(theme: str) -> dict[str, str]:
    data = _theme(theme)
    devices = {f"d{number}": color for number, color in enumerate(data["devices"])}
    return {"cpu": data["cpu"], _WRONG: data["colors"]["bad"], **devices}


@cache
def _theme(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads(resource_path(f"themes/{name}.json").read_text(encoding="utf-8"))
    return data


# The tree in a notebook: `<details>` for groups, with a bound on how many rows there are in all.
#
# The rows nearest to the root come first, and each group gets some of its own, so that a file with one long
# list still shows what is beside it. What is left out is counted.

MOST_ROWS = 150
"""The page is kept in the notebook each time that it is shown: 30 KB with what stands around the rows."""
MOST_BESIDE = 60
"""How many rows of one group are shown."""
_MOST_OPEN = 24
"""How many rows are to be seen before anything is unfolded, as far as groups can be."""
_MOST_NAME, _ROW_MOST_PATH, _MOST_TEXT = 120, 300, 80
_ROW_MOST_DEVICES, _MOST_LEVELS = 4, 12


def text_of(text: str, most: int = _MOST_TEXT) -> str:
    """Return a text from a file as HTML: cut, with nothing invisible in it, and with no markup."""
    return escape(escape_text(cut_text(text, most)))


def tree_lines(tree: Tree) -> Iterator[str]:
    """Yield the rows of a tree, as many as may be."""
    shown = _shown(tree)
    unfolded = _unfolded(tree, shown)
    yield from _below(tree, shown, unfolded)
    below = len(tree.nodes) - 1 - sum(len(tree.nodes[id_].children) for id_ in shown)
    if below:
        words = f"{format_count(below, 'row')} further below: text() of the checkpoint lists all"
        yield f'<div class="row leaf soft"><span>{words}</span></div>'


def _shown(tree: Tree) -> dict[int, list[int]]:
    shown: dict[int, list[int]] = {}
    waiting, count = deque([0]), 0
    while waiting and count < MOST_ROWS:
        id_ = waiting.popleft()
        shown[id_] = tree.nodes[id_].children[: min(MOST_BESIDE, MOST_ROWS - count)]
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
        if id_ not in shown:
            yield f'<div class="{_kind(tree.nodes[id_])}">{cells}</div>'
            continue
        state, inner = " open" if id_ in unfolded else "", ' class="in"' if level < _MOST_LEVELS else ""
        yield f'<details{state}><summary class="row">{cells}</summary><div{inner}>'
        stack.append("</div></details>")
        stack.extend(_within(tree, id_, shown, level + 1))


def _within(tree: Tree, id_: int, shown: dict[int, list[int]], level: int) -> list[tuple[int, int] | str]:
    rows = shown[id_]
    more = len(tree.nodes[id_].children) - len(rows)
    left_out = [f'<div class="row leaf soft"><span>{more:,} more</span></div>'] if more else []
    return [*left_out, *((child, level) for child in reversed(rows))]


def _kind(node: Node) -> str:
    return "row leaf value" if node.kind == "value" else "row leaf"


def _cells(tree: Tree, node: Node) -> str:
    title = f' title="{text_of(node.path, _ROW_MOST_PATH)}"' if node.children else ""
    name = f"<span{title}>{text_of(node.name, _MOST_NAME)}</span>"
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
    dots = "".join(f'<i class="dot {mark(color)}"></i>' for color in colors[:_ROW_MOST_DEVICES])
    return f"{dots}{text_of(node.device_text)}"


def _order(color: int) -> tuple[bool, int]:
    return color == NEUTRAL, color


_MOST_DEVICES, _MOST_FINDINGS = 16, 4
_MOST_PATH, _MOST_TITLE = 200, 160
_WORSE = ("error", "warning")


def page_of(checkpoint: Checkpoint, safety: SafetyVerdict, findings: Collection[Finding]) -> str:
    """Return the page."""
    totals = device_totals(checkpoint)
    tree = build_tree(checkpoint, device_colors(total.device for total in totals))
    lines = (
        f"<style>{style()}</style>",
        *_head(checkpoint, safety),
        *_devices(totals, tree.colors),
        *_findings(findings),
        '<div class="tree">',
        *tree_lines(tree),
        "</div>",
    )
    return f'<div class="{SCOPE}">{"".join(lines)}</div>'


def _head(checkpoint: Checkpoint, safety: SafetyVerdict) -> Iterator[str]:
    tensors = format_count(len(checkpoint.tensors), "tensor")
    facts = f"{checkpoint.format}, {tensors}, {format_nbytes(checkpoint.file_nbytes)}"
    kind = "line bad" if safety.may_harm else "line"
    yield f'<div class="head">{text_of(checkpoint.path, _MOST_PATH)}</div>'
    yield f'<div class="line soft">{text_of(facts)}</div>'
    yield f'<div class="{kind}">{text_of(verdict_words(safety), _MOST_TITLE)}</div>'


def _devices(totals: tuple[DeviceTotal, ...], colors: dict[str, int]) -> Iterator[str]:
    whole = sum(total.nbytes for total in totals)
    marks = {total.device: mark(colors[total.device]) for total in totals}
    if whole:
        stored = [total for total in totals[:_MOST_DEVICES] if total.nbytes]
        shares = [(marks[total.device], 100 * total.nbytes / whole) for total in stored]
        parts = "".join(f'<span class="{name}" style="width:{share:.2f}%"></span>' for name, share in shares)
        yield f'<div class="bar" aria-hidden="true">{parts}</div>'
    yield '<div class="line">'
    for total in totals[:_MOST_DEVICES]:
        held = f"{format_count(total.tensors, 'tensor')}, {format_nbytes(total.nbytes)}"
        name = f'<i class="dot {marks[total.device]}"></i>{text_of(device_name(total.device))}'
        yield f'<span class="chip">{name} <span class="soft">{held}</span></span>'
    more = len(totals) - _MOST_DEVICES
    if more > 0:
        yield f'<span class="soft">{format_count(more, "more device")}</span>'
    yield "</div>"


def _findings(findings: Collection[Finding]) -> Iterator[str]:
    shown = [finding for finding in findings if finding.severity in _WORSE]
    for finding in shown[:_MOST_FINDINGS]:
        kind = "line bad" if finding.severity == "error" else "line"
        yield f'<div class="{kind}">{finding.severity}: {text_of(finding.title, _MOST_TITLE)}</div>'
    more = len(shown) - _MOST_FINDINGS
    if more > 0:
        yield f'<div class="line soft">{format_count(more, "finding")} more</div>'
